/* A spec in the making: the text of every field, where it is from, and a note that becomes its comment. */
#ifndef HEDDLE_CLI_DRAFT_H
#define HEDDLE_CLI_DRAFT_H

#include "../cli.h"

typedef enum field_id {
  FIELD_NAME,
  FIELD_QUERY_DTYPE,
  FIELD_HEADS_PER_KV,
  FIELD_ROWS,
  FIELD_HEAD_DIM,
  FIELD_KV_DTYPE,
  FIELD_PAGE,
  FIELD_K,
  FIELD_V,
  FIELD_TAIL,
  FIELD_GRANULARITY,
  FIELD_GROUP,
  FIELD_SCALE_SOURCE,
  FIELD_SCALE_DTYPE,
  FIELD_SCALE_K,
  FIELD_SCALE_V,
  FIELD_WRITER,
  FIELD_FORM,
  FIELD_BLOCK,
  FIELD_INDEX,
  FIELD_PER,
  FIELD_CAUSAL,
  FIELD_WINDOW,
  FIELD_SINKS,
  FIELD_LOGITS_SCALE,
  FIELD_SOFTCAP,
  FIELD_OUTPUT_DTYPE,
  FIELD_LSE,
  FIELD_TARGETS,
  FIELD_COUNT
} field_id;

/* What says more wins: a default, tensors, the caller. */
typedef enum field_source { SOURCE_NONE, SOURCE_ASSUMED, SOURCE_TENSORS, SOURCE_GIVEN } field_source;

typedef struct draft_field {
  field_source source;
  text value, note;
} draft_field;

typedef struct draft {
  draft_field fields[FIELD_COUNT];
} draft;

void draft_init(draft *d);
void draft_finish(draft *d);
/* Sets the value unless what is there says more. `note` may be NULL. */
void draft_set(draft *d, field_id field, field_source source, const char *note, const char *format, ...)
    HD_PRINTF(5, 6);
bool draft_has(const draft *d, field_id field);
const char *draft_value(const draft *d, field_id field); /* "" when not set */
/* "kv.page" */
const char *draft_path(field_id field);
/* Which option of heddle new gives it, or NULL. */
const char *draft_option(field_id field);
/* The spec, with a comment behind every field that has a note. */
void draft_write(const draft *d, const char *about, text *out);

#endif
