/* What is done to logits before they are weights. */
#include "edges.h"
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

const edge_test edges_of_logits[] = {
    {"softcaps-of-every-size", softcaps_of_every_size},
    {NULL, NULL},
};
