"""Rows of f32, f64, f16, bf16, comparisons, packed floats and dot products."""

import math
import struct
from fractions import Fraction

from vectors_base import *


def number_of(fmt, c):
    return to_float(fmt, c)


def max_number(fmt, a, b):
    x, y = to_float(fmt, a), to_float(fmt, b)
    if math.isnan(x):
        return "nan" if math.isnan(y) else b
    if math.isnan(y):
        return a
    if x == y == 0:
        return a & b
    return a if x >= y else b


def min_number(fmt, a, b):
    x, y = to_float(fmt, a), to_float(fmt, b)
    if math.isnan(x):
        return "nan" if math.isnan(y) else b
    if math.isnan(y):
        return a
    if x == y == 0:
        return a | b
    return a if x <= y else b


def nan_wins(fmt, pick):
    def f(a, b):
        return "nan" if fmt.is_nan(a) or fmt.is_nan(b) else pick(fmt, a, b)
    return f


def chain(f, g):
    """g(f(a, b), c) where a "nan" in the middle counts as a NaN operand."""
    def h(a, b, c):
        m = f(a, b)
        return g(QUIET if m == "nan" else m, c)
    return h


QUIET = 0x7FC00000


def median(fmt, quiet):
    def f(a, b, c):
        if any(fmt.is_nan(v) for v in (a, b, c)):
            m = min_number(fmt, a, b)
            return min_number(fmt, quiet if m == "nan" else m, c)
        return sorted((a, b, c), key=lambda v: (to_float(fmt, v), not v & fmt.sign))[1]
    return f


def unary(fmt, function):
    def f(a):
        if fmt.is_nan(a):
            return "nan"
        return function(a)
    return f


def rounder(fmt, kind):
    def f(a):
        if fmt.is_nan(a):
            return "nan"
        if fmt.is_inf(a):
            return a
        v = fmt.value(a)
        n = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "even": round}[kind](v)
        return fmt.encode(n, negative_zero=bool(a & fmt.sign))
    return f


def legacy_mul(a, b):
    return 0 if to_float(F32, a) == 0 or to_float(F32, b) == 0 else exact(F32, [a, b], lambda x, y: x * y)


def fract(fmt):
    def f(a):
        if fmt.is_nan(a) or fmt.is_inf(a):
            return "nan"
        v = fmt.value(a)
        r = fmt.encode(v - math.floor(v))
        one = fmt.bias << fmt.m
        return min(r, one - 1)
    return f


def ldexp(fmt):
    def f(a, n):
        if fmt.is_nan(a):
            return "nan"
        if fmt.is_inf(a):
            return a
        n = s32(n) if fmt is not F16 else s16(n)
        n = max(-3000, min(3000, n))
        return fmt.encode(fmt.value(a) * Fraction(2) ** n, bool(a & fmt.sign))
    return f


def frexp_mant(fmt):
    def f(a):
        if fmt.is_nan(a):
            return "nan"
        if fmt.is_inf(a) or fmt.value(a) == 0:
            return a
        return from_float(fmt, math.frexp(float(fmt.value(a)))[0])
    return f


def frexp_exp(fmt, width):
    def f(a):
        if fmt.is_nan(a) or fmt.is_inf(a):
            return 0
        return math.frexp(float(fmt.value(a)))[1] & ((1 << width) - 1)
    return f


add, sub, mul = (lambda x, y: x + y), (lambda x, y: x - y), (lambda x, y: x * y)


def op(fmt, function):
    return lambda *codes: exact(fmt, codes, function)


fma = lambda x, y, z: x * y + z


def families(fmt, t, width, pool, quiet):
    """Instructions that exist in the same shape for f32 and f16."""
    mx, mn = (lambda a, b: max_number(fmt, a, b)), (lambda a, b: min_number(fmt, a, b))
    maximum, minimum = nan_wins(fmt, max_number), nan_wins(fmt, min_number)

    def two(f, g):
        def h(a, b, c):
            m = f(a, b)
            return g(quiet if m == "nan" else m, c)
        return h

    def one(names, n, f, targets=TARGETS, seed=None):
        simple(names, n, width, pool, f, targets, seed)

    one(f"v_add_{t}", 2, op(fmt, add))
    one(f"v_sub_{t}", 2, op(fmt, sub))
    one(f"v_subrev_{t}", 2, op(fmt, lambda x, y: y - x))
    one(f"v_mul_{t}", 2, op(fmt, mul))
    one(f"v_fma_{t}", 3, op(fmt, fma))
    one(f"v_max_{t} v_max_num_{t}", 2, mx)
    one(f"v_min_{t} v_min_num_{t}", 2, mn)
    one(f"v_maximum_{t}", 2, maximum)
    one(f"v_minimum_{t}", 2, minimum)
    one(f"v_max3_{t} v_max3_num_{t}", 3, two(mx, mx))
    one(f"v_min3_{t} v_min3_num_{t}", 3, two(mn, mn))
    one(f"v_maximum3_{t}", 3, two(maximum, maximum))
    one(f"v_minimum3_{t}", 3, two(minimum, minimum))
    one(f"v_minmax_num_{t}", 3, two(mn, mx))
    one(f"v_maxmin_num_{t}", 3, two(mx, mn))
    one(f"v_minimummaximum_{t}", 3, two(minimum, maximum))
    one(f"v_maximumminimum_{t}", 3, two(maximum, minimum))
    one(f"v_med3_{t} v_med3_num_{t}", 3, median(fmt, quiet))
    for name, kind in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rndne", "even")):
        one(f"v_{name}_{t}", 1, rounder(fmt, kind))
    one(f"v_fract_{t}", 1, fract(fmt))
    one(f"v_ldexp_{t}", 2, ldexp(fmt))
    one(f"v_frexp_mant_{t}", 1, frexp_mant(fmt))


