#include "bench_report.h"
#include "console.h"
#include "shapes.h"
#include <inttypes.h>
#include <stdio.h>

static void print_head(const report *r) {
  const device_facts *f = &r->session->facts;
  if (r->form == REPORT_CSV) {
    printf("seqs,length,kv_heads,heads_per_kv,page,ragged,split,by_policy,best,variant,bytes,us,us_least,us_"
           "most,"
           "spread,gb_per_s,read_us,share,ratio,rms,good,rows\n");
    return;
  }
  printf("%s on %s (%s), heddle %s, %d replays, median\n", r->spec, f->name, r->session->target->name,
         HEDDLE_VERSION, r->options->repeat);
  if (f->emulated) printf("emulated: results are checked, there are no times\n");
  printf("%-24s %5s %9s  %-13s %9s %7s %8s %9s %7s %6s %9s\n", "shape", "page", "split", "variant", "us",
         "spread", "GB/s", "read us", "share", "ratio", "rms");
}

/* "64x8192x4x16 2 rows ragged" */
static void write_shape(const bench_result *b, text *out) {
  bench_shape_write(&b->shape, out);
  if (b->rows > 1) text_addf(out, " %d rows", b->rows);
  if (b->ragged) text_add(out, " ragged");
}

static void print_row(const bench_result *b) {
  text shape, split;
  text_init(&shape);
  text_init(&split);
  write_shape(b, &shape);
  text_addf(&split, "%s%" PRId64 "%s",
            b->tuned       ? "tuned:"
            : b->by_policy ? "auto:"
                           : "",
            b->splits, b->best ? "*" : "");
  printf("%-24s %5d %9s  %-13s ", text_string(&shape), b->page, text_string(&split), b->variant);
  if (b->timed)
    printf("%9.2f %6.1f%% %8.1f %9.2f %6.1f%% %6.3f", b->decode.statistics.median,
           100 * b->decode.statistics.spread, bench_gigabytes_per_second(b), b->read.statistics.median,
           100 * bench_share(b), bench_ratio(b));
  else
    printf("%9s %7s %8s %9s %7s %6s", "-", "-", "-", "-", "-", "-");
  printf(" %9.2e%s\n", b->rms, b->good ? "" : "  WRONG");
  if (!b->good) printf("    %s\n", b->problem);
  if (b->tuned) printf("    %s\n", b->choice);
  if (b->changed && b->good)
    printf("    the spec with heads_per_kv %d, page %d\n", b->shape.heads_per_kv, b->page);
  text_finish(&shape);
  text_finish(&split);
}

static void print_csv(const bench_result *b) {
  printf("%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d,%d,%" PRId64 ",%d,%d,%s,%" PRId64 ",", b->shape.seqs,
         b->shape.length, b->shape.kv_heads, b->shape.heads_per_kv, b->page, b->ragged, b->splits,
         b->by_policy, b->best, b->variant, b->bytes);
  if (b->timed)
    printf("%.3f,%.3f,%.3f,%.4f,%.1f,%.3f,%.4f,%.4f,", b->decode.statistics.median,
           b->decode.statistics.least, b->decode.statistics.most, b->decode.statistics.spread,
           bench_gigabytes_per_second(b), b->read.statistics.median, bench_share(b), bench_ratio(b));
  else
    printf(",,,,,,,,");
  printf("%.3e,%d,%d\n", b->rms, b->good, b->rows);
}

static void json_series(text *t, bool *first, const char *name, const bench_series *s) {
  bool inner = true;
  json_key(t, first, name);
  text_add(t, "{");
  json_number(t, &inner, "median", s->statistics.median);
  json_number(t, &inner, "least", s->statistics.least);
  json_number(t, &inner, "most", s->statistics.most);
  json_number(t, &inner, "spread", s->statistics.spread);
  json_key(t, &inner, "samples");
  text_add(t, "[");
  for (int i = 0; i < s->count; i++) {
    if (i > 0) text_add(t, ", ");
    text_add_double(t, s->samples[i]);
  }
  text_add(t, "]}");
}

