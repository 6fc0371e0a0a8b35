"""Rows of control flow, waits, barriers, scalar memory and hardware registers."""

from rows_base import *
from rows_memory import word
from vectors_base import GFX12, GFX9, M32, TARGETS

# ---- nothing changes: memory completes at once here, and there is no pipeline ---------------------------------------------

for asm in """s_nop 3
s_waitcnt vmcnt(0) lgkmcnt(1)
s_waitcnt_depctr 0
s_waitcnt_vscnt null, 0
s_wait_alu 0
s_wait_idle
s_wait_event 0
s_wait_loadcnt 1
s_wait_storecnt 0
s_wait_samplecnt 0
s_wait_bvhcnt 0
s_wait_expcnt 0
s_wait_dscnt 0
s_wait_kmcnt 0
s_wait_xcnt 0
s_wait_asynccnt 0
s_wait_tensorcnt 0
s_wait_loadcnt_dscnt 0
s_wait_storecnt_dscnt 0
s_delay_alu 1
s_clause 1
s_setprio 2
s_setprio_inc_wg 2
s_sethalt 0
s_icache_inv
s_dcache_inv
s_dcache_wb
s_dcache_inv_vol
s_dcache_wb_vol
s_incperflevel 1
s_decperflevel 1
s_ttracedata
s_ttracedata_imm 1
s_sendmsg 1
s_sendmsghalt 1
s_prefetch_inst s[2:3], 0, null, 0
s_prefetch_inst_pc_rel 0, null, 0
s_prefetch_data s[2:3], 0, null, 0
s_prefetch_data_pc_rel 0, null, 0
s_buffer_prefetch_data s[4:7], 0, null, 0
s_set_inst_prefetch_distance 1
buffer_wbl2 sc1
buffer_inv sc1
buffer_wbinvl1
buffer_wbinvl1_vol
global_wb
global_inv
global_wbinv
v_nop
v_clrexcp
v_pipeflush
ds_nop
s_wakeup
s_wakeup_barrier -1
s_wakeup_barrier m0""".split("\n"):
    row(asm.split()[0], asm, {}, {})

# ---- the scheduler, the end -----------------------------------------------------------------------------------------------
row("s_sleep", "s_sleep 1", {}, {"yielded": 1})
row("s_monitor_sleep", "s_monitor_sleep 1", {}, {"yielded": 1})
row("s_sleep_var", "s_sleep_var s2", {}, {"yielded": 1})
for name in ("s_endpgm", "s_endpgm_saved"):
    row(name, name, {"members": 2}, {"ended": 1, "yielded": 1})
row("s_trap", "s_trap 2", {}, {"faulted": 1, "yielded": 1})

# ---- jumps ------------------------------------------------------------------------------------------------------------------
OVER = "\ns_nop 0\ns_nop 0"
row("s_branch", "s_branch 1" + OVER, {}, {"next": 2})
row("s_branch", "s_branch 0xffff", {}, {"next": 0})
row("s_cbranch_scc0", "s_cbranch_scc0 1" + OVER, {"scc": [0, 1]}, {"next": [2, 1]})
row("s_cbranch_scc1", "s_cbranch_scc1 1" + OVER, {"scc": [0, 1]}, {"next": [1, 2]})
for register in ("vcc", "exec"):
    for when in (0, 1):
        asm = f"s_cbranch_{register}{'nz' if when else 'z'} 1" + OVER
        taken = lambda masks: [2 if bool(m) == bool(when) else 1 for m in masks]
        low, high = [0, 1, 0x80000000, 0], [0, 0, 0, 0x100]
        row(asm.split()[0], asm, {register: low, register + "_hi": high}, {"next": taken(a | b for a, b in zip(low, high))}, GFX9)
        row(asm.split()[0], asm, {register: low, register + "_hi": high}, {"next": taken(low)}, GFX12)
