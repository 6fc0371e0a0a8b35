/* Claims about the kernel that makes page lists of block and token lists: entry for entry what
 * docs/spec.md says, on every emulated target, whatever the caller lists. The lists are read back from the
 * workspace; that decode then computes the right attention over them is verify's to say. */
#include "../../runtime/verify/oracle.h"
#include "../../runtime/session.h"
#include "../../runtime/verify/verify_data.h"
#include "../example_contract.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { PAGE = 16, BLOCK = 64, BLOCK_PAGES = BLOCK / PAGE, MAX_LISTED = 2600 };

static const char *const targets[] = {EMULATED_TARGETS};
enum { TARGETS = sizeof targets / sizeof *targets };

/* One call: sizes, the caller's tensors, and the lists as the device made them. */
typedef struct selection {
  contract contract;
  int64_t dims[DIM_COUNT];
  int32_t *lengths, *table, *blocks, *map;
  int64_t *tokens; /* select.index is int64 where they are used */
  void *lists;
} selection;

static contract blocks_contract(int rows, select_per per) {
  contract c = example_contract(PAGE, 32, 32);
  c.query.rows = rows;
  c.select.form = SELECT_BLOCKS;
  c.select.block = BLOCK;
  c.select.per = per;
  return c;
}

static int64_t lists_of(const selection *s) {
  return s->dims[DIM_SEQS] * s->dims[DIM_ROWS] * s->dims[DIM_KV_HEADS];
}

static void *allocated(int64_t count, size_t size) {
  void *memory = calloc((size_t)count + 1, size);
  cr_assert_not_null(memory);
  return memory;
}

static selection selection_of(contract c, int64_t seqs, int64_t rows, int64_t heads, int64_t listed,
                              int64_t table_pages) {
  selection s = {.contract = c};
  s.dims[DIM_SEQS] = s.dims[DIM_TABLE_ROWS] = seqs;
  s.dims[DIM_ROWS] = rows;
  s.dims[DIM_KV_HEADS] = heads;
  s.dims[DIM_LISTED] = listed;
  s.dims[DIM_LIST_WIDTH] = 1 + listed * (c.select.form == SELECT_BLOCKS ? BLOCK_PAGES : 1);
  s.dims[DIM_TABLE_PAGES] = table_pages;
  s.dims[DIM_SPLITS] = 1;
  s.dims[DIM_LISTED_STRIDE_ROW] = listed;
  s.dims[DIM_LISTED_STRIDE_H] = seqs * rows * listed;
  s.lengths = allocated(seqs, sizeof *s.lengths);
  s.map = allocated(seqs, sizeof *s.map);
  s.table = allocated(seqs * table_pages, sizeof *s.table);
  s.blocks = allocated(lists_of(&s) * listed, sizeof *s.blocks);
  s.tokens = allocated(lists_of(&s) * listed, sizeof *s.tokens);
  s.lists = allocated(lists_of(&s) * s.dims[DIM_LIST_WIDTH], 8);
  for (int64_t i = 0; i < seqs * table_pages; i++)
    s.table[i] = (int32_t)(100000 + 7 * i);
  for (int64_t i = 0; i < seqs; i++)
    s.map[i] = (int32_t)i;
  return s;
}

static void selection_finish(selection *s) {
  free(s->lengths);
  free(s->map);
  free(s->table);
  free(s->blocks);
  free(s->tokens);
  free(s->lists);
}

/* ---- on a device ---- */

static void must(hd_status status, const diags *d) {
  cr_assert_eq(status, HD_OK, "%s", d->count ? d->items[0].message : "");
}

static void put_on_device(session *s, tensors *t, tensor_name name, const void *from, int64_t bytes,
                          diags *d) {
  t->present[name] = true;
  must(s->device->vtable->allocate(s->device, (size_t)bytes + 1, &t->by_name[name].data, d), d);
  if (bytes > 0)
    must(s->device->vtable->copy_in(s->device, NULL, t->by_name[name].data, from, (size_t)bytes, d), d);
}

