"""Exact floats, inputs and rows for vectors.py."""

import math
import random
import struct
from fractions import Fraction

LANES = 16
TARGETS = ["gfx942", "gfx950", "gfx1201", "gfx1250"]
GFX9, GFX12 = TARGETS[:2], TARGETS[2:]
M32, M64 = (1 << 32) - 1, (1 << 64) - 1

# ---- floats as exact values -------------------------------------------------------------------------------------


class Format:
    """exponent bits, mantissa bits, bias; kind: ieee, fn, fnuz or none, as in the OCP and AMD documents."""

    def __init__(self, exponent, mantissa, bias=None, kind="ieee"):
        self.e, self.m, self.kind = exponent, mantissa, kind
        self.bias = (1 << (exponent - 1)) - 1 if bias is None else bias
        self.bits = 1 + exponent + mantissa
        self.sign = 1 << (self.bits - 1)

    def split(self, code):
        code &= (1 << self.bits) - 1
        return bool(code & self.sign), code >> self.m & ((1 << self.e) - 1), code & ((1 << self.m) - 1)

    def is_nan(self, code):
        s, e, m = self.split(code)
        if self.kind == "ieee":
            return e == (1 << self.e) - 1 and m != 0
        if self.kind == "fn":
            return e == (1 << self.e) - 1 and m == (1 << self.m) - 1
        return self.kind == "fnuz" and s and e == 0 and m == 0

    def is_inf(self, code):
        _, e, m = self.split(code)
        return self.kind == "ieee" and e == (1 << self.e) - 1 and m == 0

    def value(self, code):
        """Fraction of a finite code."""
        s, e, m = self.split(code)
        v = Fraction(m + (1 << self.m if e else 0)) * Fraction(2) ** ((e or 1) - self.bias - self.m)
        return -v if s else v

    def top(self):
        if self.kind == "ieee":
            return (((1 << self.e) - 1) << self.m) - 1
        return self.sign - (2 if self.kind == "fn" else 1)

    def encode(self, v, negative_zero=False, mode="even", saturate=False):
        """Code of an exact value, by comparing neighbours: no bit tricks to share with anybody."""
        v = Fraction(v)
        negative = v < 0 or (v == 0 and negative_zero)
        sign = self.sign if negative else 0
        a = abs(v)
        if a == 0:
            return 0 if self.kind == "fnuz" else sign
        e = math.floor(math.log2(a)) if Fraction(2) ** -1000 < a < Fraction(2) ** 1000 else exponent_of(a)
        while Fraction(2) ** e > a:
            e -= 1
        while Fraction(2) ** (e + 1) <= a:
            e += 1
        e = max(e, 1 - self.bias)
        step = Fraction(2) ** (e - self.m)
        low = a // step
        rest = a / step - low
        up = {"even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1), "zero": False,
              "up": rest > 0 and not negative, "down": rest > 0 and negative}[mode]
        n = int(low) + up
        code = ((e + self.bias - 1) << self.m) + n
        if code > self.top():
            inward = mode == "zero" or (mode == "up" and negative) or (mode == "down" and not negative)
            if saturate or inward or self.kind == "none":
                code = self.top()
            elif self.kind == "ieee":
                code = self.top() + 1
            else:
                return "nan"
        if code == 0 and self.kind == "fnuz":
            return 0
        return code | sign


def exponent_of(a):
    return a.numerator.bit_length() - a.denominator.bit_length()


F32, F64, F16, BF16 = Format(8, 23), Format(11, 52), Format(5, 10), Format(8, 7)
FP8, BF8 = Format(4, 3, kind="fn"), Format(5, 2)
FP8Z, BF8Z = Format(4, 3, 8, "fnuz"), Format(5, 2, 16, "fnuz")
FP6, BF6, FP4 = Format(2, 3, 1, "none"), Format(3, 2, 3, "none"), Format(2, 1, 1, "none")


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def to_float(fmt, code):
    """The double of a code of up to 32 bits, infinities and NaN included."""
    if fmt.is_nan(code):
        return math.nan
    if fmt.is_inf(code):
        return -math.inf if code & fmt.sign else math.inf
    v = float(fmt.value(code))
    return -0.0 if v == 0 and code & fmt.sign else v


def from_float(fmt, x, **how):
    """Code of a double that is the exact result, or "nan"."""
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return (fmt.top() + 1) | (fmt.sign if x < 0 else 0)
    return fmt.encode(Fraction(x), math.copysign(1, x) < 0, **how)


def exact(fmt, codes, function, **how):
    """function over doubles decides specials and signs of zero; over fractions the value."""
    x = [to_float(fmt, c) for c in codes]
    if any(math.isnan(v) for v in x):
        return "nan"
    if any(math.isinf(v) for v in x):
        try:
            r = function(*x)
        except (ValueError, OverflowError):
            return "nan"
        return from_float(fmt, r)
    v = function(*[fmt.value(c) for c in codes])
    if v == 0:
        r = function(*[math.copysign(1.0 if x_ else 0.0, x_) if x_ == 0 else x_ for x_ in x])
        return fmt.encode(0, math.copysign(1, r) < 0 if r == 0 else r < 0)
    return fmt.encode(v, **how)