HERE = {"s10": "P+4", "s11": "Q+4"}
for name in ("s_getpc_b64", "s_get_pc_i64"):
    row(name, f"{name} s[10:11]", {}, HERE)
for name in ("s_setpc_b64", "s_set_pc_i64"):
    row(name, f"{name} s[2:3]" + OVER, {"s2": ["P+8", "P+4", "P+0"], "s3": ["Q+8", "Q+4", "Q+0"]}, {"next": [2, 1, 0]})
    row(name, f"{name} s[2:3]", {"s2": 0x1000, "s3": 0}, {"faulted": 1, "yielded": 1})
for name in ("s_swappc_b64", "s_swap_pc_i64"):
    row(name, f"{name} s[10:11], s[2:3]" + OVER, {"s2": "P+8", "s3": "Q+8"}, {**HERE, "next": 2})
    row(name, f"{name} s[2:3], s[2:3]" + OVER, {"s2": "P+8", "s3": "Q+8"}, {"s2": "P+4", "s3": "Q+4", "next": 2})
for name in ("s_call_b64", "s_call_i64"):
    row(name, f"{name} s[10:11], 1" + OVER, {}, {**HERE, "next": 2})
row("s_add_pc_i64", "s_add_pc_i64 s[2:3]" + OVER, {"s2": [4, 0, 0xFFFFFFFC], "s3": [0, 0, M32]}, {"next": [2, 1, 0]})

# ---- barriers: a wave that must wait stays at the instruction -----------------------------------------------------------------
row("s_barrier", "s_barrier", {"members": 1}, {"phase": 1})
row("s_barrier", "s_barrier", {"members": 2}, {"arrived": 1, "at_barrier": 1, "next": 0, "yielded": 1})
row("s_barrier", "s_barrier", {"members": 2, "phase": 3}, {"arrived": 1, "at_barrier": 1, "signalled": 3, "next": 0, "yielded": 1})
row("s_barrier", "s_barrier", {"members": 2, "arrived": 1, "at_barrier": 1}, {"next": 0, "yielded": 1, "blocked": 1})
row("s_barrier", "s_barrier", {"members": 2, "phase": 1, "at_barrier": 1}, {"at_barrier": 0})
row("s_barrier_signal", "s_barrier_signal -1", {"members": 2}, {"arrived": 1})
row("s_barrier_signal", "s_barrier_signal -1", {"members": 2, "arrived": 1, "phase": 4}, {"arrived": 0, "phase": 5, "signalled": 4})
row("s_barrier_signal", "s_barrier_signal m0", {"m0": 1, "members1": 3}, {"arrived1": 1}, ["gfx1250"])
row("s_barrier_signal_isfirst", "s_barrier_signal_isfirst -1", {"members": 3, "arrived": [0, 1], "scc": [0, 1]}, {"arrived": [1, 2], "scc": [1, 0]})
row("s_barrier_wait", "s_barrier_wait 0xffff", {"members": 2, "phase": 1}, {})
row("s_barrier_wait", "s_barrier_wait 0xffff", {"members": 2}, {"next": 0, "yielded": 1, "blocked": 1})
row("s_barrier_init", "s_barrier_init m0", {"m0": 1 | 5 << 16, "members1": 1}, {"members1": 5})
row("s_barrier_join", "s_barrier_join m0", {"m0": 1}, {"joined": 1})
row("s_barrier_join", "s_barrier_join m0", {"m0": 7 | 5 << 16}, {"joined": 7})
# M0 may bring the number of members; a wait for any named barrier means the one that was joined.
row("s_barrier_signal", "s_barrier_signal m0", {"m0": 1 | 4 << 16, "members1": 3}, {"arrived1": 1, "members1": 4}, ["gfx1250"])
row("s_barrier_wait", "s_barrier_wait 1", {"joined": 2, "members1": 2}, {"next": 0, "yielded": 1, "blocked": 1}, ["gfx1250"])
row("s_get_barrier_state", "s_get_barrier_state s10, m0", {"m0": 1, "members1": 5, "arrived1": 3}, {"s10": 1 | 3 << 4 | 5 << 16})

