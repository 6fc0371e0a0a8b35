"""Rows of what crosses lanes: whole waves, 64 lanes on gfx9 and 32 on gfx12."""

from rows_base import *
from vectors_base import GFX12, GFX9, M32, TARGETS, draw

ALL = 64
X = [0x1000 * n + 7 for n in range(ALL)]
Y = [0xA5000000 + 3 * n for n in range(ALL)]


def old(register):
    """What test_emu_rows.c fills registers with."""
    return [0xE0000000 | register << 8 | lane for lane in range(ALL)]


def mask(bits):
    return {"exec": bits & M32, "exec_hi": bits >> 32}


FULL, SOME = (1 << 64) - 1, 0x0F0FF731A55A3C96
FAMILIES = (GFX9, 64), (GFX12, 32)


def lanes(name, asm, inputs, targets, wave, source, exec_mask=FULL, data=X, register=10, missing=0, needs_active=True):
    """Lane n of v10 := data[source(n)], `missing` where that lane is not active (None: v10 as it was)."""
    active = [exec_mask >> n & 1 for n in range(wave)]
    was, out = old(register), []
    for n in range(wave):
        s = source(n)
        value = was[n] if s is None else data[s] if active[s] or not needs_active else was[n] if missing is None else missing
        out.append(value if active[n] else was[n])
    row(name, asm, {**inputs, **mask(exec_mask)}, {f"v{register}": out}, targets)


