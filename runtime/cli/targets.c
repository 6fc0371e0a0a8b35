#include "verbs.h"

static const char *family_name(target_family family) {
  static const char *const names[] = {"cdna", "rdna", "cuda"};
  return names[family];
}

static void write_target_json(const target *t, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "name", t->name);
  json_text(out, &first, "product", t->product);
  json_text(out, &first, "family", family_name(t->family));
  json_int(out, &first, "wave", t->wave);
  json_int(out, &first, "lds_bytes", t->lds_bytes);
  json_text(out, &first, "fp8", dtype_name(t->fp8));
  json_number(out, &first, "hbm_bytes_per_s", t->hbm_bytes_per_s);
  json_int(out, &first, "compute_units", t->compute_units);
  json_key(out, &first, "matrix_ops");
  text_add(out, "[");
  for (size_t i = 0; i < t->op_count; i++) {
    if (i > 0) text_add(out, ", ");
    text_add_json(out, t->ops[i].name);
  }
  text_add(out, "]}");
}

static int targets(cli *c) {
  text out;
  text_init(&out);
  if (c->json) {
    text_add(&out, "[");
    for (size_t i = 0; i < target_count(); i++) {
      if (i > 0) text_add(&out, ",\n ");
      write_target_json(target_at(i), &out);
    }
    text_add(&out, "]\n");
    return cli_output(&out, EXIT_FINE);
  }
  text_addf(&out, "%-8s  %-18s  %4s  %6s  %-12s  %10s  %4s\n", "target", "product", "wave", "LDS",
            "fp8 dialect", "memory", "CUs");
  for (size_t i = 0; i < target_count(); i++) {
    const target *t = target_at(i);
    text_addf(&out, "%-8s  %-18s  %4d  %3d KB  %-12s  %5.2f TB/s  %4d\n", t->name, t->product, t->wave,
              t->lds_bytes / 1024, dtype_name(t->fp8), t->hbm_bytes_per_s / 1e12, t->compute_units);
    if (!cli_flag(c, "verbose")) continue;
    for (size_t o = 0; o < t->op_count; o++) {
      const matrix_op *op = &t->ops[o];
      text_addf(&out, "          %s (%s, k %d)\n", op->name, dtype_name(op->operand), op->k);
    }
  }
  return cli_output(&out, EXIT_FINE);
}

static const cli_option targets_options[] = {
    {"verbose", 'v', OPTION_FLAG, NULL, "also the matrix instructions that kernels use", 0, 0},
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_targets = {
    .name = "targets",
    .arguments = "",
    .summary = "list the targets that kernels can be generated for",
    .details = "Whether a target serves a spec: heddle check SPEC.\n",
    .examples = "  heddle targets\n  heddle targets --verbose\n",
    .options = targets_options,
    .fewest = 0,
    .most = 0,
    .run = targets,
    .group = GROUP_MACHINE,
};
