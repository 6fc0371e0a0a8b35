#include "values.h"
#include "../../generator/dtype_words.h"
#include "../launch/launch.h"
#include "codes.h"
#include "new/readings.h"
#include "shipped.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *target_name_at(size_t index) {
  return target_at(index)->name;
}

enum { MAX_DEVICES = 32, DEVICE_NAME = 24 };

/* cuda:0, hip:0 and an emulated device for every target that one can be of. */
static char device_names[MAX_DEVICES][DEVICE_NAME];

static size_t device_count(void) {
  size_t count = 0;
  snprintf(device_names[count++], DEVICE_NAME, "cuda:0");
  snprintf(device_names[count++], DEVICE_NAME, "hip:0");
  for (size_t t = 0; t < target_count() && count < MAX_DEVICES; t++)
    if (target_at(t)->family != FAMILY_CUDA)
      snprintf(device_names[count++], DEVICE_NAME, "emu:%s", target_at(t)->name);
  return count;
}

static const char *device_name_at(size_t index) {
  return device_names[index];
}

/* cuda:N and hip:N with any N; of emulated devices those there are. */
static bool device_fits(const char *value) {
  static const char *const numbered[] = {"cuda:", "hip:"};
  for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
    size_t length = strlen(numbered[i]);
    if (strncmp(value, numbered[i], length) == 0)
      return value[length] && value[length + strspn(value + length, "0123456789")] == 0;
  }
  return false;
}

/* "gfx950" is near emu:gfx950, and "cuda" near cuda:0. */
static const char *device_nearest(const char *value) {
  size_t count = device_count(), length = strlen(value);
  for (size_t i = 0; i < count; i++) {
    const char *colon = strchr(device_names[i], ':');
    bool is_kind =
        length == (size_t)(colon - device_names[i]) && strncmp(value, device_names[i], length) == 0;
    if (strcmp(value, colon + 1) == 0 || is_kind) return device_names[i];
  }
  return cli_nearest(value, count, device_name_at);
}

/* "mi300x" is gfx942. */
static const char *target_nearest(const char *value) {
  for (size_t i = 0; i < target_count(); i++)
    if (target_is_sold_as(target_at(i), value)) return target_at(i)->name;
  return cli_nearest(value, target_count(), target_name_at);
}

static size_t kernel_count(void) {
  return OPERATION_COUNT;
}
static const char *kernel_name_at(size_t index) {
  return operation_name((operation)index);
}

/* Choices that are words: NAME_count and NAME_at of a list. */
#define WORDS(name, ...)                                                                                     \
  static const char *const name##_words[] = {__VA_ARGS__};                                                   \
  static size_t name##_count(void) {                                                                         \
    return sizeof name##_words / sizeof *name##_words;                                                       \
  }                                                                                                          \
  static const char *name##_name_at(size_t index) {                                                          \
    return name##_words[index];                                                                              \
  }

WORDS(compiler, "auto", "hiprtc", "llvm", "nvrtc")
WORDS(preset, "decode", "first", "tiny", "random")
WORDS(moment, "auto", "always", "never")
WORDS(shell, "bash", "zsh", "fish")
WORDS(bool, "true", "false")
WORDS(sinks, "none", "per_head")
WORDS(source, "memory", "argument")
WORDS(none, "none")
WORDS(language, "c")
#define X(name, word, axes) word,
WORDS(granularity, GRANULARITY_LIST(X))
#undef X
#define X(name, word) word,
WORDS(form, SELECT_FORM_LIST(X))
WORDS(per, SELECT_PER_LIST(X))
#undef X

/* Choices that are the formats of a use. */
static size_t count_of_use(dtype_use use) {
  size_t count = 0;
  for (int i = 0; i < DTYPE_COUNT; i++)
    count += dtype_serves(dtype_listed(i), use);
  return count;
}
static const char *name_of_use(dtype_use use, size_t index) {
  int i = 0;
  while (!dtype_serves(dtype_listed(i), use) || index-- > 0)
    i++;
  return dtype_name(dtype_listed(i));
}
#define FORMATS(name, use)                                                                                   \
  static size_t name##_count(void) {                                                                         \
    return count_of_use(use);                                                                                \
  }                                                                                                          \
  static const char *name##_name_at(size_t index) {                                                          \
    return name_of_use(use, index);                                                                          \
  }                                                                                                          \
  static const char *name##_nearest(const char *value) {                                                     \
    const guess near = dtype_guess(value, use);                                                              \
    return cli_guessed(&near, "");                                                                           \
  }

FORMATS(dtype, USE_CACHE)
FORMATS(query_dtype, USE_QUERY)
FORMATS(output_dtype, USE_OUTPUT)
FORMATS(scale_dtype, (dtype_use)(USE_SCALE | USE_GROUP_SCALE))

/* "q=": what comes before a file. */
static char tensor_names[TENSOR_COUNT][32];
static size_t tensor_name_count(void) {
  for (int i = 0; i < TENSOR_COUNT; i++)
    snprintf(tensor_names[i], sizeof tensor_names[i], "%s=", tensor_name_text((tensor_name)i));
  return TENSOR_COUNT;
}
static const char *tensor_name_at(size_t index) {
  return tensor_names[index];
}