families(F32, "f32", 32, POOL32, QUIET)
families(F16, "f16", 16, POOL16, 0x7E00)
simple("v_mul_legacy_f32 v_mul_dx9_zero_f32", 2, 32, POOL32, legacy_mul)
simple("v_fma_dx9_zero_f32", 3, 32, POOL32,
       lambda a, b, c: (("nan" if F32.is_nan(c) else c) if to_float(F32, a) == 0 or to_float(F32, b) == 0
                        else exact(F32, [a, b, c], fma)))
simple("v_frexp_exp_i32_f32", 1, 32, POOL32, frexp_exp(F32, 32))


def accumulate(names, fmt, width, pool, function, regs="v0, v1"):
    """Destination v10 is also the third source."""
    for name in names.split():
        a, b, c = draw(name, pool, 3, width)
        want = [function(*lane) for lane in zip(a, b, c)]
        if width == 16:
            want = [("low", "nan16" if v == "nan" else v) for v in want]
        row(name, f"{name} v10, {regs}", {"v0": a, "v1": b, "v10": c}, {"v10": want})


def mad16(a, b, c):
    p = exact(F16, [a, b], mul)
    return "nan" if p == "nan" else exact(F16, [p, c], add)


accumulate("v_fmac_f32", F32, 32, POOL32, op(F32, fma))
accumulate("v_fmac_f16", F16, 16, POOL16, op(F16, fma))
accumulate("v_mac_f16", F16, 16, POOL16, mad16)
simple("v_mad_f16 v_mad_legacy_f16", 3, 16, POOL16, mad16)
simple("v_fma_legacy_f16", 3, 16, POOL16, op(F16, fma))

K32, K16 = bits32(1.5), 0x3E00
for name, asm, f, width, pool in (
        ("v_fmaak_f32", "v_fmaak_f32 v10, v0, v1, 0x3fc00000", lambda a, b: exact(F32, [a, b, K32], fma), 32, POOL32),
        ("v_fmamk_f32", "v_fmamk_f32 v10, v0, 0x3fc00000, v1", lambda a, b: exact(F32, [a, K32, b], fma), 32, POOL32),
        ("v_fmaak_f16", "v_fmaak_f16 v10, v0, v1, 0x3e00", lambda a, b: exact(F16, [a, b, K16], fma), 16, POOL16),
        ("v_fmamk_f16", "v_fmamk_f16 v10, v0, 0x3e00, v1", lambda a, b: exact(F16, [a, K16, b], fma), 16, POOL16),
        ("v_madak_f16", "v_madak_f16 v10, v0, v1, 0x3e00", lambda a, b: mad16(a, b, K16), 16, POOL16),
        ("v_madmk_f16", "v_madmk_f16 v10, v0, 0x3e00, v1", lambda a, b: mad16(a, K16, b), 16, POOL16)):
    cols = draw(name, pool, 2, width)
    want = [f(*lane) for lane in zip(*cols)]
    if width == 16:
        want = [("low", "nan16" if v == "nan" else v) for v in want]
    row(name, asm, {"v0": cols[0], "v1": cols[1]}, {"v10": want})

# ---- f64 ------------------------------------------------------------------------------------------------------------


def f64_rows(names, sources, f):
    for name in names.split():
        cols = draw(name, POOL64, sources, 64)
        got = {}
        for n, c in enumerate(cols):
            got.update(wide(2 * n, c))
        regs = ", ".join(f"v[{2 * n}:{2 * n + 1}]" for n in range(sources))
        row(name, f"{name} v[10:11], {regs}", got, wide_result(10, [f(*lane) for lane in zip(*cols)]))


def float64(c):
    return struct.unpack("<d", struct.pack("<Q", c))[0]


def specials64(function):
    return lambda *codes: exact(F64, codes, function)


f64_rows("v_add_f64", 2, specials64(add))
f64_rows("v_mul_f64", 2, specials64(mul))
f64_rows("v_fma_f64", 3, specials64(fma))
f64_rows("v_max_f64 v_max_num_f64", 2, lambda a, b: max_number(F64, a, b))
f64_rows("v_min_f64 v_min_num_f64", 2, lambda a, b: min_number(F64, a, b))
f64_rows("v_maximum_f64", 2, nan_wins(F64, max_number))
f64_rows("v_minimum_f64", 2, nan_wins(F64, min_number))
for n_, kind_ in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rndne", "even")):
    f64_rows(f"v_{n_}_f64", 1, rounder(F64, kind_))
f64_rows("v_fract_f64", 1, fract(F64))
f64_rows("v_frexp_mant_f64", 1, frexp_mant(F64))


def recip(fmt, power):
    """1/x (power 1) or 1/sqrt(x) (power 2), correctly rounded."""
    def f(a):
        x = to_float(fmt, a)
        if math.isnan(x):
            return "nan"
        sign = a & fmt.sign
        if x == 0:
            return (fmt.top() + 1) | sign
        if math.isinf(x):
            return "nan" if power == 2 and sign else sign
        if power == 1:
            return fmt.encode(1 / fmt.value(a))
        if x < 0:
            return "nan"
        return fmt.encode(1 / root(fmt.value(a)))
    return f


