"""Rows of conversions."""

import math

from vectors_base import *


def to_int(fmt, low, high, kind=math.trunc):
    def f(a):
        x = to_float(fmt, a)
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return (high if x > 0 else low) & M32
        return max(low, min(high, kind(fmt.value(a)))) & M32
    return f


EDGES = [bits32(x) for x in (0.0, -0.5, 1.5, -1.5, 2.5, 2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 1e20, -1e20,
                             65535.5, -32768.5)] + [0x7FC00000, 0xFF800000]
I32, U32 = (-(1 << 31), (1 << 31) - 1), (0, M32)


def f32_to(names, f):
    simple(names, 1, 32, POOL32, f, inputs=[EDGES])


f32_to("v_cvt_i32_f32", to_int(F32, *I32))
f32_to("v_cvt_u32_f32", to_int(F32, *U32))
f32_to("v_cvt_flr_i32_f32 v_cvt_floor_i32_f32", to_int(F32, *I32, math.floor))
f32_to("v_cvt_rpi_i32_f32 v_cvt_nearest_i32_f32", to_int(F32, *I32, lambda v: math.floor(v + Fraction(1, 2))))
BIG = [0, 1, M32, 0x80000000, 0x7FFFFFFF, 0x01000001, 0x01000003, 0xFFFFFF7F, 0xFFFFFF80, 0x7FFFFFBF, 0x7FFFFFC0, 100, 0xFF, 0x12345678,
       0x80000001, 0x00FFFFFF]
simple("v_cvt_f32_i32", 1, 32, INTS, lambda a: F32.encode(s32(a)), inputs=[BIG])
simple("v_cvt_f32_u32", 1, 32, INTS, lambda a: F32.encode(a), inputs=[BIG])
for n in range(4):
    simple(f"v_cvt_f32_ubyte{n}", 1, 32, INTS, lambda a, n=n: F32.encode(a >> 8 * n & 255))
simple("v_cvt_off_f32_i4", 1, 32, INTS, lambda a: F32.encode(Fraction((a & 15) - (16 if a & 8 else 0), 16)), inputs=[list(range(16))])
simple("v_cvt_i32_i16", 1, 32, INTS, lambda a: s16(a) & M32)
simple("v_cvt_u32_u16", 1, 32, INTS, lambda a: a & 0xFFFF)

# f16: midpoints, neighbours, both ends
TO16 = [bits32(x) for x in (0.0, -0.0, 1.0, 65504.0, 65519.996, 65520.0, -70000.0, 2.0 ** -24, 2.0 ** -25, 2.0 ** -25 * 1.5, 6.1e-5,
                            1.00048828125, 1.00146484375, 0.1)] + [0x7FC00000, 0xFF800000]


def narrow(fmt, a, **how):
    if F32.is_nan(a):
        return "nan"
    if F32.is_inf(a):
        return (fmt.top() + 1) | (fmt.sign if a & F32.sign else 0)
    return fmt.encode(F32.value(a), bool(a & F32.sign), **how)


row("v_cvt_f16_f32", "v_cvt_f16_f32 v10, v0", {"v0": TO16}, {"v10": [("low", "nan16" if (v := narrow(F16, a)) == "nan" else v) for a in TO16]})
for mode, n in (("up", 1), ("down", 2), ("zero", 3)):
    row("v_cvt_f16_f32", "v_cvt_f16_f32 v10, v0", {"v0": TO16, "mode": 0xF0 | n << 2},
        {"v10": [("low", "nan16" if (v := narrow(F16, a, mode=mode)) == "nan" else v) for a in TO16]})
row("v_cvt_f16_f32", "v_cvt_f16_f32 v10, v0", {"v0": TO16, "mode": 0x8000F0},
    {"v10": [("low", "nan16" if (v := narrow(F16, a, saturate=True)) == "nan" else v) for a in TO16]})
simple("v_cvt_f32_f16", 1, 32, POOL16, lambda a: from_float(F32, to_float(F16, a & 0xFFFF)), inputs=[[v | 0xABCD0000 for v in POOL16[:16]]])
simple("v_cvt_f32_bf16", 1, 32, POOLB, lambda a: "nan" if BF16.is_nan(a & 0xFFFF) else (a & 0xFFFF) << 16, inputs=[[v | 0xABCD0000 for v in POOLB]])


