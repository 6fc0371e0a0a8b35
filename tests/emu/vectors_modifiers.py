"""Rows of what surrounds the arithmetic: modifiers, lane permutations, sub-word operands, constants, rounding and denormal modes."""

import math

from vectors_base import *

A, B, C = draw("modifiers", POOL32, 3, 32)
A = [v if not F32.is_nan(v) else 0x3F800000 for v in A]
B = [v if not F32.is_nan(v) else 0x40000000 for v in B]
C = [v if not F32.is_nan(v) else 0x40400000 for v in C]
IN = {"v0": A, "v1": B, "v2": C}
add, mul, fma = (lambda x, y: x + y), (lambda x, y: x * y), (lambda x, y, z: x * y + z)


def f32(codes, function, **how):
    return exact(F32, codes, function, **how)


def neg(v):
    return v ^ 0x80000000


def mag(v):
    return v & 0x7FFFFFFF


# ---- neg, abs, clamp, output modifier -----------------------------------------------------------------------------------
row("v_add_f32", "v_add_f32_e64 v10, -v0, |v1|", IN, {"v10": [f32([neg(a), mag(b)], add) for a, b in zip(A, B)]})
row("v_fma_f32", "v_fma_f32 v10, v0, -|v1|, -v2", IN, {"v10": [f32([a, neg(mag(b)), neg(c)], fma) for a, b, c in zip(A, B, C)]})


def clamped(code):
    """With DX10 clamping a NaN becomes 0."""
    x = math.nan if code == "nan" else to_float(F32, code)
    return 0 if math.isnan(x) or x <= 0 else bits32(1.0) if x >= 1 else code


TAME = [bits32(x) for x in (0.25, -0.5, 0.75, 3.0, -7.0, 1.0, 0.1, 1e-3, 0.9, 2.0, -1e-3, 0.6, 100.0, -0.0, 0.0, 0.5)]
row("v_mul_f32", "v_mul_f32_e64 v10, v0, v1 clamp", {"v0": TAME, "v1": TAME[3:] + TAME[:3], "mode": 0x1F0},
    {"v10": [clamped(f32([a, b], mul)) for a, b in zip(TAME, TAME[3:] + TAME[:3])]})
for text, factor in (("mul:2", 2), ("mul:4", 4), ("div:2", Fraction(1, 2))):
    row("v_mul_f32", f"v_mul_f32_e64 v10, v0, v1 {text}", {"v0": TAME, "v1": TAME[3:] + TAME[:3], "mode": 0xC0},
        {"v10": [F32.encode(F32.value(v) * factor, bool(v >> 31)) for v in (f32([a, b], mul) for a, b in zip(TAME, TAME[3:] + TAME[:3]))]})

# ---- constants and scalars ---------------------------------------------------------------------------------------------------
row("v_add_f32", "v_add_f32 v10, 2.0, v1", IN, {"v10": [f32([bits32(2.0), b], add) for b in B]})
row("v_add_f32", "v_add_f32 v10, 0x3fc90fdb, v1", IN, {"v10": [f32([0x3FC90FDB, b], add) for b in B]})
row("v_mul_f32", "v_mul_f32 v10, 0.15915494, v1", IN, {"v10": [f32([0x3E22F983, b], mul) for b in B]})
row("v_add_f32", "v_add_f32 v10, s5, v1", {**IN, "s5": 0x41200000}, {"v10": [f32([0x41200000, b], add) for b in B]})
row("v_and_b32", "v_and_b32 v10, -4, v1", IN, {"v10": [b & 0xFFFFFFFC for b in B]})
row("v_fma_f32", "v_fma_f32 v10, v0, s5, 1.0", {**IN, "s5": 0x41200000}, {"v10": [f32([a, 0x41200000, bits32(1.0)], fma) for a in A]})

# ---- DPP: one row of 16 lanes ---------------------------------------------------------------------------------------------------
X, Y = draw("dpp", INTS, 2, 32)
OLD = [0x11110000 + n for n in range(LANES)]


