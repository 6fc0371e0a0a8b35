"""Rows of scalar arithmetic: results and the condition bit, over pairs of edge values. Lists are cases, run one after another."""

import math

from rows_base import *
from vectors_base import (F16, F32, GFX12, GFX9, INTS, INTS64, M32, M64, POOL16, POOL32, TARGETS, bits32, draw, exact,
                          from_float, s16, s32, s64, to_float)

CASES = 16
SCC = [n & 1 for n in range(CASES)]


def keep(scc):
    return scc


def two(names, f, condition=None, pool=INTS, width=32, low=False, b_pool=None, columns=None):
    """f(a, b, scc) → result; condition(a, b, scc, result) → scc, or None: as before."""
    for name in names.split():
        a, b = columns or draw(name, pool, 2, width)
        if b_pool:
            b = (b_pool * CASES)[:CASES]
        results, conditions = [], []
        for x, y, c in zip(a, b, SCC):
            r = f(x, y, c)
            r = r if isinstance(r, str) else r & (M64 if width == 64 else M32)
            results.append(r)
            conditions.append(c if condition is None else int(condition(x, y, c, r)))
        wide_b = width == 64 and b_pool is None
        inputs = {**(pair(2, a) if width == 64 else {"s2": a}), **(pair(4, b) if wide_b else {"s4": b}), "scc": SCC}
        want = pair(10, results) if width == 64 else {"s10": [("low", r) for r in results] if low else results}
        w = 2 if width == 64 else 1
        row(name, f"{name} {sreg(10, w)}, {sreg(2, w)}, {sreg(4, 2 if wide_b else 1)}", inputs, {**want, "scc": conditions})


def nonzero(a, b, c, r):
    return r != 0


S_MIN, S_MAX = -(1 << 31), (1 << 31) - 1


def overflows(op):
    return lambda a, b, c, r: not S_MIN <= op(s32(a), s32(b)) <= S_MAX


two("s_add_u32 s_add_co_u32", lambda a, b, c: a + b, lambda a, b, c, r: a + b > M32)
two("s_sub_u32 s_sub_co_u32", lambda a, b, c: a - b, lambda a, b, c, r: a < b)
two("s_add_i32 s_add_co_i32", lambda a, b, c: a + b, overflows(lambda x, y: x + y))
two("s_sub_i32 s_sub_co_i32", lambda a, b, c: a - b, overflows(lambda x, y: x - y))
two("s_addc_u32 s_add_co_ci_u32", lambda a, b, c: a + b + c, lambda a, b, c, r: a + b + c > M32)
two("s_subb_u32 s_sub_co_ci_u32", lambda a, b, c: a - b - c, lambda a, b, c, r: a - b - c < 0)
two("s_min_i32", lambda a, b, c: min(s32(a), s32(b)), lambda a, b, c, r: s32(a) < s32(b))
two("s_max_i32", lambda a, b, c: max(s32(a), s32(b)), lambda a, b, c, r: s32(a) > s32(b))
two("s_min_u32", lambda a, b, c: min(a, b), lambda a, b, c, r: a < b)
two("s_max_u32", lambda a, b, c: max(a, b), lambda a, b, c, r: a > b)
two("s_cselect_b32", lambda a, b, c: a if c else b)
two("s_cselect_b64", lambda a, b, c: a if c else b, None, INTS64, 64)
LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "andn2": lambda a, b: a & ~b,
         "orn2": lambda a, b: a | ~b, "nand": lambda a, b: ~(a & b), "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b)}
NEW_NAME = {"andn2": "and_not1", "orn2": "or_not1", "andn1": "and_not0", "orn1": "or_not0"}
for op, f in LOGIC.items():
    for name in (op, NEW_NAME.get(op, op)):
        two(f"s_{name}_b32", lambda a, b, c, f=f: f(a, b), nonzero)
        two(f"s_{name}_b64", lambda a, b, c, f=f: f(a, b), nonzero, INTS64, 64)
        if op == NEW_NAME.get(op, op):
            break
