/* Control flow, waits, barriers, scalar memory, hardware registers. */
#include "execute.h"
#include "hwreg.h"

/* ---- Nothing to do: the emulator completes memory at once and has no pipeline ---- */

static void ignore(emu_wave *w, const emu_instruction *i) {
  (void)w;
  (void)i;
}

static void s_sleep(emu_wave *w, const emu_instruction *i) {
  (void)i;
  w->yielded = true;
}

static void s_endpgm(emu_wave *w, const emu_instruction *i) {
  emu_wave_ends(w, i);
}

static void s_trap(emu_wave *w, const emu_instruction *i) {
  emu_fault(w, i, -1, "the kernel trapped (s_trap %u)", i->immediate & 0xff);
}

/* ---- Jumps ---- */

static void jump(emu_wave *w, const emu_instruction *i) {
  if (i->target == UINT32_MAX) {
    emu_fault(w, i, -1, "branch to an address that holds no instruction");
    return;
  }
  w->next = i->target;
}

static bool vcc_zero(const emu_wave *w) {
  return w->lanes == 64 ? emu_pair(w, EMU_S_VCC) == 0 : w->s[EMU_S_VCC] == 0;
}

static void s_cbranch_scc0(emu_wave *w, const emu_instruction *i) {
  if (!w->s[EMU_S_SCC]) jump(w, i);
}
static void s_cbranch_scc1(emu_wave *w, const emu_instruction *i) {
  if (w->s[EMU_S_SCC]) jump(w, i);
}
static void s_cbranch_vccz(emu_wave *w, const emu_instruction *i) {
  if (vcc_zero(w)) jump(w, i);
}
static void s_cbranch_vccnz(emu_wave *w, const emu_instruction *i) {
  if (!vcc_zero(w)) jump(w, i);
}
static void s_cbranch_execz(emu_wave *w, const emu_instruction *i) {
  if (emu_exec(w) == 0) jump(w, i);
}
static void s_cbranch_execnz(emu_wave *w, const emu_instruction *i) {
  if (emu_exec(w) != 0) jump(w, i);
}
/* The image lies in host memory, and the program counter is its host address. */
static uint64_t following(const emu_wave *w, const emu_instruction *i) {
  return (uint64_t)(uintptr_t)w->group->launch->module->image + i->address + i->size;
}

static void jump_to(emu_wave *w, const emu_instruction *i, uint64_t counter) {
  const emu_module *m = w->group->launch->module;
  uint64_t address = counter - (uint64_t)(uintptr_t)m->image;
  uint32_t index = UINT32_MAX;
  if (address >= m->code_start && address < m->code_end && address % 4 == 0)
    index = m->index_of[(address - m->code_start) / 4];
  if (index == UINT32_MAX) {
    emu_fault(w, i, -1, "jump to 0x%llx, which holds no instruction of this code object",
              (unsigned long long)counter);
    return;
  }
  w->next = index;
}

static void s_getpc_b64(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar64(w, &i->operand[0], following(w, i));
}
static void s_setpc_b64(emu_wave *w, const emu_instruction *i) {
  jump_to(w, i, emu_scalar64(w, &i->operand[0]));
}
static void s_swappc_b64(emu_wave *w, const emu_instruction *i) {
  uint64_t to = emu_scalar64(w, &i->operand[1]);
  emu_set_scalar64(w, &i->operand[0], following(w, i));
  jump_to(w, i, to);
}
static void s_call_b64(emu_wave *w, const emu_instruction *i) {
  emu_set_scalar64(w, &i->operand[0], following(w, i));
  jump(w, i);
}
static void s_add_pc_i64(emu_wave *w, const emu_instruction *i) {
  jump_to(w, i, following(w, i) + emu_scalar64(w, &i->operand[0]));
}

/* ---- Barriers ---- */

/* The wave stays at this instruction and lets the others run. */
static void hold(emu_wave *w, const emu_instruction *i) {
  w->next = (uint32_t)(i - w->group->launch->module->code);
  w->yielded = true;
  w->state->blocked = true;
}

