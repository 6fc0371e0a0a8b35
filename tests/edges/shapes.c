/* Lengths, heads, pages and windows where something ends. */
#include "edges.h"
#include "../../generator/emit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int one_and_more[] = {1, 2, 3, 0};

/* Every length from 241 to 255, and 1 below, at and above a page, a tile and where three splits meet. */
static void lengths_around_boundaries(edge *e) {
  const char *const specs[] = {edge_shuffled, edge_plain};
  for (int i = 0; i < 2; i++) {
    const verify_case long_ones = {.name = "edge",
                                   .kv_heads = 1,
                                   .length_count = 15,
                                   .lengths = {{0, 0, 241},
                                               {0, 0, 242},
                                               {0, 0, 243},
                                               {0, 0, 244},
                                               {0, 0, 245},
                                               {0, 0, 246},
                                               {0, 0, 247},
                                               {0, 0, 248},
                                               {0, 0, 249},
                                               {0, 0, 250},
                                               {0, 0, 251},
                                               {0, 0, 252},
                                               {0, 0, 253},
                                               {0, 0, 254},
                                               {0, 0, 255}}};
    const verify_case edges = {.name = "edge",
                               .kv_heads = 1,
                               .length_count = 15,
                               .lengths = {{1, 0, -1},
                                           {1, 0, 0},
                                           {1, 0, 1},
                                           {2, 0, -1},
                                           {2, 0, 1},
                                           {0, 1, -1},
                                           {0, 1, 0},
                                           {0, 1, 1},
                                           {0, 2, -1},
                                           {0, 2, 0},
                                           {0, 2, 1},
                                           {0, 3, -1},
                                           {0, 3, 0},
                                           {0, 3, 1},
                                           {0, 0, 1}}};
    if (!scene_plays(e, specs[i], &long_ones, one_and_more)) return;
    if (!scene_plays(e, specs[i], &edges, one_and_more)) return;
  }
}

/* Splits that see no token: more of them than tokens. */
static void empty_splits(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 2,
                            .length_count = 4,
                            .lengths = {{0, 0, 1}, {0, 0, 0}, {0, 0, 17}, {0, 1, 1}}};
  const int splits[] = {2, 7, 16, 64, 0};
  scene_plays(e, edge_shuffled, &from, splits);
  scene_plays(e, edge_plain, &from, splits);
}

/* Splits whose tokens all lie before the window. */
static void masked_splits(edge *e) {
  static const char spec_text[] = "heddle: 1\nname: window\nkernels: [write, decode]\n"
                                  "query: {dtype: bf16, heads_per_kv: 4, rows: 2}\nhead_dim: 64\n"
                                  "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: [b, h, s, d]}\n"
                                  "mask: {window: 5}\noutput: {lse: true}\n";
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .length_count = 4,
                            .lengths = {{0, 5, 3}, {0, 0, 0}, {0, 3, 1}, {0, 0, 4}}};
  const int splits[] = {1, 4, 9, 0};
  scene_plays(e, spec_text, &from, splits);
}

/* Tokens that every row's window has left behind, and the table entries of whole pages of them: any bytes,
 * any value. Engines free such pages. */