two("s_lshl_b32", lambda a, b, c: a << (b % 32), nonzero)
two("s_lshr_b32", lambda a, b, c: a >> (b % 32), nonzero)
two("s_ashr_i32", lambda a, b, c: s32(a) >> (b % 32), nonzero)
SHIFTS = [0, 1, 31, 32, 63, 64, 33, 7]
two("s_lshl_b64", lambda a, b, c: a << (b % 64), nonzero, INTS64, 64, b_pool=SHIFTS)
two("s_lshr_b64", lambda a, b, c: a >> (b % 64), nonzero, INTS64, 64, b_pool=SHIFTS)
two("s_ashr_i64", lambda a, b, c: s64(a) >> (b % 64), nonzero, INTS64, 64, b_pool=SHIFTS)
two("s_bfm_b32", lambda a, b, c: ((1 << (a % 32)) - 1) << (b % 32))
two("s_mul_i32", lambda a, b, c: a * b)
two("s_mul_hi_u32", lambda a, b, c: a * b >> 32)
two("s_mul_hi_i32", lambda a, b, c: s32(a) * s32(b) >> 32)
two("s_mul_u64", lambda a, b, c: a * b, None, INTS64, 64)
two("s_add_nc_u64 s_add_u64", lambda a, b, c: a + b, None, INTS64, 64)
two("s_sub_nc_u64 s_sub_u64", lambda a, b, c: a - b, None, INTS64, 64)
FIELDS = [0x00080000, 0x00080008, 0x00200000, 0x00010003, 0x00100010, 0x00000005, 0x0007001C, 0x001F0001]
FIELDS64 = [0x00080000, 0x00200020, 0x00400000, 0x0001003F, 0x00140010, 0x00000005, 0x0007003C, 0x003F0001]


def field(a, b, bits, signed):
    offset, width = b % bits, b >> 16 & 0x7F
    text = f"{a:0{bits}b}"[::-1][offset:offset + width]  # bits from the lowest
    if not text:
        return 0
    value = int(text[::-1], 2)
    return value - (1 << len(text)) if signed and text[-1] == "1" else value


two("s_bfe_u32", lambda a, b, c: field(a, b, 32, False), nonzero, b_pool=FIELDS)
two("s_bfe_i32", lambda a, b, c: field(a, b, 32, True), nonzero, b_pool=FIELDS)
two("s_bfe_u64", lambda a, b, c: field(a, b, 64, False), nonzero, INTS64, 64, b_pool=FIELDS64)
two("s_bfe_i64", lambda a, b, c: field(a, b, 64, True), nonzero, INTS64, 64, b_pool=FIELDS64)
two("s_absdiff_i32", lambda a, b, c: abs(s32(a) - s32(b)), nonzero)
for n in (1, 2, 3, 4):
    two(f"s_lshl{n}_add_u32", lambda a, b, c, n=n: (a << n) + b, lambda a, b, c, r, n=n: (a << n) + b > M32)
two("s_pack_ll_b32_b16", lambda a, b, c: a & 0xFFFF | (b & 0xFFFF) << 16)
two("s_pack_lh_b32_b16", lambda a, b, c: a & 0xFFFF | b >> 16 << 16)
two("s_pack_hl_b32_b16", lambda a, b, c: a >> 16 | (b & 0xFFFF) << 16)
two("s_pack_hh_b32_b16", lambda a, b, c: a >> 16 | b >> 16 << 16)
a, b = draw("s_bfm_b64", INTS, 2, 32)
row("s_bfm_b64", "s_bfm_b64 s[10:11], s2, s4", {"s2": a, "s4": b, "scc": SCC}, pair(10, [((1 << x % 64) - 1) << y % 64 & M64 for x, y in zip(a, b)]))

# ---- floats: denormals kept, to nearest even -------------------------------------------------------------------------------


def best(fmt, larger, nan_wins):
    """minimumNumber and so on of IEEE 754-2019: -0 is below +0."""
    def f(a, b, c):
        if fmt.is_nan(a) or fmt.is_nan(b):
            return "nan" if nan_wins or (fmt.is_nan(a) and fmt.is_nan(b)) else b if fmt.is_nan(a) else a
        key = lambda v: (to_float(fmt, v), not v & fmt.sign)
        return max(a, b, key=key) if larger else min(a, b, key=key)
    return f


