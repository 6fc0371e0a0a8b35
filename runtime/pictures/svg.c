#include "svg.h"

#include <math.h>

/* Plain rules: not every viewer knows CSS variables. */
static const char style[] =
    "<style>\n"
    "svg{color:#1f2328}text{font:11px system-ui,sans-serif;fill:currentColor;text-anchor:middle}\n"
    ".b{text-anchor:start}.e{text-anchor:end}\n"
    ".page{fill:#fff}.title{font-size:16px;font-weight:600}.head{font-size:13px;font-weight:600}\n"
    ".quiet{fill:#59636e}.small{font-size:10px}.mono{font-family:ui-monospace,monospace}\n"
    ".d0{fill:#dceafc}.d1{fill:#b9d6f8}.s0{fill:#fdebd3}.s1{fill:#fad5a5}.c0{fill:#d7f0d9}.c1{fill:#b6e2ba}\n"
    ".t0{fill:#fadfeb}.t1{fill:#f3bfd6}.h0{fill:#ebe3fc}.h1{fill:#d8c9f8}.gap{fill:#eaeef2;stroke:#c3ccd5;"
    "stroke-dasharray:3 3}\n"
    ".w0,.v0{fill:#a8cdf7}.w1,.v1{fill:#f9c98b}.w2,.v2{fill:#a5dbaa}.w3,.v3{fill:#cdb8f5}\n"
    ".w4,.v4{fill:#f2b0cc}.w5,.v5{fill:#9fdcdc}.w6,.v6{fill:#e3d27a}.w7,.v7{fill:#c9ced6}\n"
    ".heat0{fill:#f4a9a0}.heat1{fill:#f8bd9c}.heat2{fill:#fbd09b}.heat3{fill:#fce2a4}.heat4{fill:#f3eab0}\n"
    ".heat5{fill:#e2ecb4}.heat6{fill:#cde9b4}.heat7{fill:#b7e4b4}.heat8{fill:#9fdcae}.heat9{fill:#86d3a6}\n"
    ".none{fill:none}.line{stroke:#d1d9e0;fill:none}.edge{stroke:#8c959f;fill:none}\n"
    ".load{stroke:#bc4c00;stroke-width:1.6}.own{fill:#bc4c00}\n"
    ".lane{fill:#953800;font:600 10px system-ui,sans-serif}.operand{fill:#6639ba}\n"
    ".aim{stroke:#bc4c00;stroke-width:2;fill:none}.read{stroke:#1a7f37;stroke-width:2;fill:none}\n"
    ".dot{fill:#0969da}.hollow{fill:none;stroke:#0969da;stroke-width:1.8}.readdot{fill:#1a7f37}.wrong{fill:#"
    "cf222e}\n"
    "@media (prefers-color-scheme:dark){\n"
    "svg{color:#e6edf3}.page{fill:#0d1117}.quiet{fill:#9aa4ae}\n"
    ".d0{fill:#12294a}.d1{fill:#1c4376}.s0{fill:#43290b}.s1{fill:#6b430f}.c0{fill:#123a1b}.c1{fill:#1d5a2b}\n"
    ".t0{fill:#471a30}.t1{fill:#6d2a4b}.h0{fill:#2c2150}.h1{fill:#45347a}.gap{fill:#1b222b;stroke:#3d444d}\n"
    ".w0,.v0{fill:#1c4c86}.w1,.v1{fill:#7a4a10}.w2,.v2{fill:#1f5f2d}.w3,.v3{fill:#4b3a86}\n"
    ".w4,.v4{fill:#752c50}.w5,.v5{fill:#195a5e}.w6,.v6{fill:#5e5313}.w7,.v7{fill:#454d58}\n"
    ".heat0{fill:#7a2620}.heat1{fill:#7b3719}.heat2{fill:#774815}.heat3{fill:#6d5614}.heat4{fill:#5d5d16}\n"
    ".heat5{fill:#4a5f1b}.heat6{fill:#396021}.heat7{fill:#2a6128}.heat8{fill:#1d622f}.heat9{fill:#126338}\n"
    ".line{stroke:#30363d}.edge{stroke:#6e7681}\n"
    ".load{stroke:#f0883e}.own{fill:#f0883e}.lane{fill:#ffb77c}.operand{fill:#bc8cff}\n"
    ".aim{stroke:#f0883e}.read{stroke:#3fb950}.dot{fill:#58a6ff}.hollow{stroke:#58a6ff}.readdot{fill:#3fb950}"
    ".wrong{fill:#f85149}}\n"
    "</style>\n";

