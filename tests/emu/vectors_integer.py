"""Rows of moves, bit operations, integer arithmetic, carries, 64-bit and packed integers."""

from vectors_base import *


def integer(names, sources, function, targets=TARGETS, suffix="", seed=None, inputs=None):
    """32-bit words; the function's result is taken modulo 2^32."""
    simple(names, sources, 32, INTS, lambda *a: function(*a) & M32, targets, seed, suffix, inputs)


def word16(names, sources, function, suffix="", seed=None):
    simple(names, sources, 16, [v & 0xFFFF for v in INTS], lambda *a: function(*a) & 0xFFFF, TARGETS, seed, suffix)


def clamp(v, low, high):
    return max(low, min(high, v))


CU32, CI32 = (lambda v: clamp(v, 0, M32)), (lambda v: clamp(v, -(1 << 31), (1 << 31) - 1))
CU16, CI16 = (lambda v: clamp(v, 0, 0xFFFF)), (lambda v: clamp(v, -0x8000, 0x7FFF))

# ---- moves --------------------------------------------------------------------------------------------------------------

integer("v_mov_b32", 1, lambda a: a)
x = draw("moves", INTS, 1, 32)[0]
for asm, inputs, results in (("v_accvgpr_write_b32 a10, v0", {"v0": x}, {"v266": x}),
                             ("v_accvgpr_read_b32 v10, a0", {"v256": x}, {"v10": x}),
                             ("v_accvgpr_mov_b32 a10, a0", {"v256": x}, {"v266": x})):
    row(asm.split()[0], asm, inputs, results, GFX9)
y = draw("moves2", INTS, 1, 32)[0]
row("v_mov_b64", "v_mov_b64 v[10:11], v[0:1]", {"v0": x, "v1": y}, {"v10": x, "v11": y})
row("v_swap_b32", "v_swap_b32 v0, v1", {"v0": x, "v1": y}, {"v0": y, "v1": x})
row("v_nop", "v_nop", {}, {})
row("v_movreld_b32", "v_movreld_b32 v8, v0", {"v0": x, "m0": 2}, {"v10": x}, GFX12)
row("v_movrels_b32", "v_movrels_b32 v10, v0", {"v3": x, "m0": 3}, {"v10": x}, GFX12)
row("v_movrelsd_b32", "v_movrelsd_b32 v8, v0", {"v2": x, "m0": 2}, {"v10": x}, GFX12)
row("v_movrelsd_2_b32", "v_movrelsd_2_b32 v8, v0", {"v3": x, "m0": 0x20003}, {"v10": x}, GFX12)
m = 0x5A3C
row("v_cndmask_b32", "v_cndmask_b32 v10, v0, v1, " + "vcc", {"v0": x, "v1": y, "vcc": m},
    {"v10": [b if m >> n & 1 else a for n, (a, b) in enumerate(zip(x, y))]}, GFX9)
row("v_cndmask_b32", "v_cndmask_b32 v10, v0, v1, vcc_lo", {"v0": x, "v1": y, "vcc": m},
    {"v10": [b if m >> n & 1 else a for n, (a, b) in enumerate(zip(x, y))]}, GFX12)
row("v_cndmask_b32", "v_cndmask_b32_e64 v10, -v0, |v1|, s[20:21]", {"v0": x, "v1": y, "s20": m},
    {"v10": [b & 0x7FFFFFFF if m >> n & 1 else a ^ 0x80000000 for n, (a, b) in enumerate(zip(x, y))]}, GFX9)
row("v_cndmask_b16", "v_cndmask_b16 v10, v0, v1, s20", {"v0": x, "v1": y, "s20": m},
    {"v10": [("low", (b if m >> n & 1 else a) & 0xFFFF) for n, (a, b) in enumerate(zip(x, y))]}, GFX12)

# ---- bits -----------------------------------------------------------------------------------------------------------------


def first_one(a):
    return 32 - a.bit_length() if a else M32


