#include "dtype_words.h"

#include <string.h>

static const dtype listed[] = {DTYPE_BF16,         DTYPE_FP16,     DTYPE_FP8_E4M3, DTYPE_FP8_E4M3FN,
                               DTYPE_FP8_E4M3FNUZ, DTYPE_FP8_E5M2, DTYPE_INT8,     DTYPE_FP32,
                               DTYPE_E8M0,         DTYPE_INT32,    DTYPE_INT64,    DTYPE_UINT8};
_Static_assert(sizeof listed / sizeof *listed == DTYPE_COUNT, "every format is listed once");

/* Names in engines and frameworks that are further from the format than from another one. Bytes are how
 * engines keep codes: of which format they don't say. */
static const struct {
  const char *name;
  dtype means;
} elsewhere[] = {
    {"fp8", DTYPE_FP8_E4M3},        {"fp8", DTYPE_FP8_E5M2},   {"float8", DTYPE_FP8_E4M3},
    {"float8", DTYPE_FP8_E5M2},     {"float16", DTYPE_FP16},   {"half", DTYPE_FP16},
    {"bfloat16", DTYPE_BF16},       {"float32", DTYPE_FP32},   {"float", DTYPE_FP32},
    {"uint8", DTYPE_FP8_E4M3},      {"uint8", DTYPE_FP8_E5M2}, {"uint8", DTYPE_INT8},
    {"float8_e8m0fnu", DTYPE_E8M0},
};

static bool is_used(dtype d, unsigned uses) {
  return uses == 0 ? d != DTYPE_FP8_E4M3 : dtype_serves(d, (dtype_use)uses);
}

dtype dtype_listed(int index) {
  return listed[index];
}

void dtype_list(unsigned uses, text *out) {
  const char *separator = "";
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (!is_used(listed[i], uses)) continue;
    text_addf(out, "%s%s", separator, dtype_name(listed[i]));
    separator = ", ";
  }
}

guess dtype_guess(const char *name, unsigned uses) {
  static const char torch[] = "torch.";
  if (strncmp(name, torch, strlen(torch)) == 0) name += strlen(torch);
  guess g = {.found = name};
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    dtype d = elsewhere[i].means;
    if (strcmp(name, elsewhere[i].name) != 0) continue;
    if (d == DTYPE_FP8_E4M3 && uses == 0) { /* a tensor has one of its dialects */
      guess_offer(&g, dtype_name(DTYPE_FP8_E4M3FN), 0, 0);
      guess_offer(&g, dtype_name(DTYPE_FP8_E4M3FNUZ), 0, 0);
    } else if (is_used(d, uses)) {
      guess_offer(&g, dtype_name(d), 0, 0);
    }
  }
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (is_used(listed[i], uses)) guess_offer_near(&g, dtype_name(listed[i]), 0);
  return g;
}
