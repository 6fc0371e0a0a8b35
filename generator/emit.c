#include "emit_internal.h"
#include "emit_read.h"
#include "plan.h"
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>

static const char *const structure_names[] = {"auto", "direct", "ring"};
static const char line_name[] = "line";

/* The numbers of a variant in the order of its text. */
static const struct {
  char letter;
  size_t offset;
  int most;
} variant_numbers[] = {{'w', offsetof(variant, waves), 16},
                       {'t', offsetof(variant, tile), 999},
                       {'s', offsetof(variant, stages), 16},
                       {'o', offsetof(variant, resident), 16}};
enum { VARIANT_NUMBERS = sizeof variant_numbers / sizeof *variant_numbers };

bool variant_parse(const char *name, variant *out_variant) {
  variant v = {0};
  for (const char *at = strcmp(name, "default") == 0 ? "" : name; *at;) {
    size_t length = strcspn(at, "-");
    bool known = false;
    for (int i = STRUCTURE_DIRECT; i <= STRUCTURE_RING; i++)
      if (strlen(structure_names[i]) == length && memcmp(at, structure_names[i], length) == 0) {
        v.structure = (structure)i;
        known = true;
      }
    if (length == strlen(line_name) && memcmp(at, line_name, length) == 0) v.line = known = true;
    bool digits = length >= 2 && length <= 4 && strspn(at + 1, "0123456789") >= length - 1;
    for (int i = 0; !known && digits && i < VARIANT_NUMBERS; i++) {
      if (*at != variant_numbers[i].letter) continue;
      int number = atoi(at + 1);
      memcpy((char *)&v + variant_numbers[i].offset, &number, sizeof number);
      known = number >= 1 && number <= variant_numbers[i].most;
    }
    if (!known) return false;
    at += length + (at[length] == '-');
  }
  text spelling; /* each variant has one: no other order, repetition or leading zero */
  text_init(&spelling);
  variant_write(&v, &spelling);
  bool same = strcmp(text_string(&spelling), name) == 0;
  text_finish(&spelling);
  if (same) *out_variant = v;
  return same;
}

void variant_write(const variant *v, text *out) {
  size_t start = out->length;
  if (v->structure) text_add(out, structure_names[v->structure]);
  if (v->line) text_addf(out, "%s%s", out->length > start ? "-" : "", line_name);
  for (int i = 0; i < VARIANT_NUMBERS; i++) {
    int number;
    memcpy(&number, (const char *)v + variant_numbers[i].offset, sizeof number);
    if (number) text_addf(out, "%s%c%d", out->length > start ? "-" : "", variant_numbers[i].letter, number);
  }
  if (out->length == start) text_add(out, "default");
}

const char *format_of(dtype d) {
  const char *format = dtype_format(d);
  return format ? format : dtype_format(DTYPE_FP32);
}

static const char *find_template(const template_source *templates, const char *file, size_t *out_length,
                                 diags *errors) {
  const char *source = templates->find(templates->user, file, out_length);
  if (!source) diags_errorf(errors, "emit.template", NULL, "template %s is missing", file);
  return source;
}

hd_status template_copy(const template_source *templates, const char *file, text *out, diags *errors) {
  size_t length;
  const char *source = find_template(templates, file, &length, errors);
  if (!source) return HD_INTERNAL;
  text_add_bytes(out, source, length);
  return HD_OK;
}

hd_status template_fill(const template_source *templates, const char *file, fence_filler fill, void *user,
                        text *out, diags *errors) {
  static const char mark[] = "//@ ";
  size_t length;
  const char *at = find_template(templates, file, &length, errors);
  if (!at) return HD_INTERNAL;
  for (const char *end = at + length; at < end;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *next = newline ? newline + 1 : end;
    size_t line = (size_t)((newline ? newline : end) - at);
    char name[64];
    if (line > strlen(mark) && memcmp(at, mark, strlen(mark)) == 0) {
      snprintf(name, sizeof name, "%.*s", (int)(line - strlen(mark)), at + strlen(mark));
      if (!fill(user, name, out)) {
        diags_errorf(errors, "emit.template", NULL, "template %s has a fence '%s' that nothing fills", file,
                     name);
        return HD_INTERNAL;
      }
    } else {
      text_add_bytes(out, at, (size_t)(next - at));
    }
    at = next;
  }
  return HD_OK;
}