def first_difference(a):
    bits = f"{a:032b}"
    other = bits.find("1" if bits[0] == "0" else "0")
    return other if other >= 0 else M32


def last_one(a):
    return (a & -a).bit_length() - 1 if a else M32


integer("v_not_b32", 1, lambda a: ~a)
integer("v_bfrev_b32", 1, lambda a: int(f"{a:032b}"[::-1], 2))
integer("v_ffbh_u32 v_clz_i32_u32", 1, first_one)
integer("v_ffbh_i32 v_cls_i32", 1, first_difference)
integer("v_ffbl_b32 v_ctz_i32_b32", 1, last_one)
integer("v_and_b32", 2, lambda a, b: a & b)
integer("v_or_b32", 2, lambda a, b: a | b)
integer("v_xor_b32", 2, lambda a, b: a ^ b)
integer("v_xnor_b32", 2, lambda a, b: ~(a ^ b))
integer("v_lshlrev_b32", 2, lambda a, b: b << a % 32)
integer("v_lshrrev_b32", 2, lambda a, b: b >> a % 32)
integer("v_ashrrev_i32", 2, lambda a, b: s32(b) >> a % 32)
integer("v_bfm_b32", 2, lambda a, b: ((1 << a % 32) - 1) << b % 32)
integer("v_bcnt_u32_b32", 2, lambda a, b: bin(a).count("1") + b)
FIELDS = [draw("bfe", INTS, 1, 32)[0], [0, 4, 8, 16, 31, 5, 33, 24, 0, 1, 30, 12, 7, 9, 20, 28], [0, 8, 16, 16, 1, 31, 4, 8, 31, 30, 5, 33, 7, 15, 12, 4]]


def signed_field(a, b, c):
    w = c % 32
    v = a >> b % 32 & ((1 << w) - 1)
    if b % 32 + w >= 32:
        return s32(a) >> b % 32 if w else 0
    return v - (1 << w) if w and v >> (w - 1) else v


integer("v_bfe_u32", 3, lambda a, b, c: a >> b % 32 & ((1 << c % 32) - 1), inputs=FIELDS)
integer("v_bfe_i32", 3, signed_field, inputs=FIELDS)
integer("v_bfi_b32", 3, lambda a, b, c: (a & b) | (~a & c))
integer("v_alignbit_b32", 3, lambda a, b, c: (a << 32 | b) >> c % 32)
integer("v_alignbyte_b32", 3, lambda a, b, c: (a << 32 | b) >> 8 * (c % 4))


def perm(a, b, c):
    both, out = a << 32 | b, 0
    for n in range(4):
        s = c >> 8 * n & 255
        if s < 8:
            v = both >> 8 * s & 255
        elif s < 12:
            v = 255 if both >> (16 * (s - 8) + 15) & 1 else 0
        else:
            v = 0 if s == 12 else 255
        out |= v << 8 * n
    return out


integer("v_perm_b32", 3, perm, inputs=[[0x80112233 + 0x01010101 * n for n in range(LANES)],
                                       [0x94857697 + 0x01030507 * n & M32 for n in range(LANES)],
                                       [0x03020100, 0x07060504, 0x00040105, 0x0C0D0B08, 0x090A0C0C, 0xFF0C0100, 0x05040100, 0x07060302] * 2])
integer("v_and_or_b32", 3, lambda a, b, c: (a & b) | c)
integer("v_or3_b32", 3, lambda a, b, c: a | b | c)
integer("v_xor3_b32", 3, lambda a, b, c: a ^ b ^ c)
integer("v_lshl_or_b32", 3, lambda a, b, c: (a << b % 32) | c)
integer("v_lshl_add_u32", 3, lambda a, b, c: (a << b % 32 & M32) + c)
integer("v_add_lshl_u32", 3, lambda a, b, c: (a + b & M32) << c % 32)
integer("v_xad_u32", 3, lambda a, b, c: (a ^ b) + c)


def truth(table):
    return lambda a, b, c: sum((table >> ((a >> n & 1) * 4 + (b >> n & 1) * 2 + (c >> n & 1)) & 1) << n for n in range(32))


