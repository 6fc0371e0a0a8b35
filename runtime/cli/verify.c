#include "../verify/verify.h"
#include "store.h"
#include "console.h"
#include "progress.h"
#include "verbs.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Where outcomes go: lines as they come, or a JSON array. */
typedef struct outcomes {
  const cli *c;
  text *json;
  int count;
  double worst_rms, worst_row_rms, least_cosine, seconds;
  progress progress;
} outcomes;

static void print_number(const char *format, int width, bool known, double value) {
  if (known)
    printf(format, width, value);
  else
    printf("%*s", width, "-");
}

static void print_outcome(const verify_outcome *o) {
  printf("%-22s %4" PRId64 " x %-3" PRId64 " %6" PRId64 " %5" PRId64 "  ", o->name, o->seqs, o->kv_heads,
         o->longest, o->splits);
  if (!o->wrote)
    printf("%-7s", "-");
  else if (o->codes_differ + o->scales_differ == 0)
    printf("%-7s", "same");
  else
    printf("%-7" PRId64, o->codes_differ + o->scales_differ);
  print_number("%*.2e", 10, o->decoded, o->rms);
  print_number("%*.2e", 10, o->decoded, o->row_rms);
  print_number("%*.6f", 10, o->decoded && isfinite(o->cosine), o->cosine);
  print_number("%*.1e", 9, o->decoded && isfinite(o->lse_error), o->lse_error);
  printf("%8.3f  %s\n", o->write_seconds + o->decode_seconds, o->good ? "good" : "BAD");
  if (!o->good) printf("    %s\n", o->problem);
  fflush(stdout);
}

static void print_outcome_json(const verify_outcome *o, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "case", o->name);
  json_bool(out, &first, "ok", o->good);
  json_text(out, &first, "problem", o->problem);
  json_int(out, &first, "seqs", o->seqs);
  json_int(out, &first, "kv_heads", o->kv_heads);
  json_int(out, &first, "longest", o->longest);
  json_int(out, &first, "splits", o->splits);
  json_bool(out, &first, "wrote", o->wrote);
  json_int(out, &first, "codes_differ", o->codes_differ);
  json_int(out, &first, "scales_differ", o->scales_differ);
  json_bool(out, &first, "decoded", o->decoded);
  json_number(out, &first, "rms", o->rms);
  json_number(out, &first, "rms_allowed", o->rms_allowed);
  json_number(out, &first, "row_rms", o->row_rms);
  json_number(out, &first, "row_allowed", o->row_allowed);
  json_int(out, &first, "row", o->row);
  json_number(out, &first, "cosine", o->cosine);
  json_number(out, &first, "cosine_stored", o->cosine_stored);
  json_number(out, &first, "lse_error", o->lse_error);
  json_number(out, &first, "write_seconds", o->write_seconds);
  json_number(out, &first, "decode_seconds", o->decode_seconds);
  text_add(out, "}");
}

static void report(void *user, const verify_outcome *o) {
  outcomes *p = user;
  progress_clear();
  if (p->c->json) {
    if (p->count > 0) text_add(p->json, ",\n  ");
    print_outcome_json(o, p->json);
  } else if (!console_quiet()) {
    if (p->count == 0)
      printf("%-22s %10s %6s %5s  %-7s%10s%10s%10s%9s%8s\n", "case", "seqs x kvh", "tokens", "split", "write",
             "rms", "worst row", "cosine", "lse", "s");
    print_outcome(o);
    fflush(stdout);
  }
  progress_step(&p->progress);
  p->count++;
  p->seconds += o->write_seconds + o->decode_seconds;
  if (o->rms > p->worst_rms) p->worst_rms = o->rms;
  if (o->row_rms > p->worst_row_rms) p->worst_row_rms = o->row_rms;
  if (o->cosine < p->least_cosine) p->least_cosine = o->cosine;
}

static void finish_json(const outcomes *p, const spec_file *file, const session *s,
                        const verify_options *options, int bad, text *out) {
  bool first = true;
  text_add(out, "{");
  json_bool(out, &first, "ok", bad == 0 && p->count > 0);
  json_text(out, &first, "spec", file->spec.name);
  json_text(out, &first, "device", s->facts.name);
  json_text(out, &first, "target", s->target->name);
  json_bool(out, &first, "emulated", s->facts.emulated);
  json_int(out, &first, "seed", (int64_t)options->seed);
  json_int(out, &first, "bad", bad);
  json_number(out, &first, "rms_allowed", VERIFY_RMS);
  json_number(out, &first, "worst_rms", p->worst_rms);
  json_number(out, &first, "worst_row_rms", p->worst_row_rms);
  json_number(out, &first, "least_cosine", p->least_cosine <= 1 ? p->least_cosine : (double)NAN);
  json_key(out, &first, "cases");
  text_addf(out, "[%s]}\n", text_string(p->json));
}