/* Launches the first kernel of the decode alone, and brings the lists back. */
static void launch(session *s, session_kernel *k, selection *x, diags *d) {
  tensors t = {0};
  int64_t listed = lists_of(x) * x->dims[DIM_LISTED];
  int64_t lists = descriptor_lists_bytes(k->descriptor, x->dims);
  put_on_device(s, &t, TENSOR_LENGTHS, x->lengths, x->dims[DIM_SEQS] * 4, d);
  put_on_device(s, &t, TENSOR_ROW_SEQUENCES, x->map, x->dims[DIM_SEQS] * 4, d);
  put_on_device(s, &t, TENSOR_PAGE_TABLE, x->table, x->dims[DIM_TABLE_ROWS] * x->dims[DIM_TABLE_PAGES] * 4,
                d);
  put_on_device(s, &t, TENSOR_BLOCK_LIST, x->blocks, listed * 4, d);
  put_on_device(s, &t, TENSOR_TOKEN_LIST, x->tokens, listed * 8, d);
  t.present[TENSOR_WORKSPACE] = true;
  must(s->device->vtable->allocate(s->device, (size_t)lists, &t.by_name[TENSOR_WORKSPACE].data, d), d);
  must(s->device->vtable->fill(s->device, NULL, t.by_name[TENSOR_WORKSPACE].data, 0xff, (size_t)lists, d), d);
  descriptor first = *k->descriptor;
  cr_assert_str_eq(first.kernels[0].symbol, "heddle_select");
  first.kernel_count = 1;
  must(launch_operation(s->device, NULL, &first, k->functions, &t, x->dims, 1.0f, d), d);
  size_t bytes = (size_t)extent_value(&first.lists, x->dims);
  must(s->device->vtable->copy_out(s->device, NULL, x->lists, t.by_name[TENSOR_WORKSPACE].data, bytes, d), d);
  session_release(s, &t);
}

/* ---- what is expected ---- */

static int64_t visible_of(const selection *s, int64_t row) {
  int64_t rows = s->dims[DIM_ROWS], length = s->lengths[row / rows];
  return s->contract.mask.causal ? length - rows + row % rows + 1 : length;
}

/* From the words of docs/spec.md: which blocks, in which order, then their pages. */
static int64_t expected_blocks(const selection *s, int64_t row, int64_t head, int64_t *pages) {
  static int64_t kept[MAX_LISTED];
  int64_t visible = visible_of(s, row), count = 0, tokens = 0, place = 0;
  int64_t blocks = visible > 0 ? (visible + BLOCK - 1) / BLOCK : 0, last_listed = 0;
  const int32_t *list =
      s->blocks + head * s->dims[DIM_LISTED_STRIDE_H] + row * s->dims[DIM_LISTED_STRIDE_ROW];
  const int32_t *table = s->table + s->map[row / s->dims[DIM_ROWS]] * s->dims[DIM_TABLE_PAGES];
  for (int64_t i = 0; i < s->dims[DIM_LISTED]; i++) {
    bool before = false;
    for (int64_t j = 0; j < count; j++)
      before |= kept[j] == list[i];
    if (list[i] < 0 || list[i] >= blocks || before) continue;
    if (list[i] == blocks - 1)
      last_listed = 1;
    else
      kept[count++] = list[i];
  }
  if (last_listed) kept[count++] = blocks - 1;
  memset(pages, 0, (size_t)(s->dims[DIM_LIST_WIDTH] - 1) * sizeof *pages);
  for (int64_t i = 0; i < count; i++)
    for (int64_t token = kept[i] * BLOCK; token < (kept[i] + 1) * BLOCK && token < visible; token++) {
      tokens++;
      if (token % PAGE == 0) pages[place++] = table[token / PAGE];
    }
  return tokens;
}