for fmt, suffix, pool, mask in ((F32, "f32", POOL32, M32), (F16, "f16", POOL16, 0xFFFF)):
    low, width = fmt is F16, 32 if fmt is F32 else 16
    for op, f in (("add", lambda x, y: x + y), ("sub", lambda x, y: x - y), ("mul", lambda x, y: x * y)):
        two(f"s_{op}_{suffix}", lambda a, b, c, f=f, fmt=fmt, mask=mask: exact(fmt, [a & mask, b & mask], f), None, pool, width, low)
    for op, larger, nan_wins in (("min_num", False, False), ("max_num", True, False), ("minimum", False, True), ("maximum", True, True)):
        two(f"s_{op}_{suffix}", best(fmt, larger, nan_wins), None, pool, width, low)
two("s_cvt_pk_rtz_f16_f32", lambda a, b, c: F16.encode(F32.value(a), bool(a >> 31), mode="zero") | F16.encode(F32.value(b), bool(b >> 31), mode="zero") << 16,
    None, POOL32, columns=[[bits32(x) for x in (0.0, 1.0, -1.0, 65504.0, 65519.0, 70000.0, 1e-5, -1e-7, 3e-8, 0.1, -0.3, 2.5, 1e10, -1e10, 1 / 3, -0.0)],
                           [bits32(x) for x in (0.1, -0.3, 2.5, 1e10, -1e10, 1 / 3, -0.0, 0.0, 1.0, -1.0, 65504.0, 65519.0, 70000.0, 1e-5, -1e-7, 3e-8)]])


def one(names, f, condition=None, pool=INTS, source=32, result=32, low=False, column=None):
    for name in names.split():
        a = column or draw(name, pool, 1, source if source != 16 else 16)[0]
        results = [f(x) for x in a]
        results = [r if isinstance(r, str) else r & (M64 if result == 64 else M32) for r in results]
        inputs = {**(pair(2, a) if source == 64 else {"s2": a}), "scc": SCC[:len(a)]}
        want = pair(10, results) if result == 64 else {"s10": [("low", r) for r in results] if low else results}
        row(name, f"{name} {sreg(10, result // 32)}, {sreg(2, 2 if source == 64 else 1)}", inputs,
            {**want, "scc": [c if condition is None else int(r != 0) for c, r in zip(SCC, results)]})


def wqm(a):
    return sum(15 << 4 * q for q in range(16) if a >> 4 * q & 15)


def quadmask(a):
    return sum(1 << q for q in range(16) if a >> 4 * q & 15)


def backwards(bits):
    return lambda a: int(f"{a:0{bits}b}"[::-1], 2)


def find_low(digit, bits):
    return lambda a: f"{a:0{bits}b}"[::-1].find(digit)


def find_high(bits):
    return lambda a: f"{a:0{bits}b}".find("1")


def find_unlike(bits):
    def f(a):
        text = f"{a:0{bits}b}"
        return text.find("1" if text[0] == "0" else "0")
    return f


one("s_mov_b32", lambda a: a)
one("s_not_b32", lambda a: ~a, nonzero)
one("s_wqm_b32", wqm, nonzero)
one("s_quadmask_b32", quadmask, nonzero)
one("s_brev_b32", backwards(32))
one("s_bcnt0_i32_b32", lambda a: f"{a:032b}".count("0"), nonzero)
one("s_bcnt1_i32_b32", lambda a: f"{a:032b}".count("1"), nonzero)
one("s_ff0_i32_b32", find_low("0", 32))
one("s_ff1_i32_b32 s_ctz_i32_b32", find_low("1", 32))
one("s_flbit_i32_b32 s_clz_i32_u32", find_high(32))
one("s_flbit_i32 s_cls_i32", find_unlike(32))
one("s_sext_i32_i8", lambda a: (a & 255) - (a & 128) * 2)
one("s_sext_i32_i16", s16)
one("s_abs_i32", lambda a: abs(s32(a)), nonzero)
wide = dict(pool=INTS64, source=64)
one("s_mov_b64", lambda a: a, **wide, result=64)
one("s_not_b64", lambda a: ~a, nonzero, **wide, result=64)
one("s_wqm_b64", wqm, nonzero, **wide, result=64)
one("s_quadmask_b64", quadmask, nonzero, **wide, result=64)
one("s_brev_b64", backwards(64), **wide, result=64)
one("s_bcnt0_i32_b64", lambda a: f"{a:064b}".count("0"), nonzero, **wide)
one("s_bcnt1_i32_b64", lambda a: f"{a:064b}".count("1"), nonzero, **wide)
one("s_ff0_i32_b64", find_low("0", 64), **wide)
one("s_ff1_i32_b64 s_ctz_i32_b64", find_low("1", 64), **wide)
one("s_flbit_i32_b64 s_clz_i32_u64", find_high(64), **wide)
one("s_flbit_i32_i64 s_cls_i32_i64", find_unlike(64), **wide)
one("s_bitreplicate_b64_b32", lambda a: int("".join(d + d for d in f"{a:032b}"), 2), result=64)
for suffix, fmt, pool in (("f32", F32, POOL32), ("f16", F16, POOL16)):
    for op, f in (("ceil", math.ceil), ("floor", math.floor), ("trunc", math.trunc), ("rndne", round)):
        one(f"s_{op}_{suffix}", lambda a, f=f, fmt=fmt: "nan" if fmt.is_nan(a) else a if fmt.is_inf(a) else
            fmt.encode(f(fmt.value(a)), bool(a & fmt.sign)), None, pool, 32 if fmt is F32 else 16, low=fmt is F16)
