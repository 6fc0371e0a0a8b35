/* What a workgroup of the decode template takes: a split of one (sequence, kv head), or a part of the line of
 * tiles. */
#include "emit_line.h"

#include <string.h>

/* Registers of a merge kernel's thread, where a compiler is told. */
enum { MERGE_REGISTERS = 80 };

/* The lines of each fence. */
static const struct {
  const char *name, *split, *part;
} work_fences[] = {
    {"work comment",
     "// A workgroup takes one split of one (sequence, kv head), or a part of its query heads or channels "
     "where "
     "registers\n// are short.\n",
     "// A workgroup takes one part of the line of tiles and runs through the items in it, or a part of "
     "their query "
     "heads or\n// channels where registers are short.\n"},
    {"span",
     "  const int tiles = length > 0 ? (length - 1) / TILE + 1 - first_tile : 0;\n"
     "  const int end = first_tile + (int)((i64)tiles * (split + 1) / splits);\n"
     "  int tile = first_tile + (int)((i64)tiles * split / splits) + wave;\n"
     "  const bool whole = splits == 1;\n",
     "  const int taken = at.tiles - at.tile < left ? at.tiles - at.tile : left; // on the line\n"
     "  const bool whole = taken == at.tiles;\n"
     "  const int begin = first_tile + at.tile * LINE_TILES, last_end = length > 0 ? (length - 1) / TILE + 1 "
     ": 0;\n"
     "  const int end = begin + taken * LINE_TILES < last_end ? begin + taken * LINE_TILES : last_end;\n"
     "  int tile = begin + wave;\n"},
    {"meeting", "",
     "  lane = lane_id(); // not kept while tiles are taken\n"
     "  index = lane / INDEX_STRIDE % INDICES, group = lane / GROUP_STRIDE % GROUPS;\n"},
    {"partial_number",
     "  const i64 partial_number = ((i64)sequence * kv_heads + kv_head) * splits + split;\n",
     "  const int partial_number = 2 * part + (at.tile == 0 ? 1 : 0);\n"},
};

/* An item's pages: `select` for a list that is known to have at.length tokens. */
static void write_pages(const contract *c, text *out) {
  if (contract_makes_lists(c))
    text_add(out, "  const page_id *table = (const page_id *)lists + (i64)at.list * list_width + 1;\n");
  else if (c->select.form == SELECT_INDPTR)
    text_add(out, "  const page_id *table = kv_indices + kv_indptr[at.list];\n");
  else
    text_addf(out, "  const page_id *table = page_table + (%s) * table_pages;\n",
              c->select.per == PER_KV_HEAD ? "(i64)sequence * kv_heads + kv_head" : "(i64)sequence");
  text_add(out, "  const int length = at.length;\n");
}

static const char arguments_type[] = "decode_arguments";

/* Registers are short in the loop over items: what can be had again is not kept through it. */
static void write_item_begins(const attention_fences *f, text *out) {
  const contract *c = f->contract;
  bool row_lists = contract_rows_have_lists(c); /* `rows` is then their number, and below it is one */
  text_add(out, "  int lane = anew(lane_id());\n"
                "  const int wave = anew_uniform(wave_id());\n"
                "  int index = lane / INDEX_STRIDE % INDICES, group = lane / GROUP_STRIDE % GROUPS;\n");
  if (f->target->family != FAMILY_CUDA) {
    write_arguments_again(&f->descriptor->kernels[0], arguments_type, row_lists ? dim_name(DIM_ROWS) : NULL,
                          out);
    write_page_lists(c, "  ", row_lists ? "again->rows" : "rows", out);
  }
  write_line_item(c, "at.list", "at.kv_head", out);
}

static void write_part(const attention_fences *f, text *out) {
  const contract *c = f->contract;
  if (f->target->family == FAMILY_CUDA) text_add(out, "  wait_for_previous();\n  let_next_start();\n");
  write_page_lists(c, "  ", "rows", out);
  text_add(out, "  const tile_line line = measure_line(source, splits);\n"
                "  const int part = workgroup_x(), share = workgroup_y();\n"
                "  if (part >= line.parts) return;\n"
                "  line_place at;\n"
                "  const int part_first = part_begin(line, part, at);\n"
                "  for (int left = part_end(line, part) - part_first;;) {\n");
}

