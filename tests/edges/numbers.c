/* Scales of the whole tensor that are given as numbers count as those that lie in the device's memory do,
 * whatever they are. */
#include "edges.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPEC(layout, source)                                                                                 \
  "heddle: 1\nname: numbers\nkernels: [write, decode]\n"                                                     \
  "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"                                                    \
  "kv: {dtype: fp8_e4m3, page: 16, " layout "}\n"                                                            \
  "scale: {granularity: tensor, source: " source "}\n"                                                       \
  "output: {dtype: fp32, lse: true}\n"
#define SHUFFLED "k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]"
#define HND "k: [b, h, s, d], v: [b, h, s, d]"

/* K's scale and V's. */
static void set_scales(scene *s, const float scales[2]) {
  verify_data *d = &s->data;
  tensors *const all[] = {&d->write, &d->decode};
  const tensor_name names[] = {TENSOR_K_SCALE, TENSOR_V_SCALE};
  for (int i = 0; i < 2; i++) {
    if (d->memory[names[i]]) memcpy(d->memory[names[i]], &scales[i], sizeof scales[i]);
    for (int n = 0; n < 2 && bind_takes_number(&s->contract, i == 0); n++)
      *(i == 0 ? &all[n]->k_scale : &all[n]->v_scale) = (scale_number){true, scales[i]};
  }
}

static bool same_caches(scene *a, scene *b) {
  bool same = true;
  for (int i = 0; i < 2; i++) {
    tensor_name name = i ? TENSOR_V_CACHE : TENSOR_K_CACHE;
    same = same && memcmp(a->data.memory[name], b->data.memory[name],
                          tensor_bytes(&a->data.write.by_name[name])) == 0;
  }
  return same;
}

/* Both kernels of both contracts on the same inputs: the same bytes in the caches, out and lse. */
static void compare(edge *e, scene *memory, scene *number, const float scales[2], int splits) {
  set_scales(memory, scales);
  set_scales(number, scales);
  if (!scene_launch_write(memory) || !scene_launch_write(number) || !scene_decode(memory, splits) ||
      !scene_decode(number, splits))
    return;
  void *kept = scene_keep(memory);
  size_t lse_bytes = tensor_bytes(&memory->data.decode.by_name[TENSOR_LSE]);
  EXPECT(e, same_caches(memory, number), "scales %g and %g: other codes", (double)scales[0],
         (double)scales[1]);
  EXPECT(e,
         kept && memcmp(kept, number->data.memory[TENSOR_OUT],
                        tensor_bytes(&memory->data.decode.by_name[TENSOR_OUT])) == 0,
         "scales %g and %g: another output", (double)scales[0], (double)scales[1]);
  EXPECT(e, memcmp(memory->data.memory[TENSOR_LSE], number->data.memory[TENSOR_LSE], lse_bytes) == 0,
         "scales %g and %g: another lse", (double)scales[0], (double)scales[1]);
  free(kept);
}

static void numbers_count_as_in_memory(edge *e) {
  static const char *const specs[][2] = {{SPEC(SHUFFLED, "memory"), SPEC(SHUFFLED, "argument")},
                                         {SPEC(HND, "memory"), SPEC(HND, "argument")}};
  const float inf = INFINITY, nan = NAN;
  const float scales[][2] = {{0.01f, 0.02f}, {0, 1},     {1, 0},     {nan, 1},    {1, nan},    {inf, 1},
                             {1, inf},       {-1, 0.5f}, {1, -0.5f}, {1e-40f, 1}, {1, 1e-40f}, {1, 1e30f}};
  const verify_case from = {
      .name = "edge", .kv_heads = 2, .length_count = 3, .lengths = {{0, 0, 1}, {0, 1, 9}, {2, 0, -1}}};
  for (int i = 0; i < 2; i++) {
    scene memory, number;
    bool good = scene_init(&memory, e, specs[i][0], &from);
    if (scene_init(&number, e, specs[i][1], &from) && good)
      for (size_t n = 0; n < sizeof scales / sizeof *scales; n++)
        compare(e, &memory, &number, scales[n], n % 2 ? 3 : 1);
    scene_finish(&memory);
    scene_finish(&number);
  }
}

/* Four times the scale of V is four times the output, exactly; without a scale K's logits are all 0. */
static void scales_reach_the_result(edge *e) {
  const verify_case from = {.name = "edge", .kv_heads = 1, .length_count = 1, .lengths = {{1, 0, 5}}};
  scene s;
  if (scene_init(&s, e, SPEC(SHUFFLED, "argument"), &from) && scene_write(&s) && scene_decode(&s, 1) &&
      scene_is_right(&s, "as written")) {
    const double first = scene_out(&s, 0, 3);
    s.data.decode.v_scale.value *= 4;
    EXPECT(e, scene_decode(&s, 1) && scene_out(&s, 0, 3) == 4 * first, "V's scale by 4 makes %g of %g",
           scene_out(&s, 0, 3), first);
    const double lse = scene_lse(&s, 0);
    s.data.decode.k_scale.value = 0;
    EXPECT(e, scene_decode(&s, 2) && fabs(scene_lse(&s, 0) - log(21)) < 1e-5 && scene_lse(&s, 0) != lse,
           "K's scale of 0 gives an lse of %g, not log 21", scene_lse(&s, 0));
  }
  scene_finish(&s);
}

const edge_test edges_of_numbers[] = {
    {"numbers-as-in-memory", numbers_count_as_in_memory},
    {"scales-reach-the-result", scales_reach_the_result},
    {NULL, NULL},
};
