/* Completion for bash. What the line says is taken from COMP_LINE, not from COMP_WORDS: these are cut at the
 * colons of devices and the equal signs of options. */
#include "help.h"
#include <string.h>

/* Verbs and their actions, each with a function. */
static void each_verb(void (*visit)(const cli_verb *verb, text *out), text *out) {
  for (size_t i = 0; i < cli_verb_count(); i++) {
    visit(cli_verbs[i], out);
    for (int a = 0; cli_verbs[i]->actions && cli_verbs[i]->actions[a]; a++)
      visit(cli_verbs[i]->actions[a], out);
  }
}

static void write_choices(const value_kind *k, text *out) {
  for (size_t i = 0; k->count && i < k->count(); i++)
    text_addf(out, "%s%s", i > 0 ? " " : "", k->name_at(i));
}

/* "files .yaml" with choices, "folders", or choices alone. */
static void write_kind(const char *word, text *out) {
  value_kind k = value_kind_of(word);
  if (k.type == VALUE_FILE)
    text_addf(out, "files='%s'; ", k.ending ? k.ending : "any");
  else if (k.type == VALUE_FOLDER)
    text_add(out, "files=/; ");
  text_add(out, "choices='");
  write_choices(&k, out);
  text_add(out, "'");
}

static void write_options(const cli_verb *verb, text *out) {
  text_addf(out, "    '%s') options='", verb->name);
  for (const cli_option *o = verb->options; o && o->name; o++)
    text_addf(out, "--%s ", o->name);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) text_addf(out, "--%s ", o->name);
  text_add(out, "'; ");
  if (verb->actions && !verb->run)
    text_add(out, "choices=''");
  else
    write_kind(verb->arguments, out);
  if (verb->actions) {
    text_add(out, "; actions='");
    for (int a = 0; verb->actions[a]; a++)
      text_addf(out, "%s%s", a > 0 ? " " : "", cli_last_word(verb->actions[a]));
    text_add(out, "'");
  }
  text_add(out, " ;;\n");
}

static void write_value(const char *verb, const cli_option *o, text *out) {
  if (!o->value) return;
  text_addf(out, "    '%s --%s'", verb, o->name);
  if (o->letter) text_addf(out, " | '%s -%c'", verb, o->letter);
  text_add(out, ") takes=1; ");
  write_kind(o->value, out);
  text_add(out, " ;;\n");
}

static void write_values(const cli_verb *verb, text *out) {
  for (const cli_option *o = verb->options; o && o->name; o++)
    write_value(verb->name, o, out);
  for (const cli_option *o = cli_common_options; o->name; o++)
    if (cli_find_option(verb, o->name, strlen(o->name)) == o) write_value(verb->name, o, out);
}

void complete_bash(text *out) {
  text_add(out, "# Completion of heddle for bash; made by: heddle help --completion bash\n\n"
                "# What VERB takes: options, actions, and its arguments as files and choices.\n"
                "_heddle_verb() {\n  options= actions= files= choices=\n  case $1 in\n");
  each_verb(write_options, out);
  text_add(out, "  esac\n}\n\n# Whether the option of \"VERB OPTION\" takes a value, and which.\n"
                "_heddle_value() {\n  takes= files= choices=\n  case $1 in\n");
  each_verb(write_values, out);
  text_add(out, "  esac\n}\n\n"
                "_heddle() {\n"
                "  local line=${COMP_LINE:0:COMP_POINT} words word verb= i value= expects=\n"
                "  local options actions files choices takes\n"
                "  read -ra words <<<\"$line\"\n"
                "  [[ $line == *[[:space:]] ]] && words+=('')\n"
                "  local last=$((${#words[@]} - 1))\n"
                "  local current=${words[last]}\n"
                "  for ((i = 1; i < last; i++)); do\n"
                "    word=${words[i]}\n"
                "    if [[ $expects ]]; then\n"
                "      expects=\n"
                "    elif [[ ! $verb ]]; then\n"
                "      [[ $word == -* ]] || { verb=$word && _heddle_verb \"$verb\"; }\n"
                "    elif [[ $word == -* ]]; then\n"
                "      _heddle_value \"$verb $word\"\n"
                "      [[ $takes ]] && expects=$word\n"
                "      _heddle_verb \"$verb\"\n"
                "    elif [[ \" $actions \" == *\" $word \"* ]]; then\n"
                "      verb=\"$verb $word\" && _heddle_verb \"$verb\"\n"
                "    fi\n"
                "  done\n"
                "  if [[ ! $verb ]]; then\n"
                "    files= choices='--help --version ");
  for (size_t i = 0; i < cli_verb_count(); i++)
    text_addf(out, "%s ", cli_verbs[i]->name);
  text_add(out,
           "'\n"
           "  elif [[ $expects ]]; then\n"
           "    _heddle_value \"$verb $expects\"\n"
           "  elif [[ $current == --*=* ]]; then\n"
           "    _heddle_value \"$verb ${current%%=*}\"\n"
           "    current=${current#*=}\n"
           "  elif [[ $current == -* ]]; then\n"
           "    files= choices=$options\n"
           "  else\n"
           "    choices=\"$actions $choices\"\n"
           "  fi\n"
           "  # NAME=FILE: behind the equal sign the file alone.\n"
           "  if [[ $current == *=* && $files ]]; then current=${current#*=} choices=; fi\n"
           "  COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
           "  if [[ $files ]]; then\n"
           "    local IFS=$'\\n' found\n"
           "    for found in $(compgen -f -- \"$current\"); do\n"
           "      if [[ -d $found ]]; then\n"
           "        COMPREPLY+=(\"$found/\")\n"
           "      elif [[ $files == any || ($files == .* && $found == *\"$files\") ]]; then\n"
           "        COMPREPLY+=(\"$found\")\n"
           "      fi\n"
           "    done\n"
           "  fi\n"
           "  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace 2>/dev/null\n"
           "  # bash replaces what follows the last of its word breaks.\n"
           "  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
           "    local before=${current%\"${current##*:}\"}\n"
           "    COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
           "  fi\n"
           "}\n\n"
           "complete -F _heddle heddle\n");
}