# ---- clocks count instructions here, so that two runs agree ---------------------------------------------------------------------
for name in ("s_memtime", "s_memrealtime", "s_get_shader_cycles_u64"):
    row(name, f"{name} s[10:11]", {"executed": 0x1234}, {"s10": 0x1234, "s11": 0})
row("s_sendmsg_rtn_b64", "s_sendmsg_rtn_b64 s[10:11], sendmsg(MSG_RTN_GET_REALTIME)", {"executed": 0x1234}, {"s10": 0x1234, "s11": 0})
row("s_sendmsg_rtn_b32", "s_sendmsg_rtn_b32 s10, sendmsg(MSG_RTN_GET_DOORBELL)", {}, {"s10": 0})

# ---- mode -------------------------------------------------------------------------------------------------------------------------
MODE = 0x8001E5
row("s_getreg_b32", "s_getreg_b32 s10, hwreg(1, 0, 32)", {"mode": MODE}, {"s10": MODE})
row("s_getreg_b32", "s_getreg_b32 s10, hwreg(1, 4, 4)", {"mode": MODE}, {"s10": 0xE})
row("s_getreg_b32", "s_getreg_b32 s10, hwreg(1, 23, 1)", {"mode": MODE}, {"s10": 1})
row("s_setreg_b32", "s_setreg_b32 hwreg(1, 4, 4), s2", {"mode": MODE, "s2": 0xFFFFFF13}, {"mode": 0x800135})
row("s_setreg_b32", "s_setreg_b32 hwreg(1, 0, 32), s2", {"mode": MODE, "s2": 0xF0}, {"mode": 0xF0})
row("s_setreg_imm32_b32", "s_setreg_imm32_b32 hwreg(1, 0, 4), 0x3a", {"mode": MODE}, {"mode": 0x8001EA})
# Bits 19:12 are the upper bits of register numbers: dst 1, src0 2, src1 3, src2 0.
row("s_setreg_imm32_b32", "s_setreg_imm32_b32 hwreg(1, 25, 1), 0x39001", {"mode": MODE, "offset2": 0x100},
    {"mode": MODE | 1 << 25, "offset0": 0x200, "offset1": 0x300, "offset2": 0, "offset3": 0x100}, ["gfx1250"])
row("s_round_mode", "s_round_mode 0xa", {"mode": MODE}, {"mode": 0x8001EA})
row("s_denorm_mode", "s_denorm_mode 0x3", {"mode": MODE}, {"mode": 0x800135})
row("s_set_vgpr_msb", "s_set_vgpr_msb 0x1b", {"offset3": 0x300}, {"offset0": 0x300, "offset1": 0x200, "offset2": 0x100, "offset3": 0})
M0 = 0xABCD5678
row("s_set_gpr_idx_on", "s_set_gpr_idx_on s2, gpr_idx(SRC0,DST)", {"m0": M0, "s2": 0x105}, {"m0": M0 & ~0xF0FF | 0x9005, "offset0": 5, "offset3": 5})
row("s_set_gpr_idx_idx", "s_set_gpr_idx_idx s2", {"m0": M0, "s2": 0x105}, {"m0": M0 & ~0xFF | 5, "offset0": 5, "offset2": 5})
row("s_set_gpr_idx_mode", "s_set_gpr_idx_mode gpr_idx(SRC1)", {"m0": M0}, {"m0": M0 & ~0xF000 | 0x2000, "offset1": 0x78})
row("s_set_gpr_idx_off", "s_set_gpr_idx_off", {"offset0": 5, "offset3": 6}, {"offset0": 0, "offset3": 0})

# ---- scalar loads -----------------------------------------------------------------------------------------------------------------
BASE = {"s2": "G+100", "s3": "H+100"}
BUFFER = {"s4": "G+100", "s5": "H+100", "s6": 0x1000}


