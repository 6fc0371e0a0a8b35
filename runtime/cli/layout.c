/* layout: which byte of a page holds what, as a picture. */
#include "../pictures/layout_picture.h"
#include "console.h"
#include "verbs.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Everything the verb holds while it works. */
typedef struct layout_work {
  spec_file file;
  contract contract; /* with the target's dtypes, where there is one */
  decode_solution solution;
  layout_picture picture;
  diags why; /* why no target serves */
} layout_work;

/* The first target that serves decode; of those that were named, the first has to. */
static int solve(const cli *c, layout_work *r, diags *d) {
  target_list targets;
  variant v;
  int code = cli_targets(c, &r->file.spec, &targets);
  if (!code) code = cli_variant(c, &v);
  if (code) return code;
  layout_picture *p = &r->picture;
  p->why_not = "the contract has no decode kernel";
  if (!contract_has_operation(&r->file.spec.contract, OPERATION_DECODE)) return EXIT_FINE;
  bool asked = cli_list(c, "target", 0) || v.waves || v.stages || v.structure || v.resident;
  for (int i = 0; i < targets.count && !p->solution; i++) {
    diags *into = asked ? d : &r->why;
    hd_status status = plan_solve(&r->file.spec.contract, &v, targets.items[i], &r->solution, into);
    if (status == HD_OK) {
      p->target = targets.items[i];
      p->solution = &r->solution;
    } else if (asked) {
      return cli_fail(c, r->file.path, &r->file, d, status);
    }
  }
  if (!p->solution) p->why_not = r->why.count ? r->why.items[0].message : "no target serves it";
  return EXIT_FINE;
}

/* "5,17" or "5,17,1": token, channel, kv head. */
static bool parse_place(const char *word, int64_t out[3]) {
  for (int i = 0; i < 3; i++) {
    char *end;
    if (*word < '0' || *word > '9') return false;
    out[i] = strtoll(word, &end, 10);
    if (!*end) return i >= 1;
    if (*end != ',') return false;
    word = end + 1;
  }
  return false;
}

/* A place of one array: K or V, or the scales' own. */
typedef struct place {
  const char *tensor;
  int64_t byte;
  int bytes;
} place;

static int find_places(const layout_picture *p, const int64_t at[3], place out[LAYOUT_MOST_PANELS]) {
  const contract *c = p->contract;
  int count = 0;
  for (int i = 0; i < 2; i++) {
    const bool is_k = i == 0;
    if (at[1] >= (is_k ? c->head_dim.qk : c->head_dim.v)) continue;
    const bool of_k = is_k || c->kv.v_in_k;
    page_map m;
    page_map_of(c, of_k, layout_heads(p), &m);
    const int coded = is_k ? contract_coded_k(c) : c->head_dim.v;
    const int part = at[1] < coded ? 0 : m.part_count - 1;
    out[count++] = (place){of_k ? "k_cache" : "v_cache", page_map_byte(&m, part, at[2], at[0], at[1]),
                           m.parts[part].part.bytes};
    const int64_t group =
        c->scale.granularity == SCALE_GROUP ? at[1] / (of_k ? c->scale.group_k : c->scale.group_v) : 0;
    if (at[1] >= coded) continue; /* the tail has no scale */
    if (c->scale.inside)
      out[count++] = (place){of_k ? "k_scale" : "v_scale", page_map_byte(&m, 1, at[2], at[0], group),
                             m.parts[1].part.bytes};
    else if (page_map_of_scales(c, of_k, layout_heads(p), &m))
      out[count++] = (place){of_k ? "k_scale" : "v_scale", page_map_byte(&m, 0, at[2], at[0], group),
                             m.parts[0].part.bytes};
    if (c->kv.v_in_k) break;
  }
  return count;
}

