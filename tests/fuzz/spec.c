#include "fuzz.h"
#include "../../generator/emit.h"
#include "../../generator/spec.h"
#include <string.h>

/* The canonical text is itself a spec that means the same contract. */
static void hold_canonical(const contract *c) {
  char key[65], key_again[65];
  spec again;
  text canonical;
  diags problems;
  diags_init(&problems);
  text_init(&canonical);
  contract_write(c, &canonical);
  FUZZ_HOLD(spec_parse(text_string(&canonical), canonical.length, &again, &problems) == HD_OK);
  FUZZ_HOLD(contract_key(c, key) == HD_OK && contract_key(&again.contract, key_again) == HD_OK);
  FUZZ_HOLD(strcmp(key, key_again) == 0);
  spec_finish(&again);
  text_finish(&canonical);
  diags_finish(&problems);
}

/* emit_check and emit_operation give one answer, and the descriptor travels. */
static void hold_emission(const contract *c, operation o, const target *t) {
  const variant chosen = {0};
  emission e;
  diags problems;
  diags_init(&problems);
  hd_status can = emit_check(c, o, &chosen, t, &problems);
  FUZZ_HOLD(can == HD_OK || (can == HD_DECLINED && diags_errors(&problems) > 0));
  hd_status did = emit_operation(c, o, &chosen, t, templates_embedded(), &e, &problems);
  FUZZ_HOLD(did == can);
  if (did == HD_OK) {
    descriptor again;
    text json, json_again;
    text_init(&json);
    text_init(&json_again);
    descriptor_write(&e.descriptor, &json);
    FUZZ_HOLD(descriptor_parse(text_string(&json), json.length, &again) == HD_OK);
    descriptor_write(&again, &json_again);
    FUZZ_HOLD(strcmp(text_string(&json), text_string(&json_again)) == 0);
    FUZZ_HOLD(strlen(e.source) > 0);
    text_finish(&json);
    text_finish(&json_again);
    emission_finish(&e);
  }
  diags_finish(&problems);
}

int fuzz_spec(const uint8_t *bytes, size_t size) {
  spec s;
  diags problems;
  text rendered;
  diags_init(&problems);
  text_init(&rendered);
  char *source = strndup((const char *)bytes, size);
  hd_status status = spec_parse((const char *)bytes, size, &s, &problems);
  FUZZ_HOLD(status == HD_OK || (status == HD_DECLINED && diags_errors(&problems) > 0));
  diags_render(&problems, "spec.yaml", source, &rendered);
  diags_render_json(&problems, &rendered);
  if (status == HD_OK) {
    uint32_t hash = fuzz_hash(bytes, size);
    const target *t = target_at(hash % target_count());
    contract c = contract_resolve(&s.contract, t->fp8);
    hold_canonical(&s.contract);
    hold_canonical(&c);
    hold_emission(&s.contract, hash / 64 % 2 ? OPERATION_DECODE : OPERATION_WRITE, t);
    spec_finish(&s);
  }
  free(source);
  text_finish(&rendered);
  diags_finish(&problems);
  return 0;
}