def to16(names, f, inputs=None):
    for name in names.split():
        a = inputs or draw(name, POOL16, 1, 16)[0]
        row(name, f"{name} v10, v0", {"v0": a}, {"v10": [("low", f(v) & 0xFFFF) for v in a]})


to16("v_cvt_i16_f16", to_int(F16, -0x8000, 0x7FFF))
to16("v_cvt_u16_f16", to_int(F16, 0, 0xFFFF))


def normal(fmt, signed):
    def f(a):
        x = to_float(fmt, a)
        if math.isnan(x):
            return 0
        v = Fraction(max(-1.0 if signed else 0.0, min(1.0, x)))
        return round(v * (32767 if signed else 65535)) & 0xFFFF
    return f


UNIT16 = [0, 0x3C00, 0xBC00, 0x3800, 0xB400, 0x2E66, 0x7C00, 0xFC00, 0x7E00, 0x3BFF, 0x0001, 0x8001, 0x4000, 0xC500, 0x34CD, 0x3A00]
to16("v_cvt_norm_i16_f16", normal(F16, True), UNIT16)
to16("v_cvt_norm_u16_f16", normal(F16, False), UNIT16)
W = [v & 0xFFFF for v in BIG]
row("v_cvt_f16_i16", "v_cvt_f16_i16 v10, v0", {"v0": W}, {"v10": [("low", F16.encode(s16(v))) for v in W]})
row("v_cvt_f16_u16", "v_cvt_f16_u16 v10, v0", {"v0": W}, {"v10": [("low", F16.encode(v)) for v in W]})


def pair(tag, low, high):
    t = lambda v: v if v == "nan" else format(v, "x")
    return f"{tag}:{t(low)}:{t(high)}" if "nan" in (low, high) else low | high << 16


def pack(names, f, tag, a, b, asm=None, targets=TARGETS, extra=None):
    for name in names.split():
        row(name, asm or f"{name} v10, v0, v1", {"v0": a, "v1": b, **(extra or {})}, {"v10": [pair(tag, f(x), f(y)) for x, y in zip(a, b)]}, targets)


OTHER = TO16[5:] + TO16[:5]
pack("v_cvt_pk_f16_f32", lambda a: narrow(F16, a), "pair16", TO16, OTHER)
pack("v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32", lambda a: narrow(F16, a, mode="zero"), "pair16", TO16, OTHER)
TOB = [0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x00008000,
       0x80018000, 0xBF80C000, 0x477FFFFF, 0, 0x80000000]
pack("v_cvt_pk_bf16_f32", lambda a: narrow(BF16, a), "pairb16", TOB, TOB[3:] + TOB[:3])
UNIT = [bits32(x) for x in (0.0, 1.0, -1.0, 0.5, -0.25, 0.1, 2.0, -3.0, 0.999999, 1e-6, 1 / 65535, 0.3, -0.7, 0.00001)] + [0x7FC00000, 0x7F800000]
pack("v_cvt_pknorm_i16_f32 v_cvt_pk_norm_i16_f32", normal(F32, True), "", UNIT, UNIT[5:] + UNIT[:5])
pack("v_cvt_pknorm_u16_f32 v_cvt_pk_norm_u16_f32", normal(F32, False), "", UNIT, UNIT[5:] + UNIT[:5])
pack("v_cvt_pknorm_i16_f16 v_cvt_pk_norm_i16_f16", normal(F16, True), "", UNIT16, UNIT16[5:] + UNIT16[:5])
pack("v_cvt_pknorm_u16_f16 v_cvt_pk_norm_u16_f16", normal(F16, False), "", UNIT16, UNIT16[5:] + UNIT16[:5])
pack("v_cvt_pk_i16_f32", lambda a: to_int(F32, -0x8000, 0x7FFF)(a) & 0xFFFF, "", EDGES, EDGES[3:] + EDGES[:3])
pack("v_cvt_pk_u16_f32", to_int(F32, 0, 0xFFFF), "", EDGES, EDGES[3:] + EDGES[:3])
pack("v_cvt_pk_i16_i32", lambda a: max(-0x8000, min(0x7FFF, s32(a))) & 0xFFFF, "", BIG, BIG[3:] + BIG[:3])
pack("v_cvt_pk_u16_u32", lambda a: min(0xFFFF, a), "", BIG, BIG[3:] + BIG[:3])
BYTE = [n % 4 for n in range(LANES)]
row("v_cvt_pk_u8_f32", "v_cvt_pk_u8_f32 v10, v0, v1, v2", {"v0": EDGES, "v1": BYTE, "v2": [0x11223344] * LANES},
    {"v10": [0x11223344 & ~(255 << 8 * b) | to_int(F32, 0, 255)(a) << 8 * b for a, b in zip(EDGES, BYTE)]})

