/* Completion for zsh: a file _heddle for a folder of $fpath. */
#include "help.h"
#include <string.h>

/* Inside '…[HERE]…' or '…:HERE:…'. */
static void add_message(const char *message, text *out) {
  for (; *message; message++) {
    if (*message == '\'')
      text_add(out, "'\\''");
    else if (strchr("[]:\\", *message))
      text_addf(out, "\\%c", *message);
    else
      text_add_bytes(out, message, 1);
  }
}

static void add_choices(const value_kind *k, text *out) {
  text_add(out, "(");
  for (size_t i = 0; k->count && i < k->count(); i++) {
    text_add(out, i > 0 ? " " : "");
    add_message(k->name_at(i), out);
  }
  text_add(out, ")");
}

static void add_action(const value_kind *k, text *out) {
  if (k->type == VALUE_FILE && k->ending && k->count) {
    text_add(out, "{_heddle_either \"");
    add_choices(k, out);
    text_addf(out, "\" \"*%s\"}", k->ending);
  } else if (k->type == VALUE_FILE && k->ending)
    text_addf(out, "_files -g \"*%s\"", k->ending);
  else if (k->type == VALUE_FILE)
    text_add(out, "_files");
  else if (k->type == VALUE_FOLDER)
    text_add(out, "_files -/");
  else if (k->type == VALUE_CHOICE)
    add_choices(k, out);
  else
    text_add(out, " ");
}

static void add_option(const cli_option *o, text *out) {
  const char *repeats = o->kind == OPTION_LIST ? "*" : "";
  for (int way = 0; way < (o->letter ? 2 : 1); way++) {
    text_addf(out, " \\\n        '%s", repeats);
    if (way == 0)
      text_addf(out, "--%s%s[", o->name, o->value ? "=" : "");
    else
      text_addf(out, "-%c%s[", o->letter, o->value ? "+" : "");
    add_message(o->help, out);
    text_add(out, "]");
    if (o->value) {
      value_kind k = value_kind_of(o->value);
      text_add(out, ":");
      add_message(o->value, out);
      text_add(out, ":");
      add_action(&k, out);
    }
    text_add(out, "'");
  }
}

static void add_verb(const cli_verb *verb, text *out) {
  text_add(out, "      _arguments -S");
  for (const cli_option *o = verb->options; o && o->name; o++)
    add_option(o, out);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) add_option(o, out);
  if (verb->most != 0 && verb->run) {
    value_kind k = value_kind_of(verb->arguments);
    text_add(out, " \\\n        '*:");
    add_message(verb->arguments, out);
    text_add(out, ":");
    add_action(&k, out);
    text_add(out, "'");
  }
  text_add(out, "\n      ;;\n");
}

static void add_list(const char *name, const cli_verb *const *verbs, text *out) {
  text_addf(out, "  local -a %s=(", name);
  for (; *verbs; verbs++) {
    text_addf(out, "\n    '%s:", cli_last_word(*verbs));
    add_message((*verbs)->summary, out);
    text_add(out, "'");
  }
  text_add(out, ")\n");
}

void complete_zsh(text *out) {
  text_add(out,
           "#compdef heddle\n# Completion of heddle for zsh; made by: heddle help --completion zsh\n\n"
           "# Names and files: an action of _arguments can't have the colons that _alternative wants.\n"
           "_heddle_either() {\n  _alternative \"names:name:$1\" \"files:file:_files -g \\\"$2\\\"\"\n}\n\n"
           "_heddle() {\n");
  add_list("verbs", cli_verbs, out);
  for (size_t i = 0; i < cli_verb_count(); i++)
    if (cli_verbs[i]->actions) {
      text name;
      text_init(&name);
      text_addf(&name, "actions_%s", cli_verbs[i]->name);
      add_list(text_string(&name), cli_verbs[i]->actions, out);
      text_finish(&name);
    }
  text_add(out, "  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
                "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n");
  for (size_t i = 0; i < cli_verb_count(); i++) {
    if (!cli_verbs[i]->actions) continue;
    text_addf(out, "    %s)\n      (( CURRENT == 2 )) && _describe action actions_%s\n", cli_verbs[i]->name,
              cli_verbs[i]->name);
    text_add(out, "      if (( CURRENT > 2 )); then\n        case $words[2] in\n          ");
    for (int a = 0; cli_verbs[i]->actions[a]; a++)
      text_addf(out, "%s%s", a > 0 ? "|" : "", cli_last_word(cli_verbs[i]->actions[a]));
    text_add(out,
             ")\n            verb=\"$verb $words[2]\"\n            shift words\n            (( CURRENT-- ))\n"
             "            ;;\n        esac\n      fi\n      ;;\n");
  }
  text_add(out, "  esac\n  case $verb in\n");
  for (size_t i = 0; i < cli_verb_count(); i++) {
    text_addf(out, "    '%s')\n", cli_verbs[i]->name);
    add_verb(cli_verbs[i], out);
    for (int a = 0; cli_verbs[i]->actions && cli_verbs[i]->actions[a]; a++) {
      text_addf(out, "    '%s')\n", cli_verbs[i]->actions[a]->name);
      add_verb(cli_verbs[i]->actions[a], out);
    }
  }
  text_add(out, "  esac\n}\n\n_heddle \"$@\"\n");
}