static void json_result(const bench_result *b, text *t) {
  bool first = true;
  text_add(t, "{");
  json_extents(t, &first, b->shape.seqs, b->shape.length, b->shape.kv_heads);
  json_int(t, &first, "heads_per_kv", b->shape.heads_per_kv);
  json_int(t, &first, "rows", b->rows);
  json_int(t, &first, "page", b->page);
  json_bool(t, &first, "ragged", b->ragged);
  json_bool(t, &first, "changed", b->changed);
  json_text(t, &first, "contract", b->contract_key);
  json_text(t, &first, "code_object", b->code_key);
  json_text(t, &first, "compiler", b->compiler);
  json_text(t, &first, "variant", b->variant);
  json_int(t, &first, "split", b->splits);
  json_bool(t, &first, "by_policy", b->by_policy);
  json_bool(t, &first, "tuned", b->tuned);
  json_text(t, &first, "choice", b->choice);
  json_bool(t, &first, "best", b->best);
  json_int(t, &first, "tokens", b->tokens);
  json_int(t, &first, "bytes", b->bytes);
  json_int(t, &first, "copies", b->copies);
  json_int(t, &first, "launches", b->launches);
  json_bool(t, &first, "ok", b->good);
  json_text(t, &first, "problem", b->problem);
  json_int(t, &first, "sequences_checked", b->checked);
  json_number(t, &first, "rms", b->rms);
  json_number(t, &first, "rms_allowed", b->rms_allowed);
  json_number(t, &first, "row_rms", b->row_rms);
  json_bool(t, &first, "timed", b->timed);
  if (b->timed) {
    json_series(t, &first, "decode_us", &b->decode);
    json_series(t, &first, "read_us", &b->read);
    json_int(t, &first, "read_workgroups", b->read_workgroups);
    json_number(t, &first, "gb_per_s", bench_gigabytes_per_second(b));
    json_number(t, &first, "share", bench_share(b));
    json_number(t, &first, "ratio", bench_ratio(b));
  }
  text_add(t, "}");
}

void report_init(report *r, report_form form, const char *name, const session *s,
                 const bench_options *options) {
  *r = (report){.form = form, .spec = name, .session = s, .options = options};
  text_init(&r->results);
}

void report_result(report *r, const bench_result *result) {
  bool hidden = r->form == REPORT_TABLE && console_quiet();
  if (r->count++ == 0 && r->form != REPORT_JSON && !hidden) print_head(r);
  if (r->form == REPORT_JSON) {
    text_add(&r->results, r->count > 1 ? ",\n  " : "\n  ");
    json_result(result, &r->results);
  } else if (r->form == REPORT_CSV) {
    print_csv(result);
  } else if (!hidden) {
    print_row(result);
  }
  fflush(stdout);
}

void report_summary(report *r, const bench_summary *summary) {
  r->summary = *summary;
  if (r->form != REPORT_TABLE || summary->count < 2 || console_quiet()) return;
  text shape;
  text_init(&shape);
  write_shape(summary->worst_result, &shape);
  printf("%d shapes: ratio to 1.02 x read + 2 us: median %.3f, worst %.3f (%s)\n", summary->count,
         summary->median, summary->worst, text_string(&shape));
  text_finish(&shape);
}

static void json_device(const session *s, text *t) {
  const device_facts *f = &s->facts;
  bool first = true;
  text_add(t, "{");
  json_text(t, &first, "name", f->name);
  json_text(t, &first, "target", s->target->name);
  json_bool(t, &first, "emulated", f->emulated);
  json_int(t, &first, "compute_units", f->compute_units);
  json_int(t, &first, "memory_bytes", f->memory_bytes);
  json_int(t, &first, "l2_bytes", f->l2_bytes);
  json_number(t, &first, "peak_bytes_per_s", f->peak_bytes_per_s);
  text_add(t, "}");
}

int report_finish(report *r, bool wanted, bool good) {
  int code = EXIT_FINE;
  if (wanted && r->form == REPORT_JSON) {
    text out;
    bool first = true;
    text_init(&out);
    text_add(&out, "{");
    json_bool(&out, &first, "ok", good && r->count > 0);
    json_text(&out, &first, "spec", r->spec);
    json_key(&out, &first, "device");
    json_device(r->session, &out);
    json_text(&out, &first, "heddle", HEDDLE_VERSION);
    json_text(&out, &first, "generator", emit_generator_sum());
    json_int(&out, &first, "repeat", r->options->repeat);
    json_int(&out, &first, "seed", (int64_t)r->options->seed);
    if (r->summary.count > 0) {
      json_number(&out, &first, "ratio_median", r->summary.median);
      json_number(&out, &first, "ratio_worst", r->summary.worst);
    }
    json_key(&out, &first, "results");
    text_addf(&out, "[%s]}\n", text_string(&r->results));
    if (r->results.failed) out.failed = true;
    code = cli_output(&out, EXIT_FINE);
  }
  text_finish(&r->results);
  return code;
}
