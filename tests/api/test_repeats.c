/* A kernel remembers shapes that it was launched with. What it remembers changes no answer: every launch here
 * is held against that of a kernel which has seen nothing. HEDDLE_TEST_DEVICE=cuda:0: on hardware. */
#include "fixture.h"
#include <math.h>
#include <stdbool.h>

static const char *device(void) {
  const char *named = getenv("HEDDLE_TEST_DEVICE");
  return named != NULL ? named : "emu:gfx950";
}

typedef struct answer {
  hd_status status;
  char code[64]; /* of the first diagnostic */
  float out[OUT_FLOATS];
} answer;

static answer launch(const engine *e, hd_kernel *k, const hd_arguments *a) {
  hd_diagnostic first;
  answer got;
  memset(&got, 0, sizeof got);
  engine_forget_out(e);
  got.status = hd_launch(k, a, NULL, why);
  if (got.status != HD_OK && hd_diagnostics_get(why, 0, &first) == HD_OK)
    strncpy(got.code, first.code, sizeof got.code - 1);
  engine_out(e, got.out);
  return got;
}

/* The answer of `e->decode` is that of a kernel of its own. */
static answer same_as_fresh(const engine *e, const hd_arguments *a, const char *what) {
  hd_kernel *fresh = prepare(e->context, e->contract, HD_DECODE);
  const answer expected = launch(e, fresh, a), got = launch(e, e->decode, a);
  cr_assert_eq(got.status, expected.status, "%s: %s", what, hd_status_text(got.status));
  cr_assert_str_eq(got.code, expected.code, "%s", what);
  cr_assert_eq(memcmp(got.out, expected.out, sizeof got.out), 0, "%s gives another output", what);
  hd_kernel_release(fresh);
  return got;
}

/* One thing changed in what was launched before. */
enum { WIDE, FORMAT, ALIGNMENT, RANK, STRIDES, TWICE, NAMELESS, WITHOUT_OUT, FEWER, SPLIT, CHANGES };

static const struct {
  const char *what;
  hd_status status;
} changes[CHANGES] = {
    [WIDE] = {"a wider query", HD_DECLINED},
    [FORMAT] = {"another format", HD_DECLINED},
    [ALIGNMENT] = {"an output at another address", HD_DECLINED},
    [RANK] = {"a dimension less", HD_DECLINED},
    [STRIDES] = {"a query with gaps", HD_DECLINED},
    [TWICE] = {"a tensor given twice", HD_INVALID},
    [NAMELESS] = {"a name that is none", HD_INVALID},
    [WITHOUT_OUT] = {"no output", HD_DECLINED},
    [FEWER] = {"fewer sequences", HD_OK},
    [SPLIT] = {"another number of splits", HD_OK},
};

static void change(int which, const engine *e, hd_tensor t[READ_COUNT], hd_arguments *a) {
  static const int64_t wide[] = {SEQS, Q_HEADS, DIM + 8}, gaps[] = {2 * Q_HEADS * DIM, DIM, 1},
                       two_queries[] = {2, Q_HEADS, DIM}, two_tables[] = {2, TABLE}, two[] = {2};
  memcpy(t, e->read, sizeof e->read);
  if (which == WIDE) t[0].shape = wide;
  if (which == FORMAT) t[1].dtype = HD_DTYPE_FP16;
  if (which == ALIGNMENT) t[5].address += 8;
  if (which == RANK) t[1].rank = 3;
  if (which == STRIDES) t[0].strides = gaps;
  if (which == TWICE) t[0] = t[1];
  if (which == NAMELESS) t[0].name = (hd_tensor_name)(t[0].name + 256);
  if (which == WITHOUT_OUT) a->tensor_count = READ_COUNT - 1;
  if (which == SPLIT) a->splits = 3;
  if (which != FEWER) return;
  t[0].shape = t[5].shape = two_queries;
  t[3].shape = two_tables;
  t[4].shape = two;
}

Test(api_repeats, every_change_is_seen) {
  engine e;
  engine_open(&e, device());
  const hd_arguments good = engine_arguments(&e, 2);
  for (int which = 0; which < CHANGES; which++) {
    hd_tensor t[READ_COUNT];
    hd_arguments a = good;
    a.tensors = t;
    same_as_fresh(&e, &good, "the launch before");
    change(which, &e, t, &a);
    const answer got = same_as_fresh(&e, &a, changes[which].what);
    cr_assert_eq(got.status, changes[which].status, "%s: %s", changes[which].what,
                 hd_status_text(got.status));
    cr_assert_eq(isnan(got.out[0]) != 0, got.status != HD_OK, "%s", changes[which].what);
  }
  engine_close(&e);
}

Test(api_repeats, other_buffers_of_the_same_shapes_are_used) {
  engine e;
  float here[OUT_FLOATS], there[OUT_FLOATS];
  engine_open(&e, device());
  hd_tensor t[READ_COUNT];
  hd_arguments a = engine_arguments(&e, 1);
  OK(hd_launch(e.decode, &a, NULL, why));
  engine_out(&e, here);
  engine_forget_out(&e);
  memcpy(t, e.read, sizeof e.read);
  a.tensors = t;
  t[5].address = on_device(e.context, NULL, sizeof there);
  OK(hd_launch(e.decode, &a, NULL, why));
  OK(hd_memory_copy_out(e.context, NULL, there, t[5].address, sizeof there, why));
  cr_assert_eq(memcmp(here, there, sizeof here), 0);
  engine_out(&e, here);
  cr_assert(isnan(here[0]), "the first buffer was written again");
  engine_close(&e);
}

/* Axes are gone when others are made, perhaps where they were: a view is what its own axes say. */
Test(api_repeats, views_are_told_apart_by_what_their_axes_mean) {
  static const char *const words[] = {"[b, s, h, d]", "[b, h, s, d]", "[b, s, h, d]"};
  static const int64_t by_head[] = {PAGES, KV_HEADS, PAGE, DIM},
                       steps[] = {PAGE * KV_HEADS * DIM, DIM, KV_HEADS * DIM, 1};
  engine e;
  engine_open(&e, device());
  for (int i = 0; i < 3; i++) {
    hd_axes *axes = NULL;
    hd_tensor t[READ_COUNT];
    hd_arguments a = engine_arguments(&e, 1);
    OK(hd_axes_parse(words[i], PAGE, DIM, &axes, why));
    memcpy(t, e.read, sizeof e.read);
    a.tensors = t;
    t[1].axes = axes;
    t[1].shape = by_head;
    t[1].strides = steps;
    const answer got = same_as_fresh(&e, &a, words[i]);
    cr_assert_eq(got.status, i == 1 ? HD_OK : HD_DECLINED, "%s", words[i]);
    hd_axes_destroy(axes);
  }
  engine_close(&e);
}