one("s_cvt_f32_i32", lambda a: F32.encode(s32(a)))
one("s_cvt_f32_u32", lambda a: F32.encode(a))
EDGES = [bits32(x) for x in (0.0, -0.5, 1.5, -1.5, 2.5, 2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 1e20, -1e20,
                             65535.5, -32768.5)] + [0x7FC00000, 0xFF800000]


def to_integer(low, high):
    return lambda a: 0 if F32.is_nan(a) else (high if a >> 31 == 0 else low) if F32.is_inf(a) else max(low, min(high, math.trunc(F32.value(a))))


one("s_cvt_i32_f32", to_integer(S_MIN, S_MAX), column=EDGES)
one("s_cvt_u32_f32", to_integer(0, M32), column=EDGES)
one("s_cvt_f16_f32", lambda a: "nan" if F32.is_nan(a) else from_float(F16, to_float(F32, a)) if F32.is_inf(a) else
    F16.encode(F32.value(a), bool(a >> 31)), None, POOL32, low=True)
half = lambda a: "nan" if F16.is_nan(a & 0xFFFF) else from_float(F32, to_float(F16, a & 0xFFFF))
one("s_cvt_f32_f16", half, pool=POOL16, source=16)
one("s_cvt_hi_f32_f16", lambda a: half(a >> 16), column=[v << 16 | 0x1234 for v in POOL16[:16]])

# ---- results that read their destination -------------------------------------------------------------------------------------
A = draw("destination", INTS, 2, 32)
row("s_cmov_b32", "s_cmov_b32 s10, s2", {"s2": A[0], "s10": A[1], "scc": SCC}, {"s10": [x if c else y for x, y, c in zip(*A, SCC)]})
W = draw("destination64", INTS64, 2, 64)
row("s_cmov_b64", "s_cmov_b64 s[10:11], s[2:3]", {**pair(2, W[0]), **pair(10, W[1]), "scc": SCC}, pair(10, [x if c else y for x, y, c in zip(*W, SCC)]))
for digit in (0, 1):
    set_bit = lambda old, n: old | 1 << n if digit else old & ~(1 << n)
    row(f"s_bitset{digit}_b32", f"s_bitset{digit}_b32 s10, s2", {"s2": A[0], "s10": A[1]}, {"s10": [set_bit(y, x % 32) for x, y in zip(*A)]})
    row(f"s_bitset{digit}_b64", f"s_bitset{digit}_b64 s[10:11], s2", {"s2": A[0], **pair(10, W[1])}, pair(10, [set_bit(y, x % 64) for x, y in zip(A[0], W[1])]))
X, Y, Z = draw("multiply-add", POOL32, 3, 32)
fma = lambda x, y, z: x * y + z
row("s_fmac_f32", "s_fmac_f32 s10, s2, s4", {"s2": X, "s4": Y, "s10": Z}, {"s10": [exact(F32, list(v), fma) for v in zip(X, Y, Z)]})
K = bits32(0.1)
row("s_fmaak_f32", f"s_fmaak_f32 s10, s2, s4, {K:#x}", {"s2": X, "s4": Y}, {"s10": [exact(F32, [x, y, K], fma) for x, y in zip(X, Y)]})
row("s_fmamk_f32", f"s_fmamk_f32 s10, s2, {K:#x}, s4", {"s2": X, "s4": Y}, {"s10": [exact(F32, [x, K, y], fma) for x, y in zip(X, Y)]})
X, Y, Z = draw("multiply-add-half", POOL16, 3, 16)
row("s_fmac_f16", "s_fmac_f16 s10, s2, s4", {"s2": X, "s4": Y, "s10": Z}, {"s10": [("low", exact(F16, list(v), fma)) for v in zip(X, Y, Z)]})