static void s_barrier(emu_wave *w, const emu_instruction *i) {
  emu_barrier *barrier = &w->group->barrier[0];
  emu_state *state = w->state;
  bool arrived = false;
  if (!state->at_barrier) {
    state->at_barrier = true;
    state->barrier_phase[0] = barrier->phase;
    emu_barrier_arrive(w, i, barrier);
    arrived = true;
  }
  if (barrier->phase == state->barrier_phase[0]) { /* not all are here: come back to this instruction */
    hold(w, i);
    if (arrived) state->blocked = false; /* that was a step, even if the only one of this turn */
    return;
  }
  state->at_barrier = false;
  if (state->watch) emu_watch_passes(w, &w->group->order[0]);
}

/* The split forms name a barrier: -1 the workgroup's, -3 the cluster's (one workgroup here), 1 … 16 named
 * ones. */
static emu_barrier *barrier_of(emu_wave *w, const emu_instruction *i, int64_t id, int *out_index) {
  if (id == -1 || id == 0 || id == -3) {
    *out_index = 0;
    return &w->group->barrier[0];
  }
  if (id < 0 || id >= EMU_NAMED_BARRIERS) {
    emu_fault(w, i, -1, "no barrier %lld", (long long)id);
    return NULL;
  }
  *out_index = (int)id;
  return &w->group->barrier[id];
}

static int64_t barrier_operand(emu_wave *w, const emu_operand *o) {
  return o->kind == EMU_SCALAR ? (int64_t)(emu_scalar32(w, o) & 0x3f) : (int64_t)(int16_t)o->bits;
}

static void s_barrier_signal(emu_wave *w, const emu_instruction *i) {
  int n;
  emu_barrier *barrier = barrier_of(w, i, barrier_operand(w, &i->operand[0]), &n);
  if (!barrier) return;
  w->state->barrier_phase[n] = barrier->phase;
  if (w->state->watch && n == 0) w->state->watch->signalled = true;
  if (n > 0) {
    w->group->named_barriers = true;
    uint32_t members = i->operand[0].kind == EMU_SCALAR ? w->s[EMU_S_M0] >> 16 & 0x7f : 0;
    if (members) barrier->members = members;
  }
  emu_barrier_arrive(w, i, barrier);
}
static void s_barrier_signal_isfirst(emu_wave *w, const emu_instruction *i) {
  int n;
  emu_barrier *barrier = barrier_of(w, i, barrier_operand(w, &i->operand[0]), &n);
  if (!barrier) return;
  w->s[EMU_S_SCC] = barrier->arrived == 0;
  s_barrier_signal(w, i);
}
static void s_barrier_wait(emu_wave *w, const emu_instruction *i) {
  int n;
  int64_t id = (int16_t)i->immediate;
  emu_barrier *barrier = barrier_of(w, i, id > 0 && w->state->joined ? w->state->joined : id, &n);
  if (!barrier) return;
  if (barrier->phase != w->state->barrier_phase[n]) {
    if (w->state->watch) {
      emu_watch_passes(w, &w->group->order[n]);
      if (n == 0) w->state->watch->signalled = false;
    }
    return;
  }
  hold(w, i);
}

/* Named barriers: M0 holds the id in 5:0 (of s_barrier_init also the member count in 22:16). */
static emu_barrier *named_barrier(emu_wave *w, const emu_instruction *i, const emu_operand *o) {
  int n;
  int64_t id = o->kind == EMU_SCALAR ? (int64_t)(emu_scalar32(w, o) & 0x3f) : (int64_t)o->bits;
  return barrier_of(w, i, id, &n);
}
static void s_barrier_init(emu_wave *w, const emu_instruction *i) {
  emu_barrier *barrier = named_barrier(w, i, &i->operand[0]);
  if (barrier) *barrier = (emu_barrier){w->s[EMU_S_M0] >> 16 & 0x7f, 0, barrier->phase};
}
/* Says which barrier s_barrier_wait 1 means. */
static void s_barrier_join(emu_wave *w, const emu_instruction *i) {
  const emu_barrier *barrier = named_barrier(w, i, &i->operand[0]);
  if (barrier) w->state->joined = (uint32_t)(barrier - w->group->barrier);
}
static void s_get_barrier_state(emu_wave *w, const emu_instruction *i) {
  const emu_barrier *barrier = named_barrier(w, i, &i->operand[1]);
  if (barrier) emu_set_scalar32(w, &i->operand[0], barrier->arrived << 4 | barrier->members << 16 | 1);
}

/* ---- Scalar memory ---- */