# f64
D = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (0.0, -1.5, 2.5, 1e300, -1e300, 2147483647.5, 4294967295.5, -0.9, 1e-310, 0.1,
                                                          3.4028235677973366e38, 1.0000000596046448, -2147483648.9, 1e-46)] + [
    0x7FF8000000000000, 0xFFF0000000000000]
row("v_cvt_f32_f64", "v_cvt_f32_f64 v10, v[0:1]", wide(0, D),
    {"v10": ["nan" if F64.is_nan(a) else (0xFF800000 if a >> 63 else 0x7F800000) if F64.is_inf(a) else F32.encode(F64.value(a), bool(a >> 63)) for a in D]})
row("v_cvt_i32_f64", "v_cvt_i32_f64 v10, v[0:1]", wide(0, D), {"v10": [to_int(F64, *I32)(a) for a in D]})
row("v_cvt_u32_f64", "v_cvt_u32_f64 v10, v[0:1]", wide(0, D), {"v10": [to_int(F64, *U32)(a) for a in D]})
row("v_cvt_f64_i32", "v_cvt_f64_i32 v[10:11], v0", {"v0": BIG}, wide_result(10, [F64.encode(s32(a)) for a in BIG]))
row("v_cvt_f64_u32", "v_cvt_f64_u32 v[10:11], v0", {"v0": BIG}, wide_result(10, [F64.encode(a) for a in BIG]))
P = POOL32[:16]
row("v_cvt_f64_f32", "v_cvt_f64_f32 v[10:11], v0", {"v0": P}, wide_result(10, [from_float(F64, to_float(F32, a)) for a in P]))

# ---- 8-bit floats: every code appears below (16 lanes x 4 bytes, over several rows) -------------------------------------------------------
DIALECT = {"gfx942": {"fp8": FP8Z, "bf8": BF8Z}}


def per_dialect(add):
    """`add(targets, {"fp8": …, "bf8": …})` once for FNUZ and once for OCP."""
    add(["gfx942"], {"fp8": FP8Z, "bf8": BF8Z})
    add(TARGETS[1:], {"fp8": FP8, "bf8": BF8})


def rows_8(targets, formats):
    for t, fmt in formats.items():
        widen = lambda c, fmt=fmt: from_float(F32, to_float(fmt, c))
        half = lambda c, fmt=fmt: from_float(F16, to_float(fmt, c))
        for quarter in range(4):
            codes = [quarter * 64 + 4 * n for n in range(LANES)]
            words = [c | (c + 1) << 8 | (c + 2) << 16 | (c + 3) << 24 for c in codes]
            inputs = {"v0": words}
            at = lambda byte: [widen(c + byte) for c in codes]
            row(f"v_cvt_f32_{t}", f"v_cvt_f32_{t} v10, v0", inputs, {"v10": at(0)}, targets)
            for byte in (1, 2, 3):
                row(f"v_cvt_f32_{t}", f"v_cvt_f32_{t}_sdwa v10, v0 src0_sel:BYTE_{byte}", inputs, {"v10": at(byte)}, [x for x in targets if x in GFX9])
                row(f"v_cvt_f32_{t}", f"v_cvt_f32_{t} v10, v0 byte_sel:{byte}", inputs, {"v10": at(byte)}, [x for x in targets if x in GFX12])
            row(f"v_cvt_pk_f32_{t}", f"v_cvt_pk_f32_{t} v[10:11], v0", inputs, {"v10": at(0), "v11": at(1)}, targets)
            row(f"v_cvt_pk_f32_{t}", f"v_cvt_pk_f32_{t}_sdwa v[10:11], v0 src0_sel:WORD_1", inputs, {"v10": at(2), "v11": at(3)},
                [x for x in targets if x in GFX9])
            row(f"v_cvt_pk_f32_{t}", f"v_cvt_pk_f32_{t} v[10:11], v0 op_sel:[1,0]", inputs, {"v10": at(2), "v11": at(3)},
                [x for x in targets if x in GFX12])
            if "gfx1250" in targets:
                row(f"v_cvt_f16_{t}", f"v_cvt_f16_{t} v10, v0 byte_sel:2", inputs,
                    {"v10": [("low", "nan16" if (v := half(c + 2)) == "nan" else v) for c in codes]}, ["gfx1250"])
                row(f"v_cvt_pk_f16_{t}", f"v_cvt_pk_f16_{t} v10, v0", inputs, {"v10": [pair("pair16", half(c), half(c + 1)) for c in codes]}, ["gfx1250"])