static void before_the_window(edge *e) {
  static const char *const v_layouts[] = {"[b, h, s, d]", "[b, h, d, s]"};
  enum { PAGE = 8, ROWS = 2, WINDOW = 5, SEQS = 4 };
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .traits = TRAIT_CLEAN,
                            .length_count = SEQS,
                            .lengths = {{0, 5, 3}, {0, 2, 0}, {0, 3, 1}, {0, 0, 14}}};
  for (int n = 0; n < 4; n++) {
    const int splits = n % 2 ? 3 : 1;
    char yaml[512];
    scene s;
    snprintf(yaml, sizeof yaml,
             "heddle: 1\nname: window\nkernels: [write, decode]\n"
             "query: {dtype: bf16, heads_per_kv: 4, rows: 2}\nhead_dim: 64\n"
             "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: %s}\n"
             "mask: {window: 5}\noutput: {lse: true}\n",
             v_layouts[n / 2]);
    if (scene_init(&s, e, yaml, &from) && scene_write(&s) && scene_decode(&s, splits) &&
        scene_is_right(&s, "clean")) {
      const verify_data *d = &s.data;
      void *kept = scene_keep(&s);
      int32_t *table = d->memory[TENSOR_PAGE_TABLE];
      for (int64_t seq = 0; seq < SEQS; seq++) {
        int64_t length = d->first_token[seq + 1] - d->first_token[seq], left = length - ROWS + 1 - WINDOW;
        for (int64_t t = 0; t < left; t++) {
          int64_t slot = d->slot[d->first_token[seq] + t];
          for (int64_t c = 0; c < 64; c++) {
            memset(scene_at(&s, TENSOR_K_CACHE, slot / PAGE, 0, slot % PAGE, c), 0xff, 2);
            memset(scene_at(&s, TENSOR_V_CACHE, slot / PAGE, 0, slot % PAGE, c), 0xff, 2);
          }
        }
        for (int64_t p = 0; p < left / PAGE; p++)
          table[seq * d->sizes[DIM_TABLE_PAGES] + p] = p % 2 ? INT32_MAX : -1;
      }
      if (scene_decode(&s, splits)) scene_same(&s, kept, "other bytes and pages before the window");
      free(kept);
    }
    scene_finish(&s);
  }
}

/* More rows than tokens: those that see nothing give 0, or with sinks the sink alone. */
static void empty_windows(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .length_count = 5,
                            .lengths = {{0, 0, 1}, {0, 0, 2}, {0, 0, 4}, {0, 0, 9}, {0, 0, 0}}};
  for (int sinks = 0; sinks < 2; sinks++)
    for (int splits = 1; splits <= 2; splits++) {
      char yaml[512];
      scene s;
      snprintf(yaml, sizeof yaml,
               "heddle: 1\nname: rows\nkernels: [write, decode]\nquery: {dtype: bf16, heads_per_kv: 2, rows: "
               "4}\nhead_dim: 64\n"
               "kv: {dtype: bf16, page: 8, k: [b, h, s, d], v: [b, h, s, d]}\n"
               "mask: {window: 2, sinks: %s}\noutput: {lse: true}\n",
               sinks ? "per_head" : "none");
      if (scene_init(&s, e, yaml, &from) && scene_write(&s) && scene_decode(&s, splits) &&
          scene_is_right(&s, "decode"))
        for (int64_t row = 0; row < scene_rows(&s); row++) {
          int64_t seq = row / 8, i = row % 8 / 2, head = row % 2;
          int64_t seen = s.data.first_token[seq + 1] - s.data.first_token[seq] - 4 + i + 1;
          if (seen > 0) continue;
          double lse = sinks ? (double)((const float *)s.data.memory[TENSOR_SINKS])[head] : -(double)INFINITY;
          EXPECT(e, lse == scene_lse(&s, row) || fabs(lse - scene_lse(&s, row)) < 1e-6,
                 "lse of row %d is %g, not %g", (int)row, scene_lse(&s, row), lse);
          for (int64_t c = 0; c < 64; c++)
            EXPECT(e, scene_out(&s, row, c) == 0.0, "row %d is %g", (int)row, scene_out(&s, row, c));
        }
      scene_finish(&s);
    }
}