static void store_words(emu_wave *w, const emu_operand *to, const uint8_t *from, uint32_t count) {
  if (to->kind != EMU_SCALAR || to->index == EMU_S_NULL) return;
  for (uint32_t n = 0; n < count; ++n)
    emu_copy(&w->s[to->index + n], from + 4 * n, 4);
}

static uint64_t scalar_offset(emu_wave *w, const emu_instruction *i) {
  uint64_t offset = (uint64_t)i->offset;
  if (i->operand_count > 2) {
    const emu_operand *o = &i->operand[2];
    offset += o->kind == EMU_SCALAR
                  ? (uint64_t)emu_scalar32(w, o) * (i->scale_offset ? i->operand[0].count * 4u : 1u)
                  : o->bits;
  }
  return offset;
}

static void load_scalar(emu_wave *w, const emu_instruction *i) {
  uint32_t words = i->operand[0].count;
  uint64_t address = emu_scalar64(w, &i->operand[1]) + scalar_offset(w, i);
  if (address % 4) {
    emu_fault(w, i, -1, "scalar load from 0x%llx, which is not a multiple of 4", (unsigned long long)address);
    return;
  }
  const uint8_t *from = emu_global(w, i, -1, address, 4 * words, false);
  if (from) store_words(w, &i->operand[0], from, words);
}

static void load_scalar_narrow(emu_wave *w, const emu_instruction *i, uint32_t bytes, bool sign_extend) {
  uint64_t address = emu_scalar64(w, &i->operand[1]) + scalar_offset(w, i);
  const uint8_t *from = emu_global(w, i, -1, address, bytes, false);
  if (!from) return;
  uint32_t value = 0;
  emu_copy(&value, from, bytes);
  if (sign_extend) value = bytes == 1 ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)(int32_t)(int16_t)value;
  emu_set_scalar32(w, &i->operand[0], value);
}
static void s_load_i8(emu_wave *w, const emu_instruction *i) {
  load_scalar_narrow(w, i, 1, true);
}
static void s_load_u8(emu_wave *w, const emu_instruction *i) {
  load_scalar_narrow(w, i, 1, false);
}
static void s_load_i16(emu_wave *w, const emu_instruction *i) {
  load_scalar_narrow(w, i, 2, true);
}
static void s_load_u16(emu_wave *w, const emu_instruction *i) {
  load_scalar_narrow(w, i, 2, false);
}

/* What a scalar load from a buffer may take: bytes past num_records read as 0. */
static bool load_buffer_part(emu_wave *w, const emu_instruction *i, uint64_t offset, uint32_t bytes,
                             uint32_t *out_value) {
  emu_buffer buffer = emu_read_buffer(w, i->operand[1].index);
  uint64_t end = buffer.stride ? buffer.records * buffer.stride : buffer.records;
  *out_value = 0;
  if (offset + bytes > end) return true;
  const uint8_t *from = emu_global(w, i, -1, buffer.base + offset, bytes, false);
  if (from) emu_copy(out_value, from, bytes);
  return from != NULL;
}

static void load_scalar_buffer(emu_wave *w, const emu_instruction *i) {
  uint64_t offset = scalar_offset(w, i) & ~UINT64_C(3);
  uint32_t words[16];
  for (uint32_t n = 0; n < i->operand[0].count; ++n)
    if (!load_buffer_part(w, i, offset + 4 * n, 4, &words[n])) return;
  memcpy(&w->s[i->operand[0].index], words, 4 * i->operand[0].count);
}

static void load_scalar_buffer_narrow(emu_wave *w, const emu_instruction *i, uint32_t bytes,
                                      bool sign_extend) {
  uint32_t value, sign = bytes == 1 ? 0x80 : 0x8000;
  if (!load_buffer_part(w, i, scalar_offset(w, i) & ~(uint64_t)(bytes - 1), bytes, &value)) return;
  emu_set_scalar32(w, &i->operand[0], sign_extend ? (value ^ sign) - sign : value);
}
static void s_buffer_load_i8(emu_wave *w, const emu_instruction *i) {
  load_scalar_buffer_narrow(w, i, 1, true);
}
static void s_buffer_load_u8(emu_wave *w, const emu_instruction *i) {
  load_scalar_buffer_narrow(w, i, 1, false);
}
static void s_buffer_load_i16(emu_wave *w, const emu_instruction *i) {
  load_scalar_buffer_narrow(w, i, 2, true);
}
static void s_buffer_load_u16(emu_wave *w, const emu_instruction *i) {
  load_scalar_buffer_narrow(w, i, 2, false);
}

