/* The line of tiles: what kernels that share it out take, and their merge. */
#include "emit_line.h"

#include <stdio.h>
#include <string.h>

/* Tiles on the line that a part has at least, where a compute unit runs several. */
enum { LINE_LEAST = 4 };

/* The merge kernel: threads of a workgroup, and the rounds of outputs it takes at most. */
enum { MERGE_THREADS = 128, MERGE_ROUNDS = 4 };

/* Whether lists have a kv head each, lengths included: an item is then a list. A page table for each kv head
 * has the lengths of the sequence. */
static bool items_are_lists(const contract *c) {
  return lists_by_head(c) && c->select.form != SELECT_TABLE;
}

static int merge_shares(const contract *c) {
  int quads = shared_rows(c) * c->query.heads_per_kv * c->head_dim.v / 4, most = MERGE_ROUNDS * MERGE_THREADS;
  return (quads + most - 1) / most;
}

void write_line_shape(const contract *c, int line_tiles, int resident, bool starts_early, int merge_registers,
                      text *out) {
  write_int(out, "LINE_TILES", line_tiles);
  write_int(out, "LINE_RESIDENT", resident);
  write_int(out, "LINE_LEAST", LINE_LEAST);
  write_bool(out, "STARTS_EARLY", starts_early);
  write_int(out, "MERGE_THREADS", MERGE_THREADS);
  write_int(out, "MERGE_REGISTERS", merge_registers);
  write_int(out, "MERGE_SHARES", merge_shares(c));
}

void write_page_lists(const contract *c, const char *indent, const char *all_rows, text *out) {
  const char *rows = shared_rows(c) > 1 ? "rows" : "1", *heads = items_are_lists(c) ? "1" : "kv_heads";
  text_addf(out, "%sconst page_lists source = {", indent);
  if (contract_makes_lists(c))
    text_addf(out, "(const int *)lists, (const page_id *)lists + 1, %slist_width, list_width, ",
              c->select.index == DTYPE_INT64 ? "2 * (i64)" : "");
  else if (c->select.form == SELECT_INDPTR)
    text_add(out, "kv_indptr, last_page_len, ");
  else
    text_add(out, "lengths, page_table, 1, table_pages, ");
  text_add(out, "seqs");
  if (contract_rows_have_lists(c)) text_addf(out, " * %s", all_rows);
  text_addf(out, "%s, %s, %s};%s\n", items_are_lists(c) ? " * kv_heads" : "", heads, rows,
            contract_makes_lists(c) ? " // made by heddle_select" : "");
}

void write_line_item(const contract *c, const char *list, const char *list_head, text *out) {
  if (items_are_lists(c))
    text_addf(out,
              "  const int sequence = (int)((u32)%s / (u32)kv_heads), kv_head = %s - sequence * kv_heads;\n",
              list, list);
  else
    text_addf(out, "  const int sequence = %s, kv_head = %s;\n", list, list_head);
}

static bool fill(void *user, const char *name, text *out) {
  const attention_fences *f = user;
  const contract *c = f->contract;
  if (strcmp(name, "query_rows") == 0)
    text_addf(out, "  const%s int query_rows = %s;\n", shared_rows(c) > 1 ? "" : "expr",
              shared_rows(c) > 1 ? "rows" : "1");
  else if (strcmp(name, "page_lists") == 0)
    write_page_lists(c, "  ", "rows", out);
  else if (strcmp(name, "item") == 0)
    write_line_item(c, "list", "list_head", out);
  else if (strcmp(name, "sink line_merge") == 0)
    write_sink(c, "lowest", "total", out);
  else if (strcmp(name, "store_lse line_merge") == 0)
    write_lse(c, "query", "lowest", "total", out);
  else
    return fill_attention(f, name, out);
  return true;
}

bool copy_line(const attention_fences *f, text *out) {
  const char *lists = f->contract->select.form == SELECT_INDPTR ? "lists_indptr.hip" : "lists.hip";
  return template_copy(f->templates, lists, out, f->errors) == HD_OK &&
         template_copy(f->templates, "line.hip", out, f->errors) == HD_OK;
}

bool fill_line_merge(const attention_fences *f, text *out) {
  attention_fences copy = *f;
  return template_fill(f->templates, "merge_line.hip", fill, &copy, out, f->errors) == HD_OK;
}

/* How many lists there are. */
static void add_line_arguments(const contract *c, kernel_descriptor *k) {
  add_dim(k, DIM_SEQS);
  if (contract_rows_have_lists(c)) add_dim(k, DIM_ROWS);
}

static void describe_line_merge(const contract *c, bool waits_itself, kernel_descriptor *k) {
  snprintf(k->symbol, sizeof k->symbol, "heddle_merge");
  k->grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->grid[1] = (extent){merge_shares(c), 1, 0, {DIM_SEQS}};
  k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = MERGE_THREADS;
  k->only_when_split = true;
  k->waits_itself = waits_itself;
  add_merge_arguments(c, k);
  add_page_lists(c, k);
  add_page_list_width(c, k);
  add_line_arguments(c, k);
}

void describe_line(const contract *c, const line_shape *shape, descriptor *d) {
  kernel_descriptor *k = &d->kernels[0];
  d->tile_tokens = shape->tile_tokens;
  d->line_parts = shape->resident;
  d->kernel_count = 2;
  snprintf(k->symbol, sizeof k->symbol, "heddle_decode");
  k->grid[0] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->grid[1] = (extent){shape->shares, 1, 0, {DIM_SEQS}};
  k->grid[2] = (extent){1, 1, 0, {DIM_SEQS}};
  k->block = shape->threads;
  k->lds_bytes = shape->lds_bytes;
  k->waits_itself = shape->waits_itself;
  add_decode_arguments(c, k);
  add_line_arguments(c, k);
  describe_line_merge(c, shape->waits_itself, &d->kernels[1]);
  /* A part has at most two partial results: of what it ends, and of what it begins. */
  int64_t queries = (int64_t)shared_rows(c) * c->query.heads_per_kv;
  d->workspace = (extent){8 * queries * partial_words(c), 1, 1, {DIM_SPLITS}};
}
