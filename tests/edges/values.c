/* What values may do: nothing that isn't visible counts, and what is visible counts as IEEE says. */
#include "edges.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char edge_shuffled[] =
    "heddle: 1\nname: shuffled\nkernels: [write, decode]\n"
    "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
    "kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"
    "scale: {granularity: token_head, k: [b, h, s], v: [h, b, s]}\n"
    "output: {lse: true}\n";
const char edge_plain[] = "heddle: 1\nname: plain\nkernels: [write, decode]\n"
                          "query: {dtype: bf16, heads_per_kv: 6}\nhead_dim: 64\n"
                          "kv: {dtype: bf16, page: 8, k: [b, s, h, d], v: [b, s, h, d]}\n"
                          "output: {lse: true}\n";
static const char *const both[] = {edge_shuffled, edge_plain};

/* Length 0: zeros, lse -inf, nothing read (its row of the table is garbage). */
static void length_zero(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 2, .length_count = 3, .lengths = {{0, 0, 0}, {0, 0, 5}, {0, 0, 0}}};
  for (int i = 0; i < 2; i++)
    for (int splits = 1; splits <= 3; splits += 2) {
      scene s;
      if (scene_init(&s, e, both[i], &from) && scene_write(&s) && scene_decode(&s, splits) &&
          scene_is_right(&s, "decode")) {
        int64_t rows = scene_rows(&s) / 3;
        for (int64_t row = 0; row < 3 * rows; row++) {
          if (row / rows == 1) continue;
          EXPECT(e, scene_lse(&s, row) == -(double)INFINITY, "lse of row %d is %g", (int)row,
                 scene_lse(&s, row));
          for (int64_t c = 0; c < 64; c++)
            EXPECT(e, scene_out(&s, row, c) == 0.0, "row %d is %g", (int)row, scene_out(&s, row, c));
        }
      }
      scene_finish(&s);
    }
}

/* Lists of blocks or tokens that name nothing: as length 0. */
static void empty_lists(edge *e) {
  static const char *const specs[] = {"heddle: 1\nname: blocks\nkernels: [write, decode]\nquery: {dtype: "
                                      "bf16, heads_per_kv: 4}\nhead_dim: 64\n"
                                      "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: [b, h, s, d]}\n"
                                      "select: {form: blocks, block: 16}\noutput: {lse: true}\n",
                                      "heddle: 1\nname: tokens\nkernels: [write, decode]\nquery: {dtype: "
                                      "bf16, heads_per_kv: 4}\nhead_dim: 64\n"
                                      "kv: {dtype: bf16, page: 1, k: [b, h, d], v: [b, h, d]}\n"
                                      "select: {form: tokens, per: row}\noutput: {lse: true}\n"};
  const tensor_name lists[] = {TENSOR_BLOCK_LIST, TENSOR_TOKEN_LIST};
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 3, .lengths = {{0, 0, 20}, {0, 0, 1}, {0, 1, 3}}};
  for (int i = 0; i < 2; i++)
    for (int splits = 1; splits <= 2; splits++) {
      scene s;
      if (scene_init(&s, e, specs[i], &from) && scene_write(&s)) {
        memset(s.data.memory[lists[i]], 0xff, tensor_bytes(&s.data.decode.by_name[lists[i]]));
        bool good = scene_decode(&s, splits);
        for (int64_t row = 0; good && row < scene_rows(&s); row++) {
          EXPECT(e, scene_lse(&s, row) == -(double)INFINITY, "lse of row %d is %g", (int)row,
                 scene_lse(&s, row));
          for (int64_t c = 0; c < 64; c++)
            EXPECT(e, scene_out(&s, row, c) == 0.0, "row %d is %g", (int)row, scene_out(&s, row, c));
        }
      }
      scene_finish(&s);
    }
}

/* Slots at and behind the length: any byte, any scale. */
static void slots_behind_the_length(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 2,
                            .traits = TRAIT_CLEAN,
                            .length_count = 3,
                            .lengths = {{0, 0, 1}, {1, 0, 3}, {0, 1, 7}}};
  const unsigned char bytes[] = {0x7f, 0xff, 0x80, 0x7c, 0x01};
  const double scales[] = {(double)NAN, (double)INFINITY, 1e30, -1.0, 1e-38};
  for (int n = 0; n < 4; n++) {
    const int splits = n % 2 + 1;
    scene s;
    if (scene_init(&s, e, both[n / 2], &from) && scene_write(&s) && scene_decode(&s, splits) &&
        scene_is_right(&s, "clean")) {
      void *kept = scene_keep(&s);
      for (int j = 0; j < 5 && !e->failed; j++) {
        scene_spoil(&s, bytes[j], scales[j]);
        if (scene_decode(&s, splits)) scene_same(&s, kept, "other bytes behind the length");
      }
      free(kept);
    }
    scene_finish(&s);
  }
}