# ---- EXEC ------------------------------------------------------------------------------------------------------------------------
MASKS = {"and": lambda s, e: s & e, "or": lambda s, e: s | e, "xor": lambda s, e: s ^ e, "andn2": lambda s, e: s & ~e, "orn2": lambda s, e: s | ~e,
         "andn1": lambda s, e: ~s & e, "orn1": lambda s, e: ~s | e, "nand": lambda s, e: ~(s & e), "nor": lambda s, e: ~(s | e),
         "xnor": lambda s, e: ~(s ^ e)}
for op, f in MASKS.items():
    for name in dict.fromkeys((op, NEW_NAME.get(op, op))):
        r = [f(s, e) & M32 for s, e in zip(*A)]
        row(f"s_{name}_saveexec_b32", f"s_{name}_saveexec_b32 s10, s2", {"s2": A[0], "exec": A[1]},
            {"s10": A[1], "exec": r, "scc": [int(v != 0) for v in r]}, GFX12)
        q = [f(s, e) & M64 for s, e in zip(*W)]
        # EXEC of a wave32 is one word: 64-bit forms belong to wave64.
        row(f"s_{name}_saveexec_b64", f"s_{name}_saveexec_b64 s[10:11], s[2:3]",
            {**pair(2, W[0]), "exec": [e & M32 for e in W[1]], "exec_hi": [e >> 32 for e in W[1]]},
            {**pair(10, W[1]), "exec": [v & M32 for v in q], "exec_hi": [v >> 32 for v in q], "scc": [int(v != 0) for v in q]})
        if op in ("andn1", "andn2"):
            row(f"s_{name}_wrexec_b32", f"s_{name}_wrexec_b32 s10, s2", {"s2": A[0], "exec": A[1]},
                {"s10": r, "exec": r, "scc": [int(v != 0) for v in r]}, GFX12)
            row(f"s_{name}_wrexec_b64", f"s_{name}_wrexec_b64 s[10:11], s[2:3]",
                {**pair(2, W[0]), "exec": [e & M32 for e in W[1]], "exec_hi": [e >> 32 for e in W[1]]},
                {**pair(10, q), "exec": [v & M32 for v in q], "exec_hi": [v >> 32 for v in q], "scc": [int(v != 0) for v in q]})
for name in ("s_andn1_wrexec_b32", "s_andn2_wrexec_b32", *(f"s_{op}_saveexec_b32" for op in ("andn1", "andn2", "orn1", "orn2"))):
    ABSENT.append((name, f"{name} s10, s2"))

# ---- comparisons -------------------------------------------------------------------------------------------------------------------
EQUAL = draw("compare", INTS, 2, 32)
EQUAL[1][3], EQUAL[1][9] = EQUAL[0][3], EQUAL[0][9]
ORDER = {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b,
         "le": lambda a, b: a <= b}


def compare(name, asm, inputs, truths):
    row(name, asm, {**inputs, "scc": [1 - int(t) for t in truths]}, {"scc": [int(t) for t in truths]})


for op, f in ORDER.items():
    for sign, view in (("i32", s32), ("u32", lambda v: v)):
        compare(f"s_cmp_{op}_{sign}", f"s_cmp_{op}_{sign} s2, s4", {"s2": EQUAL[0], "s4": EQUAL[1]}, [f(view(x), view(y)) for x, y in zip(*EQUAL)])
        constant = 0xFFF0
        other = -16 if sign == "i32" else constant
        values = [constant, 0xFFFFFFF0, 0, 0x7FFFFFFF, 0x80000000, 0xFFEF, 0xFFF1, M32]
        asm = f"s_cmpk_{op}_{sign} s2, {constant:#x}"
        compare(f"s_cmpk_{op}_{sign}", asm, {"s2": values}, [f(view(v), other) for v in values])
