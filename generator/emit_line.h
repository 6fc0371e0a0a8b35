/* The line of tiles (templates/line.hip), for kernels of any structure whose workgroups share it out. */
#ifndef HEDDLE_EMIT_LINE_H
#define HEDDLE_EMIT_LINE_H

#include "emit_attention.h"
#include "plan.h"

typedef struct line_shape {
  int tile_tokens; /* of a tile on the line */
  int resident;    /* workgroups that a compute unit runs at a time */
  int shares;      /* workgroups that take the same part, for other queries or channels */
  int threads, lds_bytes;
  bool waits_itself;
} line_shape;

/* Constants that line and merge are written with. `line_tiles`: tiles of the kernel that are one on the line;
 * `resident`: parts of a compute unit, as far as each has enough to do; 1: as many as are asked for.
 * `starts_early`: kernels begin before the ones ahead of them have ended. */
void write_line_shape(const contract *c, int line_tiles, int resident, bool starts_early, int merge_registers,
                      text *out);
/* All lists of pages, as `source`; `all_rows`: the number of rows, where they have lists of their own. */
void write_page_lists(const contract *c, const char *indent, const char *all_rows, text *out);
/* Sequence and kv head of an item, whose list and number among the heads of that list are these expressions.
 */
void write_line_item(const contract *c, const char *list, const char *list_head, text *out);
/* The functions of the line; the merge kernel behind decode. False with diagnostics when a template is
 * missing. */
bool copy_line(const attention_fences *f, text *out);
bool fill_line_merge(const attention_fences *f, text *out);
/* What a workgroup of the decode template takes: fences that are not its are left alone (false). `out_good`:
 * false with diagnostics when a template is missing. */
typedef struct work_fence_state {
  size_t loop_start; /* of the text in the loop over a part's items */
} work_fence_state;
bool fill_work(work_fence_state *w, const attention_fences *f, const decode_plan *p, const char *name,
               text *out, bool *out_good);
void write_work_shape(const contract *c, const decode_plan *p, text *out);
void describe_work(const contract *c, const decode_plan *p, descriptor *d);

/* Both kernels and the workspace. */
void describe_line(const contract *c, const line_shape *shape, descriptor *d);

#endif
