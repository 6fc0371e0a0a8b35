#include "emit_attention.h"

#include <stdio.h>
#include <string.h>

/* A block list is short; of tokens there are thousands. */
enum { BLOCK_THREADS = 256, TOKEN_THREADS = 1024 };

typedef struct select_fences {
  const contract *contract;
  const kernel_descriptor *kernel;
  const template_source *templates;
  diags *errors;
} select_fences;

static bool is_blocks(const contract *c) {
  return c->select.form == SELECT_BLOCKS;
}

static void write_solved(const contract *c, text *out) {
  write_int(out, "SELECT_THREADS", is_blocks(c) ? BLOCK_THREADS : TOKEN_THREADS);
  if (is_blocks(c)) {
    text_addf(out, "constexpr int BLOCK = %d, PAGE_TOKENS = %d; // tokens\n", c->select.block, c->kv.page);
    write_int(out, "BLOCK_PAGES", c->select.block / c->kv.page);
  }
  text_add(out, "\n");
}

/* How many tokens the row sees without a list, and its row of the page table. */
static void write_visible(const contract *c, text *out) {
  if (c->select.per == PER_ROW) {
    text_add(out, "  const int visible = lengths[row];\n"
                  "  const page_id *table = page_table + (i64)row_sequences[row] * table_pages;\n");
    return;
  }
  if (c->query.rows == 1) text_add(out, "  constexpr int rows = 1;\n");
  text_addf(out,
            "  const int sequence = row / rows;\n"
            "  const int visible = lengths[sequence]%s;\n"
            "  const page_id *table = page_table + (i64)sequence * table_pages;\n",
            c->mask.causal ? " - rows + row % rows + 1" : "");
}

static void write_token_lists(const contract *c, text *out) {
  if (lists_by_head(c))
    text_add(
        out,
        "  const int kv_head = workgroup_y();\n"
        "  const page_id *tokens_listed = token_list + kv_head * listed_stride_h + row * listed_stride_row;\n"
        "  page_id *list = (page_id *)lists + ((i64)row * kv_heads + kv_head) * list_width;\n");
  else
    text_add(out, "  const page_id *tokens_listed = token_list + row * listed_stride_row;\n"
                  "  page_id *list = (page_id *)lists + (i64)row * list_width;\n");
  text_add(out, "  page_id *pages = list + 1;\n");
}

static bool fill(void *user, const char *name, text *out) {
  select_fences *f = user;
  const contract *c = f->contract;
  if (strcmp(name, "solved select") == 0) {
    write_solved(c, out);
  } else if (strcmp(name, "form") == 0) {
    const char *file = is_blocks(c) ? "select_blocks.hip" : "select_tokens.hip";
    return template_fill(f->templates, file, fill, f, out, f->errors) == HD_OK;
  } else if (strcmp(name, "arguments select") == 0) {
    write_arguments(f->kernel, out);
  } else if (strcmp(name, "visible") == 0) {
    write_visible(c, out);
  } else if (strcmp(name, "token_lists") == 0) {
    write_token_lists(c, out);
  } else {
    return false;
  }
  return true;
}

static void add_select_arguments(const contract *c, kernel_descriptor *k) {
  add_tensor(k, TENSOR_LISTS);
  add_tensor(k, is_blocks(c) ? TENSOR_BLOCK_LIST : TENSOR_TOKEN_LIST);
  if (is_blocks(c)) {
    add_tensor(k, TENSOR_PAGE_TABLE);
    add_tensor(k, TENSOR_LENGTHS);
    if (c->select.per == PER_ROW) add_tensor(k, TENSOR_ROW_SEQUENCES);
  }
  if (lists_by_head(c)) add_dim(k, DIM_LISTED_STRIDE_H);
  add_dim(k, DIM_LISTED_STRIDE_ROW);
  if (is_blocks(c)) {
    add_dim(k, DIM_TABLE_PAGES);
    if (c->select.per != PER_ROW && c->query.rows > 1) add_dim(k, DIM_ROWS);
  }
  if (lists_by_head(c)) add_dim(k, DIM_KV_HEADS);
  add_dim(k, DIM_LISTED);
  add_dim(k, DIM_LIST_WIDTH);
}

static void describe(const contract *c, descriptor *d) {
  memmove(&d->kernels[1], &d->kernels[0], (size_t)d->kernel_count * sizeof d->kernels[0]);
  d->kernel_count++;
  kernel_descriptor *k = &d->kernels[0];
  memset(k, 0, sizeof *k);
  snprintf(k->symbol, sizeof k->symbol, "heddle_select");
  k->grid[0] = sequence_extent(c);
  k->grid[1] = lists_by_head(c) ? (extent){1, 1, 1, {DIM_KV_HEADS}} : (extent){1, 1, 0, {DIM_SEQS}};
  k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = is_blocks(c) ? BLOCK_THREADS : TOKEN_THREADS;
  add_select_arguments(c, k);
  d->lists = (extent){dtype_bytes(c->select.index), 1, 3, {DIM_LIST_WIDTH, DIM_SEQS, DIM_ROWS}};
  if (lists_by_head(c)) d->lists.dims[d->lists.dim_count++] = DIM_KV_HEADS;
}

hd_status emit_select(const contract *c, const template_source *templates, text *out_source,
                      descriptor *out_descriptor, diags *errors) {
  describe(c, out_descriptor);
  select_fences fences = {c, &out_descriptor->kernels[0], templates, errors};
  return template_fill(templates, "select.hip", fill, &fences, out_source, errors);
}
