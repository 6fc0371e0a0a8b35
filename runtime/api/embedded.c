/* Kernels that lie in the program: found by contract, operation, target and variant, with no compiler, cache
 * or generator asked. */
#include "parts.h"
#include <string.h>

hd_status hd_context_add_embedded(hd_context *c, const hd_embedded *embedded, hd_diagnostics *diagnostics) {
  api_call call;
  if (c == NULL || embedded == NULL) return HD_INVALID;
  api_begin(&call, diagnostics);
  hd_status status = api_alive(c, call.errors) ? HD_OK : HD_INVALID;
  if (status == HD_OK && embedded->version != HD_EMBEDDED_VERSION) {
    diags_errorf(call.errors, "embed.version", NULL, "embedded kernels of version %u, this heddle takes %d",
                 embedded->version, HD_EMBEDDED_VERSION);
    status = HD_INVALID;
  }
  if (status == HD_OK && c->embedded_count == API_MAX_EMBEDDED) {
    diags_errorf(call.errors, "embed.count", NULL, "a context takes %d sets of embedded kernels",
                 API_MAX_EMBEDDED);
    status = HD_INVALID;
  }
  if (status == HD_OK) c->embedded[c->embedded_count++] = embedded;
  return api_end(&call, status);
}

/* `any_variant`: the variant doesn't matter. */
static bool is_wanted(const hd_kernel *k, const char *here, bool any_variant, const descriptor *d) {
  text name;
  text_init(&name);
  variant_write(&k->variant, &name);
  bool wanted = strcmp(d->operation, operation_name(k->operation)) == 0 && strcmp(d->target, here) == 0 &&
                (any_variant || strcmp(d->variant, text_string(&name)) == 0);
  text_finish(&name);
  return wanted;
}

static const hd_embedded_kernel *find(const hd_context *c, const hd_kernel *k, bool any_variant,
                                      descriptor *out_descriptor) {
  for (int set = c->embedded_count - 1; set >= 0; set--)
    for (uint32_t i = 0; i < c->embedded[set]->kernel_count; i++) {
      const hd_embedded_kernel *e = &c->embedded[set]->kernels[i];
      if (strcmp(e->key, k->contract_key) == 0 &&
          descriptor_parse(e->descriptor, strlen(e->descriptor), out_descriptor) == HD_OK &&
          is_wanted(k, c->session.target->name, any_variant, out_descriptor))
        return e;
    }
  return NULL;
}

const hd_embedded_kernel *api_embedded_find(const hd_context *c, const hd_kernel *k,
                                            descriptor *out_descriptor) {
  const hd_embedded_kernel *e = find(c, k, false, out_descriptor);
  return e != NULL || !k->free_variant ? e : find(c, k, true, out_descriptor);
}