for op in ("eq", "lg"):
    pairs = [W[0], [y if n % 3 else x for n, (x, y) in enumerate(zip(*W))]]
    compare(f"s_cmp_{op}_u64", f"s_cmp_{op}_u64 s[2:3], s[4:5]", {**pair(2, pairs[0]), **pair(4, pairs[1])}, [ORDER[op](x, y) for x, y in zip(*pairs)])
for digit in (0, 1):
    compare(f"s_bitcmp{digit}_b32", f"s_bitcmp{digit}_b32 s2, s4", {"s2": A[0], "s4": A[1]}, [x >> y % 32 & 1 == digit for x, y in zip(*A)])
    compare(f"s_bitcmp{digit}_b64", f"s_bitcmp{digit}_b64 s[2:3], s4", {**pair(2, W[0]), "s4": A[1]}, [x >> y % 64 & 1 == digit for x, y in zip(W[0], A[1])])
for suffix, fmt, pool, width in (("f32", F32, POOL32, 32), ("f16", F16, POOL16, 16)):
    x, y = draw("compare" + suffix, pool, 2, width)
    y[2], y[7] = x[2], x[7]
    ordered = [not (fmt.is_nan(p) or fmt.is_nan(q)) for p, q in zip(x, y)]
    for op, f in {**ORDER, "o": lambda p, q: True}.items():
        truth = [o and f(to_float(fmt, p), to_float(fmt, q)) for p, q, o in zip(x, y, ordered)]
        compare(f"s_cmp_{op}_{suffix}", f"s_cmp_{op}_{suffix} s2, s4", {"s2": x, "s4": y}, truth)
        negated = {"o": "u", "eq": "neq"}.get(op, "n" + op)
        compare(f"s_cmp_{negated}_{suffix}", f"s_cmp_{negated}_{suffix} s2, s4", {"s2": x, "s4": y}, [not t for t in truth])

# ---- a constant of 16 bits ---------------------------------------------------------------------------------------------------------
row("s_movk_i32", "s_movk_i32 s10, 0x8001", {}, {"s10": 0xFFFF8001})
row("s_cmovk_i32", "s_cmovk_i32 s10, 0x7ff0", {"s10": [5, 5], "scc": [0, 1]}, {"s10": [5, 0x7FF0]})
V = [0, 1, 0x7FFFFFFF, 0x80000000, 0x7FFF8010, 0x80000010, M32, 16]
for name in ("s_addk_i32", "s_addk_co_i32"):
    row(name, f"{name} s10, 0xfff0", {"s10": V}, {"s10": [v - 16 & M32 for v in V], "scc": [int(s32(v) - 16 < S_MIN) for v in V]})
    row(name, f"{name} s10, 0x7ff0", {"s10": V}, {"s10": [v + 0x7FF0 & M32 for v in V], "scc": [int(s32(v) + 0x7FF0 > S_MAX) for v in V]})
row("s_mulk_i32", "s_mulk_i32 s10, 0xfff0", {"s10": V}, {"s10": [v * -16 & M32 for v in V]})

# ---- what a scalar source may be -----------------------------------------------------------------------------------------------------
for text, value in (("-16", M64 - 15), ("64", 64), ("1.0", bits32(1.0)), ("-4.0", bits32(-4.0)), ("0.15915494", 0x3E22F983), ("0x12345678", 0x12345678),
                    ("0x87654321", 0x87654321), ("vcc_lo", 0x11), ("m0", 0x22), ("exec_lo", 0xFFFF)):
    row("s_mov_b32", f"s_mov_b32 s10, {text}", {"vcc": 0x11, "m0": 0x22}, {"s10": value & M32})
row("s_mov_b64", "s_mov_b64 s[10:11], -16", {}, pair(10, M64 - 15))
row("s_mov_b64", "s_mov_b64 vcc, s[2:3]", pair(2, 0x123456789ABCDEF0), {"vcc": 0x9ABCDEF0, "vcc_hi": 0x12345678})
row("s_mov_b32", "s_mov_b32 m0, s2", {"s2": 0x1234}, {"m0": 0x1234})
row("s_mov_b32", "s_mov_b32 null, s2", {"s2": 0x1234}, {}, GFX12)
row("s_mov_b32", "s_mov_b32 s10, null", {}, {"s10": 0}, GFX12)