def dpp(text, source, targets, mask=lambda n: True, keeps=True):
    """`source(lane)` is the lane read, None when out of reach: then the old value stays, or 0 is read with bound_ctrl."""
    got = []
    for n in range(LANES):
        at = source(n)
        if not mask(n) or (at is None and keeps):
            got.append(OLD[n])
        else:
            got.append(0 if at is None else X[at])
    row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {text}", {"v0": X, "v10": OLD}, {"v10": got}, targets)


FULL = "row_mask:0xf bank_mask:0xf"
dpp(f"quad_perm:[3,1,0,2] {FULL}", lambda n: (n & ~3) + (3, 1, 0, 2)[n & 3], TARGETS)
dpp(f"row_shl:1 {FULL}", lambda n: n + 1 if n < 15 else None, TARGETS)
dpp(f"row_shr:3 {FULL}", lambda n: n - 3 if n >= 3 else None, TARGETS)
dpp(f"row_shr:3 {FULL} bound_ctrl:1", lambda n: n - 3 if n >= 3 else None, TARGETS, keeps=False)
dpp(f"row_ror:5 {FULL}", lambda n: (n - 5) % 16, TARGETS)
dpp(f"row_mirror {FULL}", lambda n: 15 - n, TARGETS)
dpp(f"row_half_mirror {FULL}", lambda n: (n & 8) + 7 - (n & 7), TARGETS)
dpp("row_mirror row_mask:0xf bank_mask:0x5", lambda n: 15 - n, TARGETS, lambda n: 5 >> n // 4 & 1)
dpp("row_mirror row_mask:0xe bank_mask:0xf", lambda n: 15 - n, TARGETS, lambda n: False)
dpp(f"row_newbcast:6 {FULL}", lambda n: 6, GFX9)
dpp(f"row_share:9 {FULL}", lambda n: 9, GFX12)
dpp(f"row_xmask:5 {FULL}", lambda n: n ^ 5, GFX12)
dpp("dpp8:[7,2,0,5,3,1,6,4]", lambda n: (n & 8) + (7, 2, 0, 5, 3, 1, 6, 4)[n & 7], GFX12)
row("v_add_f32", f"v_add_f32_dpp v10, v0, v1 row_shl:2 {FULL} bound_ctrl:1", IN,
    {"v10": [f32([A[n + 2] if n < 14 else 0, B[n]], add) for n in range(LANES)]})

# ---- SDWA (gfx9) ---------------------------------------------------------------------------------------------------------------------
row("v_add_u32", "v_add_u32_sdwa v10, v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:WORD_1", {"v0": X, "v1": Y},
    {"v10": [(a >> 16 & 255) + (b >> 16) for a, b in zip(X, Y)]}, GFX9)
row("v_add_u32", "v_add_u32_sdwa v10, sext(v0), v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:DWORD", {"v0": X, "v1": Y},
    {"v10": [((a >> 24) - (256 if a >> 31 else 0) + b) & M32 for a, b in zip(X, Y)]}, GFX9)
for unused, rest in (("PRESERVE", lambda old, v: old & 0x0000FFFF), ("PAD", lambda old, v: 0)):
    row("v_or_b32", f"v_or_b32_sdwa v10, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_{unused} src0_sel:WORD_0 src1_sel:BYTE_0",
        {"v0": X, "v1": Y, "v10": OLD}, {"v10": [((a & 0xFFFF) | (b & 255)) << 16 | rest(o, 0) for a, b, o in zip(X, Y, OLD)]}, GFX9)
row("v_lshlrev_b32", "v_lshlrev_b32_sdwa v10, v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:DWORD",
    {"v0": [n % 5 for n in range(LANES)], "v1": Y, "v10": OLD},
    {"v10": [(o & ~0xFF00) | (b << n % 5 & 0xFF) << 8 for n, (b, o) in enumerate(zip(Y, OLD))]}, GFX9)
row("v_cvt_f32_f16", "v_cvt_f32_f16_sdwa v10, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
    {"v0": [h << 16 | 0x1234 for h in POOL16[:16]]}, {"v10": [from_float(F32, to_float(F16, h)) for h in POOL16[:16]]}, GFX9)

# ---- 16-bit halves --------------------------------------------------------------------------------------------------------------------
H, G = POOL16[:10] + POOL16[11:17], POOL16[3:13] + POOL16[0:6]
G = [g if not F16.is_nan(g) else 0x3C00 for g in G]
row("v_mad_u16", "v_mad_u16 v10, v0, v1, v2 op_sel:[1,0,1,1]", {"v0": X, "v1": Y, "v2": OLD, "v10": OLD},
    {"v10": [o & 0xFFFF | ((a >> 16) * (b & 0xFFFF) + (o >> 16) & 0xFFFF) << 16 for a, b, o in zip(X, Y, OLD)]})
row("v_fma_f16", "v_fma_f16 v10, v0, -v1, 1.0 op_sel:[1,0,0,0]", {"v0": [h << 16 for h in H], "v1": G},
    {"v10": [("low", "nan16" if (v := exact(F16, [h, g ^ 0x8000, 0x3C00], fma)) == "nan" else v) for h, g in zip(H, G)]})
# gfx9 clears the upper half after most 16-bit instructions, gfx12 keeps it
got = [exact(F16, [h, g], add) for h, g in zip(H, G)]
pair_text = lambda top, v: f"pair16:{'nan' if v == 'nan' else format(v, 'x')}:{top:x}"
row("v_add_f16", "v_add_f16 v10, v0, v1", {"v0": H, "v1": G, "v10": OLD}, {"v10": [pair_text(0, v) for v in got]}, GFX9)
row("v_add_f16", "v_add_f16 v10, v0, v1", {"v0": H, "v1": G, "v10": OLD}, {"v10": [pair_text(0x1111, v) for v in got]}, GFX12)

# ---- rounding modes: MODE[1:0] for f32, MODE[3:2] for f16 and f64 -------------------------------------------------------------------------
P = [bits32(x) for x in (1.0, 1.1, -1.3, 1e10, 3.3333, -0.7, 1e-5, 123.456, -9e8, 0.1, 7.7, -55.5, 1e-3, 2e5, 1.7, -3.9)]
Q = [bits32(x) for x in (1e-9, 3.3, -2.7, 1.234, 0.3, 1e-8, 9.9, -1e-6, 0.77, 0.2, -1e-7, 3.1, 5.5, 1e-4, -8.8, 0.013)]
D64 = lambda x: struct.unpack("<Q", struct.pack("<d", x))[0]
P64, Q64 = [D64(to_float(F32, v) * 1.1) for v in P], [D64(to_float(F32, v) / 3) for v in Q]
for mode, n in (("up", 1), ("down", 2), ("zero", 3)):
    m32, m64 = {"mode": 0xF0 | n}, {"mode": 0xF0 | n << 2}
    row("v_add_f32", "v_add_f32 v10, v0, v1", {"v0": P, "v1": Q, **m32}, {"v10": [f32([a, b], add, mode=mode) for a, b in zip(P, Q)]})
    row("v_mul_f32", "v_mul_f32 v10, v0, v1", {"v0": P, "v1": Q, **m32}, {"v10": [f32([a, b], mul, mode=mode) for a, b in zip(P, Q)]})
    row("v_fma_f32", "v_fma_f32 v10, v0, v1, v2", {"v0": P, "v1": Q, "v2": P[5:] + P[:5], **m32},
        {"v10": [f32([a, b, c], fma, mode=mode) for a, b, c in zip(P, Q, P[5:] + P[:5])]})
    row("v_pk_mul_f32", "v_pk_mul_f32 v[10:11], v[0:1], v[2:3]", {"v0": P, "v1": Q, "v2": Q, "v3": Q, **m32},
        {"v10": [f32([a, b], mul, mode=mode) for a, b in zip(P, Q)], "v11": [f32([a, a], mul, mode=mode) for a in Q]})
    row("v_cvt_f32_u32", "v_cvt_f32_u32 v10, v0", {"v0": X, **m32}, {"v10": [F32.encode(a, mode=mode) for a in X]})
    row("v_cvt_f32_i32", "v_cvt_f32_i32 v10, v0", {"v0": X, **m32}, {"v10": [F32.encode(s32(a), mode=mode) for a in X]})
    row("v_cvt_f32_f64", "v_cvt_f32_f64 v10, v[0:1]", {**wide(0, P64), **m32}, {"v10": [F32.encode(F64.value(a), mode=mode) for a in P64]})
    row("v_add_f64", "v_add_f64 v[10:11], v[0:1], v[2:3]", {**wide(0, P64), **wide(2, Q64), **m64},
        wide_result(10, [exact(F64, [a, b], add, mode=mode) for a, b in zip(P64, Q64)]))
    row("v_fma_f64", "v_fma_f64 v[10:11], v[0:1], v[2:3], v[4:5]", {**wide(0, P64), **wide(2, Q64), **wide(4, Q64[3:] + Q64[:3]), **m64},
        wide_result(10, [exact(F64, [a, b, c], fma, mode=mode) for a, b, c in zip(P64, Q64, Q64[3:] + Q64[:3])]))
    hp = [F16.encode(F32.value(v) if abs(F32.value(v)) < 60000 else 3) for v in P]
    hq = [F16.encode(F32.value(v)) for v in Q]
    for name, f in (("v_add_f16", add), ("v_mul_f16", mul)):
        row(name, f"{name} v10, v0, v1", {"v0": hp, "v1": hq, **m64}, {"v10": [("low", exact(F16, [a, b], f, mode=mode)) for a, b in zip(hp, hq)]})
    row("v_cvt_pk_bf16_f32", "v_cvt_pk_bf16_f32 v10, v0, v1", {"v0": P, "v1": Q, **m32},
        {"v10": [BF16.encode(F32.value(a), mode=mode) | BF16.encode(F32.value(b), mode=mode) << 16 for a, b in zip(P, Q)]})
    # rounding to nearest even and truncation do not follow the mode
    row("v_rndne_f32", "v_rndne_f32 v10, v0", {"v0": P, **m32}, {"v10": [F32.encode(round(F32.value(a)), bool(a >> 31)) for a in P]})

# ---- denormal modes: MODE[4] f32 in, [5] f32 out, [6] f16/f64 in, [7] out -----------------------------------------------------------------------
TINY = [0x00000001, 0x807FFFFF, 0x00400000, 0x00800000, 0x00800001, 0x80800003, 0x01000000, 0x3F800000, 0x00123456, 0x80000000, 0, 0x01234567,
        0x80C00000, 0x00900000, 0x40490FDB, 0x807FFFFE]
OTHER = [0x3F800000, 0x00000005, 0x3F000000, 0x3F000000, 0x80800000, 0x00800000, 0x3E800000, 0x00000010, 0x80123455, 0x00000003, 0x00700000,
         0x81234560, 0x00B00000, 0x808FFFFF, 0x00000001, 0x3F800000]


def flush(fmt, c):
    return c if c == "nan" or fmt.split(c)[1] else c & fmt.sign


for into, out in ((0, 0), (0, 1), (1, 0)):
    mode32, mode16 = {"mode": 0xC0 | into << 4 | out << 5}, {"mode": 0x30 | into << 6 | out << 7}
    fi = lambda fmt, c, into=into: c if into else flush(fmt, c)
    fo = lambda fmt, c, out=out: c if out else flush(fmt, c)
    for name, f in (("v_add_f32", add), ("v_mul_f32", mul)):
        row(name, f"{name} v10, v0, v1", {"v0": TINY, "v1": OTHER, **mode32},
            {"v10": [fo(F32, f32([fi(F32, a), fi(F32, b)], f)) for a, b in zip(TINY, OTHER)]})
    row("v_fma_f32", "v_fma_f32 v10, v0, v1, v2", {"v0": TINY, "v1": OTHER, "v2": TINY[3:] + TINY[:3], **mode32},
        {"v10": [fo(F32, f32([fi(F32, a), fi(F32, b), fi(F32, c)], fma)) for a, b, c in zip(TINY, OTHER, TINY[3:] + TINY[:3])]})
    h, g = [1, 0x83FF, 0x200, 0x400, 0x401, 0x8403, 0x800, 0x3C00] * 2, [0x3C00, 5, 0x3800, 0x3800, 0x8400, 0x400, 0x3400, 0x10] * 2
    for name, f in (("v_add_f16", add), ("v_mul_f16", mul)):
        row(name, f"{name} v10, v0, v1", {"v0": h, "v1": g, **mode16},
            {"v10": [("low", fo(F16, exact(F16, [fi(F16, a), fi(F16, b)], f))) for a, b in zip(h, g)]})
