/* From a contract to source: plan, then emit. Pure: same input, same bytes. */
#ifndef HEDDLE_EMIT_H
#define HEDDLE_EMIT_H

#include "contract.h"
#include "descriptor.h"
#include "target.h"

typedef enum structure {
  STRUCTURE_AUTO,
  STRUCTURE_DIRECT, /* loads go straight into fragment registers */
  STRUCTURE_RING    /* pages are copied into a ring of stages in LDS */
} structure;

/* What may change speed but never results. Zero-initialised: the generator's own choice. Text form:
 * "default", or the parts that are set, joined by '-': "direct" or "ring", "line", "w8" (waves), "t64"
 * (tokens of a tile), "s4" (stages), "o2" (workgroups resident). */
typedef struct variant {
  structure structure;
  int waves;    /* per workgroup that compute */
  int tile;     /* tokens of a stage, in a ring that belongs to a workgroup */
  int stages;   /* of the ring */
  int resident; /* workgroups a compute unit is to hold: bounds registers and LDS */
  bool line;    /* workgroups share out the line of tiles; the ring on sm_90 always does */
} variant;

bool variant_parse(const char *name, variant *out_variant);
void variant_write(const variant *v, text *out);

/* Looks up a template by file name ("decode.hip"): its text and length, or NULL. */
typedef struct template_source {
  const char *(*find)(void *user, const char *name, size_t *out_length);
  void *user;
} template_source;
/* The templates that were embedded when heddle was built. */
const template_source *templates_embedded(void);

typedef struct emission {
  char *source; /* HIP C++, freestanding; NUL-terminated, owned */
  descriptor descriptor;
} emission;

/* HD_DECLINED: diagnostics name the field the generator does not serve (codes "decline.…"). The contract may
 * hold fp8_e4m3; it is resolved for the target. */
hd_status emit_operation(const contract *c, operation o, const variant *v, const target *t,
                         const template_source *templates, emission *out_emission, diags *errors);
void emission_finish(emission *e);
/* The same answer without emitting: HD_OK or HD_DECLINED with diagnostics. */
hd_status emit_check(const contract *c, operation o, const variant *v, const target *t, diags *errors);
/* SHA-256 over generator and template texts, hex: changes whenever emitted source may. */
const char *emit_generator_sum(void);

#endif