integer("v_bitop3_b32", 3, truth(0x6A), suffix=" bitop3:0x6a")
integer("v_bitop3_b32", 3, truth(0xE8), suffix=" bitop3:0xe8")
x, y, z = draw("bitop2", INTS, 3, 32)
for table in (0x40, 0x54, 0x14):  # and, or, exclusive or: the second half of a pair
    row("v_bitop3_b32", f"v_dual_mov_b32 v11, v2 :: v_dual_bitop2_b32 v10, v0, v1 bitop3:0x{table:x}", {"v0": x, "v1": y, "v2": z},
        {"v10": [truth(table)(a, b, 0) for a, b in zip(x, y)], "v11": z}, ["gfx1250"])
# both halves read before either writes
row("v_add_nc_u32", "v_dual_mov_b32 v0, v2 :: v_dual_add_nc_u32 v11, v0, v1", {"v0": x, "v1": y, "v2": z},
    {"v0": z, "v11": [a + b & M32 for a, b in zip(x, y)]}, GFX12)
word16("v_bitop3_b16", 3, truth(0x6A), suffix=" bitop3:0x6a")
word16("v_and_b16", 2, lambda a, b: a & b)
word16("v_or_b16", 2, lambda a, b: a | b)
word16("v_xor_b16", 2, lambda a, b: a ^ b)
word16("v_not_b16", 1, lambda a: ~a)
word16("v_lshlrev_b16", 2, lambda a, b: b << a % 16)
word16("v_lshrrev_b16", 2, lambda a, b: b >> a % 16)
word16("v_ashrrev_i16", 2, lambda a, b: s16(b) >> a % 16)
x, y = [0xF0F0F0F0, 0xFFFFFFFF, 1, 0x12345678] * 4, [0, 5, 100, 7] * 4
row("v_mbcnt_lo_u32_b32", "v_mbcnt_lo_u32_b32 v10, v0, v1", {"v0": x, "v1": y},
    {"v10": [bin(a & ((1 << n) - 1)).count("1") + b for n, (a, b) in enumerate(zip(x, y))]})
row("v_mbcnt_hi_u32_b32", "v_mbcnt_hi_u32_b32 v10, v0, v1", {"v0": x, "v1": y}, {"v10": y})  # lanes 0-31 count nothing

# ---- 32-bit arithmetic ---------------------------------------------------------------------------------------------------------