void write_contract_comment(const contract *c, const char *kernel, const target *t, text *out) {
  text canonical;
  text_init(&canonical);
  contract_write(c, &canonical);
  text_addf(out, "// %s for %s, made by heddle from this contract:\n//\n", kernel, t->name);
  for (const char *at = text_string(&canonical); *at;) {
    size_t length = strcspn(at, "\n");
    text_addf(out, "//   %.*s\n", (int)length, at);
    at += length + (at[length] == '\n');
  }
  text_add(out, "//\n// Freestanding: hiprtc, clang and nvrtc compile it without an include path.\n\n");
  text_finish(&canonical);
}

void write_int(text *out, const char *name, int64_t value) {
  text_addf(out, "constexpr int %s = %lld;\n", name, (long long)value);
}

void write_bool(text *out, const char *name, bool value) {
  text_addf(out, "constexpr bool %s = %s;\n", name, value ? "true" : "false");
}

void write_float(text *out, const char *name, double value) {
  text_addf(out, "constexpr float %s = (float)", name);
  text_add_double(out, value);
  text_add(out, ";\n");
}

void write_offset_function(text *out, const char *name, const layout *l, int element_bytes) {
  bool wide = layout_outside_head(l) || layout_inner_elements(l) * element_bytes >= INT32_MAX;
  text written;
  text_init(&written);
  layout_write(l, &written);
  text_addf(out, "// %s\nDEVICE %s %s(u32 slot, u32 channel, i64 heads_stride) { return ",
            text_string(&written), wide ? "i64" : "u32", name);
  layout_write_offset(l, wide ? "(i64)slot" : "slot", wide ? "(i64)channel" : "channel", "heads_stride", out);
  text_add(out, "; }\n");
  text_finish(&written);
}

void write_scale_offset_function(text *out, const char *name, const layout *l) {
  text written;
  text_init(&written);
  layout_write(l, &written);
  text_addf(out,
            "// scales %s; d: the group of channels\nDEVICE i64 %s(u32 slot, i64 heads_stride, u32 group = "
            "0) { return ",
            text_string(&written), name);
  layout_write_offset(l, "(i64)slot", "(i64)group", "heads_stride", out);
  text_add(out, "; }\n");
  text_finish(&written);
}

/* How a stored scale is read, its logarithm taken, and one stored. log2 of a denormal is taken of 2^64 times
 * it. */
static const char scale_fp32[] = "typedef float scale_t;\n"
                                 "DEVICE float scale_value(scale_t s) { return s; }\n"
                                 "DEVICE scale_t scale_of(float x) { return x; }\n";
static const char scale_fp16[] = "typedef u16 scale_t; // fp16\n"
                                 "DEVICE float scale_value(scale_t s) {\n"
                                 "  float x[2];\n"
                                 "  format_fp16::unpack(s, x);\n"
                                 "  return x[0];\n"
                                 "}\n"
                                 "DEVICE scale_t scale_of(float x) {\n"
                                 "  const float values[2] = {x > 65504.0f ? 65504.0f : x, 0.0f};\n"
                                 "  return (scale_t)format_fp16::pack(values);\n"
                                 "}\n";
static const char scale_e8m0[] =
    "typedef u8 scale_t; // e8m0: 2^(s - 127), 255 is NaN\n"
    "DEVICE float scale_value(scale_t s) {\n"
    "  return float_of(s == 255 ? 0x7fc00000u : s == 0 ? 0x00400000u : (u32)s << 23);\n"
    "}\n"
    "DEVICE scale_t scale_of(float x) { // up to the next power of two\n"
    "  const u32 bits = bits_of(x), power = (bits >> 23) + ((bits & 0x7fffff) != 0);\n"
    "  return (scale_t)(bits <= 0x00400000u ? 0 : power > 254 ? 254 : power);\n"
    "}\n";