/* A spec of these heads and this page is right; or declined, by a code, before anything is compiled. */
static void right_or_declined(edge *e, const char *yaml, const char *what, const char *code) {
  const verify_case from = {
      .name = "edge", .kv_heads = 2, .length_count = 3, .lengths = {{1, 0, 1}, {0, 1, -1}, {0, 0, 3}}};
  const int splits[] = {2, 0};
  spec parsed;
  diags d;
  diags_init(&d);
  hd_status status = spec_parse(yaml, strlen(yaml), &parsed, &d);
  if (status == HD_OK) {
    contract c = contract_resolve(&parsed.contract, e->session->target->fp8);
    status = emit_check(&c, OPERATION_DECODE, &e->variant, e->session->target, &d);
    spec_finish(&parsed);
  }
  if (code)
    EXPECT(e, status == HD_DECLINED && d.count && strcmp(d.items[0].code, code) == 0,
           "%s: expected %s, found %s", what, code, d.count ? d.items[0].code : "nothing");
  else if (EXPECT(e, status == HD_OK, "%s: %s", what, d.count ? d.items[0].message : "declined"))
    scene_plays(e, yaml, &from, splits);
  if (e->failed && !strstr(e->problem, what)) {
    char problem[sizeof e->problem];
    memcpy(problem, e->problem, sizeof problem);
    snprintf(e->problem, sizeof e->problem, "%s: %.300s", what, problem);
  }
  diags_finish(&d);
}

/* Dimensions that no matrix instruction's k divides, K's and V's different, one past what is served. */
static void head_dims(edge *e) {
  static const struct {
    int qk, v;
    const char *k_layout, *code;
  } dims[] = {{96, 96, "[b, h, d/16, s, d%16]", NULL},
              {112, 80, "[b, h, s, d]", NULL},
              {192, 128, "[b, h, d/16, s, d%16]", NULL},
              {72, 104, "[b, s, h, d]", NULL},
              {128, 192, "[b, s, h, d]", NULL},
              {320, 64, "[b, h, s, d]", NULL},
              {1024, 64, "[b, h, s, d]", "decline.head-dim"}};
  for (size_t i = 0; i < sizeof dims / sizeof dims[0] && !e->failed; i++) {
    char yaml[512], what[64];
    snprintf(what, sizeof what, "head_dim %d/%d", dims[i].qk, dims[i].v);
    snprintf(yaml, sizeof yaml,
             "heddle: 1\nname: dims\nkernels: [write, decode]\nquery: {dtype: bf16, heads_per_kv: 4}\n"
             "head_dim: {qk: %d, v: %d}\nkv: {dtype: fp8_e4m3, page: 16, k: %s, v: [b, s, h, d]}\n"
             "scale: {granularity: token_head}\noutput: {lse: true}\n",
             dims[i].qk, dims[i].v, dims[i].k_layout);
    right_or_declined(e, yaml, what, dims[i].code);
  }
}

/* Pages that are no power of two, groups of 6, 7 and 10, and pages smaller than a 16-byte chunk. */
static void odd_pages_and_groups(edge *e) {
  static const struct {
    int page, heads;
    const char *v_layout, *code;
  } shapes[] = {{32, 6, "[b, h, s/16, d, s%16]", NULL},
                {64, 7, "[b, h, s/16, d, s%16]", NULL},
                {544, 10, "[b, h, s/16, d, s%16]", NULL},
                {1056, 6, "[b, h, s/16, d, s%16]", NULL},
                {4, 7, "[b, h, d, s]", NULL},
                {8, 6, "[b, h, s/16, d, s%16]", "spec.layout"}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !e->failed; i++) {
    char yaml[512], what[64];
    snprintf(what, sizeof what, "page %d, %d heads", shapes[i].page, shapes[i].heads);
    snprintf(yaml, sizeof yaml,
             "heddle: 1\nname: pages\nkernels: [write, decode]\nquery: {dtype: bf16, heads_per_kv: "
             "%d}\nhead_dim: 64\n"
             "kv: {dtype: fp8_e4m3, page: %d, k: [b, h, d/16, s, d%%16], v: %s}\nscale: {granularity: "
             "token_head}\n",
             shapes[i].heads, shapes[i].page, shapes[i].v_layout);
    right_or_declined(e, yaml, what, shapes[i].code);
  }
}

const edge_test edges_of_shapes[] = {
    {"lengths-around-boundaries", lengths_around_boundaries},
    {"empty-splits", empty_splits},
    {"masked-splits", masked_splits},
    {"before-the-window", before_the_window},
    {"empty-windows", empty_windows},
    {"head-dims", head_dims},
    {"odd-pages-and-groups", odd_pages_and_groups},
    {NULL, NULL},
};