static int verify_spec(const cli *c, const spec_file *file, const variant *v, compiler_kind kind, diags *d) {
  const verify_options options = {
      .seed = (uint64_t)cli_int(c, "seed", 1),
      .random_cases = (int)cli_int(c, "cases", 4),
      .split = cli_int(c, "split", 0),
      .padded = cli_flag(c, "padded"),
      .large = cli_flag(c, "large"),
      .only = cli_text(c, "only"),
  };
  const char *path = c->arguments[0];
  session s;
  text cases, out;
  hd_status status = session_open(cli_text(c, "device"), kind, NULL, &s, d);
  if (status == HD_INVALID && d->count) return cli_usage(c, "--device: %s", d->items[0].message);
  if (status != HD_OK) return cli_fail(c, path, file, d, status);
  cli_log_cache(c, s.cache);
  text_init(&cases);
  text_init(&out);
  outcomes p = {.c = c, .json = &cases, .least_cosine = 2};
  contract resolved = contract_resolve(&file->spec.contract, s.target->fp8);
  int bad = 0;
  progress_begin(&p.progress, "cases", verify_count(&resolved, &options));
  status = verify_run(&s, &resolved, file->spec.name, v, &options, report, &p, &bad, d);
  progress_end(&p.progress);
  int code = EXIT_FINE;
  if (status != HD_OK) {
    code = cli_fail(c, path, file, d, status);
  } else {
    cli_complain(path, file, d);
    if (cases.failed) out.failed = true;
    if (c->json)
      finish_json(&p, file, &s, &options, bad, &out);
    else
      text_addf(&out,
                "%s on %s (%s): %d cases, %d bad; worst rms %.2e (allowed %.1e), worst row %.2e, %.1f s in "
                "kernels\n",
                file->spec.name, s.facts.name, s.target->name, p.count, bad, p.worst_rms, VERIFY_RMS,
                p.worst_row_rms, p.seconds);
    if (p.count == 0)
      fprintf(stderr, "heddle verify: no case has '%s' in its name\n", options.only ? options.only : "");
    code = cli_output(&out, bad || p.count == 0 ? EXIT_DECLINED : EXIT_FINE);
  }
  text_finish(&cases);
  session_close(&s);
  return code;
}

static int verify(cli *c) {
  variant v;
  compiler_kind kind;
  spec_file file;
  diags d;
  if (!cli_text(c, "device")) return cli_usage(c, "--device is missing, such as --device emu:gfx950");
  int code = cli_variant(c, &v);
  if (!code) code = cli_compiler(c, &kind);
  if (code) return code;
  diags_init(&d);
  hd_status status = spec_file_read(c->arguments[0], &file, &d);
  if (status != HD_OK)
    code = cli_fail(c, c->arguments[0], &file, &d, status);
  else
    code = verify_spec(c, &file, &v, kind, &d);
  spec_file_finish(&file);
  diags_finish(&d);
  return code;
}

static const cli_option verify_options_table[] = {
    {"device", 'd', OPTION_TEXT, "DEVICE", "emu:gfx950, cuda:0, hip:0 (heddle doctor lists what is there)", 0,
     0},
    {"cases", 'n', OPTION_INT, "N", "random cases beside the fixed ones (default: 4)", 0, 100000},
    {"seed", 0, OPTION_INT, "N", "seed of all inputs (default: 1)", 0, INT64_MAX},
    {"split", 0, OPTION_INT, "N", "use this split in every case (default: each case's own)", 1, 4096},
    {"padded", 0, OPTION_FLAG, NULL, "caches and scales with gaps between pages and heads", 0, 0},
    {"large", 0, OPTION_FLAG, NULL, "also cases that only hardware gets through quickly", 0, 0},
    {"only", 0, OPTION_TEXT, "NAME", "only cases whose name contains NAME", 0, 0},
    OPTION_ROW_VARIANT,
    OPTION_ROW_COMPILER,
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_verify = {
    .name = "verify",
    .arguments = "SPEC --device DEVICE",
    .summary = "hold kernels on a device against the float64 reference",
    .details = "Random and adversarial inputs go through write and decode. What write stores has to equal "
               "the reference\n"
               "bit for bit; what decode gives may differ from float64 on the stored bytes by 2.5e-3 "
               "(relative RMS),\n"
               "and where the inputs are tame, from attention that was never quantised by a cosine.\n",
    .examples = "  heddle verify specs/minimax-m3-dense-fp8.yaml --device emu:gfx950\n"
                "  heddle verify specs/nhd-fp16.yaml --device cuda:0 --large --cases 50 --json\n",
    .result = "0 all cases good, 1 a case beyond tolerance or declined, 2 usage, 3 failure",
    .options = verify_options_table,
    .fewest = 1,
    .most = 1,
    .run = verify,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES | ENV_TEMPLATES,
    .group = GROUP_LAUNCHES,
};