def loaded(at, words, first=16):
    return {f"s{first + n}": word(0, at + 4 * n) for n in range(words)}


for old, new, words in (("dword", "b32", 1), ("dwordx2", "b64", 2), (None, "b96", 3), ("dwordx4", "b128", 4), ("dwordx8", "b256", 8), ("dwordx16", "b512", 16)):
    for name in filter(None, (old, new)):
        to = sreg(16, words)
        row(f"s_load_{name}", f"s_load_{name} {to}, s[2:3], 0x10", BASE, loaded(0x110, words))
        row(f"s_load_{name}", f"s_load_{name} {to}, s[2:3], -0x10", BASE, loaded(0xF0, words))
        row(f"s_load_{name}", f"s_load_{name} {to}, s[2:3], s8", {**BASE, "s8": 0x44}, loaded(0x144, words), GFX9)
        row(f"s_load_{name}", f"s_load_{name} {to}, s[2:3], s8 offset:0x10", {**BASE, "s8": 0x44}, loaded(0x154, words))
        row(f"s_load_{name}", f"s_load_{name} {to}, s[2:3], s8 offset:0x10 scale_offset", {**BASE, "s8": 3}, loaded(0x110 + 12 * words, words), ["gfx1250"])
        row(f"s_buffer_load_{name}", f"s_buffer_load_{name} {to}, s[4:7], 0x10", BUFFER, loaded(0x110, words))
        row(f"s_buffer_load_{name}", f"s_buffer_load_{name} {to}, s[4:7], s8 offset:0x10", {**BUFFER, "s8": 0x44}, loaded(0x154, words))
        # With a stride num_records counts that many bytes each.
        row(f"s_buffer_load_{name}", f"s_buffer_load_{name} {to}, s[4:7], 0x10", {**BUFFER, "s5": f"H+{16 << 48 | 0x100:x}", "s6": 5}, loaded(0x110, words))
        # Words beyond num_records read as 0.
        kept = words - 1
        row(f"s_buffer_load_{name}", f"s_buffer_load_{name} {to}, s[4:7], 0x10", {**BUFFER, "s6": 0x10 + 4 * kept},
            {**loaded(0x110, kept), f"s{16 + kept}": 0})
row("s_load_dwordx2", "s_load_dwordx2 s[2:3], s[2:3], 0x8", BASE, loaded(0x108, 2, 2))
row("s_load_b64", "s_load_b64 s[2:3], s[2:3], 0x8", BASE, loaded(0x108, 2, 2))
for at in (0x10, 0x13, 0x25):
    byte = word(0, 0x100 + at) & 255
    half = word(0, 0x100 + at) & 0xFFFF
    row("s_load_u8", f"s_load_u8 s16, s[2:3], {at:#x}", BASE, {"s16": byte})
    row("s_load_i8", f"s_load_i8 s16, s[2:3], {at:#x}", BASE, {"s16": (byte ^ 0x80) - 0x80 & M32})
    if at % 2 == 0:
        row("s_load_u16", f"s_load_u16 s16, s[2:3], {at:#x}", BASE, {"s16": half})
        row("s_load_i16", f"s_load_i16 s16, s[2:3], {at:#x}", BASE, {"s16": (half ^ 0x8000) - 0x8000 & M32})
    for size, signed, kind in ((1, False, "u8"), (1, True, "i8"), (2, False, "u16"), (2, True, "i16")):
        if at % size == 0:
            value = byte if size == 1 else half
            sign = 0x80 if size == 1 else 0x8000
            row(f"s_buffer_load_{kind}", f"s_buffer_load_{kind} s16, s[4:7], {at:#x}", BUFFER, {"s16": (value ^ sign) - sign & M32 if signed else value}, GFX12)
            row(f"s_buffer_load_{kind}", f"s_buffer_load_{kind} s16, s[4:7], {at:#x}", {**BUFFER, "s6": at + size - 1}, {"s16": 0}, GFX12)