/* A stale V scale of 1e30 beside visible ones of 1e-3: no maximum may be taken over it. */
static void huge_stale_scales(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .traits = TRAIT_CLEAN,
                            .length_count = 3,
                            .lengths = {{0, 0, 9}, {0, 1, -5}, {2, 0, 1}}};
  scene s;
  if (scene_init(&s, e, edge_shuffled, &from) && scene_write(&s)) {
    for (int64_t t = 0; t < s.data.live_tokens; t++)
      dtype_encode(DTYPE_FP32, 1e-3,
                   scene_at(&s, TENSOR_V_SCALE, s.data.slot[t] / 16, 0, s.data.slot[t] % 16, 0));
    for (int splits = 1; splits <= 2 && !e->failed; splits++) {
      scene_spoil(&s, 0, 0.0);
      void *kept = scene_decode(&s, splits) ? scene_keep(&s) : NULL;
      scene_spoil(&s, 0x77, 1e30);
      if (scene_decode(&s, splits)) {
        scene_same(&s, kept, "a huge stale scale");
        scene_is_right(&s, "a huge stale scale");
      }
      free(kept);
    }
  }
  scene_finish(&s);
}

static void put(scene *s, tensor_name name, int64_t token, int64_t channel, double value) {
  const tensor *t = &s->data.write.by_name[name];
  int64_t width = name == TENSOR_K ? s->contract.head_dim.qk : s->contract.head_dim.v;
  int64_t at = s->data.row[token] * s->data.sizes[DIM_KV_HEADS] * width + channel;
  dtype_encode(t->dtype, value, (char *)s->data.memory[name] + at * dtype_bytes(t->dtype));
}

/* NaN in k takes the sequence, NaN in v its channel; the other sequences see nothing of it. */
static void nan_in_a_visible_token(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .traits = TRAIT_NAN,
                            .length_count = 3,
                            .lengths = {{0, 0, 20}, {0, 1, 3}, {0, 0, 30}}};
  for (int n = 0; n < 4; n++) { /* what merges splits has to pass it on, and what doesn't */
    scene s;
    if (scene_init(&s, e, both[n / 2], &from) && scene_write(&s) && scene_decode(&s, n % 2 + 1) &&
        scene_is_right(&s, "decode"))
      for (int64_t row = 0; row < scene_rows(&s); row++)
        for (int64_t c = 0; c < 64; c++) {
          int64_t seq = row / s.contract.query.heads_per_kv;
          bool nan = seq == 0 || (seq == 1 && c == 5);
          double got = scene_out(&s, row, c);
          EXPECT(e, nan ? isnan(got) : isfinite(got), "row %d channel %d is %g", (int)row, (int)c, got);
        }
    scene_finish(&s);
  }
}

/* Infinity in v leaves its channel not finite and everything else as it was, to the bit. */
static void infinity_in_a_visible_token(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 3, .lengths = {{0, 0, 20}, {0, 1, 3}, {0, 0, 30}}};
  for (int splits = 1; splits <= 2; splits++) {
    scene s;
    if (scene_init(&s, e, edge_plain, &from) && scene_write(&s) && scene_decode(&s, splits) &&
        scene_is_right(&s, "decode")) {
      char *kept = scene_keep(&s), *out = s.data.memory[TENSOR_OUT];
      int64_t slot = s.data.slot[s.data.first_token[1] + 2];
      dtype_encode(DTYPE_BF16, (double)INFINITY, scene_at(&s, TENSOR_V_CACHE, slot / 8, 0, slot % 8, 7));
      bool good = scene_decode(&s, splits);
      for (int64_t row = 0; good && row < scene_rows(&s); row++)
        for (int64_t c = 0; c < 64; c++) {
          bool hit = row / s.contract.query.heads_per_kv == 1 && c == 7;
          bool same = memcmp(kept + 2 * (row * 64 + c), out + 2 * (row * 64 + c), 2) == 0;
          EXPECT(e, hit ? !isfinite(scene_out(&s, row, c)) : same, "row %d channel %d is %g", (int)row,
                 (int)c, scene_out(&s, row, c));
        }
      free(kept);
    }
    scene_finish(&s);
  }
}