static const value_kind kinds[] = {
    {"SPEC", VALUE_FILE, ".yaml", shipped_count, shipped_name_at, true, NULL, NULL},
    {"SPEC|CODE_OBJECT", VALUE_FILE, NULL, shipped_count, shipped_name_at, true, NULL, NULL},
    {"RECORD", VALUE_FILE, ".yaml", NULL, NULL, true, NULL, NULL},
    {"PACK", VALUE_FILE, ".pack", NULL, NULL, true, NULL, NULL},
    {"FILE", VALUE_FILE, NULL, NULL, NULL, true, NULL, NULL},
    {"PATH", VALUE_FILE, NULL, NULL, NULL, true, NULL, NULL},
    {"PATH|none", VALUE_FILE, ".yaml", none_count, none_name_at, true, NULL, NULL},
    {"DIR", VALUE_FOLDER, NULL, NULL, NULL, true, NULL, NULL},
    {"NAME=FILE", VALUE_FILE, NULL, tensor_name_count, tensor_name_at, true, NULL, NULL},
    {"TARGET", VALUE_CHOICE, NULL, target_count, target_name_at, false, NULL, target_nearest},
    {"ARCHITECTURE", VALUE_CHOICE, NULL, target_count, target_name_at, true, NULL, NULL},
    {"DEVICE", VALUE_CHOICE, NULL, device_count, device_name_at, false, device_fits, device_nearest},
    {"KERNEL", VALUE_CHOICE, NULL, kernel_count, kernel_name_at, false, NULL, NULL},
    {"COMPILER", VALUE_CHOICE, NULL, compiler_count, compiler_name_at, false, NULL, NULL},
    {"PRESET", VALUE_CHOICE, NULL, preset_count, preset_name_at, false, NULL, NULL},
    {"WHEN", VALUE_CHOICE, NULL, moment_count, moment_name_at, false, NULL, NULL},
    {"SHELL", VALUE_CHOICE, NULL, shell_count, shell_name_at, false, NULL, NULL},
    {"CODE", VALUE_CHOICE, NULL, code_count, code_name_at, true, NULL, NULL},
    {"VERB", VALUE_CHOICE, NULL, cli_verb_count, cli_verb_name_at, true, NULL, NULL},
    {"DTYPE", VALUE_CHOICE, NULL, dtype_count, dtype_name_at, false, NULL, dtype_nearest},
    {"DTYPE[,DTYPE]", VALUE_CHOICE, NULL, dtype_count, dtype_name_at, true, NULL, dtype_nearest},
    {"QUERY_DTYPE", VALUE_CHOICE, NULL, query_dtype_count, query_dtype_name_at, false, NULL,
     query_dtype_nearest},
    {"OUTPUT_DTYPE", VALUE_CHOICE, NULL, output_dtype_count, output_dtype_name_at, false, NULL,
     output_dtype_nearest},
    {"SCALE_DTYPE", VALUE_CHOICE, NULL, scale_dtype_count, scale_dtype_name_at, false, NULL,
     scale_dtype_nearest},
    {"LAYOUT", VALUE_CHOICE, NULL, layout_name_count, layout_name_at, false, NULL, NULL},
    {"GRANULARITY", VALUE_CHOICE, NULL, granularity_count, granularity_name_at, false, NULL, NULL},
    {"FORM", VALUE_CHOICE, NULL, form_count, form_name_at, false, NULL, NULL},
    {"PER", VALUE_CHOICE, NULL, per_count, per_name_at, false, NULL, NULL},
    {"BOOL", VALUE_CHOICE, NULL, bool_count, bool_name_at, false, NULL, NULL},
    {"SOURCE", VALUE_CHOICE, NULL, source_count, source_name_at, false, NULL, NULL},
    {"SINKS", VALUE_CHOICE, NULL, sinks_count, sinks_name_at, false, NULL, NULL},
    {"LANGUAGE", VALUE_CHOICE, NULL, language_count, language_name_at, false, NULL, NULL},
};

value_kind value_kind_of(const char *word) {
  word += word[0] == '[';
  size_t length = strcspn(word, ". ");
  if (length > 0 && word[length - 1] == ']' && !memchr(word, '[', length)) length--;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strlen(kinds[i].word) == length && strncmp(kinds[i].word, word, length) == 0) return kinds[i];
  return (value_kind){.type = VALUE_WORD, .open = true};
}

const char *value_type_name(value_type type) {
  static const char *const names[] = {"word", "file", "folder", "choice"};
  return names[type];
}

static bool is_choice(const value_kind *k, const char *value) {
  size_t count = k->count();
  for (size_t i = 0; i < count; i++)
    if (strcmp(k->name_at(i), value) == 0) return true;
  return k->fits && k->fits(value);
}

int value_check(const cli *c, const cli_option *o, const char *value) {
  value_kind k = value_kind_of(o->value ? o->value : "");
  if (k.open || is_choice(&k, value)) return EXIT_FINE;
  size_t count = k.count();
  const char *near = k.nearest ? k.nearest(value) : cli_nearest(value, count, k.name_at);
  text words;
  text_init(&words);
  for (const char *letter = k.word; *letter; letter++) {
    char small = (char)tolower((unsigned char)*letter);
    text_add_bytes(&words, &small, 1);
  }
  text_addf(&words, " '%s'", value);
  if (near) text_addf(&words, " (did you mean %s?)", near);
  for (size_t i = 0; i < count; i++)
    text_addf(&words, "%s%s", i == 0 ? ": " : i + 1 < count ? ", " : " or ", k.name_at(i));
  int code = cli_usage(c, "unknown %s", text_string(&words));
  text_finish(&words);
  return code;
}