static int show_place(const cli *c, const layout_picture *p, const char *word) {
  int64_t at[3] = {0};
  place places[LAYOUT_MOST_PANELS];
  text out;
  const contract *terms = p->contract;
  const int widest = terms->head_dim.qk > terms->head_dim.v ? terms->head_dim.qk : terms->head_dim.v;
  if (!parse_place(word, at))
    return cli_usage(c, "--at takes TOKEN,CHANNEL or TOKEN,CHANNEL,HEAD, not '%s'", word);
  if (at[0] >= terms->kv.page || at[1] >= widest || at[2] >= layout_heads(p))
    return cli_usage(c, "--at %s is not in a page of %d tokens, %d channels and %" PRId64 " kv heads", word,
                     terms->kv.page, widest, layout_heads(p));
  int count = find_places(p, at, places);
  text_init(&out);
  bool outer = true;
  if (c->json) {
    text_add(&out, "{");
    json_bool(&out, &outer, "ok", true);
    json_text(&out, &outer, "name", p->name);
    json_key(&out, &outer, "elements");
    text_add(&out, "[");
  }
  for (int i = 0; i < count; i++) {
    bool first = true;
    if (!c->json) {
      text_addf(&out, "%s: byte %" PRId64 " of the page, %d byte%s\n", places[i].tensor, places[i].byte,
                places[i].bytes, places[i].bytes > 1 ? "s" : "");
      continue;
    }
    text_add(&out, i ? ", {" : "{");
    json_text(&out, &first, "tensor", places[i].tensor);
    json_int(&out, &first, "byte", places[i].byte);
    json_int(&out, &first, "bytes", places[i].bytes);
    text_add(&out, "}");
  }
  if (c->json) text_add(&out, "]}\n");
  return cli_output_product(&out, EXIT_FINE);
}

/* ---- JSON ---- */

static void json_lanes(text *out, bool *first, const char *name, const lane_list *l) {
  json_key(out, first, name);
  text_add(out, "[");
  for (size_t i = 0; i < l->count; i++) {
    bool inner = true;
    text_add(out, i ? ", {" : "{");
    json_int(out, &inner, "lane", l->items[i].lane);
    json_int(out, &inner, "byte", l->items[i].at);
    json_int(out, &inner, "bytes", l->items[i].bytes);
    text_add(out, "}");
  }
  text_add(out, "]");
}

static void json_panel(const layout_panel *p, text *out) {
  static const char *const kinds[] = {"codes", "scales", "tail"};
  static const char *const loads[] = {
      [LOAD_REGISTERS] = "registers", [LOAD_PIECES] = "pieces", [LOAD_BULK] = "bulk"};
  const page_map *m = &p->view.map;
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "of", p->is_k ? "k" : "v");
  json_text(out, &first, "array", p->is_scales ? "scale" : "cache");
  json_int(out, &first, "bytes", m->bytes);
  json_int(out, &first, "kv_heads", m->heads);
  json_key(out, &first, "parts");
  text_add(out, "[");
  for (int i = 0; i < m->part_count; i++) {
    const page_map_part *part = &m->parts[i];
    bool inner = true;
    text_add(out, i ? ", {" : "{");
    json_text(out, &inner, "holds", kinds[part->kind]);
    json_int(out, &inner, "at", part->part.at);
    json_int(out, &inner, "element_bytes", part->part.bytes);
    json_key(out, &inner, "digits");
    text_add(out, "[");
    for (int n = 0; n < part->digit_count; n++) {
      const page_digit *digit = &part->digits[n];
      bool of_digit = true;
      text_add(out, n ? ", {" : "{");
      json_text(out, &of_digit, "axis", digit->axis == AXIS_H ? "h" : digit->axis == AXIS_S ? "s" : "d");
      json_int(out, &of_digit, "divisor", digit->divisor);
      json_int(out, &of_digit, "extent", digit->extent);
      json_int(out, &of_digit, "bytes", digit->bytes);
      text_add(out, "}");
    }
    text_add(out, "]}");
  }
  text_add(out, "]");
  if (p->view.has_lanes) {
    json_text(out, &first, "loads", loads[p->view.kind]);
    json_lanes(out, &first, "first_load", &p->view.load);
    json_lanes(out, &first, "first_operand", &p->view.operand);
  }
  text_add(out, "}");
}