static int64_t expected_tokens(const selection *s, int64_t row, int64_t head, int64_t *pages) {
  int64_t count = 0;
  const int64_t *list =
      s->tokens + head * s->dims[DIM_LISTED_STRIDE_H] + row * s->dims[DIM_LISTED_STRIDE_ROW];
  memset(pages, 0, (size_t)(s->dims[DIM_LIST_WIDTH] - 1) * sizeof *pages);
  for (int64_t i = 0; i < s->dims[DIM_LISTED]; i++)
    if (list[i] >= 0) pages[count++] = list[i];
  return count;
}

static int64_t entry_of(const selection *s, int64_t list, int64_t i) {
  int64_t at = list * s->dims[DIM_LIST_WIDTH] + i;
  return s->contract.select.index == DTYPE_INT64 ? ((int64_t *)s->lists)[at] : ((int32_t *)s->lists)[at];
}

static void check_lists(const selection *s, const char *what) {
  static int64_t pages[MAX_LISTED * BLOCK_PAGES];
  bool blocks = s->contract.select.form == SELECT_BLOCKS;
  bool by_head = blocks || s->contract.select.per == PER_KV_HEAD;
  int64_t heads = by_head ? s->dims[DIM_KV_HEADS] : 1;
  for (int64_t row = 0; row < s->dims[DIM_SEQS] * s->dims[DIM_ROWS]; row++)
    for (int64_t head = 0; head < heads; head++) {
      int64_t list = row * heads + head;
      int64_t tokens = (blocks ? expected_blocks : expected_tokens)(s, row, head, pages);
      cr_assert_eq(entry_of(s, list, 0), tokens, "%s: row %d head %d has %d tokens, expected %d", what,
                   (int)row, (int)head, (int)entry_of(s, list, 0), (int)tokens);
      for (int64_t i = 0; i + 1 < s->dims[DIM_LIST_WIDTH]; i++)
        cr_assert_eq(entry_of(s, list, i + 1), pages[i], "%s: row %d head %d place %d is %d, expected %d",
                     what, (int)row, (int)head, (int)i, (int)entry_of(s, list, i + 1), (int)pages[i]);
    }
}

/* Fills the selection and checks what the device makes of it, on every target. */
typedef void (*filler)(selection *s, random_state *state);

static void on_every_target(const contract *c, const int64_t (*sizes)[5], int count, filler fill) {
  const variant v = {0};
  for (int i = 0; i < TARGETS; i++) {
    session s;
    session_kernel k;
    diags d;
    char name[32];
    random_state state = {1};
    diags_init(&d);
    snprintf(name, sizeof name, "emu:%s", targets[i]);
    must(session_open(name, COMPILER_LLVM, NULL, &s, &d), &d);
    must(session_load(&s, c, "select", OPERATION_DECODE, &v, &k, &d), &d);
    for (int n = 0; n < count; n++) {
      selection x = selection_of(*c, sizes[n][0], sizes[n][1], sizes[n][2], sizes[n][3], sizes[n][4]);
      fill(&x, &state);
      launch(&s, &k, &x, &d);
      check_lists(&x, targets[i]);
      selection_finish(&x);
    }
    session_unload(&s, &k);
    session_close(&s);
    diags_finish(&d);
  }
}

/* ---- blocks ---- */

/* Lists of five, for a sequence of blocks 0, 1, 2 and part of 3 at most. */
static const int32_t edges[][5] = {
    {-1, -1, -1, -1, -1}, {0, -1, -1, -1, -1}, {-1, -1, -1, -1, 0}, {3, -1, -1, -1, -1},
    {-1, 3, 0, -1, 1},    {2, 1, 0, -1, -1},   {3, 2, 1, 0, -1},    {1, 1, 1, 1, 1},
    {3, 3, 3, 3, 3},      {0, 3, 0, 3, 0},     {4, 5, 99, 2, 1},    {INT_MAX, INT_MIN, 4, 0, 1},
    {0, 1, 2, 3, 4},      {-1, 0, -1, 0, -1},  {2, 3, 2, 1, 3},
};
enum { EDGES = sizeof edges / sizeof *edges };
static const int32_t edge_lengths[] = {
    0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, 3 * BLOCK, 3 * BLOCK + 1, 3 * BLOCK + PAGE, 4 * BLOCK};
