#include "plan.h"

contract plan_contract(const contract *c, const target *t) {
  contract resolved = contract_resolve(c, t->fp8);
  layout *const layouts[] = {&resolved.kv.k, &resolved.kv.v, &resolved.kv.tail.layout, &resolved.scale.k,
                             &resolved.scale.v};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    layout_canonicalize(layouts[i]);
  return resolved;
}

hd_status plan_solve(const contract *c, const variant *v, const target *t, decode_solution *out_solution,
                     diags *errors) {
  decode_solution s = {.contract = plan_contract(c, t)};
  hd_status status = plan_decode(&s.contract, v, t, &s.plan, errors);
  s.on_line = status == HD_OK && s.plan.structure == STRUCTURE_RING && t->family == FAMILY_CUDA;
  if (s.on_line) status = plan_ring(&s.contract, v, t, &s.ring, errors);
  if (status == HD_OK) *out_solution = s;
  return status;
}