def root(v):
    """Square root of a fraction to 200 bits beyond its leading one."""
    shift = 400 + 2 * abs(exponent_of(v))
    return Fraction(math.isqrt((v.numerator << 2 * shift) // v.denominator), 1 << shift)


def square_root(fmt):
    def f(a):
        x = to_float(fmt, a)
        if math.isnan(x) or x < 0:
            return "nan"
        if x == 0 or math.isinf(x):
            return a
        return fmt.encode(root(fmt.value(a)))
    return f


def near(f, kind="ulp"):
    def g(*a):
        v = f(*a)
        return v if v == "nan" else (kind, v)
    return g


f64_rows("v_sqrt_f64", 1, square_root(F64))
f64_rows("v_rcp_f64", 1, recip(F64, 1))
cols = draw("v_rsq_f64", [0x3FF0000000000000, 0x4010000000000000, 0x7FF0000000000000, 0, 0x3FD0000000000000], 1, 64)[0]
cols = [0x3FF0000000000000, 0x4010000000000000, 0x7FF0000000000000, 0x3FD0000000000000, 0x4030000000000000, 0x7FF8000000000000,
        0xBFF0000000000000, 0] * 2
row("v_rsq_f64", "v_rsq_f64 v[10:11], v[0:1]", wide(0, cols), wide_result(10, [recip(F64, 2)(c) for c in cols]))

a, b, c = draw("v_fmac_f64", POOL64, 3, 64)
row("v_fmac_f64", "v_fmac_f64 v[10:11], v[0:1], v[2:3]", {**wide(0, a), **wide(2, b), **wide(10, c)},
    wide_result(10, [exact(F64, list(lane), fma) for lane in zip(a, b, c)]))
K64 = 0x3FF8000000000000
row("v_fmaak_f64", "v_fmaak_f64 v[10:11], v[0:1], v[2:3], 0x3ff8000000000000", {**wide(0, a), **wide(2, b)},
    wide_result(10, [exact(F64, [x, y, K64], fma) for x, y in zip(a, b)]))
row("v_fmamk_f64", "v_fmamk_f64 v[10:11], v[0:1], 0x3ff8000000000000, v[2:3]", {**wide(0, a), **wide(2, b)},
    wide_result(10, [exact(F64, [x, K64, y], fma) for x, y in zip(a, b)]))
n_ = [0, 1, 5, M32, 0x80000000, 0x7FFFFFFF, 100, 0xFFFFFF9C] * 2
row("v_ldexp_f64", "v_ldexp_f64 v[10:11], v[0:1], v2", {**wide(0, a), "v2": n_},
    wide_result(10, [ldexp(F64)(x, y) for x, y in zip(a, n_)]))
row("v_frexp_exp_i32_f64", "v_frexp_exp_i32_f64 v10, v[0:1]", wide(0, a), {"v10": [frexp_exp(F64, 32)(x) for x in a]})

# ---- transcendental -----------------------------------------------------------------------------------------------------


def flushed(fmt, f):
    """f32 units take and give no denormals."""
    def zero(c):
        _, e, _ = fmt.split(c)
        return c if e else c & fmt.sign

    def g(a):
        r = f(zero(a))
        return r if isinstance(r, str) else zero(r)
    return g


def via(fmt, function):
    """A double function is far more precise than the format."""
    def f(a):
        x = to_float(fmt, a)
        if math.isnan(x):
            return "nan"
        try:
            r = function(x)
        except ValueError:
            return "nan"
        except OverflowError:
            r = math.inf
        return from_float(fmt, r)
    return f


def log2(x):
    if x == 0:
        return -math.inf
    return math.inf if math.isinf(x) and x > 0 else math.log2(x)


def exp2(x):
    return 0.0 if x == -math.inf or x < -1100 else 2.0 ** x


def turn(function):
    def f(x):
        if math.isinf(x):
            return math.nan
        x = x if abs(x) <= 256 else 0.0
        return function((x - math.floor(x)) * 2 * math.pi)
    return f


TAME = [bits32(x) for x in (0.0, 0.25, 0.5, -0.125, 1.0, 3.3, -7.25, 100.5, 255.75, 300.0, -12.5, 0.01, 1e-3, 2.0, 20.0, -150.0)]
ALWAYS = POOL32[:15]
INPUT = (TAME[:8] + ALWAYS[:4] + [0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001])
for name, f in (("exp", exp2), ("log", log2)):
    simple(f"v_{name}_f32 v_{name}_legacy_f32", 1, 32, POOL32, near(flushed(F32, via(F32, f))), inputs=[INPUT])
    simple(f"v_{name}_f16", 1, 16, POOL16, lambda a, f=f: via(F16, f)(a), inputs=[POOL16[:16]])
    simple(f"v_{name}_bf16", 1, 16, POOLB, lambda a, f=f: via(BF16, f)(a), inputs=[POOLB[:16]])
simple("v_rcp_f32 v_rcp_iflag_f32", 1, 32, POOL32, near(flushed(F32, recip(F32, 1))))
simple("v_rsq_f32", 1, 32, POOL32, near(flushed(F32, recip(F32, 2))))
simple("v_sqrt_f32", 1, 32, POOL32, near(flushed(F32, square_root(F32))))
for fmt, t, pool in ((F16, "f16", POOL16), (BF16, "bf16", POOLB)):
    simple(f"v_rcp_{t}", 1, 16, pool, recip(fmt, 1))
    simple(f"v_rsq_{t}", 1, 16, pool, recip(fmt, 2))
    simple(f"v_sqrt_{t}", 1, 16, pool, square_root(fmt))
    simple(f"v_tanh_{t}", 1, 16, pool, via(fmt, math.tanh))
simple("v_tanh_f32", 1, 32, POOL32, near(via(F32, math.tanh)), inputs=[INPUT])
ANGLES = [bits32(x) for x in (0.0, 0.125, 0.1, 0.3, -0.2, 1.37, 255.9, 300.0, -100.3, 0.6, 0.9, 7.7)] + [0x7F800000, 0x7FC00000,
                                                                                                bits32(2.45), bits32(-3.1)]
ANGLES16 = [0, 0x3000, 0x2E66, 0x34CD, 0xB266, 0x3D7B, 0x5BFF, 0x5CB0, 0x7C00, 0x7E00, 0x38CD, 0x3B33, 0x47B3, 0xC200, 0x40E6, 0xBE66]
ANGLESB = [0, 0x3E00, 0x3DCD, 0x3E9A, 0xBE4D, 0x3FAF, 0x437F, 0x4396, 0x7F80, 0x7FC0, 0x3F1A, 0x3F66, 0x40F6, 0xC040, 0x401D, 0xBFCD]
for name, f in (("sin", math.sin), ("cos", math.cos)):
    simple(f"v_{name}_f32", 1, 32, POOL32, near(via(F32, turn(f))), inputs=[ANGLES])
    simple(f"v_{name}_f16", 1, 16, POOL16, near(via(F16, turn(f)), "ulp"), inputs=[ANGLES16])
    simple(f"v_{name}_bf16", 1, 16, POOLB, near(via(BF16, turn(f)), "ulp"), inputs=[ANGLESB])
# The scalar-operand forms of gfx12: one value, scalar result.
for name, f in (("exp", exp2), ("log", log2)):
    row(f"v_s_{name}_f32", f"v_s_{name}_f32 s10, s4", {"s4": bits32(3.25)}, {"s10": [("ulp", via(F32, f)(bits32(3.25)))]}, GFX12)
    row(f"v_s_{name}_f16", f"v_s_{name}_f16 s10, s4", {"s4": 0x4280}, {"s10": via(F16, f)(0x4280)}, GFX12)
for name, f32_, f16_ in (("rcp", recip(F32, 1), recip(F16, 1)), ("rsq", recip(F32, 2), recip(F16, 2)),
                         ("sqrt", square_root(F32), square_root(F16))):
    row(f"v_s_{name}_f32", f"v_s_{name}_f32 s10, s4", {"s4": bits32(3.25)}, {"s10": [("ulp", f32_(bits32(3.25)))]}, GFX12)
    row(f"v_s_{name}_f16", f"v_s_{name}_f16 s10, s4", {"s4": 0x4280}, {"s10": f16_(0x4280)}, GFX12)

# ---- division ----------------------------------------------------------------------------------------------------------------


def denormal(fmt, v):
    return v != 0 and abs(v) < Fraction(2) ** (1 - fmt.bias)


def div_scale(fmt, gap_limit, tiny, amount):
    """S0 is the numerator or the denominator again; S1 the denominator, S2 the numerator. A huge denominator goes down."""
    def f(s0, s1, s2):
        d, n = to_float(fmt, s1), to_float(fmt, s2)
        if n == 0 or d == 0:
            return "nan", 0
        if any(fmt.is_nan(v) or fmt.is_inf(v) for v in (s1, s2)):
            gap = fmt.split(s2)[1] - fmt.split(s1)[1]
            if gap >= gap_limit:
                return ("skip", 1)
            return ("skip", "skip")
        dv, nv, v0 = fmt.value(s1), fmt.value(s2), fmt.value(s0)
        up, down = fmt.encode(v0 * Fraction(2) ** amount, bool(s0 & fmt.sign)), fmt.encode(v0 / Fraction(2) ** amount, bool(s0 & fmt.sign))
        if fmt.split(s2)[1] - fmt.split(s1)[1] >= gap_limit:
            return (up if s0 == s1 else s0), 1
        if denormal(fmt, dv):
            return up, 0
        if denormal(fmt, 1 / dv) and denormal(fmt, nv / dv):
            return (down if s0 == s1 else s0), 1
        if denormal(fmt, 1 / dv):
            return down, 0
        if denormal(fmt, nv / dv):
            return (up if s0 == s2 else s0), 1
        if fmt.split(s2)[1] <= tiny:
            return up, 0
        return s0, 0
    return f


NUM = [bits32(x) for x in (1.0, 3e38, 1e-37, 1e-30, 5.0, -7.5, 1e-38, 2e38, 0.0, 3.0, 1e-20, 1e30, 1e-36, 8.0, 1.5, 1e38)]
DEN = [bits32(x) for x in (3.0, 1e-3, 1e10, 1e-39, -2.0, 3e38, 3e38, 1e-10, 4.0, 0.0, 1e25, 1e-30, 0.5, 2e38, 1e-44, 7.0)]
for which, s0 in (("denominator", DEN), ("numerator", NUM)):
    got = [div_scale(F32, 96, 23, 64)(x, d, n) for x, d, n in zip(s0, DEN, NUM)]
    regs = "v1, v1, v2" if which == "denominator" else "v2, v1, v2"
    row("v_div_scale_f32", {**{t: f"v_div_scale_f32 v10, s[20:21], {regs}" for t in GFX9},
                            **{t: f"v_div_scale_f32 v10, s20, {regs}" for t in GFX12}},
        {"v1": DEN, "v2": NUM}, {"v10": [g[0] for g in got], "s20": mask_of(g[1] for g in got)})
NUM64 = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (1.0, 1e308, 1e-307, 1e-300, 5.0, -7.5, 1e-308, 1e300, 0.0, 3.0,
                                                              1e-250, 1e290, 1e-306, 8.0, 1.5, 1e308)]
DEN64 = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (3.0, 1e-3, 1e10, 1e-310, -2.0, 1.7e308, 1.7e308, 1e-10, 4.0, 0.0,
                                                              1e100, 1e-290, 0.5, 1.7e308, 5e-324, 7.0)]