void write_scale_type(text *out, dtype d) {
  text_add(out, d == DTYPE_FP16 ? scale_fp16 : d == DTYPE_E8M0 ? scale_e8m0 : scale_fp32);
}

void write_scales_inside(const contract *c, bool writer, text *out) {
  if (!c->scale.inside) return;
  const char *qualifier = writer ? "" : "const ";
  const int64_t at[] = {c->scale.k_at, c->scale.v_at};
  for (int i = 0; i < (writer && c->kv.v_in_k ? 1 : 2); i++)
    text_addf(out, "  %sscale_t *const %c_scale = (%sscale_t *)((%su8 *)%c_cache + %lld); // in the pages\n",
              qualifier, "kv"[i], qualifier, qualifier, i == 1 && c->kv.v_in_k ? 'k' : "kv"[i],
              (long long)at[i]);
}

static void add_argument(kernel_descriptor *k, argument_kind kind, int index) {
  if (k->argument_count < DESCRIPTOR_MAX_ARGUMENTS)
    k->arguments[k->argument_count++] = (argument){kind, index};
}

void add_tensor(kernel_descriptor *k, tensor_name t) {
  add_argument(k, ARGUMENT_TENSOR, (int)t);
}
void add_dim(kernel_descriptor *k, dim d) {
  add_argument(k, ARGUMENT_DIM, (int)d);
}
void add_number(kernel_descriptor *k, number_name n) {
  add_argument(k, ARGUMENT_NUMBER, (int)n);
}
void add_scale(const contract *c, kernel_descriptor *k, bool is_k) {
  if (contract_scale_arrays(c))
    add_tensor(k, is_k ? TENSOR_K_SCALE : TENSOR_V_SCALE);
  else if (c->scale.argument)
    add_number(k, is_k ? NUMBER_K_SCALE : NUMBER_V_SCALE);
}

/* C types of the tensors that are not plain `const void *`. `writer`: cache and scales, or page lists, are
 * written. */
static const char *tensor_type(tensor_name t, bool writer) {
  switch (t) {
  case TENSOR_LISTS:
    return writer ? "void *" : "const void *";
  case TENSOR_OUT:
  case TENSOR_WORKSPACE:
    return "void *";
  case TENSOR_LSE:
    return "float *";
  case TENSOR_K_CACHE:
  case TENSOR_V_CACHE:
    return writer ? "void *" : "const void *";
  case TENSOR_K_SCALE:
  case TENSOR_V_SCALE:
    return writer ? "scale_t *" : "const scale_t *";
  case TENSOR_PAGE_TABLE:
  case TENSOR_KV_INDICES:
  case TENSOR_TOKEN_LIST:
    return "const page_id *";
  case TENSOR_LENGTHS:
  case TENSOR_KV_INDPTR:
  case TENSOR_LAST_PAGE_LEN:
  case TENSOR_BLOCK_LIST:
  case TENSOR_ROW_SEQUENCES:
    return "const int *";
  case TENSOR_SINKS:
    return "const float *";
  case TENSOR_SLOT_MAPPING:
    return "const i64 *";
  default:
    return "const void *";
  }
}

static const char *argument_type_text(argument a, bool writer) {
  return a.kind == ARGUMENT_TENSOR   ? tensor_type((tensor_name)a.index, writer)
         : a.kind == ARGUMENT_NUMBER ? "float "
         : argument_bytes(a) == 8    ? "i64 "
                                     : "int ";
}

void write_arguments_struct(const kernel_descriptor *k, const char *name, text *out) {
  text_addf(out, "struct %s {\n", name);
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    text_addf(out, "  %s%s%s;\n", a.kind == ARGUMENT_TENSOR ? "GLOBAL " : "", argument_type_text(a, false),
              argument_name(a));
  }
  text_add(out, "};\n\n");
}