/* All-zero query rows give the plain average of V and lse ln(n), masked or not, whatever the scales. */
static void zero_query(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 2,
                            .traits = TRAIT_ZERO_QUERY,
                            .length_count = 2,
                            .lengths = {{0, 1, 5}, {0, 0, 3}}};
  for (int n = 0; n < 4; n++) {
    const int i = n / 2;
    scene s;
    if (scene_init(&s, e, both[i], &from) && scene_write(&s) && scene_decode(&s, n % 2 + 1) &&
        scene_is_right(&s, "decode")) {
      const verify_data *d = &s.data;
      int64_t g = s.contract.query.heads_per_kv;
      for (int64_t row = 0; row < scene_rows(&s); row += 3) {
        int64_t seq = row / (2 * g), head = row % (2 * g) / g,
                length = d->first_token[seq + 1] - d->first_token[seq];
        EXPECT(e, fabs(scene_lse(&s, row) - log((double)length)) < 1e-4, "lse of row %d is %g", (int)row,
               scene_lse(&s, row));
        for (int64_t c = 0; c < 64; c++) {
          double sum = 0;
          for (int64_t t = d->first_token[seq]; t < d->first_token[seq + 1]; t++)
            sum += dtype_decode(DTYPE_BF16,
                                (const char *)d->memory[TENSOR_V] + 2 * ((d->row[t] * 2 + head) * 64 + c));
          double average = sum / (double)length, off = fabs(scene_out(&s, row, c) - average);
          /* fp8 keeps a value to a sixteenth of itself; values are below 5. */
          EXPECT(e, off <= (i == 0 ? 0.15 : 0.01), "row %d channel %d is %g, the average %g", (int)row,
                 (int)c, scene_out(&s, row, c), average);
        }
      }
    }
    scene_finish(&s);
  }
}

/* Queries far beyond what fp8 holds: the same logits from 1024 q and scale / 1024, bit for bit. */
static void queries_beyond_fp8(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 2, .lengths = {{0, 1, 5}, {0, 0, 33}}};
  for (int i = 0; i < 2; i++) {
    scene s;
    if (scene_init(&s, e, both[i], &from) && scene_write(&s) && scene_decode(&s, 1) &&
        scene_is_right(&s, "q")) {
      void *kept = scene_keep(&s);
      const tensor *q = &s.data.decode.by_name[TENSOR_Q];
      for (int64_t at = 0; at < tensor_elements(q); at++) {
        char *element = (char *)s.data.memory[TENSOR_Q] + 2 * at;
        dtype_encode(q->dtype, 1024 * dtype_decode(q->dtype, element), element);
      }
      s.scale /= 1024;
      if (scene_decode(&s, 1) && scene_is_right(&s, "1024 q")) scene_same(&s, kept, "1024 q");
      free(kept);
    }
    scene_finish(&s);
  }
}

/* Tiny negatives beside a large value round to zero, and not to the byte that is NaN in e4m3fnuz. */
static void tiny_negatives(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 2, .length_count = 2, .lengths = {{0, 0, 21}, {1, 0, 0}}};
  scene s;
  if (scene_init(&s, e, edge_shuffled, &from)) {
    for (int64_t t = 0; t < s.data.live_tokens; t++)
      for (int64_t c = 1; c < 128; c++) {
        put(&s, TENSOR_K, t, c, c == 64 ? 3.0 : -pow(2.0, -(double)(c % 60) - 8));
        put(&s, TENSOR_V, t, c, c == 64 ? 3.0 : -pow(2.0, -(double)(c % 60) - 8));
      }
    if (scene_write(&s)) {
      for (int64_t t = 0; t < s.data.live_tokens; t++)
        for (int64_t c = 0; c < 128; c++) {
          const unsigned char *at =
              scene_at(&s, TENSOR_K_CACHE, s.data.slot[t] / 16, c / 64, s.data.slot[t] % 16, c % 64);
          EXPECT(e, !isnan(dtype_decode(s.contract.kv.k_dtype, at)), "a tiny negative became NaN (0x%02x)",
                 *at);
        }
      if (scene_decode(&s, 1)) scene_is_right(&s, "decode");
    }
  }
  scene_finish(&s);
}

/* V scales down to denormals: results that fp32 and bf16 hold as normal numbers, though a weight times its
 * scale isn't one. */
static void tiny_scales(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 2, .lengths = {{0, 0, 9}, {0, 1, 5}}};
  const double scales[] = {1e-33, 1e-36, 1e-38};
  for (int n = 0; n < 3; n++) {
    scene s;
    if (scene_init(&s, e, edge_shuffled, &from) && scene_write(&s)) {
      for (int64_t t = 0; t < s.data.live_tokens; t++)
        dtype_encode(DTYPE_FP32, scales[n],
                     scene_at(&s, TENSOR_V_SCALE, s.data.slot[t] / 16, 0, s.data.slot[t] % 16, 0));
      for (int splits = 1; splits <= 2; splits++)
        if (scene_decode(&s, splits)) scene_is_right(&s, n == 2 ? "a denormal scale" : "a tiny scale");
    }
    scene_finish(&s);
  }
}

const edge_test edges_of_values[] = {
    {"length-zero", length_zero},
    {"empty-lists", empty_lists},
    {"slots-behind-the-length", slots_behind_the_length},
    {"huge-stale-scales", huge_stale_scales},
    {"tiny-scales", tiny_scales},
    {"nan-in-a-visible-token", nan_in_a_visible_token},
    {"infinity-in-a-visible-token", infinity_in_a_visible_token},
    {"zero-query", zero_query},
    {"queries-beyond-fp8", queries_beyond_fp8},
    {"tiny-negatives", tiny_negatives},
    {NULL, NULL},
};