integer("v_add_u32 v_add_nc_u32", 2, lambda a, b: a + b)
integer("v_add_u32 v_add_nc_u32", 2, lambda a, b: CU32(a + b), suffix=" clamp")
integer("v_sub_u32 v_sub_nc_u32", 2, lambda a, b: a - b)
integer("v_sub_u32 v_sub_nc_u32", 2, lambda a, b: CU32(a - b), suffix=" clamp")
integer("v_subrev_u32 v_subrev_nc_u32", 2, lambda a, b: b - a)
integer("v_add_i32 v_add_nc_i32", 2, lambda a, b: a + b)
integer("v_add_i32 v_add_nc_i32", 2, lambda a, b: CI32(s32(a) + s32(b)), suffix=" clamp")
integer("v_sub_i32 v_sub_nc_i32", 2, lambda a, b: a - b)
integer("v_sub_i32 v_sub_nc_i32", 2, lambda a, b: CI32(s32(a) - s32(b)), suffix=" clamp")
integer("v_mul_lo_u32", 2, lambda a, b: a * b)
integer("v_mul_hi_u32", 2, lambda a, b: a * b >> 32)
integer("v_mul_hi_i32", 2, lambda a, b: s32(a) * s32(b) >> 32)
L24 = 0xFFFFFF
integer("v_mul_u32_u24", 2, lambda a, b: (a & L24) * (b & L24))
integer("v_mul_i32_i24", 2, lambda a, b: s24(a) * s24(b))
integer("v_mul_hi_u32_u24", 2, lambda a, b: (a & L24) * (b & L24) >> 32)
integer("v_mul_hi_i32_i24", 2, lambda a, b: s24(a) * s24(b) >> 32)
integer("v_min_u32", 2, min)
integer("v_max_u32", 2, max)
integer("v_min_i32", 2, lambda a, b: min(a, b, key=s32))
integer("v_max_i32", 2, lambda a, b: max(a, b, key=s32))
integer("v_add3_u32", 3, lambda a, b, c: a + b + c)
integer("v_mad_u32", 3, lambda a, b, c: a * b + c)
integer("v_mad_u32_u24", 3, lambda a, b, c: (a & L24) * (b & L24) + c)
integer("v_mad_u32_u24", 3, lambda a, b, c: CU32((a & L24) * (b & L24) + c), suffix=" clamp")
integer("v_mad_i32_i24", 3, lambda a, b, c: s24(a) * s24(b) + c)
integer("v_mad_i32_i24", 3, lambda a, b, c: CI32(s24(a) * s24(b) + s32(c)), suffix=" clamp")
for t, key in (("u32", lambda v: v), ("i32", s32)):
    integer(f"v_min3_{t}", 3, lambda *a, key=key: min(a, key=key))
    integer(f"v_max3_{t}", 3, lambda *a, key=key: max(a, key=key))
    integer(f"v_med3_{t}", 3, lambda *a, key=key: sorted(a, key=key)[1])
    integer(f"v_minmax_{t}", 3, lambda a, b, c, key=key: max(min(a, b, key=key), c, key=key))
    integer(f"v_maxmin_{t}", 3, lambda a, b, c, key=key: min(max(a, b, key=key), c, key=key))
integer("v_add_max_u32", 3, lambda a, b, c: max(a + b & M32, c))
integer("v_add_min_u32", 3, lambda a, b, c: min(a + b & M32, c))
integer("v_add_max_u32", 3, lambda a, b, c: max(CU32(a + b), c), suffix=" clamp")
integer("v_add_max_i32", 3, lambda a, b, c: max(s32(a + b), s32(c)))
integer("v_add_min_i32", 3, lambda a, b, c: min(s32(a + b), s32(c)))
integer("v_add_min_i32", 3, lambda a, b, c: min(CI32(s32(a) + s32(b)), s32(c)), suffix=" clamp")

# Carries: names of gfx9, then of gfx12.
x, y = draw("carry", INTS, 2, 32)
cin = 0x9CA5
for old, new, f, chained in (("v_add_co_u32", "v_add_co_u32", lambda a, b, c: a + b, False),
                             ("v_sub_co_u32", "v_sub_co_u32", lambda a, b, c: a - b, False),
                             ("v_subrev_co_u32", "v_subrev_co_u32", lambda a, b, c: b - a, False),
                             ("v_addc_co_u32", "v_add_co_ci_u32", lambda a, b, c: a + b + c, True),
                             ("v_subb_co_u32", "v_sub_co_ci_u32", lambda a, b, c: a - b - c, True),
                             ("v_subbrev_co_u32", "v_subrev_co_ci_u32", lambda a, b, c: b - a - c, True)):
    got = [f(a, b, cin >> n & 1) for n, (a, b) in enumerate(zip(x, y))]
    carry = mask_of(not 0 <= v <= M32 for v in got)
    inputs = {"v0": x, "v1": y, "s24": cin}
    row(old, f"{old}{'_e64' if chained or old != new else '_e64'} v10, s[20:21], v0, v1{', s[24:25]' if chained else ''}", inputs,
        {"v10": [v & M32 for v in got], "s20": carry}, GFX9)
    row(new, f"{new}{'_e64' if chained else ''} v10, s20, v0, v1{', s24' if chained else ''}", inputs,
        {"v10": [v & M32 for v in got], "s20": carry}, GFX12)
    if chained:
        row(old, f"{old} v10, vcc, v0, v1, vcc", {"v0": x, "v1": y, "vcc": cin}, {"v10": [v & M32 for v in got], "vcc": carry}, GFX9)
        row(new, f"{new} v10, vcc_lo, v0, v1, vcc_lo", {"v0": x, "v1": y, "vcc": cin}, {"v10": [v & M32 for v in got], "vcc": carry}, GFX12)
    else:
        row(old, f"{old} v10, vcc, v0, v1", {"v0": x, "v1": y}, {"v10": [v & M32 for v in got], "vcc": carry}, GFX9)