for which, s0 in (("denominator", DEN64), ("numerator", NUM64)):
    got = [div_scale(F64, 768, 53, 128)(x, d, n) for x, d, n in zip(s0, DEN64, NUM64)]
    regs = "v[2:3], v[2:3], v[4:5]" if which == "denominator" else "v[4:5], v[2:3], v[4:5]"
    row("v_div_scale_f64", {**{t: f"v_div_scale_f64 v[10:11], s[20:21], {regs}" for t in GFX9},
                            **{t: f"v_div_scale_f64 v[10:11], s20, {regs}" for t in GFX12}},
        {**wide(2, DEN64), **wide(4, NUM64)}, {**wide_result(10, [g[0] for g in got]), "s20": mask_of(g[1] for g in got)})


def div_fmas(fmt, amount):
    def f(a, b, c, back):
        if any(fmt.is_nan(v) or fmt.is_inf(v) for v in (a, b, c)):
            return exact(fmt, [a, b, c], fma)
        v = fmt.value(a) * fmt.value(b) + fmt.value(c)
        if back:
            v = v * Fraction(2) ** (amount if fmt.split(c)[1] > fmt.bias else -amount)
        if v == 0:
            return exact(fmt, [a, b, c], fma)
        return fmt.encode(v)
    return f


SMALL = [bits32(x) for x in (1e-8, -1e-9, 2.0, 0.5, 1e-30, 3.0, 1.25, -4.5)]
cols = draw("v_div_fmas_f32", SMALL, 2, 30) + [[bits32(x) for x in (1e10, 1e-10, 0.3, 5.0, 1e20, 1e-15, 1.0, 2.0)] * 2]
vcc = 0xA5F3
row("v_div_fmas_f32", "v_div_fmas_f32 v10, v0, v1, v2", {"v0": cols[0], "v1": cols[1], "v2": cols[2], "vcc": vcc},
    {"v10": [div_fmas(F32, 64)(*lane, vcc >> n & 1) for n, lane in enumerate(zip(*cols))]})