static void read_clock(emu_wave *w, const emu_instruction *i) {
  /* Instructions executed, so that two runs agree; programs only subtract. */
  emu_set_scalar64(w, &i->operand[0], w->executed);
}

/* ---- Hardware registers and mode ---- */

typedef struct register_field {
  uint32_t id, offset, width, mask;
} register_field;

static register_field field_of(const emu_instruction *i) {
  register_field r = {i->immediate & 63, i->immediate >> 6 & 31, (i->immediate >> 11 & 31) + 1, 0};
  r.mask = r.width == 32 ? UINT32_MAX : (1u << r.width) - 1;
  return r;
}

static void s_getreg_b32(emu_wave *w, const emu_instruction *i) {
  register_field r = field_of(i);
  uint32_t value = 0; /* identity, trap and status registers: a quiet machine */
  if (r.id == EMU_HWREG_MODE) value = w->mode;
  if (r.id == EMU_HWREG_SHADER_CYCLES) value = (uint32_t)w->executed;
  emu_set_scalar32(w, &i->operand[0], value >> r.offset & r.mask);
}

static void set_register(emu_wave *w, const emu_instruction *i, uint32_t value) {
  register_field r = field_of(i);
  if (r.id == EMU_HWREG_MODE) w->mode = (w->mode & ~(r.mask << r.offset)) | (value & r.mask) << r.offset;
}

static void s_setreg_b32(emu_wave *w, const emu_instruction *i) {
  const emu_operand *o = &i->operand[i->operand[0].kind == EMU_SYMBOL ? 1 : 0];
  set_register(w, i, emu_scalar32(w, o));
}

/* gfx1250: bits 19:12 of a constant for MODE are the upper bits of register numbers (dst, src0, src1, src2),
 * whichever field is set. LLVM leaves out the s_set_vgpr_msb that would say the same. */
static void s_setreg_imm32_b32(emu_wave *w, const emu_instruction *i) {
  s_setreg_b32(w, i);
  if (!w->target->setreg_extends_rows || field_of(i).id != EMU_HWREG_MODE) return;
  uint32_t value = emu_scalar32(w, &i->operand[i->operand[0].kind == EMU_SYMBOL ? 1 : 0]);
  for (int n = 0; n < 4; ++n)
    w->row_offset[(n + 3) % 4] = (value >> (12 + 2 * n) & 3) << 8;
}

static void s_round_mode(emu_wave *w, const emu_instruction *i) {
  w->mode = (w->mode & ~0xfu) | (i->immediate & 0xf);
}
static void s_denorm_mode(emu_wave *w, const emu_instruction *i) {
  w->mode = (w->mode & ~0xf0u) | (i->immediate & 0xf) << 4;
}
/* Two more bits for the register numbers of src0, src1, src2 and dst. */
static void s_set_vgpr_msb(emu_wave *w, const emu_instruction *i) {
  for (int n = 0; n < 4; ++n)
    w->row_offset[n] = (i->immediate >> (2 * n) & 3) << 8;
}

/* gfx9's register indexing: M0 holds the index (7:0) and which of src0, src1, src2, dst it is added to
 * (15:12). */
static void apply_index_mode(emu_wave *w) {
  uint32_t m0 = w->s[EMU_S_M0];
  for (int n = 0; n < 4; ++n)
    w->row_offset[n] = m0 >> (12 + n) & 1 ? m0 & 0xff : 0;
}
static void set_index_mode(emu_wave *w, uint32_t index, uint32_t enabled) {
  w->s[EMU_S_M0] = (w->s[EMU_S_M0] & ~0xf0ffu) | (index & 0xff) | (enabled & 15) << 12;
  apply_index_mode(w);
}
static void s_set_gpr_idx_on(emu_wave *w, const emu_instruction *i) {
  set_index_mode(w, emu_scalar32(w, &i->operand[0]), i->immediate >> 8 & 15);
}
static void s_set_gpr_idx_off(emu_wave *w, const emu_instruction *i) {
  (void)i;
  memset(w->row_offset, 0, sizeof w->row_offset);
}
static void s_set_gpr_idx_mode(emu_wave *w, const emu_instruction *i) {
  set_index_mode(w, w->s[EMU_S_M0], i->immediate & 15);
}
static void s_set_gpr_idx_idx(emu_wave *w, const emu_instruction *i) {
  set_index_mode(w, emu_scalar32(w, &i->operand[0]), w->s[EMU_S_M0] >> 12 & 15);
}

