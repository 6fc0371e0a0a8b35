/* The command line: verbs and options are tables; a verb is a row with a function.
 *
 * Results go to standard output, diagnostics to standard error. Every verb returns one of the exit codes
 * below. */
#ifndef HEDDLE_CLI_H
#define HEDDLE_CLI_H

#include "../../generator/spec.h"
#include "../../generator/emit.h"
#include "../../generator/guess.h"
#include "../compile/compile.h"

enum {
  EXIT_FINE = 0,
  EXIT_DECLINED = 1, /* declined, refused, or two things differ */
  EXIT_USAGE = 2,
  EXIT_FAILED = 3 /* could not be carried out: files, memory, compilers, devices */
};

typedef enum option_kind {
  OPTION_FLAG,   /* --json */
  OPTION_TEXT,   /* --device NAME, the last one wins */
  OPTION_LIST,   /* --target NAME, may be repeated */
  OPTION_INT,    /* --split N, between minimum and maximum */
  OPTION_NUMBER, /* --timeout SECONDS, positive */
} option_kind;

typedef struct cli_option {
  const char *name; /* without dashes; NULL ends a table */
  char letter;      /* 0 for none */
  option_kind kind;
  const char *value; /* how --help calls the value */
  const char *help;
  int64_t minimum, maximum; /* OPTION_INT */
} cli_option;

typedef struct cli cli;

/* What --help puts under one heading. */
typedef enum cli_group { GROUP_SPECS, GROUP_KERNELS, GROUP_LAUNCHES, GROUP_MACHINE, GROUP_COUNT } cli_group;

/* Which variables of the environment a verb looks at (environment.c names them). */
enum {
  ENV_CACHE = 1 << 0,
  ENV_COMPILERS = 1 << 1,
  ENV_DEVICES = 1 << 2,
  ENV_TUNED = 1 << 3,
  ENV_TEMPLATES = 1 << 4,
};

/* A verb, or an action of one ("cache ls"). Help, manual pages, completion and did-you-mean are made of
 * this. The words of `arguments` and of options' values say what may stand there (values.h). */
typedef struct cli_verb {
  const char *name;
  const char *arguments; /* "SPEC..." as --help shows them */
  const char *summary;   /* one line */
  const char *details;   /* paragraphs, may be NULL */
  const char *examples;  /* one command a line */
  const char *result;    /* what the exit codes mean here, may be NULL */
  const cli_option *options;
  int fewest, most;                      /* positional arguments; most -1: any number */
  int (*run)(cli *c);                    /* NULL: one of the actions has to be named */
  const struct cli_verb *const *actions; /* ends with NULL; NULL: the verb has none */
  unsigned environment;
  cli_group group;
} cli_verb;

enum { CLI_MAX_ARGUMENTS = 4096 };

typedef struct cli_value {
  const cli_option *option;
  const char *text;
} cli_value;

/* What a verb gets. Lives for the whole run of the verb. */
struct cli {
  const cli_verb *verb;
  int value_count, argument_count;
  cli_value *values;
  const char **arguments; /* positional */
  bool json;
};

extern const cli_verb *const cli_verbs[];     /* ends with NULL */
extern const cli_option cli_common_options[]; /* of every verb; a verb's own one of the same name wins */

size_t cli_verb_count(void);
const char *cli_verb_name_at(size_t index);
const cli_verb *cli_find_verb(const char *name);
/* The action that the first word which is no option names; it is taken out of the words. The verb itself
 * where it names none and the verb does without, NULL after a message on standard error. */
const cli_verb *cli_find_action(const cli_verb *verb, int *argc, char **argv);
/* A verb's own option or a common one, by name or letter; NULL: there is none. */
const cli_option *cli_find_option(const cli_verb *verb, const char *name, size_t length);
const cli_option *cli_find_letter(const cli_verb *verb, char letter);
/* "ls" of "cache ls". */
const char *cli_last_word(const cli_verb *verb);

/* Fills `c` from argv (the words after the verb). EXIT_FINE, or EXIT_USAGE with a message on standard error.
 */
int cli_parse(cli *c, const cli_verb *verb, int argc, char **argv);
void cli_finish(cli *c);

/* Values by option name. */
bool cli_flag(const cli *c, const char *name);
const char *cli_text(const cli *c, const char *name); /* NULL when not given */
int64_t cli_int(const cli *c, const char *name, int64_t otherwise);
double cli_number(const cli *c, const char *name, double otherwise);
/* The index-th value of a repeated option, or NULL. */
const char *cli_list(const cli *c, const char *name, int index);

/* A usage error about this verb on standard error; returns EXIT_USAGE. */
int cli_usage(const cli *c, const char *format, ...) HD_PRINTF(2, 3);
/* The nearest of `count` names (by `name_at`), those that are equally near with "or", for a sentence; NULL
 * when none is near. Good until the next call. */
const char *cli_nearest(const char *word, size_t count, const char *(*name_at)(size_t index));
/* The words of a guess in a sentence, "a or b", each behind `before_each`; NULL: there are none. Good until
 * the next call. */
const char *cli_guessed(const guess *g, const char *before_each);

/* Writes a report to standard output and finishes it; `code`, or EXIT_FAILED when memory or output failed.
 * With --quiet and without --json it is not written. */
int cli_output(text *t, int code);
/* The same for what the verb was asked to make, which --quiet leaves: source, a key, a record. */
int cli_output_product(text *t, int code);
int cli_exit_code(hd_status status);