enum { EDGE_LENGTHS = sizeof edge_lengths / sizeof *edge_lengths };

static void fill_edges(selection *s, random_state *state) {
  (void)state;
  for (int64_t i = 0; i < s->dims[DIM_SEQS]; i++)
    s->lengths[i] = edge_lengths[i % EDGE_LENGTHS];
  for (int64_t list = 0; list < lists_of(s); list++)
    memcpy(s->blocks + 5 * list, edges[(list + list / EDGE_LENGTHS) % EDGES], sizeof edges[0]);
}

Test(select, edges_of_block_lists_for_every_row_and_head) {
  contract c = blocks_contract(4, PER_SEQUENCE);
  static const int64_t sizes[][5] = {
      {10, 1, 15, 5, 16}, {10, 2, 8, 5, 16}, {10, 3, 1, 5, 16}, {10, 4, 5, 5, 16}};
  on_every_target(&c, sizes, 4, fill_edges);
}

/* Page ids past the last live page, and tables that end with the last page, not the last block. */
static void fill_garbage(selection *s, random_state *state) {
  (void)state;
  s->lengths[0] = 2 * BLOCK + 1;
  s->lengths[1] = BLOCK + PAGE + 3;
  s->lengths[2] = 1;
  for (int64_t i = 0; i < s->dims[DIM_SEQS]; i++)
    for (int64_t p = (s->lengths[i] + PAGE - 1) / PAGE; p < s->dims[DIM_TABLE_PAGES]; p++)
      s->table[i * s->dims[DIM_TABLE_PAGES] + p] = INT_MIN;
  for (int64_t i = 0; i < lists_of(s) * 3; i++)
    s->blocks[i] = (int32_t)(2 - i % 3);
}

Test(select, pages_that_no_row_sees_are_not_listed) {
  contract c = blocks_contract(1, PER_SEQUENCE);
  static const int64_t sizes[][5] = {{3, 1, 2, 3, 9}};
  on_every_target(&c, sizes, 1, fill_garbage);
}

static void fill_without_mask(selection *s, random_state *state) {
  (void)state;
  for (int64_t i = 0; i < s->dims[DIM_SEQS]; i++)
    s->lengths[i] = edge_lengths[i];
  for (int64_t list = 0; list < lists_of(s); list++)
    memcpy(s->blocks + 5 * list, edges[list % EDGES], sizeof edges[0]);
}

Test(select, without_a_causal_mask_every_row_sees_the_whole_sequence) {
  contract c = blocks_contract(3, PER_SEQUENCE);
  c.mask.causal = false;
  static const int64_t sizes[][5] = {{10, 3, 2, 5, 16}};
  on_every_target(&c, sizes, 1, fill_without_mask);
}

/* Prefill: tokens of three prompts, each a row with its position + 1 as length and its prompt's table. */
static void fill_prefill(selection *s, random_state *state) {
  int64_t row = 0, prompts[] = {70, 3, 64};
  for (int prompt = 0; prompt < 3; prompt++)
    for (int64_t p = 0; p < prompts[prompt]; p++, row++) {
      s->lengths[row] = (int32_t)(p + 1);
      s->map[row] = prompt;
    }
  s->lengths[row] = 0; /* a row that only fills up the batch */
  s->map[row] = -1;
  cr_assert_eq(row + 1, s->dims[DIM_SEQS]);
  for (int64_t i = 0; i < lists_of(s) * s->dims[DIM_LISTED]; i++)
    s->blocks[i] = random_below(state, 5) - 1;
}

Test(select, tokens_of_a_prefill_share_rows_of_the_table) {
  contract c = blocks_contract(1, PER_ROW);
  static const int64_t sizes[][5] = {{138, 1, 2, 4, 8}};
  on_every_target(&c, sizes, 1, fill_prefill);
}