static void s_sendmsg_return(emu_wave *w, const emu_instruction *i) {
  if (i->operand[0].count > 1) {
    emu_set_scalar64(w, &i->operand[0], w->executed);
  } else {
    emu_set_scalar32(w, &i->operand[0], 0);
  }
}

void emu_undefined(emu_wave *w, const emu_instruction *i) {
  emu_fault(w, i, -1, "the emulator does not implement this instruction: %s",
            i->problem ? i->problem : "unknown");
}
const emu_row emu_undefined_row = {"undefined", emu_undefined, 0, EMU_NO_DESTINATION};

#define IGNORED(name)                                                                                        \
  { name, ignore, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED }
#define WAIT(name)                                                                                           \
  { name, ignore, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED | EMU_WAITS }
#define BRANCH(name, handler)                                                                                \
  { name, handler, 0, EMU_NO_DESTINATION | EMU_BRANCH | EMU_ENDS_BLOCK | EMU_TEXT_IGNORED }
const emu_row emu_control_rows[] = {
    IGNORED("s_nop"),
    WAIT("s_waitcnt"),
    IGNORED("s_waitcnt_depctr"),
    WAIT("s_waitcnt_vscnt"),
    IGNORED("s_wait_alu"),
    IGNORED("s_wait_idle"),
    IGNORED("s_wait_event"),
    WAIT("s_wait_loadcnt"),
    WAIT("s_wait_storecnt"),
    IGNORED("s_wait_samplecnt"),
    IGNORED("s_wait_bvhcnt"),
    IGNORED("s_wait_expcnt"),
    WAIT("s_wait_dscnt"),
    WAIT("s_wait_kmcnt"),
    IGNORED("s_wait_xcnt"),
    WAIT("s_wait_asynccnt"),
    WAIT("s_wait_tensorcnt"),
    WAIT("s_wait_loadcnt_dscnt"),
    WAIT("s_wait_storecnt_dscnt"),
    IGNORED("s_delay_alu"),
    IGNORED("s_clause"),
    IGNORED("s_setprio"),
    IGNORED("s_setprio_inc_wg"),
    IGNORED("s_sethalt"),
    IGNORED("s_icache_inv"),
    IGNORED("s_dcache_inv"),
    IGNORED("s_dcache_wb"),
    IGNORED("s_dcache_inv_vol"),
    IGNORED("s_dcache_wb_vol"),
    IGNORED("s_incperflevel"),
    IGNORED("s_decperflevel"),
    IGNORED("s_ttracedata"),
    IGNORED("s_ttracedata_imm"),
    IGNORED("s_sendmsg"),
    IGNORED("s_sendmsghalt"),
    IGNORED("s_prefetch_inst"),
    IGNORED("s_prefetch_inst_pc_rel"),
    IGNORED("s_prefetch_data"),
    IGNORED("s_prefetch_data_pc_rel"),
    IGNORED("s_buffer_prefetch_data"),
    IGNORED("s_set_inst_prefetch_distance"),
    IGNORED("buffer_wbl2"),
    IGNORED("buffer_inv"),
    IGNORED("buffer_wbinvl1"),
    IGNORED("buffer_wbinvl1_vol"),
    IGNORED("global_wb"),
    IGNORED("global_inv"),
    IGNORED("global_wbinv"),
    IGNORED("v_nop"),
    IGNORED("v_clrexcp"),
    IGNORED("v_pipeflush"),
    IGNORED("ds_nop"),
    {"s_sleep", s_sleep, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED | EMU_YIELDS},
    {"s_sleep_var", s_sleep, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED | EMU_YIELDS},
    {"s_monitor_sleep", s_sleep, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED | EMU_YIELDS},
    {"s_wakeup", ignore, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_endpgm", s_endpgm, 0, EMU_NO_DESTINATION | EMU_ENDS_BLOCK | EMU_TEXT_IGNORED},
    {"s_endpgm_saved", s_endpgm, 0, EMU_NO_DESTINATION | EMU_ENDS_BLOCK | EMU_TEXT_IGNORED},
    {"s_trap", s_trap, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    BRANCH("s_branch", jump),
    BRANCH("s_cbranch_scc0", s_cbranch_scc0),
    BRANCH("s_cbranch_scc1", s_cbranch_scc1),
    BRANCH("s_cbranch_vccz", s_cbranch_vccz),
    BRANCH("s_cbranch_vccnz", s_cbranch_vccnz),
    BRANCH("s_cbranch_execz", s_cbranch_execz),
    BRANCH("s_cbranch_execnz", s_cbranch_execnz),
    {"s_getpc_b64", s_getpc_b64, 1, 0},
    {"s_get_pc_i64", s_getpc_b64, 1, 0},
    {"s_setpc_b64", s_setpc_b64, 0, EMU_NO_DESTINATION | EMU_ENDS_BLOCK},
    {"s_set_pc_i64", s_setpc_b64, 0, EMU_NO_DESTINATION | EMU_ENDS_BLOCK},
    {"s_swappc_b64", s_swappc_b64, 1, EMU_ENDS_BLOCK},
    {"s_swap_pc_i64", s_swappc_b64, 1, EMU_ENDS_BLOCK},
    {"s_call_b64", s_call_b64, 1, EMU_ENDS_BLOCK | EMU_BRANCH},
    {"s_call_i64", s_call_b64, 1, EMU_ENDS_BLOCK | EMU_BRANCH},
    {"s_add_pc_i64", s_add_pc_i64, 0, EMU_NO_DESTINATION | EMU_ENDS_BLOCK},
    {"s_barrier", s_barrier, 0, EMU_NO_DESTINATION | EMU_YIELDS},
    {"s_barrier_signal", s_barrier_signal, 0, EMU_NO_DESTINATION},
    {"s_barrier_signal_isfirst", s_barrier_signal_isfirst, 0, EMU_NO_DESTINATION},
    {"s_barrier_wait", s_barrier_wait, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED | EMU_YIELDS},
    {"s_barrier_init", s_barrier_init, 0, EMU_NO_DESTINATION},
    {"s_barrier_join", s_barrier_join, 0, EMU_NO_DESTINATION},
    {"s_get_barrier_state", s_get_barrier_state, 1, 0},
    {"s_get_shader_cycles_u64", read_clock, 1, 0},
    IGNORED("s_wakeup_barrier"),
    {"s_load_dword", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_dwordx2", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_dwordx4", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_dwordx8", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_dwordx16", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b32", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b64", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b96", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b128", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b256", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_b512", load_scalar, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_i8", s_load_i8, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_u8", s_load_u8, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_i16", s_load_i16, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_load_u16", s_load_u16, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_dword", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_dwordx2", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_dwordx4", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_dwordx8", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_dwordx16", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b32", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b64", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b96", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b128", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b256", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_b512", load_scalar_buffer, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_i8", s_buffer_load_i8, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_u8", s_buffer_load_u8, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_i16", s_buffer_load_i16, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_buffer_load_u16", s_buffer_load_u16, 1, EMU_MEMORY | EMU_SCALAR_LOAD},
    {"s_memtime", read_clock, 1, EMU_SCALAR_LOAD},
    {"s_memrealtime", read_clock, 1, EMU_SCALAR_LOAD},
    {"s_getreg_b32", s_getreg_b32, 1, 0},
    {"s_setreg_b32", s_setreg_b32, 0, EMU_NO_DESTINATION},
    {"s_setreg_imm32_b32", s_setreg_imm32_b32, 0, EMU_NO_DESTINATION},
    {"s_round_mode", s_round_mode, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_denorm_mode", s_denorm_mode, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_set_vgpr_msb", s_set_vgpr_msb, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_set_gpr_idx_on", s_set_gpr_idx_on, 0, EMU_NO_DESTINATION | EMU_INDEXES},
    {"s_set_gpr_idx_off", s_set_gpr_idx_off, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_set_gpr_idx_mode", s_set_gpr_idx_mode, 0, EMU_NO_DESTINATION | EMU_TEXT_IGNORED},
    {"s_set_gpr_idx_idx", s_set_gpr_idx_idx, 0, EMU_NO_DESTINATION | EMU_INDEXES},
    {"s_sendmsg_rtn_b32", s_sendmsg_return, 1, EMU_SCALAR_LOAD},
    {"s_sendmsg_rtn_b64", s_sendmsg_return, 1, EMU_SCALAR_LOAD},
    {NULL, NULL, 0, 0},
};