per_dialect(rows_8)

TO8 = [bits32(x) for x in (0.0, -0.0, 1.0, -1.0625, 1.1875, 448.0, 464.0, 465.0, -1e4, 240.0, 248.0, 249.0, 57344.0, 61440.0, -65000.0,
                           2.0 ** -10, 2.0 ** -10 * 1.0001, 2.0 ** -9, -2.0 ** -17, 2.0 ** -17 * 1.5, 2.0 ** -18, 3e-3, 0.017, 100.3)] + [
    0x7F800000, 0xFF800000, 0x7FC00000, 1, bits32(247.9), bits32(-17.5), bits32(0.33), bits32(5e-6)]


def narrow8(fmt, a, saturate):
    if F32.is_nan(a):
        return nan8(fmt, a)
    sign = fmt.sign if a & F32.sign else 0
    if F32.is_inf(a):
        return fmt.top() | sign if saturate else ((fmt.top() + 1) | sign if fmt.kind == "ieee" else nan8(fmt, a))
    v = fmt.encode(F32.value(a), bool(a & F32.sign), saturate=saturate)
    return nan8(fmt, a) if v == "nan" else v


def nan8(fmt, a):
    if fmt.kind == "fnuz":
        return 0x80
    return 0x7F | (0x80 if a & F32.sign else 0)


def stochastic_8(fmt, v, r):
    """The random number's top bits are added below the kept mantissa, then the rest is cut off."""
    a, e = abs(v), 0
    if a == 0:
        return 0
    while Fraction(2) ** (e + 1) <= a:
        e += 1
    while Fraction(2) ** e > a:
        e -= 1
    step = Fraction(2) ** (max(e, 1 - fmt.bias) - fmt.m)
    drop = 23 - fmt.m
    return fmt.encode(a + step * Fraction(r >> 32 - drop, 1 << drop), mode="zero") | (fmt.sign if v < 0 else 0)


def rows_to_8(targets, formats):
    for t, fmt in formats.items():
        for saturate in (False, True):
            mode = {"mode": 0x8000F0 if saturate else 0xF0}
            for part in (TO8[:16], TO8[16:]):
                other = part[7:] + part[:7]
                codes = [narrow8(fmt, a, saturate) | narrow8(fmt, b, saturate) << 8 for a, b in zip(part, other)]
                inputs = {"v0": part, "v1": other, "v10": [0xA5A5B6B6] * LANES, **mode}
                row(f"v_cvt_pk_{t}_f32", f"v_cvt_pk_{t}_f32 v10, v0, v1", inputs, {"v10": [0xA5A50000 | c for c in codes]}, targets)
                row(f"v_cvt_pk_{t}_f32", f"v_cvt_pk_{t}_f32 v10, v0, v1 op_sel:[0,0,1]", inputs, {"v10": [0xB6B6 | c << 16 for c in codes]}, targets)
        # stochastic: the random number's top bits are added below the kept mantissa
        value, rand = [bits32(x) for x in (1.0, 1.03125, 1.0625, -1.09, 2.5, 3.3, -100.0, 0.07)] * 2, [0, 0x80000000, 0xFFFFFFFF, 0x40000000] * 4

        def stochastic(a, r, fmt=fmt):
            return stochastic_8(fmt, F32.value(a), r)
        codes = [stochastic(a, r) for a, r in zip(value, rand)]
        inputs = {"v0": value, "v1": rand, "v10": [0xA5B6C7D8] * LANES}
        row(f"v_cvt_sr_{t}_f32", f"v_cvt_sr_{t}_f32 v10, v0, v1", inputs, {"v10": [0xA5B6C700 | c for c in codes]}, targets)
        row(f"v_cvt_sr_{t}_f32", f"v_cvt_sr_{t}_f32 v10, v0, v1 op_sel:[0,0,0,1]", inputs, {"v10": [0xA500C7D8 | c << 16 for c in codes]},
            [x for x in targets if x in GFX9])
        row(f"v_cvt_sr_{t}_f32", f"v_cvt_sr_{t}_f32 v10, v0, v1 byte_sel:3", inputs, {"v10": [0x00B6C7D8 | c << 24 for c in codes]},
            [x for x in targets if x in GFX12])
        if "gfx1250" in targets:
            halves = [F16.encode(F32.value(a), bool(a & F32.sign)) for a in value]
            again = [stochastic(from_float(F32, to_float(F16, h)), r) for h, r in zip(halves, rand)]
            row(f"v_cvt_sr_{t}_f16", f"v_cvt_sr_{t}_f16 v10, v0, v1 byte_sel:1", {**inputs, "v0": halves}, {"v10": [0xA5B600D8 | c << 8 for c in again]},
                ["gfx1250"])
            lo, hi = POOL16[:16], POOL16[2:] + POOL16[:0]
            enc = lambda h, fmt=fmt: nan8(fmt, 0x80000000 if h & 0x8000 else 0) if F16.is_nan(h) else narrow8(fmt, from_float(F32, to_float(F16, h)), False)
            row(f"v_cvt_pk_{t}_f16", f"v_cvt_pk_{t}_f16 v10, v0", {"v0": [x | y << 16 for x, y in zip(lo, hi)], "v10": [0xA5A50000] * LANES},
                {"v10": [0xA5A50000 | enc(x) | enc(y) << 8 for x, y in zip(lo, hi)]}, ["gfx1250"])