# ---- 16-bit arithmetic -------------------------------------------------------------------------------------------------------------

word16("v_add_u16 v_add_nc_u16", 2, lambda a, b: a + b)
word16("v_add_u16 v_add_nc_u16", 2, lambda a, b: CU16(a + b), " clamp")
word16("v_sub_u16 v_sub_nc_u16", 2, lambda a, b: a - b)
word16("v_sub_u16 v_sub_nc_u16", 2, lambda a, b: CU16(a - b), " clamp")
word16("v_subrev_u16", 2, lambda a, b: b - a)
word16("v_add_i16 v_add_nc_i16", 2, lambda a, b: a + b)
word16("v_add_i16 v_add_nc_i16", 2, lambda a, b: CI16(s16(a) + s16(b)), " clamp")
word16("v_sub_i16 v_sub_nc_i16", 2, lambda a, b: a - b)
word16("v_sub_i16 v_sub_nc_i16", 2, lambda a, b: CI16(s16(a) - s16(b)), " clamp")
word16("v_mul_lo_u16", 2, lambda a, b: a * b)
word16("v_min_u16", 2, min)
word16("v_max_u16", 2, max)
word16("v_min_i16", 2, lambda a, b: min(s16(a), s16(b)))
word16("v_max_i16", 2, lambda a, b: max(s16(a), s16(b)))
word16("v_mad_u16 v_mad_legacy_u16", 3, lambda a, b, c: a * b + c)
word16("v_mad_u16", 3, lambda a, b, c: CU16(a * b + c), " clamp")
word16("v_mad_i16 v_mad_legacy_i16", 3, lambda a, b, c: s16(a) * s16(b) + s16(c))
word16("v_mad_i16", 3, lambda a, b, c: CI16(s16(a) * s16(b) + s16(c)), " clamp")
for t, key in (("u16", lambda v: v & 0xFFFF), ("i16", s16)):
    word16(f"v_min3_{t}", 3, lambda *a, key=key: min(a, key=key))
    word16(f"v_max3_{t}", 3, lambda *a, key=key: max(a, key=key))
    word16(f"v_med3_{t}", 3, lambda *a, key=key: sorted(a, key=key)[1])
integer("v_mad_u32_u16", 3, lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c)
integer("v_mad_i32_i16", 3, lambda a, b, c: s16(a) * s16(b) + s32(c))
integer("v_pack_b32_f16", 2, lambda a, b: a & 0xFFFF | b << 16)
integer("v_pack_b32_f16", 2, lambda a, b: a >> 16 | (b & 0xFFFF) << 16, suffix=" op_sel:[1,0,0]")

# ---- sums of differences, bytes -------------------------------------------------------------------------------------------------------

