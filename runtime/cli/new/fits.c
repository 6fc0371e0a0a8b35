#include "fits.h"
#include "../shipped.h"
#include <stdlib.h>
#include <string.h>

static bool takes(const contract *c, operation o, int name) {
  return bind_role(c, o, (tensor_name)name) != ROLE_NONE;
}

/* A request of one operation with tensors of several: those that only the others take are left out. */
static void keep_own_tensors(const contract *c, match_request *r) {
  for (int i = 0; i < TENSOR_COUNT; i++)
    for (operation o = 0; o < OPERATION_COUNT; o++)
      if (takes(c, o, i) && !takes(c, r->operation, i)) r->tensors.present[i] = false;
}

/* Whether pages are described at all, or a cache alone. */
static bool has_lists(const match_request *r) {
  static const tensor_name lists[] = {TENSOR_PAGE_TABLE, TENSOR_KV_INDICES, TENSOR_KV_INDPTR,
                                      TENSOR_TOKEN_LIST};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (r->tensors.present[lists[i]]) return true;
  return false;
}

static bool is_told(const diag *decline, const match_request *r) {
  return has_lists(r) || strcmp(decline->code, "bind.missing") != 0;
}

hd_status fits_declines(const spec *made, const match_request *request, diags *out) {
  match_request *own = malloc(sizeof *own);
  if (!own) return HD_OUT_OF_MEMORY;
  *own = *request;
  keep_own_tensors(&made->contract, own);
  match_candidate candidate = match_candidate_of(made);
  size_t fewest = SIZE_MAX;
  for (size_t t = 0; t < target_count() && fewest > 0; t++) {
    match_answer answer;
    int chosen = -1;
    match_best(own, &candidate, 1, target_at(t)->name, &answer, &chosen);
    if (chosen >= 0 || answer.declines.count < fewest) {
      fewest = chosen >= 0 ? 0 : answer.declines.count;
      diags_finish(out);
      for (size_t i = 0; i < answer.declines.count && fewest > 0; i++)
        if (is_told(&answer.declines.items[i], own)) diags_copy(out, &answer.declines.items[i]);
    }
    match_answers_finish(&answer, 1);
  }
  free(own);
  return out->failed ? HD_OUT_OF_MEMORY : HD_OK;
}

static bool serves_somewhere(const spec *s, const match_request *request) {
  match_request *own = malloc(sizeof *own);
  bool found = false;
  if (!own) return false;
  *own = *request;
  keep_own_tensors(&s->contract, own);
  match_candidate candidate = match_candidate_of(s);
  for (size_t t = 0; t < target_count() && !found; t++) {
    match_answer answer;
    int chosen = -1;
    found = match_best(own, &candidate, 1, target_at(t)->name, &answer, &chosen) == HD_OK;
    match_answers_finish(&answer, 1);
  }
  free(own);
  return found;
}

/* Takes the shipped spec where it is nearer than what was found. */
static void compare(const contract *c, const contract *shipped, const char *name, size_t *fewest, fits *out) {
  text lines;
  text_init(&lines);
  size_t count = contract_diff(c, shipped, &lines);
  if (count == 0 && out->same_count < FITS_MAX) out->same[out->same_count++] = name;
  if (count < *fewest) {
    *fewest = count;
    out->nearest = name;
    text_finish(&out->differences);
    out->differences = lines;
  } else {
    text_finish(&lines);
  }
}

hd_status fits_find(const contract *c, const match_request *request, fits *out) {
  size_t fewest = SIZE_MAX;
  *out = (fits){0};
  text_init(&out->differences);
  for (size_t i = 0; i < shipped_count(); i++) {
    spec s;
    diags ignored;
    diags_init(&ignored);
    hd_status status = spec_parse(shipped_text_at(i), strlen(shipped_text_at(i)), &s, &ignored);
    diags_finish(&ignored);
    if (status != HD_OK) return status;
    compare(c, &s.contract, shipped_name_at(i), &fewest, out);
    if (request && out->serves_count < FITS_MAX && serves_somewhere(&s, request))
      out->serves[out->serves_count++] = shipped_name_at(i);
    spec_finish(&s);
  }
  if (out->same_count > 0) out->nearest = NULL;
  return out->differences.failed ? HD_OUT_OF_MEMORY : HD_OK;
}

void fits_finish(fits *f) {
  text_finish(&f->differences);
}