per_dialect(rows_to_8)

# stochastic rounding to 16 bits
value, rand = [bits32(x) for x in (1.0, 1.0003, 1.0001, -1.09, 2.5, 3.3, -100.0, 0.07)] * 2, [0, 0x80000000, 0xFFFFFFFF, 0x40000000] * 4
for t, fmt in (("f16", F16), ("bf16", BF16)):
    def stochastic16(a, r, fmt=fmt):
        v = abs(F32.value(a))
        e = int(math.floor(math.log2(v)))
        drop = 23 - fmt.m
        return fmt.encode(v + Fraction(2) ** (e - fmt.m) * Fraction(r >> 32 - drop, 1 << drop), mode="zero") | (fmt.sign if a & F32.sign else 0)
    row(f"v_cvt_sr_{t}_f32", f"v_cvt_sr_{t}_f32 v10, v0, v1", {"v0": value, "v1": rand, "v10": [0xA5A50000] * LANES},
        {"v10": [0xA5A50000 | stochastic16(a, r) for a, r in zip(value, rand)]})

# ---- block scales ------------------------------------------------------------------------------------------------------------------
SCALES = [bits32(2.0 ** (n - 6)) | (n * 12345 & 0x7FFFFF) for n in range(LANES)]  # only the exponent counts
POWER = [Fraction(2) ** (n - 6) for n in range(LANES)]
WIDE = {"f32": F32, "f16": F16, "bf16": BF16}
NARROW = {"fp8": FP8, "bf8": BF8, "fp4": FP4, "fp6": FP6, "bf6": BF6}


def wide_of(wide, fmt, code, power):
    """fmt's code times a power of two, as a code of the wide format."""
    if fmt.is_nan(code):
        return "nan"
    if fmt.is_inf(code):
        return (wide.top() + 1) | (wide.sign if code & fmt.sign else 0)
    return wide.encode(fmt.value(code) * power, bool(code & fmt.sign))


def narrow_of(fmt, wide, code, power):
    if wide.is_nan(code):
        return fmt.top() | (fmt.sign if code & wide.sign else 0) if fmt.kind == "none" else 0x7F | (0x80 if code & wide.sign else 0)
    if wide.is_inf(code):
        v = fmt.top() if fmt.kind == "none" else fmt.top() + 1
        return v | (fmt.sign if code & wide.sign else 0)
    v = fmt.encode(wide.value(code) / power, bool(code & wide.sign))
    return 0x7F | (0x80 if code & wide.sign else 0) if v == "nan" else v


