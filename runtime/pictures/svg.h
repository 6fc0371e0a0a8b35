/* Drawing with SVG, into a text: self-contained pictures without scripts, fonts or links, in colours for
 * light pages and for dark ones. Deterministic; numbers have at most one decimal and a full stop in any
 * locale. */
#ifndef HEDDLE_PICTURES_SVG_H
#define HEDDLE_PICTURES_SVG_H

#include "../../generator/text.h"

enum { SVG_WIDTH = 1000 };

/* Classes of the shared style. Fills: "d0" "d1" (along channels), "s0" "s1" (along tokens), "c0" "c1"
 * (scales), "t0" "t1" (K's tail), "h0" "h1" (heads, sequences), "gap" (padding), "w0" … "w7" (waves, parts),
 * "v0" … "v7" (variants), "heat0" … "heat9" (worst to best), "none". Strokes: "load", "own", "operand",
 * "line", "aim". Texts: "title", "head", "quiet", "small", "mono",
 * "lane". */

/* Opens the picture; `title` is also its accessible name. */
void svg_begin(text *out, int height, const char *title, const char *description);
void svg_end(text *out);

/* A group with a title, which viewers show for what is in it: svg_group_end closes it. */
void svg_group(text *out, const char *title);
void svg_group_end(text *out);

void svg_rect(text *out, double x, double y, double width, double height, const char *class);
void svg_line(text *out, double x1, double y1, double x2, double y2, const char *class);
void svg_circle(text *out, double x, double y, double radius, const char *class);
/* `points`: x, y, x, y … */
void svg_polyline(text *out, const double *points, int count, const char *class);

typedef enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END } svg_anchor;
/* `class` may be "". */
void svg_text(text *out, double x, double y, svg_anchor anchor, const char *class, const char *words);
void svg_textf(text *out, double x, double y, svg_anchor anchor, const char *class, const char *format, ...)
    HD_PRINTF(6, 7);
/* About how wide 11-pixel words come out, in pixels. */
double svg_text_width(const char *words);

/* Words with &, < and > written out. */
void svg_escape(text *out, const char *words);

#endif