static int show_json(const layout_picture *p) {
  enum { CELLS = 8 };
  layout_panel panels[LAYOUT_MOST_PANELS];
  int count = layout_panels(p, CELLS, panels);
  bool first = true;
  text out;
  text_init(&out);
  text_add(&out, "{");
  json_bool(&out, &first, "ok", true);
  json_text(&out, &first, "name", p->name);
  if (p->target) json_text(&out, &first, "target", p->target->name);
  json_key(&out, &first, "arrays");
  text_add(&out, "[");
  for (int i = 0; i < count; i++) {
    if (i) text_add(&out, ",\n  ");
    json_panel(&panels[i], &out);
  }
  text_add(&out, "]}\n");
  out.failed |= count < 0;
  if (count > 0) layout_panels_finish(panels, count);
  return cli_output_product(&out, EXIT_FINE);
}

/* ---- The verb ---- */

static int write_svg(const cli *c, const layout_picture *p, const char *path, diags *d) {
  text svg;
  text_init(&svg);
  layout_svg(p, &svg);
  hd_status status = cli_write_text(path, &svg, d);
  text_finish(&svg);
  return status == HD_OK ? EXIT_FINE : cli_fail(c, path, NULL, d, status);
}

static int show(const cli *c, layout_work *r, diags *d) {
  layout_picture *p = &r->picture;
  const char *at = cli_text(c, "at"), *path = cli_text(c, "svg");
  if (at) return show_place(c, p, at);
  if (path) {
    int code = write_svg(c, p, path, d);
    if (code || !c->json) return code;
  }
  if (c->json) return show_json(p);
  text out;
  text_init(&out);
  layout_text(p, &out);
  return cli_output_product(&out, EXIT_FINE);
}

static int layout_verb(cli *c) {
  layout_work *r = calloc(1, sizeof *r);
  diags d;
  if (!r) return EXIT_FAILED;
  diags_init(&d);
  diags_init(&r->why);
  hd_status status = spec_file_read(c->arguments[0], &r->file, &d);
  int code = EXIT_FINE;
  if (status != HD_OK) {
    code = cli_fail(c, c->arguments[0], &r->file, &d, status);
  } else {
    r->picture = (layout_picture){.name = r->file.spec.name,
                                  .heads = cli_int(c, "kv-heads", 0),
                                  .most_rows = (int)cli_int(c, "rows", 0),
                                  .columns = console_columns(),
                                  .colour = console_colours_output()};
    code = solve(c, r, &d);
    r->contract = r->picture.target ? contract_resolve(&r->file.spec.contract, r->picture.target->fp8)
                                    : r->file.spec.contract;
    r->picture.contract = &r->contract;
    if (!code) code = show(c, r, &d);
  }
  spec_file_finish(&r->file);
  diags_finish(&r->why);
  diags_finish(&d);
  free(r);
  return code;
}

static const cli_option layout_options[] = {
    {"target", 0, OPTION_LIST, "TARGET", "whose lanes are drawn (default: the first that serves the spec)", 0,
     0},
    OPTION_ROW_VARIANT,
    OPTION_ROW_PICTURE,
    {"kv-heads", 0, OPTION_INT, "N", "kv heads of the cache (default: 1, or 2 where they lie inside a token)",
     1, 256},
    {"rows", 0, OPTION_INT, "N", "at most so many rows of bytes for each of K and V", 3, PAGE_MOST_ROWS},
    {"at", 0, OPTION_TEXT, "TOKEN,CHANNEL[,HEAD]", "only say which byte of a page holds this element", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_layout = {
    .name = "layout",
    .arguments = "SPEC",
    .summary = "draw which byte of a page holds which token and channel",
    .details =
        "Of K and V, with scales, tail and padding: small pages whole, of large ones what repeats. With\n"
        "what the lanes of a wave take by their first load, and the operand of the first matrix\n"
        "instruction (docs/pictures.md).\n",
    .examples = "  heddle layout specs/minimax-m3-dense-fp8.yaml --target gfx950\n"
                "  heddle layout specs/vllm-inline-fp8.yaml --svg inline.svg\n"
                "  heddle layout specs/minimax-m3-dense-fp8.yaml --at 5,17\n",
    .result =
        "0 the picture, 1 declined on a target that was named, or the spec is not valid, 2 usage, 3 failure",
    .options = layout_options,
    .fewest = 1,
    .most = 1,
    .run = layout_verb,
    .group = GROUP_SPECS,
};