/* Longer than a workgroup, drawn from few and from many. */
static void fill_long(selection *s, random_state *state) {
  for (int64_t i = 0; i < s->dims[DIM_SEQS]; i++)
    s->lengths[i] = (int32_t)(s->dims[DIM_TABLE_PAGES] * PAGE - i * 37);
  int blocks = (int)s->dims[DIM_TABLE_PAGES] / BLOCK_PAGES;
  for (int64_t i = 0; i < lists_of(s) * s->dims[DIM_LISTED]; i++)
    s->blocks[i] = random_below(state, i % 2 ? blocks + 3 : 40) - 2;
}

Test(select, lists_may_be_longer_than_a_workgroup) {
  contract c = blocks_contract(1, PER_SEQUENCE);
  static const int64_t sizes[][5] = {{2, 1, 1, 700, 3200}, {1, 1, 2, 256, 800}, {1, 1, 1, 257, 800}};
  on_every_target(&c, sizes, 3, fill_long);
}

static void fill_nothing(selection *s, random_state *state) {
  (void)state;
  for (int64_t i = 0; i < s->dims[DIM_SEQS]; i++)
    s->lengths[i] = 100;
}

Test(select, lists_of_no_entries_are_empty_lists) {
  contract c = blocks_contract(1, PER_SEQUENCE);
  static const int64_t sizes[][5] = {{2, 1, 2, 0, 8}};
  on_every_target(&c, sizes, 1, fill_nothing);
}

/* ---- graphs ---- */

