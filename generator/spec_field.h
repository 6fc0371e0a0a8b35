/* Inside of the spec parser: what a row of the field table says, and the value parsers that rows name. */
#ifndef HEDDLE_SPEC_FIELD_H
#define HEDDLE_SPEC_FIELD_H

#include "spec.h"
#include "spec_yaml.h"

typedef struct spec_reader spec_reader;
typedef struct spec_field spec_field;

/* Reads `node` into the reader's spec. False: the reader has an error about it and the spec is as before. */
typedef bool spec_parse_value(spec_reader *r, const spec_field *f, const spec_node *node);

/* A word that a field takes, and what it stores. */
typedef struct spec_word {
  const char *word;
  int value;
} spec_word;

struct spec_field {
  const char *path; /* "scale.writer.qmax" */
  /* NULL: a section, whose fields are rows of their own. */
  spec_parse_value *parse;
  /* What a field left out means, as one would write it; "": nothing. Or how to work it out. Both NULL: it
   * must be given. */
  const char *fallback;
  bool (*derive)(spec_reader *r, const spec_field *f);
  size_t offset, offset2; /* of the value in struct spec; of its second half where it has one */
  const spec_word *words; /* ends with a NULL word; NULL: none */
  unsigned dtypes;        /* dtype_use, any of: formats allowed */
  double low, high;       /* numbers allowed; high 0: no bound */
  bool positive;          /* and not 0 */
  int number_kind;        /* what offset2 gets when a number stands where a word could */
  const char *halves[2];  /* names of the two halves: {"qk", "v"} */
  unsigned granularities; /* mask of 1 << granularity: where the field has a meaning; 0: everywhere */
  unsigned forms;         /* mask of 1 << select_form: likewise */
};

enum { SPEC_MAX_ERRORS = 100 };

struct spec_reader {
  spec spec; /* as read so far */
  diags *problems;
  const spec_node *nodes[SPEC_MAX_FIELDS]; /* by row: the value in the file, NULL where it is left out */
  const spec_node *keys[SPEC_MAX_FIELDS];  /* by row: the key in the file */
  bool ok[SPEC_MAX_FIELDS];                /* by row: the spec has its value, given or default */
  bool guessed[SPEC_MAX_FIELDS];           /* by row: an unknown key was most likely meant to be this */
  int errors;                              /* so far */
  hd_status status;
};

/* Adds an error at `node`; always false, so that a parser can return it. */
bool spec_reject(spec_reader *r, const char *code, const spec_field *f, const spec_node *node,
                 const char *format, ...) HD_PRINTF(5, 6);

/* The same: "PATH is FOUND, expected EXPECTED". */
bool spec_reject_type(spec_reader *r, const spec_field *f, const spec_node *node, const char *expected);

enum { SPEC_FOUND_BYTES = 64 };
/* What stands at `node`, for messages: "\"bf17\"", "a list", "nothing". Returns `buffer`. */
const char *spec_found(const spec_node *node, char buffer[SPEC_FOUND_BYTES]);

spec_parse_value spec_parse_version, spec_parse_name, spec_parse_about, spec_parse_kernels,
    spec_parse_targets;
spec_parse_value spec_parse_integer, spec_parse_integer_pair, spec_parse_integers, spec_parse_number;
spec_parse_value spec_parse_word, spec_parse_flag, spec_parse_dtype, spec_parse_dtype_pair;
/* spec_layout.c */
spec_parse_value spec_parse_k, spec_parse_v, spec_parse_tail_at, spec_parse_tail_layout, spec_parse_scale_k,
    spec_parse_scale_v;

/* The layout a scale array has when the spec does not say: its axes in the order b, h, s, d. */
bool spec_default_scale_layout(spec_reader *r, const spec_field *f);

/* Reports the first part of K's or V's page that does not lie where it can, at `at`. */
void spec_check_page(spec_reader *r, const spec_field *f, const spec_node *at, bool is_k);

extern const spec_field spec_fields[];
extern const spec_word spec_form_words[], spec_per_words[];
/* The row of the field with this path. */
int spec_row(const char *path);
/* Whether the spec has its value. */
bool spec_is_ok(const spec_reader *r, const char *path);
/* Whether what the spec says elsewhere leaves this field a meaning. */
bool spec_has_meaning(const spec_reader *r, const spec_field *f);
/* The value in the file of the field with this path; NULL where it is left out. */
const spec_node *spec_find_node(const spec_reader *r, const char *path);

/* spec_check.c: reports fields that contradict each other. */
void spec_check(spec_reader *r);

#endif
