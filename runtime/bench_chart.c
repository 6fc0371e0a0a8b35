#include "bench.h"
#include <string.h>

/* Pixels. Rows of one shape each; the axis is the share of the read kernel's speed, 0 to 100 %. */
enum {
  LEFT = 190,  /* where bars begin; names end before it */
  AXIS = 460,  /* 0 to 100 % */
  RIGHT = 200, /* figures */
  TOP = 78,    /* title, subtitle, legend */
  ROW = 28,
  BAR = 16,
  BOTTOM = 44
};

/* Colours on a light page, then on a dark one. Plain rules: not every viewer knows CSS variables. */
static const char style[] = "  <style>\n"
                            "    text { font: 12px system-ui, sans-serif; fill: #1f2328; }\n"
                            "    .title { font-size: 15px; font-weight: 600; }\n"
                            "    .quiet { fill: #59636e; }\n"
                            "    .line { stroke: #d1d9e0; }\n"
                            "    .bar { fill: #2f6fb3; }\n"
                            "    .aim { stroke: #bc4c00; stroke-width: 2; }\n"
                            "    .page { fill: #ffffff; }\n"
                            "    @media (prefers-color-scheme: dark) {\n"
                            "      text { fill: #e6edf3; }\n"
                            "      .quiet { fill: #9198a1; }\n"
                            "      .line { stroke: #3d444d; }\n"
                            "      .bar { fill: #5a9bdc; }\n"
                            "      .aim { stroke: #f0883e; }\n"
                            "      .page { fill: #0d1117; }\n"
                            "    }\n"
                            "  </style>\n";

static void add_escaped(const char *words, text *out) {
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

static void add_text(double x, double y, const char *class, const char *anchor, const char *words,
                     text *out) {
  text_addf(out, "  <text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class, anchor);
  add_escaped(words, out);
  text_add(out, "</text>\n");
}

static void add_formatted(double x, double y, const char *class, const char *anchor, text *out,
                          const char *format, ...) HD_PRINTF(6, 7);

static void add_formatted(double x, double y, const char *class, const char *anchor, text *out,
                          const char *format, ...) {
  va_list args;
  text words;
  text_init(&words);
  va_start(args, format);
  text_vaddf(&words, format, args);
  va_end(args);
  add_text(x, y, class, anchor, text_string(&words), out);
  if (words.failed) out->failed = true;
  text_finish(&words);
}

static void add_line(double x1, double y1, double x2, double y2, const char *class, text *out) {
  text_addf(out, "  <line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2,
            class);
}

/* Shares above 100 % are drawn as 100 %: the read kernel is a yardstick, not a law. */
static double place(double share) {
  double inside = share < 0 ? 0 : share > 1 ? 1 : share;
  return LEFT + AXIS * inside;
}

static void add_axis(int rows, text *out) {
  double bottom = TOP + ROW * rows;
  for (int percent = 0; percent <= 100; percent += 25) {
    double x = place(percent / 100.0);
    add_line(x, TOP - 4, x, bottom + 4, "line", out);
    add_formatted(x, bottom + 20, "quiet", "middle", out, "%d %%", percent);
  }
}

static void add_row(const bench_result *r, int row, text *out) {
  double top = TOP + ROW * row, middle = top + ROW / 2.0, share = bench_share(r);
  double read = r->read.statistics.median, aim = place(read / (1.02 * read + 2.0));
  text name;
  text_init(&name);
  bench_shape_write(&r->shape, &name);
  if (r->ragged) text_add(&name, " ragged");
  add_text(LEFT - 10, middle + 4, "name", "end", text_string(&name), out);
  text_addf(out, "  <rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" class=\"bar\"/>\n", LEFT,
            middle - BAR / 2.0, place(share) - LEFT, BAR);
  add_line(aim, middle - BAR / 2.0 - 3, aim, middle + BAR / 2.0 + 3, "aim", out);
  add_formatted(LEFT + AXIS + 12, middle + 4, "figure", "start", out, "%.1f %%, %.1f µs, %.0f GB/s",
                100 * share, r->decode.statistics.median, bench_gigabytes_per_second(r));
  text_finish(&name);
}

void bench_chart(const bench_result *results, int count, const char *title, const char *subtitle, text *out) {
  int rows = 0;
  for (int i = 0; i < count; i++)
    rows += results[i].best;
  int width = LEFT + AXIS + RIGHT, height = TOP + ROW * rows + BOTTOM;
  text_addf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "role=\"img\">\n",
            width, height, width, height);
  text_add(out, "  <title>");
  add_escaped(title, out);
  text_add(out, "</title>\n");
  text_add(out, style);
  text_addf(out, "  <rect width=\"%d\" height=\"%d\" class=\"page\"/>\n", width, height);
  add_text(16, 26, "title", "start", title, out);
  add_text(16, 44, "quiet", "start", subtitle, out);
  add_line(22, 56, 22, 68, "aim", out);
  add_text(32, 66, "quiet", "start", "aim: 1.02 × the read of the same bytes + 2 µs", out);
  add_axis(rows, out);
  for (int i = 0, row = 0; i < count; i++)
    if (results[i].best) add_row(&results[i], row++, out);
  add_formatted(LEFT + AXIS / 2.0, TOP + ROW * rows + 38, "quiet", "middle", out,
                "share of the read kernel's speed");
  text_add(out, "</svg>\n");
}
