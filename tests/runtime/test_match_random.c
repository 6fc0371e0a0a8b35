/* Claims about dispatch: asking and launching agree on random requests. */
#include "match_fixture.h"

/* One random fault, or what only looks like one. */
static void disturb(match_request *r, uint64_t *state) {
  int name = random_below(state, TENSOR_COUNT);
  tensor *t = &r->tensors.by_name[name];
  int at = t->rank > 0 ? random_below(state, t->rank) : 0;
  const int64_t numbers[] = {-1,        0,        1, 2, 3, 7, 16, 64, 4096, INT32_MAX, (int64_t)1 << 40,
                             INT64_MAX, INT64_MIN};
  int64_t number = numbers[random_below(state, sizeof numbers / sizeof numbers[0])];
  scale_number *scale = random_below(state, 2) ? &r->tensors.k_scale : &r->tensors.v_scale;
  switch (random_below(state, 9)) {
  case 0:
    t->dtype = (dtype)random_below(state, DTYPE_COUNT);
    break;
  case 1:
    t->shape[at] = number;
    break;
  case 2:
    strided(r, (tensor_name)name)->strides[at] = number;
    break;
  case 3:
    if (strided(r, (tensor_name)name)->strides[0] < (int64_t)1 << 40) t->strides[0] += 64;
    break;
  case 4:
    t->data += (uint64_t)random_below(state, 33);
    break;
  case 5:
    r->tensors.present[name] = !r->tensors.present[name];
    break;
  case 6:
    t->rank = random_below(state, 8);
    break;
  case 7:
    scale->given = !scale->given;
    break;
  default:
    strided(r, (tensor_name)name);
  }
}

static int code_count(const diags *d, const char *family) {
  int count = 0;
  for (size_t i = 0; i < d->count; i++)
    count += strncmp(d->items[i].code, family, strlen(family)) == 0;
  return count;
}

Test(match, asking_and_launching_agree_on_random_requests) {
  enum { REQUESTS = 20000 };
  uint64_t state = 20260;
  int served = 0, declined_by_tensors = 0;
  for (int i = 0; i < REQUESTS; i++) {
    contract c = random_contract(&state);
    operation o = random_below(&state, 2) ? OPERATION_DECODE : OPERATION_WRITE;
    const target *t = target_at((size_t)random_below(&state, (int)target_count()));
    int64_t dims[DIM_COUNT];
    memcpy(dims, usual_dims, sizeof dims);
    dims[DIM_KV_HEADS] = 1 + random_below(&state, 4);
    dims[DIM_PAGES] = random_below(&state, 5);
    dims[DIM_SEQS] = random_below(&state, 4);
    match_request r = request_for(&c, o, t->name, dims);
    for (int faults = random_below(&state, 3); faults > 0; faults--)
      disturb(&r, &state);
    r.longest = 0;
    match_answer a;
    diags planned, bound;
    diags_init(&planned);
    diags_init(&bound);
    const variant v = {0};
    contract resolved = contract_resolve(&c, t->fp8);
    hd_status plan = emit_check(&c, o, &v, t, &planned);
    hd_status bind = bind_dims(&resolved, o, &r.tensors, dims, &bound);
    hd_status status = ask(&r, &c, t->name, &a);
    cr_assert_eq(status == HD_OK, plan == HD_OK && bind == HD_OK, "request %d", i);
    cr_assert_eq(code_count(&a.declines, "bind."), (int)bound.count);
    cr_assert_eq(code_count(&a.declines, "decline."), (int)planned.count);
    if (status == HD_OK) cr_assert_arr_eq(a.dims, dims, sizeof dims);
    for (size_t d = 0; d < a.declines.count; d++)
      cr_assert(a.declines.items[d].found && a.declines.items[d].allowed && a.declines.items[d].field, "%s",
                a.declines.items[d].message);
    served += status == HD_OK;
    declined_by_tensors += bind != HD_OK;
    diags_finish(&planned);
    diags_finish(&bound);
    match_answers_finish(&a, 1);
  }
  cr_assert_gt(served, REQUESTS / 10, "%d", served);
  cr_assert_gt(declined_by_tensors, REQUESTS / 10, "%d", declined_by_tensors);
}

/* Reading descriptions. */