BYTES = lambda a: [a >> s & 255 for s in (0, 8, 16, 24)]
sad = lambda a, b: sum(abs(p - q) for p, q in zip(BYTES(a), BYTES(b)))
integer("v_sad_u8", 3, lambda a, b, c: sad(a, b) + c)
integer("v_sad_hi_u8", 3, lambda a, b, c: (sad(a, b) << 16) + c)
integer("v_msad_u8", 3, lambda a, b, c: sum(abs(p - q) for p, q in zip(BYTES(a), BYTES(b)) if q) + c)
integer("v_sad_u16", 3, lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c)
integer("v_sad_u32", 3, lambda a, b, c: abs(a - b) + c)
integer("v_lerp_u8", 3, lambda a, b, c: sum((p + q + (r & 1) >> 1) << 8 * n for n, (p, q, r) in enumerate(zip(BYTES(a), BYTES(b), BYTES(c)))))
integer("v_prng_b32", 1, lambda a: a << 1 ^ (0xC5 if a >> 31 else 0))
for t, low, high in (("i8", -128, 127), ("u8", 0, 255)):
    a, b, c = draw("ashrpk" + t, INTS, 3, 32)
    row(f"v_ashr_pk_{t}_i32", f"v_ashr_pk_{t}_i32 v10, v0, v1, v2", {"v0": a, "v1": b, "v2": c, "v10": [0x5A5A0000] * LANES},
        {"v10": [0x5A5A0000 | clamp(s32(p) >> r % 32, low, high) & 255 | (clamp(s32(q) >> r % 32, low, high) & 255) << 8
                 for p, q, r in zip(a, b, c)]})
a = draw("satpk", INTS, 1, 32)[0]
row("v_sat_pk_u8_i16", "v_sat_pk_u8_i16 v10, v0", {"v0": a},
    {"v10": [("low", clamp(s16(p), 0, 255) | clamp(s16(p >> 16), 0, 255) << 8) for p in a]})

# ---- 64 bits ------------------------------------------------------------------------------------------------------------------------------

simple64("v_lshlrev_b64", [32, 64], lambda a, b: b << a % 64 & M64)
simple64("v_lshrrev_b64", [32, 64], lambda a, b: b >> a % 64)
simple64("v_ashrrev_i64", [32, 64], lambda a, b: s64(b) >> a % 64 & M64)
simple64("v_add_nc_u64", [64, 64], lambda a, b: a + b & M64)
simple64("v_sub_nc_u64", [64, 64], lambda a, b: a - b & M64)
simple64("v_mul_u64", [64, 64], lambda a, b: a * b & M64)
simple64("v_min_u64", [64, 64], min)
simple64("v_max_u64", [64, 64], max)
simple64("v_min_i64", [64, 64], lambda a, b: min(a, b, key=s64))
simple64("v_max_i64", [64, 64], lambda a, b: max(a, b, key=s64))
a, b, c = draw("lshladd", INTS64, 1, 64)[0], [0, 1, 2, 3, 4, 0, 2, 3] * 2, draw("lshladd2", INTS64, 1, 64)[0]
row("v_lshl_add_u64", "v_lshl_add_u64 v[10:11], v[0:1], v2, v[4:5]", {**wide(0, a), "v2": b, **wide(4, c)},
    wide_result(10, [(p << q) + r & M64 for p, q, r in zip(a, b, c)]))
a, b, c = draw("mad64", INTS, 2, 32) + draw("mad64c", INTS64, 1, 64)
for name, f, top in (("u64_u32", lambda p, q, r: p * q + r, lambda v: v >> 64 & 1),
                     ("i64_i32", lambda p, q, r: s32(p) * s32(q) + s64(r), lambda v: v >> 64 & 1)):
    got = [f(*lane) for lane in zip(a, b, c)]
    inputs = {"v0": a, "v2": b, **wide(4, c)}
    want = wide_result(10, [v & M64 for v in got])
    row(f"v_mad_{name}", f"v_mad_{name} v[10:11], s[20:21], v0, v2, v[4:5]", inputs, {**want, "s20": mask_of(top(v) for v in got)}, GFX9)
    row(f"v_mad_co_{name}", f"v_mad_co_{name} v[10:11], s20, v0, v2, v[4:5]", inputs, {**want, "s20": mask_of(top(v) for v in got)}, GFX12)
    row(f"v_mad_nc_{name}", f"v_mad_nc_{name} v[10:11], v0, v2, v[4:5]", inputs, want)

# ---- packed and dot ------------------------------------------------------------------------------------------------------------------------