/* Relative RMS of what the device gives for `out` against the oracle on the same host tensors. */
static double error_of(session *s, const verify_data *data, const tensors *on_device,
                       const int64_t dims[DIM_COUNT], diags *d) {
  const tensor *out = &data->decode.by_name[TENSOR_OUT];
  int64_t count = tensor_elements(out);
  double *wanted = allocated(count, sizeof *wanted), error = 0, norm = 0;
  must(oracle_decode(data->contract, &data->decode, dims, 0.125, wanted, NULL, d), d);
  must(session_download(s, on_device, &data->decode, TENSOR_OUT, d), d);
  for (int64_t i = 0; i < count; i++) {
    double got = get(out->dtype, data->memory[TENSOR_OUT], i);
    error += (got - wanted[i]) * (got - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  free(wanted);
  cr_assert_gt(norm, 0);
  return sqrt(error / norm);
}

/* What the next call brings: other lists and shorter sequences, at the same addresses. */
static void change(session *s, verify_data *data, const tensors *on_device, diags *d) {
  int32_t *lengths = data->memory[TENSOR_LENGTHS], *list = data->memory[TENSOR_BLOCK_LIST];
  for (int64_t i = 0; i < data->sizes[DIM_SEQS]; i++)
    lengths[i] = lengths[i] * 2 / 3;
  int64_t listed = tensor_elements(&data->decode.by_name[TENSOR_BLOCK_LIST]);
  for (int64_t i = 0; i < listed; i++)
    list[i] = (int32_t)((i * 5 + 3) % 7) - 1;
  const tensor_name names[] = {TENSOR_LENGTHS, TENSOR_BLOCK_LIST};
  for (int i = 0; i < 2; i++)
    must(s->device->vtable->copy_in(s->device, NULL, on_device->by_name[names[i]].data,
                                    data->memory[names[i]], tensor_bytes(&data->decode.by_name[names[i]]), d),
         d);
}

Test(select, a_captured_decode_holds_for_other_lists_and_lengths) {
  const verify_case from = {
      .name = "graph", .kv_heads = 2, .length_count = 3, .lengths = {{0, 0, 200}, {0, 0, 333}, {0, 0, 90}}};
  contract c = blocks_contract(2, PER_SEQUENCE);
  for (int i = 0; i < TARGETS; i++) {
    session s;
    session_kernel k;
    verify_data data;
    tensors t;
    diags d;
    char name[32];
    int64_t dims[DIM_COUNT];
    random_state r = {77};
    device_stream *stream;
    device_graph *graph;
    diags_init(&d);
    snprintf(name, sizeof name, "emu:%s", targets[i]);
    must(session_open(name, COMPILER_LLVM, NULL, &s, &d), &d);
    must(session_load(&s, &c, "graph", OPERATION_DECODE, &(variant){0}, &k, &d), &d);
    must(verify_data_init(&data, &c, &from, 64, &r, &d), &d);
    must(bind_dims(&c, OPERATION_WRITE, &data.write, dims, &d), &d);
    must(oracle_write(&c, &data.write, dims, &d), &d);
    must(bind_dims(&c, OPERATION_DECODE, &data.decode, dims, &d), &d);
    dims[DIM_SPLITS] = 2;
    must(session_upload(&s, &c, OPERATION_DECODE, &data.decode, &t, &d), &d);
    t.present[TENSOR_WORKSPACE] = true;
    size_t bytes = (size_t)descriptor_workspace_bytes(k.descriptor, dims);
    must(s.device->vtable->allocate(s.device, bytes, &t.by_name[TENSOR_WORKSPACE].data, &d), &d);
    must(s.device->vtable->stream_create(s.device, &stream, &d), &d);
    must(s.device->vtable->capture_begin(s.device, stream, &d), &d);
    must(launch_operation(s.device, stream, k.descriptor, k.functions, &t, dims, 0.125f, &d), &d);
    must(s.device->vtable->capture_end(s.device, stream, &graph, &d), &d);
    for (int replay = 0; replay < 3; replay++) {
      must(s.device->vtable->graph_launch(s.device, graph, stream, &d), &d);
      must(s.device->vtable->synchronize(s.device, stream, &d), &d);
      double error = error_of(&s, &data, &t, dims, &d);
      cr_assert_lt(error, 2.5e-3, "%s, replay %d: %g", targets[i], replay, error);
      change(&s, &data, &t, &d);
    }
    s.device->vtable->graph_destroy(s.device, graph);
    s.device->vtable->stream_destroy(s.device, stream);
    session_release(&s, &t);
    verify_data_finish(&data);
    session_unload(&s, &k);
    session_close(&s);
    diags_finish(&d);
  }
}

/* ---- tokens ---- */

static contract tokens_contract(select_per per) {
  contract c = example_contract(1, 32, 32);
  c.kv.k = c.kv.v = example_layout("b h d", 1, 32);
  c.select.form = SELECT_TOKENS;
  c.select.per = per;
  c.select.index = DTYPE_INT64;
  return c;
}

static void fill_tokens(selection *s, random_state *state) {
  int64_t listed = s->dims[DIM_LISTED];
  for (int64_t list = 0; list < lists_of(s); list++)
    for (int64_t i = 0; i < listed; i++) {
      int64_t any = ((int64_t)random_below(state, 1 << 20) << 20) + random_below(state, 50);
      bool padding = list % 4 == 0 || (list % 4 == 1 && i + 1 < listed) ||
                     (list % 4 == 2 && random_below(state, 3) == 0);
      s->tokens[list * listed + i] = padding ? -1 - random_below(state, 2) * 77 : any;
    }
}

Test(select, token_lists_lose_their_padding_and_keep_their_order) {
  static const int64_t sizes[][5] = {
      {8, 1, 2, 5, 0}, {4, 1, 1, 1024, 0}, {4, 1, 1, 1025, 0}, {3, 1, 1, 2600, 0}};
  contract c = tokens_contract(PER_ROW);
  on_every_target(&c, sizes, 4, fill_tokens);
  c = tokens_contract(PER_KV_HEAD);
  static const int64_t by_head[][5] = {{8, 1, 3, 70, 0}};
  on_every_target(&c, by_head, 1, fill_tokens);
}
