/* The space of specs that the campaign covers: one row a field, its values as a spec spells them. */
#ifndef HEDDLE_CAMPAIGN_SPACE_H
#define HEDDLE_CAMPAIGN_SPACE_H

#include "../../generator/emit.h"
#include "../../generator/spec.h"

enum { SPACE_MAX_VALUES = 24, SPACE_MAX_FIELDS = 48 };

/* `path`: of the spec; "section.*" for text that is spliced into a section as it is; "run.…" for what is not
 * of the spec but of a run. Values end with NULL; "-" leaves the field out, "$…" in one is a size of the
 * point. The first is the plain one. */
typedef struct space_field {
  const char *path;
  const char *values[SPACE_MAX_VALUES];
} space_field;

extern const space_field space_fields[];
int space_field_count(void);
int space_value_count(int field);
/* -1 when there is none. */
int space_find(const char *path);

/* A point: the index of a value for each field. */
typedef struct space_point {
  unsigned char at[SPACE_MAX_FIELDS];
} space_point;

/* Plain points to start from; pairs that one of them rules out fit another. */
int space_base_count(void);
space_point space_base(int index);
const char *space_value(const space_point *p, const char *path);

void space_write_spec(const space_point *p, const char *name, text *out);
/* The variant of "run.variant". */
variant space_variant(const space_point *p);

typedef struct space_answer {
  bool good;     /* valid, and every kernel of it is served on the target */
  char code[48]; /* of the first diagnostic, when not */
} space_answer;

/* Asks the generator about spec text, `on` a target. */
space_answer space_ask(const char *yaml, const variant *v, const target *on);

#endif