void write_arguments_again(const kernel_descriptor *k, const char *name, const char *but, text *out) {
  text_addf(out, "  const CONSTANT %s *const again = arguments_again<%s>();\n", name, name);
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    const char *type = argument_type_text(a, false), *own = argument_name(a);
    if (but && strcmp(own, but) == 0) continue;
    if (a.kind == ARGUMENT_TENSOR)
      text_addf(out, "  %sconst %s = (%s)again->%s;\n", type, own, type, own);
    else
      text_addf(out, "  const %s%s = again->%s;\n", type, own, own);
  }
}

void write_arguments(const kernel_descriptor *k, text *out) {
  bool writer = false;
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    writer |= a.kind == ARGUMENT_TENSOR && (a.index == TENSOR_SLOT_MAPPING || a.index == TENSOR_BLOCK_LIST ||
                                            a.index == TENSOR_TOKEN_LIST);
  }
  /* What is restrict and const may be read ahead of any wait, so not in a kernel that waits by itself for the
   * one before it, which may have written it. */
  const char *own = k->waits_itself ? "" : "__restrict__ ";
  for (int i = 0; i < k->argument_count; i++) {
    argument a = k->arguments[i];
    text_addf(out, "    %s%s%s%s\n", argument_type_text(a, writer), a.kind == ARGUMENT_TENSOR ? own : "",
              argument_name(a), i + 1 < k->argument_count ? "," : "");
  }
}

static hd_status check_decode_plan(const contract *c, const variant *v, const target *t, diags *errors) {
  decode_solution solution;
  return plan_solve(c, v, t, &solution, errors);
}

static hd_status check_write_plan(const contract *c, const variant *v, const target *t, diags *errors) {
  contract resolved = plan_contract(c, t);
  write_plan plan;
  return plan_write(&resolved, v, t, &plan, errors);
}

static hd_status check_nothing(const contract *c, const variant *v, const target *t, diags *errors) {
  (void)c, (void)v, (void)t, (void)errors;
  return HD_OK;
}

static const struct {
  hd_status (*check)(const contract *c, const variant *v, const target *t, diags *errors);
  hd_status (*emit)(const contract *resolved, const variant *v, const target *t,
                    const template_source *templates, text *out_source, descriptor *out_descriptor,
                    diags *errors);
} emitters[] = {
    [OPERATION_WRITE] = {check_write_plan, emit_write},
    [OPERATION_DECODE] = {check_decode_plan, emit_decode},
    [OPERATION_READ] = {check_nothing, emit_read},
};

hd_status emit_check(const contract *c, operation o, const variant *v, const target *t, diags *errors) {
  return emitters[o].check(c, v, t, errors);
}

hd_status emit_operation(const contract *c, operation o, const variant *v, const target *t,
                         const template_source *templates, emission *out_emission, diags *errors) {
  contract resolved = plan_contract(c, t);
  descriptor d;
  memset(&d, 0, sizeof d);
  text source, name;
  text_init(&source);
  text_init(&name);
  variant_write(v, &name);
  snprintf(d.operation, sizeof d.operation, "%s", operation_name(o));
  snprintf(d.target, sizeof d.target, "%s", t->name);
  snprintf(d.variant, sizeof d.variant, "%s", text_string(&name));
  text_finish(&name);
  hd_status status = contract_key(c, d.contract_key);
  if (status == HD_OK) status = emitters[o].emit(&resolved, v, t, templates, &source, &d, errors);
  if (status == HD_OK && source.failed) status = HD_OUT_OF_MEMORY;
  if (status == HD_OK) {
    out_emission->source = text_take(&source);
    out_emission->descriptor = d;
  }
  text_finish(&source);
  return status;
}

void emission_finish(emission *e) {
  free(e->source);
  e->source = NULL;
}