for targets, wave in FAMILIES:
    picks = [0, 5, wave - 1, wave + 3, 0xFFFFFFF0]
    row("v_readlane_b32", "v_readlane_b32 s10, v0, s2", {"v0": X, "s2": picks, **mask(1)}, {"s10": [X[p % wave] for p in picks]}, targets)
    row("v_readlane_b32", "v_readlane_b32 s10, v0, 17", {"v0": X, **mask(1)}, {"s10": X[17]}, targets)
    row("v_readfirstlane_b32", "v_readfirstlane_b32 s10, v0", {"v0": X, "exec": [0, 1, 0xFFF0, 0x80000000], "exec_hi": 0},
        {"s10": [X[0], X[0], X[4], X[31]]}, targets)
    row("v_writelane_b32", "v_writelane_b32 v10, s2, s4", {"s2": 0x1234567, "s4": wave + 9, **mask(1)},
        {"v10": [0x1234567 if n == 9 else v for n, v in enumerate(old(10))]}, targets)
    row("v_writelane_b32", "v_writelane_b32 v10, 5, 3", mask(0), {"v10": [5 if n == 3 else v for n, v in enumerate(old(10))]}, targets)
    for exec_mask in (FULL, SOME):
        address = [4 * ((n * 13 + 5) % 96) + n % 4 for n in range(ALL)]  # bits 1:0 don't count; lanes wrap
        for suffix, offset in (("", 0), (" offset:8", 8)):
            source = lambda n: (address[n] + offset) // 4 % wave
            lanes("ds_bpermute_b32", f"ds_bpermute_b32 v10, v0, v1{suffix}", {"v0": address, "v1": X}, targets, wave, source, exec_mask)
        lanes("ds_bpermute_fi_b32", "ds_bpermute_fi_b32 v10, v0, v1", {"v0": address, "v1": X}, targets, wave,
              lambda n: address[n] // 4 % wave, exec_mask, needs_active=False)
        sent = [0] * ALL
        clash = [4 * (n * 7 % 48) for n in range(ALL)]
        for n in range(wave):
            if exec_mask >> n & 1:
                sent[clash[n] // 4 % wave] = X[n]
        row("ds_permute_b32", "ds_permute_b32 v10, v0, v1", {"v0": clash, "v1": X, **mask(exec_mask)},
            {"v10": [sent[n] if exec_mask >> n & 1 else v for n, v in enumerate(old(10))][:wave]}, targets)
        for pattern, source in (("swizzle(QUAD_PERM, 3, 1, 0, 2)", lambda n: n & ~3 | (3, 1, 0, 2)[n & 3]),
                                ("swizzle(BROADCAST, 8, 3)", lambda n: n & ~7 | 3),
                                ("swizzle(SWAP, 4)", lambda n: n ^ 4), ("swizzle(REVERSE, 16)", lambda n: n ^ 15),
                                ("swizzle(BITMASK_PERM, \"01pi0\")", lambda n: n & ~31 | (8 | n & 4 | ~n & 2)),
                                ("0xc0a0", lambda n: n & ~31 | (n + 5) % 32), ("0xc4a0", lambda n: n & ~31 | (n - 5) % 32)):
            lanes("ds_swizzle_b32", f"ds_swizzle_b32 v10, v1 offset:{pattern}", {"v1": X}, targets, wave, source, exec_mask)

# v_permlane16/32_swap: odd rows of the first trade with even rows of the second.
for rows_of in (16, 32):
    for exec_mask in (FULL, SOME):
        for targets, wave in FAMILIES:
            first, second = X[:wave], Y[:wave]
            for n in range(wave):
                if n // rows_of % 2 == 0 and n + rows_of < wave:
                    m = n + rows_of
                    if exec_mask >> m & 1:
                        first[m] = Y[n]
                    if exec_mask >> n & 1:
                        second[n] = X[m]
            if rows_of < wave:
                row(f"v_permlane{rows_of}_swap_b32", f"v_permlane{rows_of}_swap_b32 v0, v1", {"v0": X, "v1": Y, **mask(exec_mask)},
                    {"v0": first, "v1": second}, targets)

SELECT = [3, 1, 4, 1, 5, 9, 2, 6, 15, 0, 8, 7, 14, 10, 12, 11]
LOW, HIGH = sum(s << 4 * n for n, s in enumerate(SELECT[:8])), sum(s << 4 * n for n, s in enumerate(SELECT[8:]))
for name, flip in (("v_permlane16", 0), ("v_permlanex16", 16)):
    for text, missing, needs in (("", None, True), (" op_sel:[1,0]", 0, False), (" op_sel:[0,1]", 0, True)):
        for exec_mask in (FULL, SOME):
            lanes(name + "_b32", f"{name}_b32 v10, v0, s2, s4{text}", {"v0": X, "s2": LOW, "s4": HIGH}, GFX12, 32,
                  lambda n: n & ~15 ^ flip | SELECT[n % 16], exec_mask, missing=missing, needs_active=needs)
            lanes(name + "_var_b32", f"{name}_var_b32 v10, v0, v1{text}", {"v0": X, "v1": [(n * 5 + 3) % 32 for n in range(ALL)]}, GFX12, 32,
                  lambda n: n & ~15 ^ flip | (n * 5 + 3) % 16, exec_mask, missing=missing, needs_active=needs)
row("v_permlane64_b32", "v_permlane64_b32 v10, v0", {"v0": X, **mask(FULL)}, {"v10": X[:32]})
row("v_movrels_b32", "v_movrels_b32 v10, v0", {"v3": X, "m0": 3, **mask(FULL)}, {"v10": X})
row("v_movreld_b32", "v_movreld_b32 v8, v0", {"v0": X, "m0": 2, **mask(FULL)}, {"v10": X})

# ---- DPP across whole waves: a source out of reach leaves the lane as it was, or gives 0 with bound_ctrl ---------------------------
ROW = lambda n, d: n + d if (n + d) // 16 == n // 16 else None
CONTROLS = [("quad_perm:[2,0,3,1]", lambda n, w: n & ~3 | (2, 0, 3, 1)[n & 3], TARGETS), ("row_mirror", lambda n, w: n ^ 15, TARGETS),
            ("row_half_mirror", lambda n, w: n ^ 7, TARGETS), ("wave_shl:1", lambda n, w: n + 1 if n + 1 < w else None, GFX9),
            ("wave_rol:1", lambda n, w: (n + 1) % w, GFX9), ("wave_shr:1", lambda n, w: n - 1 if n else None, GFX9),
            ("wave_ror:1", lambda n, w: (n - 1) % w, GFX9), ("row_bcast:15", lambda n, w: (n & ~15) - 1 if n >= 16 else None, GFX9),
            ("row_bcast:31", lambda n, w: 31 if n >= 32 else None, GFX9), ("row_newbcast:6", lambda n, w: n & ~15 | 6, GFX9),
            ("row_share:6", lambda n, w: n & ~15 | 6, GFX12), ("row_xmask:5", lambda n, w: n ^ 5, GFX12),
            ("dpp8:[7,2,4,1,6,0,5,3]", lambda n, w: n & ~7 | (7, 2, 4, 1, 6, 0, 5, 3)[n & 7], GFX12)]
for d in (1, 3, 15):
    CONTROLS += [(f"row_shl:{d}", lambda n, w, d=d: ROW(n, d), TARGETS), (f"row_shr:{d}", lambda n, w, d=d: ROW(n, -d), TARGETS),
                 (f"row_ror:{d}", lambda n, w, d=d: n & ~15 | (n - d) % 16, TARGETS)]
for control, source, targets in CONTROLS:
    for family, wave in FAMILIES:
        use = [t for t in family if t in targets]
        if not use:
            continue
        reach = [source(n, wave) for n in range(wave)]
        was = old(10)
        kept = [was[n] if s is None else X[s] for n, s in enumerate(reach)]
        zero = [0 if s is None else X[s] for s in reach]
        base = {"v0": X, **mask(FULL)}
        if control.startswith("dpp8"):
            row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {control}", base, {"v10": kept}, use)
            continue
        row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {control} row_mask:0xf bank_mask:0xf", base, {"v10": kept}, use)
        row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {control} row_mask:0xf bank_mask:0xf bound_ctrl:1", base, {"v10": zero}, use)
        # Rows and banks of four lanes that are masked off stay as they were.
        some = [v if 0xA >> n // 16 & 1 and 0x6 >> n // 4 % 4 & 1 else was[n] for n, v in enumerate(kept)]
        row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {control} row_mask:0xa bank_mask:0x6", base, {"v10": some}, use)
        # Lanes that are not active are not read: as out of reach, unless fi asks for them.
        active = [SOME >> n & 1 for n in range(wave)]
        base = {"v0": X, **mask(SOME)}
        for text, missing in (("", None), (" bound_ctrl:1", 0), (" bound_ctrl:1 fi:1", "fetch")):
            out = []
            for n, s in enumerate(reach):
                got = X[s] if s is not None and (active[s] or missing == "fetch") else was[n] if missing is None else 0
                out.append(got if active[n] else was[n])
            row("v_mov_b32", f"v_mov_b32_dpp v10, v0 {control} row_mask:0xf bank_mask:0xf{text}", base, {"v10": out}, use)

# ---- gfx1250: within groups of lanes --------------------------------------------------------------------------------------------
def grouped(name, source):
    """`source(lane, first, width, distance)`, or None: the lane keeps its own."""
    for width in (4, 8, 16, 32):
        for distance in (0, 1, 3, 5, 17, 40):
            for exec_mask in (FULL, SOME):
                take = lambda n: n if (s := source(n, n // width * width, width, distance)) is None else s
                lanes(name, f"{name} v10, v0, s2, s4", {"v0": X, "s2": distance, "s4": width}, ["gfx1250"], 32, take, exec_mask, needs_active=False)


grouped("v_permlane_bcast_b32", lambda n, first, width, d: first + d % width)
grouped("v_permlane_up_b32", lambda n, first, width, d: n - d if n - d >= first else None)
grouped("v_permlane_down_b32", lambda n, first, width, d: n + d if n + d < first + width else None)
grouped("v_permlane_xor_b32", lambda n, first, width, d: n ^ d if d < 32 and n ^ d < first + width else None)
for width in (4, 16, 32):
    given = [n * 3 + 1 for n in range(32)]
    row("v_permlane_idx_gen_b32", "v_permlane_idx_gen_b32 v10, v0, s2", {"v0": given, "s2": width, **mask(FULL)},
        {"v10": [4 * (n // width * width + given[n] % width) for n in range(32)]}, ["gfx1250"])

# ---- scalars through M0 ---------------------------------------------------------------------------------------------------------
row("s_movrels_b32", "s_movrels_b32 s10, s2", {"m0": 3, "s5": 0x12345678}, {"s10": 0x12345678})
row("s_movreld_b32", "s_movreld_b32 s10, s2", {"m0": 3, "s2": 0x12345678}, {"s13": 0x12345678})
row("s_movrels_b64", "s_movrels_b64 s[10:11], s[2:3]", {"m0": 4, "s6": 0x1111, "s7": 0x2222}, {"s10": 0x1111, "s11": 0x2222})
row("s_movreld_b64", "s_movreld_b64 s[10:11], s[2:3]", {"m0": 4, "s2": 0x1111, "s3": 0x2222}, {"s14": 0x1111, "s15": 0x2222})

# ---- a counter in LDS of active lanes -----------------------------------------------------------------------------------------------
for name, sign in (("ds_append", 1), ("ds_consume", -1)):
    row(name, f"{name} v10 offset:16", {"m0": 0x30 << 16, "l40": 1000, "exec": 0xF0F, "exec_hi": 0},
        {"v10": [1000 if 0xF0F >> n & 1 else v for n, v in enumerate(old(10))], "l40": 1000 + 8 * sign})
