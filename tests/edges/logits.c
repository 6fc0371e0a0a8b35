/* What is done to logits before they are weights. */
#include "edges.h"
#include <math.h>
#include <stdio.h>

static const int one_and_more[] = {1, 3, 0};

/* A cap far below the logits, one in their midst, one that fp32's tanh takes for none at all, and the ends of
 * fp32. */
static void softcaps_of_every_size(edge *e) {
  const char *const caps[] = {"1e-40", "0.001", "30", "256", "257", "3e5", "1e30", "3.4e38"};
  const verify_case cases[] = {
      {.name = "edge", .kv_heads = 1, .length_count = 3, .lengths = {{0, 0, 1}, {1, 0, 5}, {0, 1, 9}}},
      {.name = "edge", .kv_heads = 1, .traits = TRAIT_ZERO_QUERY, .length_count = 1, .lengths = {{0, 0, 37}}},
  };
  for (size_t i = 0; i < sizeof caps / sizeof *caps && !e->failed; i++)
    for (int n = 0; n < 2; n++) {
      char yaml[400];
      snprintf(yaml, sizeof yaml,
               "heddle: 1\nname: capped\nkernels: [write, decode]\n"
               "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
               "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: [b, h, s, d]}\n"
               "logits: {softcap: %s}\noutput: {lse: true}\n",
               caps[i]);
      scene_plays(e, yaml, &cases[n], one_and_more);
    }
}

/* A sequence without tokens has its sink for an lse, also one beyond what a weight can be relative to. */
static void sinks_of_every_size(edge *e) {
  const float sinks[] = {-3, 1e4f, -1e4f, 1e10f, -1e10f, 3e36f, -3e36f, -2e38f, -INFINITY};
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 2, .lengths = {{0, 0, 0}, {0, 0, 21}}};
  scene s;
  if (scene_init(&s, e,
                 "heddle: 1\nname: sinks\nkernels: [write, decode]\n"
                 "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
                 "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: [b, h, s, d]}\n"
                 "mask: {sinks: per_head}\noutput: {lse: true}\n",
                 &from) &&
      scene_write(&s))
    for (size_t n = 0; n < sizeof sinks / sizeof *sinks && !e->failed; n++)
      for (int splits = 1; splits <= 3; splits += 2) {
        float *all = s.data.memory[TENSOR_SINKS];
        for (int i = 0; i < 4; i++)
          all[i] = sinks[n];
        if (!scene_decode(&s, splits)) break;
        for (int row = 0; row < 4; row++) {
          const double lse = scene_lse(&s, row), sink = (double)sinks[n];
          EXPECT(e, lse == sink || fabs(lse - sink) <= 1e-6 * fabs(sink), "a sink of %g gives an lse of %g",
                 sink, lse);
          EXPECT(e, scene_out(&s, row, 0) == 0.0, "row %d is %g", row, scene_out(&s, row, 0));
        }
      }
  scene_finish(&s);
}

const edge_test edges_of_logits[] = {
    {"sinks-of-every-size", sinks_of_every_size},
    {"softcaps-of-every-size", softcaps_of_every_size},
    {NULL, NULL},
};