def packed(names, sources, f, read=lambda v: v & 0xFFFF, suffix=""):
    for name in names.split():
        cols = draw(name, INTS, sources, 32)
        want = [(f(*[read(v) for v in lane]) & 0xFFFF) | (f(*[read(v >> 16) for v in lane]) & 0xFFFF) << 16 for lane in zip(*cols)]
        row(name, f"{name} v10, {', '.join(f'v{n}' for n in range(sources))}{suffix}", {f"v{n}": c for n, c in enumerate(cols)}, {"v10": want})


packed("v_pk_add_u16", 2, lambda a, b: a + b)
packed("v_pk_add_u16", 2, lambda a, b: CU16(a + b), suffix=" clamp")
packed("v_pk_add_i16", 2, lambda a, b: a + b, s16)
packed("v_pk_add_i16", 2, lambda a, b: CI16(a + b), s16, " clamp")
packed("v_pk_sub_u16", 2, lambda a, b: a - b)
packed("v_pk_sub_u16", 2, lambda a, b: CU16(a - b), suffix=" clamp")
packed("v_pk_sub_i16", 2, lambda a, b: a - b, s16)
packed("v_pk_sub_i16", 2, lambda a, b: CI16(a - b), s16, " clamp")
packed("v_pk_mul_lo_u16", 2, lambda a, b: a * b)
packed("v_pk_mad_u16", 3, lambda a, b, c: a * b + c)
packed("v_pk_mad_u16", 3, lambda a, b, c: CU16(a * b + c), suffix=" clamp")
packed("v_pk_mad_i16", 3, lambda a, b, c: a * b + c, s16)
packed("v_pk_mad_i16", 3, lambda a, b, c: CI16(a * b + c), s16, " clamp")
for t, read in (("u16", lambda v: v & 0xFFFF), ("i16", s16)):
    packed(f"v_pk_min_{t}", 2, min, read)
    packed(f"v_pk_max_{t}", 2, max, read)
    packed(f"v_pk_min3_{t}", 3, min, read)
    packed(f"v_pk_max3_{t}", 3, max, read)
    packed(f"v_pk_add_min_{t}", 3, lambda a, b, c, read=read: min(read(a + b), c), read)
    packed(f"v_pk_add_max_{t}", 3, lambda a, b, c, read=read: max(read(a + b), c), read)
packed("v_pk_lshlrev_b16", 2, lambda a, b: b << a % 16)
packed("v_pk_lshrrev_b16", 2, lambda a, b: b >> a % 16)
packed("v_pk_ashrrev_i16", 2, lambda a, b: b >> a % 16, s16)
# op_sel: the low result takes the first source's high half, and the high result its low half
x, y = draw("pkopsel", INTS, 2, 32)
row("v_pk_add_u16", "v_pk_add_u16 v10, v0, v1 op_sel:[1,0] op_sel_hi:[0,1]", {"v0": x, "v1": y},
    {"v10": [(a >> 16) + b & 0xFFFF | ((a & 0xFFFF) + (b >> 16) & 0xFFFF) << 16 for a, b in zip(x, y)]})


def elements(word, bits, signed):
    out = [word >> n & ((1 << bits) - 1) for n in range(0, 32, bits)]
    return [v - (1 << bits) if signed and v >> (bits - 1) else v for v in out]


def dot(bits, sa, sb):
    return lambda a, b: sum(p * q for p, q in zip(elements(a, bits, sa), elements(b, bits, sb)))


for name, bits, signed in (("v_dot2_i32_i16", 16, True), ("v_dot2_u32_u16", 16, False), ("v_dot4_i32_i8", 8, True), ("v_dot4_u32_u8", 8, False),
                           ("v_dot8_i32_i4", 4, True), ("v_dot8_u32_u4", 4, False)):
    d = dot(bits, signed, signed)
    integer(name, 3, lambda a, b, c, d=d: d(a, b) + c)
    integer(name, 3, lambda a, b, c, d=d, signed=signed: CI32(d(a, b) + s32(c)) if signed else CU32(d(a, b) + c), suffix=" clamp")