/* Reads a whole file ("-": standard input) of at most `limit` bytes; NUL-terminated, owned by the caller. */
hd_status cli_read_file(const char *path, size_t limit, char **out_bytes, size_t *out_length, diags *d);
/* Writes through a temporary name in the same folder, then renames. */
hd_status cli_write_file(const char *path, const void *bytes, size_t length, diags *d);
hd_status cli_write_text(const char *path, const text *contents,
                         diags *d); /* nothing of one that is not whole */

hd_status cli_make_folders(const char *path, diags *d); /* mkdir -p */
/* "NAME.decode": the spec's name as a file name; anything but letters, digits, - _ and . becomes -. */
void cli_write_stem(const spec *s, const char *operation_text, text *out);

/* A spec with the text it came from, for messages that show the line. */
typedef struct spec_file {
  const char *path;
  char *source;
  size_t length;
  spec spec;
  bool parsed;
} spec_file;

/* Reads and parses. Diagnostics are left in `d`, also warnings on HD_OK. Finish in any case. */
hd_status spec_file_read(const char *path, spec_file *out_file, diags *d);
void spec_file_finish(spec_file *f);
/* Gives diagnostics that name a field, but no line, the field's place in the file. */
void spec_file_locate(const spec_file *f, diags *d);
/* Copies diagnostics that `to` does not have yet (several targets decline for the same reason). */
void diags_add_new(diags *to, const diags *from, diag_severity severity);
/* Renders to standard error, with the offending lines of the spec where there is one (`f` may be NULL). */
void cli_complain(const char *path, const spec_file *f, diags *d);
/* What to type next, on standard error, as the first error in `d` suggests. Nothing with --quiet. */
void cli_hint(const cli *c, const char *path, const diags *d);
/* Renders `d`; with --json also {"ok": false, …} on standard output. Finishes `d`; returns the exit code for
 * `status`. */
int cli_fail(const cli *c, const char *path, const spec_file *f, diags *d, hd_status status);

/* The targets to work on: the --target options, else the spec's list, else every target (`*out_from_spec`
 * says whether they were asked for by name, so that a decline is an answer and not just a target that doesn't
 * apply). EXIT_USAGE on an unknown name. */
typedef struct target_list {
  int count;
  const target *items[SPEC_MAX_LIST];
  bool named;
} target_list;
int cli_targets(const cli *c, const spec *s, target_list *out_list);
/* Whether one of them at least serves it: of targets that nobody named the others are left out then. */
bool cli_serves(const target_list *targets, const contract *c, operation o, const variant *v);

/* The operations to work on: the --kernel options, else what the contract has. */
typedef struct operation_list {
  int count;
  operation items[OPERATION_COUNT];
} operation_list;
int cli_operations(const cli *c, const spec_file *f, operation_list *out_list);
int cli_variant(const cli *c, variant *out_variant);
int cli_compiler(const cli *c, compiler_kind *out_kind);

/* JSON helpers: `"name": value` with a comma before all but the first member of an object. */
void json_key(text *t, bool *first, const char *name);
void json_text(text *t, bool *first, const char *name, const char *value);
void json_int(text *t, bool *first, const char *name, int64_t value);
void json_bool(text *t, bool *first, const char *name, bool value);
/* Infinities and NaN become null. */
void json_number(text *t, bool *first, const char *name, double value);

/* Options that several verbs share, as table rows. */
#define OPTION_ROW_JSON                                                                                      \
  { "json", 0, OPTION_FLAG, NULL, "print the result as JSON (docs/json.md has the fields)", 0, 0 }
#define OPTION_ROW_TARGET                                                                                    \
  {                                                                                                          \
    "target", 0, OPTION_LIST, "TARGET", "work on this target; may be repeated (default: the spec's list)",   \
        0, 0                                                                                                 \
  }
#define OPTION_ROW_KERNEL                                                                                    \
  { "kernel", 0, OPTION_LIST, "KERNEL", "write or decode; may be repeated (default: all the spec has)", 0, 0 }
#define OPTION_ROW_VARIANT                                                                                   \
  {                                                                                                          \
    "variant", 0, OPTION_TEXT, "VARIANT", "tuning variant, such as w4 (default: the generator's choice)", 0, \
        0                                                                                                    \
  }
#define OPTION_ROW_COMPILER                                                                                  \
  { "compiler", 0, OPTION_TEXT, "COMPILER", "hiprtc, llvm, nvrtc or auto (default: auto)", 0, 0 }
#define OPTION_ROW_TUNED                                                                                     \
  { "tuned", 0, OPTION_TEXT, "PATH|none", "tuned records: a file, a folder or none (docs/tuning.md)", 0, 0 }
#define OPTION_ROW_JOBS                                                                                      \
  { "jobs", 'j', OPTION_INT, "N", "compile N kernels at a time (default: the number of cores)", 1, 1024 }
#define OPTION_ROW_TIMEOUT                                                                                   \
  { "timeout", 0, OPTION_NUMBER, "SECONDS", "give up on a compile after this long (default: 60)", 0, 0 }
#define OPTION_ROW_SEED                                                                                      \
  { "seed", 0, OPTION_INT, "N", "seed of inputs and pages (default: 1)", 0, INT64_MAX }
#define OPTION_ROW_PAGE                                                                                      \
  { "page", 0, OPTION_INT, "N", "another page size than the spec's", 1, 1 << 20 }
#define OPTION_ROW_PICTURE                                                                                   \
  { "svg", 0, OPTION_TEXT, "FILE", "draw the picture into a file, not as text", 0, 0 }
#define OPTION_ROW_END                                                                                       \
  { NULL, 0, OPTION_FLAG, NULL, NULL, 0, 0 }

#endif