cols = draw("v_div_fmas_f64", POOL64[2:8], 2, 62) + [[struct.unpack("<Q", struct.pack("<d", x))[0] for x in (1e10, 1e-10, 0.3, 5.0)] * 4]
row("v_div_fmas_f64", "v_div_fmas_f64 v[10:11], v[0:1], v[2:3], v[4:5]", {**wide(0, cols[0]), **wide(2, cols[1]), **wide(4, cols[2]), "vcc": vcc},
    wide_result(10, [div_fmas(F64, 128)(*lane, vcc >> n & 1) for n, lane in enumerate(zip(*cols))]))


def div_fixup(fmt, limit):
    def f(q, d, n):
        inf, sign = fmt.top() + 1, (d ^ n) & fmt.sign
        if fmt.is_nan(n) or fmt.is_nan(d):
            return "nan"
        zero = lambda v: fmt.value(v) == 0 if not fmt.is_inf(v) else False
        if (zero(n) and zero(d)) or (fmt.is_inf(n) and fmt.is_inf(d)):
            return "nan"
        if zero(d) or fmt.is_inf(n):
            return sign | inf
        if zero(n) or fmt.is_inf(d):
            return sign
        if limit and fmt.split(n)[1] - fmt.split(d)[1] < -limit:
            return sign
        if fmt.is_nan(q):
            return sign | inf
        return sign | (q & (fmt.sign - 1))
    return f


simple("v_div_fixup_f32", 3, 32, POOL32, div_fixup(F32, 150))
simple("v_div_fixup_f16 v_div_fixup_legacy_f16", 3, 16, POOL16, div_fixup(F16, 0))
f64_rows("v_div_fixup_f64", 3, div_fixup(F64, 1075))

# ---- comparisons ----------------------------------------------------------------------------------------------------------------

FLOAT_TESTS = {
    "f": lambda x, y: False, "lt": lambda x, y: x < y, "eq": lambda x, y: x == y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y,
    "lg": lambda x, y: x < y or x > y, "ge": lambda x, y: x >= y, "o": lambda x, y: not (math.isnan(x) or math.isnan(y)),
    "u": lambda x, y: math.isnan(x) or math.isnan(y), "nge": lambda x, y: not x >= y, "nlg": lambda x, y: not (x < y or x > y),
    "ngt": lambda x, y: not x > y, "nle": lambda x, y: not x <= y, "neq": lambda x, y: not x == y, "nlt": lambda x, y: not x < y,
    "tru": lambda x, y: True}
INT_TESTS = {"f": lambda x, y: False, "lt": lambda x, y: x < y, "eq": lambda x, y: x == y, "le": lambda x, y: x <= y,
             "gt": lambda x, y: x > y, "ne": lambda x, y: x != y, "ge": lambda x, y: x >= y, "t": lambda x, y: True}