void svg_escape(text *out, const char *words) {
  for (; *words; words++) {
    if (*words == '<')
      text_add(out, "&lt;");
    else if (*words == '>')
      text_add(out, "&gt;");
    else if (*words == '&')
      text_add(out, "&amp;");
    else
      text_add_bytes(out, words, 1);
  }
}

static void add_number(text *out, double x) {
  text_add_double(out, round(x * 10) / 10 + 0.0); /* never -0 */
}

static void add_attribute(text *out, const char *name, double x) {
  text_addf(out, " %s=\"", name);
  add_number(out, x);
  text_add(out, "\"");
}

static void add_class(text *out, const char *class) {
  if (*class) text_addf(out, " class=\"%s\"", class);
}

void svg_begin(text *out, int height, const char *title, const char *description) {
  text_addf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\">\n<title>",
            SVG_WIDTH, height, SVG_WIDTH, height);
  svg_escape(out, title);
  text_add(out, "</title>\n<desc>");
  svg_escape(out, description);
  text_add(out, "</desc>\n");
  text_add(out, style);
  svg_rect(out, 0, 0, SVG_WIDTH, height, "page");
  svg_text(out, 24, 30, SVG_START, "title", title);
}

void svg_end(text *out) {
  text_add(out, "</svg>\n");
}

void svg_group(text *out, const char *title) {
  text_add(out, "<g><title>");
  svg_escape(out, title);
  text_add(out, "</title>");
}

void svg_group_end(text *out) {
  text_add(out, "</g>\n");
}

void svg_rect(text *out, double x, double y, double width, double height, const char *class) {
  text_add(out, "<rect");
  add_attribute(out, "x", x);
  add_attribute(out, "y", y);
  add_attribute(out, "width", width);
  add_attribute(out, "height", height);
  add_class(out, class);
  text_add(out, "/>");
}

void svg_line(text *out, double x1, double y1, double x2, double y2, const char *class) {
  text_add(out, "<path");
  add_class(out, class);
  text_add(out, " d=\"M");
  add_number(out, x1);
  text_add(out, " ");
  add_number(out, y1);
  text_add(out, "L");
  add_number(out, x2);
  text_add(out, " ");
  add_number(out, y2);
  text_add(out, "\"/>\n");
}

void svg_circle(text *out, double x, double y, double radius, const char *class) {
  text_add(out, "<circle");
  add_attribute(out, "cx", x);
  add_attribute(out, "cy", y);
  add_attribute(out, "r", radius);
  add_class(out, class);
  text_add(out, "/>");
}

void svg_polyline(text *out, const double *points, int count, const char *class) {
  text_add(out, "<polyline");
  add_class(out, class);
  text_add(out, " points=\"");
  for (int i = 0; i < count; i++) {
    if (i > 0) text_add(out, " ");
    add_number(out, points[2 * i]);
    text_add(out, ",");
    add_number(out, points[2 * i + 1]);
  }
  text_add(out, "\"/>\n");
}

void svg_text(text *out, double x, double y, svg_anchor anchor, const char *class, const char *words) {
  static const char *const anchors[] = {[SVG_START] = "b", [SVG_MIDDLE] = "", [SVG_END] = "e"};
  text_add(out, "<text");
  add_attribute(out, "x", x);
  add_attribute(out, "y", y);
  const char *own = anchors[anchor], *space = *own && *class ? " " : "";
  if (*own || *class) text_addf(out, " class=\"%s%s%s\"", own, space, class);
  text_add(out, ">");
  svg_escape(out, words);
  text_add(out, "</text>\n");
}

void svg_textf(text *out, double x, double y, svg_anchor anchor, const char *class, const char *format, ...) {
  va_list args;
  text words;
  text_init(&words);
  va_start(args, format);
  text_vaddf(&words, format, args);
  va_end(args);
  svg_text(out, x, y, anchor, class, text_string(&words));
  if (words.failed) out->failed = true;
  text_finish(&words);
}

double svg_text_width(const char *words) {
  double width = 0;
  for (; *words; words++) {
    if (((unsigned char)*words & 0xc0) == 0x80) continue; /* the rest of a character */
    width += *words == ' ' || *words == '.' || *words == ',' ? 3.6
             : *words >= '0' && *words <= '9'                ? 6.8
                                                             : 6.6;
  }
  return width;
}
