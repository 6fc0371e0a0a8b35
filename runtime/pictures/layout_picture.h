/* The picture of a contract's pages: what `heddle layout` shows. */
#ifndef HEDDLE_PICTURES_LAYOUT_PICTURE_H
#define HEDDLE_PICTURES_LAYOUT_PICTURE_H

#include "page_view.h"

typedef struct layout_picture {
  const char *name;                /* the spec's */
  const contract *contract;        /* as the spec has it */
  const target *target;            /* whose lanes are drawn, or NULL */
  const decode_solution *solution; /* NULL: no lanes, and `why_not` says why */
  const char *why_not;
  int64_t heads; /* kv heads of the cache; 0: one, or two where heads lie inside a token */
  int most_rows; /* of bytes, for each panel; 0: as many as make a picture that is easy to look at */
  int columns;   /* of the terminal */
  bool colour;   /* SGR colours */
} layout_picture;

/* One array of a page: K, V, or scales of their own. */
typedef struct layout_panel {
  bool is_k, is_scales;
  page_view view;
  char heading[320];
} layout_panel;

enum { LAYOUT_MOST_PANELS = 4 };

/* What both forms draw: `cells` of 16 bytes in a row. Returns how many panels; -1 when memory ran out. */
int layout_panels(const layout_picture *p, int cells, layout_panel out_panels[LAYOUT_MOST_PANELS]);
void layout_panels_finish(layout_panel *panels, int count);
/* Kv heads that are drawn. */
int64_t layout_heads(const layout_picture *p);
/* One sentence on what was solved for the lanes, or why there are none. */
void layout_lanes_sentence(const layout_picture *p, const layout_panel *panels, int count, text *out);
/* Scales that are no array: "one scale for the tensor", or "" where they are drawn or there are none. */
const char *layout_scales_sentence(const contract *c);

/* Failing is in the text (`failed`). */
void layout_svg(const layout_picture *p, text *out);
void layout_text(const layout_picture *p, text *out);

#endif