def compare_rows(t, tests, read, pool, width):
    for test, f in tests.items():
        name = f"{test}_{t}"
        a, b = draw("compare" + t, pool, 2, width)
        b = [x if n % 4 == 0 else y for n, (x, y) in enumerate(zip(a, b))]  # some equal pairs
        flags = [f(read(x), read(y)) for x, y in zip(a, b)]
        if width == 64:
            inputs, regs = {**wide(0, a), **wide(2, b)}, "v[0:1], v[2:3]"
        else:
            inputs, regs = {"v0": a, "v1": b}, "v0, v1"
        m = mask_of(flags)
        row(f"v_cmp_{name}", {**{x: f"v_cmp_{name} s[20:21], {regs}" for x in GFX9}, **{x: f"v_cmp_{name} s20, {regs}" for x in GFX12}},
            inputs, {"s20": m})
        row(f"v_cmpx_{name}", {x: f"v_cmpx_{name} s[20:21], {regs}" for x in GFX9}, {**inputs, "exec": 0xFF3F},
            {"s20": m & 0xFF3F, "exec": m & 0xFF3F}, GFX9)
        row(f"v_cmpx_{name}", {x: f"v_cmpx_{name} {regs}" for x in GFX12}, {**inputs, "exec": 0xFF3F}, {"exec": m & 0xFF3F}, GFX12)


compare_rows("f32", FLOAT_TESTS, lambda c: to_float(F32, c), POOL32, 32)
compare_rows("f16", FLOAT_TESTS, lambda c: to_float(F16, c), POOL16, 16)
compare_rows("f64", FLOAT_TESTS, float64, POOL64, 64)
compare_rows("i16", INT_TESTS, s16, [v & 0xFFFF for v in INTS], 16)
compare_rows("u16", INT_TESTS, lambda v: v & 0xFFFF, [v & 0xFFFF for v in INTS], 16)
compare_rows("i32", INT_TESTS, s32, INTS, 32)
compare_rows("u32", INT_TESTS, lambda v: v, INTS, 32)
compare_rows("i64", INT_TESTS, s64, INTS64, 64)
compare_rows("u64", INT_TESTS, lambda v: v, INTS64, 64)


def class_bit(fmt, c):
    s, e, m = fmt.split(c)
    if fmt.is_nan(c):
        return 1 if m >> (fmt.m - 1) else 0
    if fmt.is_inf(c):
        return 9 if not s else 2
    if e:
        return 8 if not s else 3
    if m:
        return 7 if not s else 4
    return 6 if not s else 5


SNAN = {F32: 0x7F800001, F16: 0x7C01, F64: 0x7FF0000000000001}
for t, fmt, pool, width in (("f32", F32, POOL32, 32), ("f16", F16, POOL16, 16), ("f64", F64, POOL64, 64)):
    a = draw("class" + t, pool, 1, width)[0][:15] + [0x7F800001 if fmt is F32 else 0x7C01 if fmt is F16 else 0x7FF0000000000001]
    masks = [1 << class_bit(fmt, c) if n % 2 else 0x3FF & ~(1 << class_bit(fmt, c)) for n, c in enumerate(a)]
    m = mask_of(n % 2 for n in range(LANES))
    inputs = {**(wide(0, a) if width == 64 else {"v0": a}), "v2": masks}
    regs = ("v[0:1]" if width == 64 else "v0") + ", v2"
    row(f"v_cmp_class_{t}", {**{x: f"v_cmp_class_{t} s[20:21], {regs}" for x in GFX9}, **{x: f"v_cmp_class_{t} s20, {regs}" for x in GFX12}},
        inputs, {"s20": m})
    row(f"v_cmpx_class_{t}", {x: f"v_cmpx_class_{t} s[20:21], {regs}" for x in GFX9}, {**inputs, "exec": 0x3FFF},
        {"s20": m & 0x3FFF, "exec": m & 0x3FFF}, GFX9)
    row(f"v_cmpx_class_{t}", {x: f"v_cmpx_class_{t} {regs}" for x in GFX12}, {**inputs, "exec": 0x3FFF}, {"exec": m & 0x3FFF}, GFX12)

# ---- packed floats -------------------------------------------------------------------------------------------------------------------


def packed_half(names, fmt, pool, sources, f, nan, targets=TARGETS):
    for name in names.split():
        low, high = draw(name, pool, sources, 16), draw(name + "high", pool, sources, 16)
        want = []
        for n in range(LANES):
            lo, hi = f(*[c[n] for c in low]), f(*[c[n] for c in high])
            want.append(f"{nan}:{'nan' if lo == 'nan' else format(lo, 'x')}:{'nan' if hi == 'nan' else format(hi, 'x')}"
                        if "nan" in (lo, hi) else lo | hi << 16)
        got = {f"v{n}": [x | y << 16 for x, y in zip(low[n], high[n])] for n in range(sources)}
        row(name, f"{name} v10, {', '.join(f'v{n}' for n in range(sources))}", got, {"v10": want}, targets)


for fmt, t, pool, nan, quiet in ((F16, "f16", POOL16, "pair16", 0x7E00), (BF16, "bf16", POOLB, "pairb16", 0x7FC0)):
    mx, mn = (lambda a, b, fmt=fmt: max_number(fmt, a, b)), (lambda a, b, fmt=fmt: min_number(fmt, a, b))

    def link(f, quiet=quiet):
        def g(a, b, c):
            m = f(a, b)
            return f(quiet if m == "nan" else m, c)
        return g
    packed_half(f"v_pk_add_{t}", fmt, pool, 2, op(fmt, add), nan)
    packed_half(f"v_pk_mul_{t}", fmt, pool, 2, op(fmt, mul), nan)
    packed_half(f"v_pk_fma_{t}", fmt, pool, 3, op(fmt, fma), nan)
    packed_half(f"v_pk_max_{t} v_pk_max_num_{t}", fmt, pool, 2, mx, nan)
    packed_half(f"v_pk_min_{t} v_pk_min_num_{t}", fmt, pool, 2, mn, nan)
    packed_half(f"v_pk_max3_num_{t}", fmt, pool, 3, link(mx), nan)
    packed_half(f"v_pk_min3_num_{t}", fmt, pool, 3, link(mn), nan)
    packed_half(f"v_pk_maximum_{t}", fmt, pool, 2, nan_wins(fmt, max_number), nan)
    packed_half(f"v_pk_minimum_{t}", fmt, pool, 2, nan_wins(fmt, min_number), nan)
    packed_half(f"v_pk_maximum3_{t}", fmt, pool, 3, link(nan_wins(fmt, max_number)), nan)
    packed_half(f"v_pk_minimum3_{t}", fmt, pool, 3, link(nan_wins(fmt, min_number)), nan)