WORDS = [0x7E38C1B2 + n * 0x1B3D5F7 & M32 for n in range(LANES)]
HALF = {"f16": ("nan16", "pair16"), "bf16": ("nanb16", "pairb16")}
for t in ("fp8", "bf8", "fp4"):
    fmt = NARROW[t]
    for w, wide_ in WIDE.items():
        picks = range(4) if t == "fp4" else range(2)
        for pick in picks:
            at = lambda n, e: WORDS[n] >> ((8 * pick + 4 * e) if t == "fp4" else (16 * pick + 8 * e)) & (15 if t == "fp4" else 255)
            lo = [wide_of(wide_, fmt, at(n, 0), POWER[n]) for n in range(LANES)]
            hi = [wide_of(wide_, fmt, at(n, 1), POWER[n]) for n in range(LANES)]
            sel = f" op_sel:[{pick & 1},{pick >> 1},0]" if pick else ""
            d = "v[10:11]" if w == "f32" else "v10"
            want = {"v10": lo, "v11": hi} if w == "f32" else {"v10": [pair(HALF[w][1], x, y) for x, y in zip(lo, hi)]}
            row(f"v_cvt_scalef32_pk_{w}_{t}", f"v_cvt_scalef32_pk_{w}_{t} {d}, v0, v1{sel}", {"v0": WORDS, "v1": SCALES}, want)
        # encoding: values over the whole range
        first = draw("scale" + w + t, {"f32": TO8, "f16": POOL16, "bf16": POOLB}[w], 1, 16)[0]
        second = draw("scale2" + w + t, {"f32": TO8, "f16": POOL16, "bf16": POOLB}[w], 1, 16)[0]
        for pick in picks:
            bits = 4 if t == "fp4" else 8
            got = [narrow_of(fmt, wide_, x, p) | narrow_of(fmt, wide_, y, p) << bits for x, y, p in zip(first, second, POWER)]
            shift = 8 * pick if t == "fp4" else 16 * pick
            field = ((1 << 2 * bits) - 1) << shift
            if w == "f32":
                sel = "" if not pick else f" op_sel:[0,0,{pick & 1},{pick >> 1}]" if t == "fp4" else " op_sel:[0,0,0,1]"
                asm, inputs = f"v_cvt_scalef32_pk_{t}_{w} v10, v0, v1, v2{sel}", {"v0": first, "v1": second, "v2": SCALES}
            else:
                sel = "" if not pick else f" op_sel:[0,0,{pick & 1},{pick >> 1}]" if t == "fp4" else " op_sel:[0,0,1]"
                asm, inputs = f"v_cvt_scalef32_pk_{t}_{w} v10, v0, v1{sel}", {"v0": [x | y << 16 for x, y in zip(first, second)], "v1": SCALES}
            row(f"v_cvt_scalef32_pk_{t}_{w}", asm, {**inputs, "v10": [0x5A6B7C8D] * LANES}, {"v10": [0x5A6B7C8D & ~field | g << shift for g in got]})
for t in ("fp8", "bf8"):
    fmt = NARROW[t]
    for pick in range(4):
        codes = [w_ >> 8 * pick & 255 for w_ in WORDS]
        sel = f"[{pick & 1},{pick >> 1},"
        row(f"v_cvt_scalef32_f32_{t}", f"v_cvt_scalef32_f32_{t} v10, v0, v1 op_sel:{sel}0]", {"v0": WORDS, "v1": SCALES},
            {"v10": [wide_of(F32, fmt, c, p) for c, p in zip(codes, POWER)]})
        half = [wide_of(F16, fmt, c, p) for c, p in zip(codes, POWER)]
        clean = [h if h != "nan" else None for h in half]
        row(f"v_cvt_scalef32_f16_{t}", f"v_cvt_scalef32_f16_{t} v10, v0, v1 op_sel:{sel}1]", {"v0": WORDS, "v1": SCALES, "v10": [0x11112222] * LANES},
            {"v10": [pair("pair16", 0x2222, h) for h in half]})
    for w, wide_ in WIDE.items():
        values = [wide_.encode(Fraction(5 * n + 3, 7) * (-1) ** n * POWER[n]) for n in range(LANES)]
        rand = [0, 0x80000000, 0xFFFFFFFF, 0x40000000] * 4
        codes = [stochastic_8(fmt, wide_.value(v) / p, r) for v, p, r in zip(values, POWER, rand)]
        for pick in range(4):
            row(f"v_cvt_scalef32_sr_{t}_{w}", f"v_cvt_scalef32_sr_{t}_{w} v10, v0, v1, v2 op_sel:[0,0,{pick & 1},{pick >> 1}]",
                {"v0": values, "v1": rand, "v2": SCALES, "v10": [0x5A6B7C8D] * LANES},
                {"v10": [0x5A6B7C8D & ~(255 << 8 * pick) | c << 8 * pick for c in codes]})