# ---- inputs --------------------------------------------------------------------------------------------------------

POOL32 = [bits32(x) for x in (0.0, -0.0, 1.0, -1.0, 2.5, -3.75, 1.0000001, 1e-30, 3e38, -3e38, 0.1, 65504.0, 1e10)] + [
    0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F7FFFFF, 0x4B800001, 0xCB000001]
POOL16 = [0, 0x8000, 0x3C00, 0xBC00, 0x4100, 0xC380, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 1, 0x83FF, 0x0400, 0x3BFF, 0x2E66,
          0x5640, 0x6400]
POOLB = [0, 0x8000, 0x3F80, 0xBF80, 0x4020, 0xC070, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 1, 0x0080, 0x3DCD, 0x4780, 0x3F81, 0xC2F7]
POOL64 = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (0.0, -0.0, 1.0, -1.0, 2.5, -3.75, 0.1, 1e300, -1e300, 1e-300,
                                                               3.141592653589793, 1e16, 4503599627370497.5)] + [
    0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 1, 0x800FFFFFFFFFFFFF]
INTS = [0, 1, 2, 31, 32, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE,
        0xFFFFFFFF, 0x12345678, 0xDEADBEEF]


def draw(name, pool, count, width):
    """`count` columns of LANES values: half from the pool, half random bits, the same in every run."""
    rng = random.Random(name)
    columns = []
    for c in range(count):
        column = [rng.choice(pool) if rng.random() < 0.6 else rng.getrandbits(width) for _ in range(LANES)]
        columns.append(column)
    return columns


ROWS = []  # (name, {target: asm}, inputs, results)


def row(name, asm, inputs, results, targets=TARGETS):
    if isinstance(asm, str):
        asm = {t: asm for t in targets}
    ROWS.append((name, asm, inputs, results))


def wide(register, values):
    """A 64-bit column as two registers."""
    return {f"v{register}": [v & M32 for v in values], f"v{register + 1}": [v >> 32 & M32 for v in values]}


def wide_result(register, values):
    low = ["nan64" if v == "nan" else v & M32 for v in values]
    high = ["nan64" if v == "nan" else v >> 32 for v in values]
    return {f"v{register}": low, f"v{register + 1}": high}


def simple(names, sources, width, pool, function, targets=TARGETS, seed=None, suffix="", inputs=None):
    """Sources in v0, v1, v2, result in v10."""
    for name in names.split():
        columns = inputs or draw(seed or name, pool, sources, width)
        got = {f"v{n}": c for n, c in enumerate(columns)}
        want = [function(*lane) for lane in zip(*columns)]
        if width == 16:
            want = ["nan16" if v == "nan" and pool is POOL16 else "nanb16" if v == "nan" else v for v in want]
            got = {k: [v | 0x5A5A0000 for v in c] for k, c in got.items()}
            want = [("low", v) for v in want]
        regs = ", ".join(f"v{n}" for n in range(len(columns)))
        row(name, f"{name} v10, {regs}{suffix}", got, {"v10": want}, targets)


def simple64(names, kinds, function, targets=TARGETS, pool=None, columns=None, mask=None):
    """`kinds`: width of each source, 32 or 64; result 64 bits in v[10:11]; registers v0, v2, v4."""
    for name in names.split():
        cols = columns or [draw(name + str(n), (pool or INTS64) if k == 64 else INTS, 1, k)[0] for n, k in enumerate(kinds)]
        got, regs = {}, []
        for n, (k, c) in enumerate(zip(kinds, cols)):
            if k == 64:
                got.update(wide(2 * n, c))
                regs.append(f"v[{2 * n}:{2 * n + 1}]")
            else:
                got[f"v{2 * n}"] = c
                regs.append(f"v{2 * n}")
        want = [function(*lane) for lane in zip(*cols)]
        row(name, f"{name} v[10:11], {', '.join(regs)}", got, wide_result(10, want), targets)


INTS64 = [0, 1, M64, 1 << 63, (1 << 63) - 1, 0xFFFFFFFF, 1 << 32, 0x123456789ABCDEF0, 63, 64]


def s32(a):
    return (a & M32) - (1 << 32) if a & 0x80000000 else a & M32


def s16(a):
    return (a & 0xFFFF) - 0x10000 if a & 0x8000 else a & 0xFFFF


def s24(a):
    a &= 0xFFFFFF
    return a - 0x1000000 if a & 0x800000 else a


def s64(a):
    return a - (1 << 64) if a >> 63 else a


def mask_of(flags):
    return sum(1 << n for n, f in enumerate(flags) if f)


def order(a, b, pick, zero):
    """min/max of two f codes by number rules on python floats."""
    return pick(a, b)