low, high = draw("v_pk_fmac_f16", POOL16[:8], 3, 14), draw("v_pk_fmac_f16h", POOL16[:8], 3, 14)
row("v_pk_fmac_f16", "v_pk_fmac_f16 v10, v0, v1", {r: [x | y << 16 for x, y in zip(low[n], high[n])] for n, r in enumerate(("v0", "v1", "v10"))},
    {"v10": [f"pair16:{(lambda v: v if v == 'nan' else format(v, 'x'))(exact(F16, [c[n] for c in low], fma))}:"
             f"{(lambda v: v if v == 'nan' else format(v, 'x'))(exact(F16, [c[n] for c in high], fma))}" for n in range(LANES)]})
for name, n, f in (("v_pk_add_f32", 2, add), ("v_pk_mul_f32", 2, mul), ("v_pk_fma_f32", 3, fma)):
    low, high = draw(name, POOL32, n, 32), draw(name + "high", POOL32, n, 32)
    inputs = {}
    for k in range(n):
        inputs[f"v{2 * k}"], inputs[f"v{2 * k + 1}"] = low[k], high[k]
    regs = ", ".join(f"v[{2 * k}:{2 * k + 1}]" for k in range(n))
    row(name, f"{name} v[10:11], {regs}", inputs,
        {"v10": [exact(F32, list(x), f) for x in zip(*low)], "v11": [exact(F32, list(x), f) for x in zip(*high)]})
    # op_sel crosses the halves of the first source; neg_lo negates its low result's copy
    row(name, f"{name} v[10:11], {regs} op_sel:[1{',0' * (n - 1)}] op_sel_hi:[0{',1' * (n - 1)}] neg_lo:[1{',0' * (n - 1)}]", inputs,
        {"v10": [exact(F32, [x[0] ^ 0x80000000, *x[1:]], f) for x in zip(high[0], *low[1:])],
         "v11": [exact(F32, list(x), f) for x in zip(low[0], *high[1:])]})
w = [list(range(0x100 * k, 0x100 * k + LANES)) for k in range(4)]
for a_, b_ in ((0, 0), (1, 0), (0, 1), (1, 1)):
    row("v_pk_mov_b32", f"v_pk_mov_b32 v[10:11], v[0:1], v[2:3] op_sel:[{a_},{b_}]", {f"v{k}": w[k] for k in range(4)},
        {"v10": w[a_], "v11": w[2 + b_]}, GFX9)

# ---- dot products of floats, mixed precision -----------------------------------------------------------------------------------------------

PLAIN16 = [0x3C00, 0xBC00, 0x4100, 0xC380, 0x2E66, 0x5640, 0, 0x0400, 0x4248]
PLAINB = [0x3F80, 0xBF80, 0x4020, 0xC070, 0x3DCD, 0, 0x4248, 0x3F9E]
PLAIN32 = [bits32(x) for x in (1.0, -2.5, 0.125, 100.75, -3e-3, 0.0, 12345.0, 7.5)]
for t, fmt, pool in (("f16", F16, PLAIN16), ("bf16", BF16, PLAINB)):
    al, ah, bl, bh = draw("dot2" + t, pool, 4, 10)
    c = draw("dot2c" + t, PLAIN32, 1, 8)[0]
    c = [v if v > 255 else PLAIN32[v % 8] for v in c]
    v = lambda n: fmt.value(al[n]) * fmt.value(bl[n]) + fmt.value(ah[n]) * fmt.value(bh[n])
    inputs = {"v0": [x | y << 16 for x, y in zip(al, ah)], "v1": [x | y << 16 for x, y in zip(bl, bh)]}
    want = [("ulp", F32.encode(v(n) + F32.value(c[n]))) for n in range(LANES)]
    row(f"v_dot2_f32_{t}", f"v_dot2_f32_{t} v10, v0, v1, v2", {**inputs, "v2": c}, {"v10": want})
    row(f"v_dot2c_f32_{t}", f"v_dot2c_f32_{t} v10, v0, v1", {**inputs, "v10": c}, {"v10": want})
    c16 = draw("dot2h" + t, pool, 1, 10)[0]
    row(f"v_dot2_{t}_{t}", f"v_dot2_{t}_{t} v10, v0, v1, v2", {**inputs, "v2": c16},
        {"v10": [("low", ("ulp", fmt.encode(v(n) + fmt.value(c16[n])))) for n in range(LANES)]})