for name, bits in (("v_dot2c_i32_i16", 16), ("v_dot4c_i32_i8", 8), ("v_dot8c_i32_i4", 4)):
    a, b, c = draw(name, INTS, 3, 32)
    row(name, f"{name} v10, v0, v1", {"v0": a, "v1": b, "v10": c}, {"v10": [dot(bits, True, True)(p, q) + r & M32 for p, q, r in zip(a, b, c)]})
for name, bits in (("v_dot4_i32_iu8", 8), ("v_dot8_i32_iu4", 4)):
    for sa in (0, 1):
        for sb in (0, 1):
            integer(name, 3, lambda a, b, c, sa=sa, sb=sb, bits=bits: dot(bits, sa, sb)(a, b) + c, suffix=f" neg_lo:[{sa},{sb},0]")


# ---- results of several registers -------------------------------------------------------------------------------------------------
def differences(eight, reference, masked, place):
    return sum(abs((eight >> 8 * (place + k) & 255) - (reference >> 8 * k & 255)) for k in range(4) if not masked or reference >> 8 * k & 255)


EIGHT = draw("eight", [0, M64, 0x00FF00FF00FF00FF], 1, 64)[0]
REFERENCE = [r & 0xFF00FFFF if n % 3 == 0 else r for n, r in enumerate(draw("reference", INTS, 1, 32)[0])]
for name, masked, bits in (("v_qsad_pk_u16_u8", False, 16), ("v_mqsad_pk_u16_u8", True, 16), ("v_mqsad_u32_u8", True, 32)):
    sums = draw(name, [0, (1 << 4 * bits) - 1], 1, 4 * bits)[0]
    want = []
    for eight, reference, old in zip(EIGHT, REFERENCE, sums):
        parts = [(old >> bits * p & (1 << bits) - 1) + differences(eight, reference, masked, p) & (1 << bits) - 1 for p in range(4)]
        want.append(sum(v << bits * p for p, v in enumerate(parts)))
    words = bits // 8
    spread = lambda first, values: {f"v{first + k}": [v >> 32 * k & M32 for v in values] for k in range(words)}
    row(name, f"{name} v[20:{19 + words}], v[0:1], v2, v[4:{3 + words}]", {**wide(0, EIGHT), "v2": REFERENCE, **spread(4, sums)}, spread(20, want))

INDICES = draw("indices", [0, M64, 0xFEDCBA9876543210], 1, 64)[0]
for name, bits, upper, lower in (("v_perm_pk16_b4_u4", 4, 1, 1), ("v_perm_pk16_b6_u4", 6, 1, 2), ("v_perm_pk16_b8_u4", 8, 2, 2)):
    table = draw(name, [0], 1, 16 * bits)[0]
    span = lambda first, words: f"v[{first}:{first + words - 1}]" if words > 1 else f"v{first}"
    spread = lambda first, values, words: {f"v{first + k}": [v >> 32 * k & M32 for v in values] for k in range(words)}
    want = [sum((t >> bits * (i >> 4 * e & 15) & (1 << bits) - 1) << bits * e for e in range(16)) for t, i in zip(table, INDICES)]
    row(name, f"{name} {span(20, bits // 2)}, {span(0, upper)}, {span(2, lower)}, v[4:5]",
        {**spread(0, [t >> 32 * lower for t in table], upper), **spread(2, table, lower), **spread(4, INDICES, 2)}, spread(20, want, bits // 2))

BYTES = draw("nibbles", [0x7F80FF01, 0x080FF7F8, 0x10070806], 1, 32)[0]
for name, low, high, signed in (("v_sat_pk4_i4_i8", -8, 7, True), ("v_sat_pk4_u4_u8", 0, 15, False)):
    byte = lambda a, k: ((a >> 8 * k & 255) ^ 128) - 128 if signed else a >> 8 * k & 255
    row(name, f"{name} v10, v0", {"v0": BYTES, "v10": [0xA5A50000] * LANES},
        {"v10": [("low", sum((max(low, min(high, byte(a, k))) & 15) << 4 * k for k in range(4))) for a in BYTES]})
