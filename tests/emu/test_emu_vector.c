/* Every vector instruction against values worked out exactly in another language (emu/vectors.py), decoded
 * from its real encoding for every target that has it; and the rule that an instruction without such a row
 * fails the suite. */
#include "emu_bench.h"
#include "emu_row_file.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>

enum { MAX_COMPLAINTS = 12, FEW_LANES = 16, MANY_LANES = 32 };

/* ---- one row ---- */

static char complaints[8192];
static size_t complaint_count;

static void complain(const char *target, const emu_instruction *i, const char *what, int lane, uint32_t got,
                     const char *want) {
  if (complaint_count++ >= MAX_COMPLAINTS) return;
  size_t used = strlen(complaints);
  snprintf(complaints + used, sizeof complaints - used, "\n%s: %s: %s lane %d is %08x, not %s", target,
           i->text, what, lane, got, want);
}

/* The lanes of "a,b,c" in turn; one value stands for all. */
static const char *value_of_lane(const char *list, int lane, char out[32]) {
  const char *at = list;
  for (int n = 0; n < lane && at[strcspn(at, ", ")] == ','; ++n)
    at += strcspn(at, ", ") + 1;
  size_t length = strcspn(at, ", ");
  snprintf(out, 32, "%.*s", (int)length, at);
  return out;
}

static bool is_nan16(uint32_t v) {
  return (v & 0x7fff) > 0x7c00;
}
static bool is_nanb16(uint32_t v) {
  return (v & 0x7fff) > 0x7f80;
}

static bool half_matches(const char *want, uint32_t got, bool bf16) {
  if (strncmp(want, "nan", 3) == 0) return bf16 ? is_nanb16(got) : is_nan16(got);
  return strtoul(want, NULL, 16) == got;
}

/* `other`: the high word beside a low one, for 64-bit NaNs. */
static bool matches(const char *want, uint32_t got, uint32_t other_high) {
  bool low = *want == 'l';
  if (low) {
    ++want;
    got &= 0xffff;
  }
  bool loose = *want == '~';
  want += loose;
  if (strcmp(want, "skip") == 0) return true;
  if (strcmp(want, "nan64") == 0) return (other_high & 0x7fffffff) >= 0x7ff80000;
  if (strcmp(want, "nan16") == 0) return is_nan16(got);
  if (strcmp(want, "nanb16") == 0) return is_nanb16(got);
  if (strcmp(want, "nan") == 0) return low ? is_nan16(got) : (got & 0x7fffffff) > 0x7f800000;
  if (strncmp(want, "pair", 4) == 0) {
    const char *first = strchr(want, ':') + 1, *second = strchr(first, ':') + 1;
    bool bf16 = want[4] == 'b';
    return half_matches(first, got & 0xffff, bf16) && half_matches(second, got >> 16, bf16);
  }
  uint32_t value = (uint32_t)strtoul(want, NULL, 16);
  uint32_t distance = value > got ? value - got : got - value;
  return distance <= (loose ? 1u : 0u);
}

static int scalar_index(const char *name) {
  if (strncmp(name, "vcc", 3) == 0) return EMU_S_VCC;
  if (strncmp(name, "exec", 4) == 0) return EMU_S_EXEC;
  if (strncmp(name, "m0", 2) == 0) return EMU_S_M0;
  return *name == 's' ? atoi(name + 1) : -1;
}

/* A row is about 16 lanes, or 32 where its lists are that long. */
static int lanes_of_row(const char *inputs) {
  for (const char *at = inputs; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
    int values = 1;
    for (const char *c = at; *c && *c != ' '; ++c)
      values += *c == ',';
    if (values == MANY_LANES) return MANY_LANES;
  }
  return FEW_LANES;
}