for ta, fa in (("fp8", FP8), ("bf8", BF8)):
    for tb, fb in (("fp8", FP8), ("bf8", BF8)):
        a, b = draw("dot4" + ta + tb, [0x38383838, 0xB8304050], 2, 32)
        clean = lambda w_, fmt: sum((0x38 if fmt.is_nan(w_ >> s & 255) or fmt.is_inf(w_ >> s & 255) else w_ >> s & 255) << s for s in (0, 8, 16, 24))
        a, b = [clean(x, fa) for x in a], [clean(x, fb) for x in b]
        c = [PLAIN32[n % 8] for n in range(LANES)]
        want = [("ulp", F32.encode(sum(fa.value(x >> s & 255) * fb.value(y >> s & 255) for s in (0, 8, 16, 24)) + F32.value(z)))
                for x, y, z in zip(a, b, c)]
        row(f"v_dot4_f32_{ta}_{tb}", f"v_dot4_f32_{ta}_{tb} v10, v0, v1, v2", {"v0": a, "v1": b, "v2": c}, {"v10": want})

for t, fmt, pool, suffix in (("f16", F16, PLAIN16, ""), ("bf16", BF16, PLAINB, "_bf16")):
    lo, hi = draw("mix" + t, pool, 1, 10)[0], draw("mixh" + t, pool, 1, 10)[0]
    x, y = [PLAIN32[(3 * n) % 8] for n in range(LANES)], [PLAIN32[(5 * n + 1) % 8] for n in range(LANES)]
    inputs = {"v0": [p | q << 16 for p, q in zip(lo, hi)], "v1": x, "v2": y}
    zero = lambda p, q, r: math.copysign(1, to_float(fmt, p) * to_float(F32, q) - to_float(F32, r)) < 0  # sign of a zero result
    full = [fmt.value(p) * F32.value(q) + F32.value(r) for p, q, r in zip(hi, x, y)]
    less = [fmt.value(p) * F32.value(q) - F32.value(r) for p, q, r in zip(lo, x, y)]
    row(f"v_fma_mix_f32{suffix}", f"v_fma_mix_f32{suffix} v10, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0]", inputs,
        {"v10": [F32.encode(v) for v in full]})
    row(f"v_fma_mix_f32{suffix}", f"v_fma_mix_f32{suffix} v10, v0, v1, -v2 op_sel_hi:[1,0,0]", inputs,
        {"v10": [F32.encode(v, zero(p, q, r)) for v, p, q, r in zip(less, lo, x, y)]})
    old = [0x11112222] * LANES
    mix = f"_{t}"
    row(f"v_fma_mixlo{mix}", f"v_fma_mixlo{mix} v10, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0]", {**inputs, "v10": old},
        {"v10": [0x11110000 | fmt.encode(v) for v in full]})
    row(f"v_fma_mixhi{mix}", f"v_fma_mixhi{mix} v10, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0]", {**inputs, "v10": old},
        {"v10": [0x2222 | fmt.encode(v) << 16 for v in full]})

simple("v_frexp_exp_i16_f16", 1, 16, POOL16, frexp_exp(F16, 16))


# ---- faces of cube maps --------------------------------------------------------------------------------------------------------------
def cube(x, y, z):
    """face, s, t, major axis doubled: z wins ties, then y."""
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        return (5 if z < 0 else 4), (-x if z < 0 else x), -y, 2 * z
    if abs(y) >= abs(x):
        return (3 if y < 0 else 2), x, (-z if y < 0 else z), 2 * y
    return (1 if x < 0 else 0), (z if x < 0 else -z), -y, 2 * x


COORDINATES = [[1.5, -2, 0.5, 3, -3, 3, 1, -1, 1, 2.5, -7, 0.25, 4, -4, 5, -6], [1, 1, -2, 3, 3, -1, -1, 1, 2, -2.5, 3, 0.5, -4, 4.5, -5, 2],
               [0.5, 1.5, 1, 3, 2, -3, 1, -1, 2, 1, 1, -0.5, 1, 2, 5, 6]]
for place, name in enumerate(("v_cubeid_f32", "v_cubesc_f32", "v_cubetc_f32", "v_cubema_f32")):
    row(name, f"{name} v10, v0, v1, v2", {f"v{n}": [bits32(v) for v in column] for n, column in enumerate(COORDINATES)},
        {"v10": [bits32(float(cube(*lane)[place])) for lane in zip(*COORDINATES)]})

# ---- 2 / pi for huge angles ----------------------------------------------------------------------------------------------------------
def two_over_pi(bits):
    """The fraction of 2 / pi, so many bits (pi by Machin's formula, 64 bits more)."""
    unit = 1 << bits + 64

    def arctangent(x):
        term = total = unit // x
        n, sign = 3, -1
        while term:
            term //= x * x
            total += sign * (term // n)
            n, sign = n + 2, -sign
        return total
    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * unit << bits) // pi & (1 << bits) - 1


ANGLES = [struct.unpack("<Q", struct.pack("<d", v))[0] for v in (1.0, 1e5, 1e22, -1e100, 2.0 ** 54, 2.0 ** 55, 2.0 ** 60, 1e200, 1e300, 1.7e308, -3.5, 0.0, 2.0 ** 944, 2.0 ** 945,
                                                               2.0 ** 1000, 1e-300)]
SEGMENTS = [n % 5 if n % 4 else n % 21 for n in range(LANES)]
LONG = two_over_pi(1201)
want = []
for angle, segment in zip(ANGLES, SEGMENTS):
    exponent = angle >> 52 & 0x7FF
    shift = 53 * segment + max(0, exponent - 1077)
    part = (LONG << shift & (1 << 1201) - 1) >> 1201 - 53
    want.append(F64.encode(Fraction(part) * Fraction(2) ** (-53 - shift + (128 if exponent >= 1968 else 0))))
row("v_trig_preop_f64", "v_trig_preop_f64 v[10:11], v[0:1], v2", {**wide(0, ANGLES), "v2": SEGMENTS}, wide_result(10, want))