/* Two spaces before every line from `start` on: it stands in a loop. */
static void indent_from(text *out, size_t start) {
  text body;
  text_init(&body);
  if (start <= out->length && !out->failed) {
    text_add_bytes(&body, out->data + start, out->length - start);
    out->length = start;
  }
  for (const char *at = text_string(&body); *at;) {
    size_t line = strcspn(at, "\n"), all = line + (at[line] == '\n');
    if (line > 0 && *at != '#') text_add(out, "  ");
    text_add_bytes(out, at, all);
    at += all;
  }
  out->failed |= body.failed;
  text_finish(&body);
}

bool fill_work(work_fence_state *w, const attention_fences *f, const decode_plan *p, const char *name,
               text *out, bool *out_good) {
  const contract *c = f->contract;
  *out_good = true;
  for (size_t i = 0; i < sizeof work_fences / sizeof *work_fences; i++)
    if (strcmp(name, work_fences[i].name) == 0) {
      text_add(out, p->line ? work_fences[i].part : work_fences[i].split);
      return true;
    }
  if (strcmp(name, "work begins") == 0) {
    if (p->line) {
      write_part(f, out);
      w->loop_start = out->length;
      write_item_begins(f, out);
    } else {
      text_add(out,
               "  const int lane = lane_id(), wave = wave_id();\n"
               "  const int index = lane / INDEX_STRIDE % INDICES, group = lane / GROUP_STRIDE % GROUPS;\n"
               "  const int sequence = workgroup_x(), split = workgroup_z();\n"
               "  const int kv_head = workgroup_y() / (COLUMN_GROUPS * SLICES), share = workgroup_y() % "
               "(COLUMN_GROUPS * SLICES);\n");
    }
  } else if (strcmp(name, "work ends") == 0) {
    if (!p->line) return true;
    text_add(out, "\n  left -= taken;\n"
                  "  if (left == 0) return;\n"
                  "  barrier(); // what met in LDS has been read\n"
                  "  next_item(source, at);\n");
    indent_from(out, w->loop_start);
    text_add(out, "  }\n");
  } else if (strcmp(name, "line") == 0) {
    if (p->line) *out_good = copy_line(f, out);
    if (p->line && f->target->family != FAMILY_CUDA)
      write_arguments_struct(&f->descriptor->kernels[0], arguments_type, out);
  } else if (p->line && strcmp(name, "select") == 0) {
    write_pages(c, out);
  } else if (p->line && strcmp(name, "merge") == 0) {
    text_add(out, "// The channel at a place of a partial result.\n"
                  "DEVICE int partial_channel(int place) { return place; }\n\n");
    *out_good = fill_line_merge(f, out);
  } else {
    return false;
  }
  return true;
}

/* Parts that a compute unit runs at a time. */
static int parts_resident(const decode_plan *p) {
  int parts = p->resident / (p->column_groups * p->slices);
  return parts > 1 ? parts : 1;
}

void write_work_shape(const contract *c, const decode_plan *p, text *out) {
  if (p->line)
    write_line_shape(c, p->waves, parts_resident(p), p->target->family == FAMILY_CUDA, MERGE_REGISTERS, out);
  else
    write_merge_shape(out);
}

void describe_work(const contract *c, const decode_plan *p, descriptor *d) {
  int shares = p->column_groups * p->slices, threads = p->waves * p->target->wave;
  if (p->line) {
    const line_shape shape = {
        p->tile * p->waves, p->resident, shares, threads, 0, p->target->family == FAMILY_CUDA};
    describe_line(c, &shape, d);
    return;
  }
  kernel_descriptor *k = &d->kernels[0];
  d->tile_tokens = p->tile;
  strcpy(k->symbol, "heddle_decode");
  k->grid[0] = sequence_extent(c);
  k->grid[1] = (extent){shares, 1, 1, {DIM_KV_HEADS}};
  k->grid[2] = (extent){1, 1, 1, {DIM_SPLITS}};
  k->block = threads;
  add_decode_arguments(c, k);
  describe_merge(c, d);
}
