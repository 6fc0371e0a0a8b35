#include "settings.h"
#include "../verify/oracle.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What became of one --set. */
typedef struct setting {
  const cli *cli;
  const contract *terms;
  operation operation;
  settings *out;
  double value;
} setting;

static int set_logits_scale(const setting *s) {
  if (!isfinite((float)s->value))
    return cli_usage(s->cli, "logits_scale takes a finite fp32 number, not %g", s->value);
  if (!operation_attends(s->operation))
    return cli_usage(s->cli, "%s takes no logits_scale", operation_name(s->operation));
  if (s->terms->logits.scale != LOGITS_ARGUMENT)
    return cli_usage(s->cli, "the contract fixes logits.scale: it is not an argument");
  s->out->logits_scale = s->value;
  return EXIT_FINE;
}

static int set_scale(const setting *s, bool is_k, scale_number *out) {
  if (!bind_takes_number(s->terms, is_k))
    return cli_usage(s->cli, "the contract has no %c_scale that is a number: scale.source is not argument%s",
                     is_k ? 'k' : 'v', s->terms->scale.argument ? " for V, which lies in K" : "");
  if (isfinite(s->value) && !isfinite((float)s->value))
    return cli_usage(s->cli, "%c_scale takes an fp32 number, not %g", is_k ? 'k' : 'v', s->value);
  *out = (scale_number){true, (float)s->value};
  return EXIT_FINE;
}

static int set_k_scale(const setting *s) {
  return set_scale(s, true, &s->out->k_scale);
}

static int set_v_scale(const setting *s) {
  return set_scale(s, false, &s->out->v_scale);
}

static const struct {
  const char *name;
  int (*set)(const setting *s);
} names[] = {{"logits_scale", set_logits_scale}, {"k_scale", set_k_scale}, {"v_scale", set_v_scale}};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

static int set_one(setting *s, const char *option) {
  size_t length = strcspn(option, "=");
  char *end;
  int i = 0;
  while (i < NAME_COUNT && (strlen(names[i].name) != length || memcmp(names[i].name, option, length) != 0))
    i++;
  if (i == NAME_COUNT || option[length] != '=')
    return cli_usage(s->cli, "--set takes logits_scale, k_scale or v_scale =NUMBER, not '%s'", option);
  const char *number = option + length + 1;
  s->value = strtod(number, &end);
  if (end == number || *end) return cli_usage(s->cli, "%s takes a number, not '%s'", names[i].name, number);
  return names[i].set(s);
}

int settings_read(const cli *c, const contract *terms, operation o, settings *out) {
  setting s = {.cli = c, .terms = terms, .operation = o, .out = out};
  const char *option;
  int code = EXIT_FINE;
  *out = (settings){.logits_scale = oracle_logits_scale(terms, 1.0 / sqrt((double)terms->head_dim.qk))};
  for (int i = 0; code == EXIT_FINE && (option = cli_list(c, "set", i)); i++)
    code = set_one(&s, option);
  return code;
}

void settings_json(const settings *s, operation o, text *out, bool *first) {
  if (operation_attends(o)) json_number(out, first, "logits_scale", s->logits_scale);
  if (s->k_scale.given) json_number(out, first, "k_scale", (double)s->k_scale.value);
  if (s->v_scale.given) json_number(out, first, "v_scale", (double)s->v_scale.value);
}