static void set_inputs(emu_wave *w, const char *inputs, int row_lanes) {
  w->s[EMU_S_EXEC] = row_lanes == 32 ? UINT32_MAX : (1u << row_lanes) - 1;
  for (const char *at = inputs; *at;) {
    const char *equals = strchr(at, '=');
    cr_assert_not_null(equals, "bad inputs: %s", at);
    char value[32];
    int scalar = scalar_index(at);
    if (*at == 'v' && isdigit((unsigned char)at[1])) {
      uint32_t *lanes = w->v[atoi(at + 1)];
      for (int lane = 0; lane < row_lanes; ++lane)
        lanes[lane] = (uint32_t)strtoul(value_of_lane(equals + 1, lane, value), NULL, 16);
    } else if (strncmp(at, "mode", 4) == 0) {
      w->mode = (uint32_t)strtoul(equals + 1, NULL, 16);
    } else {
      w->s[scalar] = (uint32_t)strtoul(equals + 1, NULL, 16);
    }
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
}

typedef struct snapshot {
  uint32_t v[BENCH_ROWS][EMU_LANES];
  uint32_t s[EMU_S_COUNT];
} snapshot;

static snapshot before, checked;

/* Results match, and nothing that is not named changed. `checked` marks what a result named. */
static void check_results(const char *target, const emu_wave *w, const emu_instruction *i,
                          const char *results, int row_lanes) {
  memset(&checked, 0, sizeof checked);
  for (const char *at = results; *at;) {
    const char *equals = strchr(at, '=');
    char value[32], name[16];
    snprintf(name, sizeof name, "%.*s", (int)(equals - at), at);
    int scalar = scalar_index(at);
    if (*at == 'v' && isdigit((unsigned char)at[1])) {
      int row = atoi(at + 1);
      for (int lane = 0; lane < row_lanes; ++lane) {
        value_of_lane(equals + 1, lane, value);
        bool is_low = row % 2 == 0; /* of a pair */
        if (!matches(value, w->v[row][lane], w->v[is_low ? row + 1 : row][lane]))
          complain(target, i, name, lane, w->v[row][lane], value);
        checked.v[row][lane] = 1;
      }
    } else {
      value_of_lane(equals + 1, 0, value);
      if (!matches(value, w->s[scalar], 0)) complain(target, i, name, 0, w->s[scalar], value);
      checked.s[scalar] = 1;
      /* A wave64 mask is a pair whose upper half no lane sets here. */
      if (w->lanes == 64) checked.s[scalar + 1] = 1;
    }
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  for (int row = 0; row < BENCH_ROWS; ++row)
    for (int lane = 0; lane < w->lanes; ++lane)
      if (!checked.v[row][lane] && w->v[row][lane] != before.v[row][lane]) {
        char name[16];
        snprintf(name, sizeof name, "v%d", row);
        complain(target, i, name, lane, w->v[row][lane], "what it was");
      }
  for (int n = 0; n < EMU_S_COUNT; ++n)
    if (!checked.s[n] && w->s[n] != before.s[n]) {
      char name[16];
      snprintf(name, sizeof name, "s%d", n);
      complain(target, i, name, 0, w->s[n], "what it was");
    }
}

/* A pair as the emulator runs it: what the first half writes appears after the second has read. */
static void run_instruction(emu_wave *w, const emu_instruction *i) {
  w->state->deferring = i->dual;
  w->state->deferred_count = 0;
  i->handler(w, i);
  w->state->deferring = false;
  if (i->dual) i[1].handler(w, i + 1);
  for (int n = 0; n < w->state->deferred_count; ++n)
    emu_write_row(w, w->state->deferred[n].row, w->state->deferred[n].mask, w->state->deferred[n].value.lane);
}

static size_t run_target(const char *target_name) {
  static uint8_t code[MAX_ROWS * 16];
  static size_t offset_of[MAX_ROWS];
  size_t size = 0, run = 0;
  char key[16];
  snprintf(key, sizeof key, "%s=", target_name);
  for (size_t n = 0; n < row_count; ++n) {
    const char *hex = strstr(rows[n].codes, key);
    offset_of[n] = SIZE_MAX;
    if (!hex) continue;
    offset_of[n] = size;
    for (hex += strlen(key); isxdigit((unsigned char)hex[0]); hex += 2) {
      char byte[3] = {hex[0], hex[1], 0};
      code[size++] = (uint8_t)strtoul(byte, NULL, 16);
    }
  }
  const emu_target *target = emu_find_target(target_name);
  cr_assert_not_null(target);
  bench b;
  cr_assert(bench_init(&b, target, code, size), "cannot decode for %s", target_name);
  for (size_t n = 0; n < row_count; ++n) {
    if (offset_of[n] == SIZE_MAX) continue;
    const emu_instruction *i = bench_at(&b, offset_of[n]);
    cr_assert_not_null(i, "%s: no instruction at row %s", target_name, rows[n].name);
    const emu_instruction *named = i->dual ? i + 1 : i; /* a row about a pair is about its second half */
    if (strcmp(named->row->name, rows[n].name) != 0) {
      complain(target_name, i, named->problem ? named->problem : named->row->name, 0, 0, rows[n].name);
      continue;
    }
    bench_reset(&b, target);
    int row_lanes = lanes_of_row(rows[n].inputs);
    set_inputs(&b.wave, rows[n].inputs, row_lanes);
    memcpy(before.v, b.v, sizeof before.v);
    memcpy(before.s, b.wave.s, sizeof before.s);
    run_instruction(&b.wave, i);
    if (b.wave.faulted)
      complain(target_name, i, b.messages.count ? b.messages.items[0].message : "fault", 0, 0, "a result");
    b.launch.faulted = false;
    check_results(target_name, &b.wave, i, rows[n].results, row_lanes);
    ++run;
  }
  bench_finish(&b);
  return run;
}

static void expect_target(const char *name, size_t at_least) {
  load_rows("vectors.txt");
  size_t run = run_target(name);
  cr_expect_eq(complaint_count, 0u, "%zu wrong:%s", complaint_count, complaints);
  cr_expect_geq(run, at_least, "only %zu rows ran", run);
  free(file);
}

Test(emu_vector, every_row_holds_on_gfx942) {
  expect_target("gfx942", 500);
}
Test(emu_vector, every_row_holds_on_gfx950) {
  expect_target("gfx950", 500);
}
Test(emu_vector, every_row_holds_on_gfx1201) {
  expect_target("gfx1201", 500);
}
Test(emu_vector, every_row_holds_on_gfx1250) {
  expect_target("gfx1250", 500);
}

/* ---- what is not emulated ---- */

static bool faults(const char *target, const char *name, bool clamp) {
  static const uint8_t nothing[4];
  bench b;
  cr_assert(bench_init(&b, emu_find_target(target), nothing, sizeof nothing));
  const emu_row *row = emu_find_row(name, strlen(name));
  cr_assert_not_null(row);
  emu_instruction i = {
      .handler = row->handler, .row = row, .source0 = 1, .op_sel_hi = 7, .clamp = clamp, .text = name};
  i.operand_count = 3;
  for (int n = 0; n < 3; ++n)
    i.operand[n] = (emu_operand){.kind = EMU_VECTOR, .index = (uint16_t)(10 + n), .count = 1};
  b.module.code[0] = i;
  i.handler(&b.wave, &b.module.code[0]);
  bool faulted = b.wave.faulted;
  bench_finish(&b);
  return faulted;
}

Test(emu_vector, a_clamped_byte_conversion_is_another_format) {
  static const char *const names[] = {"v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_f32_fp8",
                                      "v_cvt_pk_f32_fp8", "v_cvt_pk_f16_fp8", "v_cvt_pk_fp8_f16"};
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n) {
    cr_expect(faults("gfx1250", names[n], true), "%s", names[n]);
    cr_expect_not(faults("gfx1250", names[n], false), "%s", names[n]);
  }
}

/* ---- coverage ----
 */

static bool has_row(const char *name) {
  for (size_t n = 0; n < row_count; ++n)
    if (strcmp(rows[n].name, name) == 0) return true;
  return false;
}

Test(emu_vector, an_instruction_without_a_row_fails) {
  static const emu_row *const tables[] = {
      emu_vector_float_rows,   emu_vector_half_rows,    emu_vector_integer_rows, emu_vector_packed_rows,
      emu_vector_convert_rows, emu_vector_compare_rows, emu_vector_wide_rows,    emu_vector_scale_rows,
      emu_vector_span_rows,    emu_vector_double_rows,  emu_vector_divide_rows,  emu_vector_bits_rows,
      emu_vector_bytes_rows};
  load_rows("vectors.txt");
  size_t tested = 0;
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (const emu_row *row = tables[t]; row->name; ++row) {
      cr_expect(has_row(row->name), "%s has no row in tests/emu/vectors.txt", row->name);
      ++tested;
    }
  cr_expect_gt(tested, 600u);
  free(file);
}
