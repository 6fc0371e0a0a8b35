#include "../file.h"
#include "parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_MOST = 1 << 20 /* bytes */ };

/* Takes the spec over. */
static hd_status create(spec *s, hd_contract **out_contract) {
  hd_contract *c = calloc(1, sizeof *c);
  text canonical;
  text_init(&canonical);
  contract_write(&s->contract, &canonical);
  char *words = text_take(&canonical);
  if (c == NULL || words == NULL || contract_key(&s->contract, c->key) != HD_OK) {
    spec_finish(s);
    free(words);
    free(c);
    return HD_OUT_OF_MEMORY;
  }
  atomic_init(&c->owners, 1);
  c->spec = *s;
  c->text = words;
  *out_contract = c;
  return HD_OK;
}

hd_status api_contract_of(const contract *c, const char *name, hd_contract **out_contract) {
  spec s = {.contract = *c};
  strncpy(s.name, name, sizeof s.name - 1);
  return create(&s, out_contract);
}

static hd_status parse(const char *yaml, size_t length, hd_contract **out_contract, diags *errors) {
  spec s;
  hd_status status = spec_parse(yaml, length, &s, errors);
  return status == HD_OK ? create(&s, out_contract) : status;
}

hd_status hd_contract_parse(const char *yaml, size_t length, hd_contract **out_contract,
                            hd_diagnostics *diagnostics) {
  api_call call;
  if (yaml == NULL || out_contract == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  return api_end(&call, parse(yaml, length, out_contract, call.errors));
}

hd_status hd_contract_read(const char *path, hd_contract **out_contract, hd_diagnostics *diagnostics) {
  api_call call;
  char *bytes = NULL;
  size_t length = 0;
  if (path == NULL || out_contract == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  hd_status status = file_read(AT_FDCWD, path, SPEC_MOST, &bytes, &length);
  if (status == HD_IO) diags_errorf(call.errors, "file.read", NULL, "%s: %s", path, strerror(errno));
  if (status == HD_OK) status = parse(bytes, length, out_contract, call.errors);
  free(bytes);
  return api_end(&call, status);
}

hd_status hd_contract_embedded(const hd_embedded *embedded, const char *name, hd_contract **out_contract,
                               hd_diagnostics *diagnostics) {
  api_call call;
  if (embedded == NULL || name == NULL || out_contract == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  for (uint32_t i = 0; embedded->version == HD_EMBEDDED_VERSION && i < embedded->spec_count; i++) {
    const hd_embedded_spec *s = &embedded->specs[i];
    if (strcmp(s->name, name) == 0)
      return api_end(&call, parse(s->yaml, strlen(s->yaml), out_contract, call.errors));
  }
  diags_errorf(call.errors, "embed.name", NULL, "no spec of the name %s is embedded", name);
  return api_end(&call, HD_INVALID);
}

hd_contract *api_contract_retain(const hd_contract *c) {
  hd_contract *owned = (hd_contract *)(uintptr_t)c; /* only the count changes */
  atomic_fetch_add_explicit(&owned->owners, 1, memory_order_relaxed);
  return owned;
}

void hd_contract_destroy(hd_contract *c) {
  if (c == NULL || atomic_fetch_sub_explicit(&c->owners, 1, memory_order_acq_rel) > 1) return;
  spec_finish(&c->spec);
  free(c->text);
  free(c);
}

const char *hd_contract_name(const hd_contract *c) {
  return c->spec.name;
}

const char *hd_contract_key(const hd_contract *c) {
  return c->key;
}

const char *hd_contract_text(const hd_contract *c) {
  return c->text;
}

int hd_contract_has(const hd_contract *c, hd_operation o) {
  operation own;
  return api_operation(o, &own) && contract_has_operation(&c->spec.contract, own);
}