def bulk(values, bits):
    """Elements of one lane to words, lowest bits first."""
    n = sum(v << bits * e for e, v in enumerate(values))
    return [n >> 32 * k & M32 for k in range(len(values) * bits // 32)]


def columns(first, lanes):
    return {f"v{first + k}": [lane[k] for lane in lanes] for k in range(len(lanes[0]))}


def span(first, count):
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


for t, fmt in NARROW.items():
    for w, wide_ in WIDE.items():
        wb = 32 if w == "f32" else 16
        rng = random.Random(t + w)
        if t in ("fp6", "bf6"):
            codes = [[rng.getrandbits(6) for _ in range(32)] for _ in range(LANES)]
            want = [bulk([wide_of(wide_, fmt, c, p) for c in lane], wb) for lane, p in zip(codes, POWER)]
            row(f"v_cvt_scalef32_pk32_{w}_{t}", f"v_cvt_scalef32_pk32_{w}_{t} {span(20, len(want[0]))}, v[0:5], v8",
                {**columns(0, [bulk(lane, 6) for lane in codes]), "v8": SCALES}, columns(20, want))
        for count in (8, 16, 32):
            pool = [wide_.encode(Fraction(k, 5) * (-1) ** k) for k in range(40)]
            lanes = [[rng.choice(pool) for _ in range(count)] for _ in range(LANES)]
            want = [bulk([narrow_of(fmt, wide_, v, p) for v in lane], fmt.bits) for lane, p in zip(lanes, POWER)]
            name = f"v_cvt_scalef32_pk{count}_{t}_{w}"
            if (count == 8) == (t in ("fp6", "bf6")) or (count == 32 and w == "f32") or (count > 8 and t not in ("fp6", "bf6")):
                continue
            source = [bulk(lane, wb) for lane in lanes]
            row(name, f"{name} {span(60, len(want[0]))}, {span(20, len(source[0]))}, v8", {**columns(20, source), "v8": SCALES}, columns(60, want))

# ---- one random number for several elements: a step of the shift register of v_prng_b32 from one to the next ---------------------


def step(r):
    return (r << 1 ^ (197 if r >> 31 else 0)) & M32


def stochastic_of(fmt, v, r):
    """Like stochastic_8 for any format; formats without infinities saturate."""
    if fmt.kind != "none":
        return stochastic_8(fmt, v, r)
    a = abs(v)
    if a == 0:
        return 0
    e = 0
    while Fraction(2) ** (e + 1) <= a:
        e += 1
    while Fraction(2) ** e > a:
        e -= 1
    unit = Fraction(2) ** (max(e, 1 - fmt.bias) - fmt.m)
    drop = 23 - fmt.m
    total = a + unit * Fraction(r >> 32 - drop, 1 << drop)
    return (fmt.top() if total >= fmt.value(fmt.top()) else fmt.encode(total, mode="zero")) | (fmt.sign if v < 0 else 0)


SEEDS = [0x80000001 + n * 0x1D872B41 & M32 for n in range(LANES)]
for t, fmt in NARROW.items():
    for w, wide_ in WIDE.items():
        wb = 32 if w == "f32" else 16
        rng = random.Random("stochastic" + t + w)
        for count in (2, 8, 16, 32):
            if (count == 2) != (t == "fp4" and count == 2) or (count > 8) != (t in ("fp6", "bf6")):
                continue
            # Values between codes, of every size that the format has.
            pool = [wide_.encode(fmt.value(c & fmt.sign - 1) * Fraction(9 + c % 5, 8) * (-1) ** c) for c in range(1, min(100, fmt.top()))
                    if w != "f16" or fmt.value(c) < 100]
            lanes = [[wide_.encode(wide_.value(rng.choice(pool)) * p) for _ in range(count)] for p in POWER]
            codes = []
            for lane, seed, p in zip(lanes, SEEDS, POWER):
                r, out = seed, []
                for v in lane:
                    out.append(stochastic_of(fmt, wide_.value(v) / p, r))
                    r = step(r)
                codes.append(out)
            source = [bulk(lane, wb) for lane in lanes]
            inputs = {**columns(20, source), "v8": SEEDS, "v9": SCALES}
            if count == 2:
                name = f"v_cvt_scalef32_sr_pk_{t}_{w}"
                for pick in range(4):
                    row(name, f"{name} v60, {span(20, len(source[0]))}, v8, v9 op_sel:[0,0,{pick & 1},{pick >> 1}]", {**inputs, "v60": [0x5A6B7C8D] * LANES},
                        {"v60": [0x5A6B7C8D & ~(255 << 8 * pick) | (a | b << 4) << 8 * pick for a, b in codes]})
                continue
            name = f"v_cvt_scalef32_sr_pk{count}_{t}_{w}"
            want = [bulk(lane, fmt.bits) for lane in codes]
            row(name, f"{name} {span(60, len(want[0]))}, {span(20, len(source[0]))}, v8, v9", inputs, columns(60, want))

# Two times 16 elements take turns.
for t in ("fp6", "bf6"):
    fmt, rng = NARROW[t], random.Random("turns" + t)
    pool = [F32.encode(Fraction(k, 5) * (-1) ** k) for k in range(40)]
    halves = [[[rng.choice(pool) for _ in range(16)] for _ in range(LANES)] for _ in range(2)]
    want = [bulk([narrow_of(fmt, F32, v, p) for both in zip(a, b) for v in both], 6) for a, b, p in zip(*halves, POWER)]
    name = f"v_cvt_scalef32_2xpk16_{t}_f32"
    row(name, f"{name} v[60:65], v[0:15], v[16:31], v40", {**columns(0, halves[0]), **columns(16, halves[1]), "v40": SCALES}, columns(60, want))

# Two f32 to 16 bits each.
for t, fmt in (("f16", F16), ("bf16", BF16)):
    def stochastic_16(a, r, fmt=fmt):
        v = abs(F32.value(a))
        e = int(math.floor(math.log2(v)))
        drop = 23 - fmt.m
        return fmt.encode(v + Fraction(2) ** (e - fmt.m) * Fraction(r >> 32 - drop, 1 << drop), mode="zero") | (fmt.sign if a & F32.sign else 0)
    first, second = [bits32(1 + n * 0.0371) for n in range(LANES)], [bits32(-3.3 * 1.7 ** n) for n in range(LANES)]
    row(f"v_cvt_sr_pk_{t}_f32", f"v_cvt_sr_pk_{t}_f32 v10, v0, v1, v2", {"v0": first, "v1": second, "v2": SEEDS},
        {"v10": [stochastic_16(a, r) | stochastic_16(b, step(r)) << 16 for a, b, r in zip(first, second, SEEDS)]})

# ---- scales of other lanes: rows of 16 lanes hold four bytes each, scale_sel picks ------------------------------------------------------
WAVE = 32
HELD = [sum(117 + (3 * n + 5 * b) % 21 << 8 * b for b in range(4)) for n in range(WAVE)]
for t, fmt in NARROW.items():
    count = 16 if fmt.bits == 6 else 8
    for w, wide_ in WIDE.items():
        wb = 32 if w == "f32" else 16
        rng = random.Random("lanes" + t + w)
        for select in range(0, 16 if fmt.bits == 8 else 8, 2):
            codes = [[rng.choice([c for c in range(1 << fmt.bits) if not fmt.is_nan(c) and not fmt.is_inf(c)]) for _ in range(count)] for _ in range(WAVE)]
            powers = []
            for n in range(WAVE):
                half = select >> 3 if fmt.bits == 8 else select >> 2 & 1
                byte = select >> 1 & 3 if fmt.bits == 8 else (select & 2) + n // 16
                powers.append(Fraction(2) ** ((HELD[16 * half + n % 16] >> 8 * byte & 255) - 127))
            want = [bulk([wide_of(wide_, fmt, c, p) for c in lane], wb) for lane, p in zip(codes, powers)]
            name = f"v_cvt_scale_pk{count}_{w}_{t}"
            source = [bulk(lane, fmt.bits) for lane in codes]
            row(name, f"{name} {span(20, len(want[0]))}, {span(0, len(source[0]))}, v8 scale_sel:{select}", {**columns(0, source), "v8": HELD}, columns(20, want))
