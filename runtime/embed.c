#include "embed.h"
#include "../generator/target.h"
#include <ctype.h>
#include <stdint.h>
#include <string.h>

bool embed_symbol_fits(const char *symbol) {
  if (!isalpha((unsigned char)symbol[0]) && symbol[0] != '_') return false;
  for (const char *at = symbol; *at; at++)
    if (!isalnum((unsigned char)*at) && *at != '_') return false;
  return true;
}

/* ---- C ---- */

enum { BYTES_A_LINE = 24 };

static void write_bytes(const void *bytes, size_t size, text *out) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < size; i++)
    text_addf(out, "%s%u,", i % BYTES_A_LINE ? "" : "\n  ", at[i]);
}

/* A string literal a line. Trigraphs can't arise: '?' is written as its number. */
static void write_string(const char *bytes, size_t length, text *out) {
  text_add(out, "\n  \"");
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == '\n')
      text_addf(out, "\\n\"%s", i + 1 < length ? "\n  \"" : "");
    else if (c == '"' || c == '\\')
      text_addf(out, "\\%c", c);
    else if (c < 32 || c > 126 || c == '?')
      text_addf(out, "\\%03o", c);
    else
      text_addf(out, "%c", c);
  }
  if (length == 0 || bytes[length - 1] != '\n') text_add(out, "\"");
}

/* Ends a comment nowhere else. */
static void write_comment(const char *words, text *out) {
  for (const char *at = words; *at; at++)
    text_addf(out, "%c", at[0] == '*' && at[1] == '/' ? '+' : *at);
}

static void write_kernel_data(int index, const embed_kernel *k, text *out) {
  const descriptor *d = k->entry->descriptor;
  text json;
  text_init(&json);
  descriptor_write(d, &json);
  text_addf(out, "\n/* ");
  write_comment(k->name, out);
  text_addf(out, ": %s for %s, variant %s; %zu bytes, ", d->operation, d->target, d->variant,
            k->entry->code_object_size);
  write_comment(k->compiler, out);
  text_addf(out, " */\nstatic const char descriptor_%d[] =", index);
  write_string(text_string(&json), json.length, out);
  text_addf(out, ";\nstatic const union {\n  unsigned char bytes[%zu];\n  double align;\n} code_%d = {{",
            k->entry->code_object_size, index);
  write_bytes(k->entry->code_object, k->entry->code_object_size, out);
  text_add(out, "\n}};\n");
  if (json.failed) out->failed = true;
  text_finish(&json);
}

void embed_write_c(const char *symbol, const embed_spec *specs, int spec_count, const embed_kernel *kernels,
                   int kernel_count, text *out) {
  text_addf(out,
            "/* Written by heddle build --embed c; not to be edited. A program that has this file needs no "
            "compiler and no\n * file at run time:\n *\n *   extern const hd_embedded %s;\n *   "
            "hd_context_add_embedded(context, &%s, diagnostics);\n */\n#include <heddle.h>\n\n"
            "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\n",
            symbol, symbol);
  for (int i = 0; i < spec_count; i++) {
    text_addf(out, "\nstatic const char spec_%d[] =", i);
    write_string(specs[i].yaml, specs[i].length, out);
    text_add(out, ";\n");
  }
  for (int i = 0; i < kernel_count; i++)
    write_kernel_data(i, &kernels[i], out);
  text_add(out, "\nstatic const hd_embedded_spec specs[] = {\n");
  for (int i = 0; i < spec_count; i++) {
    text_add(out, "  {");
    write_string(specs[i].name, strlen(specs[i].name), out);
    text_addf(out, ", spec_%d},\n", i);
  }
  text_add(out, "};\n\nstatic const hd_embedded_kernel kernels[] = {\n");
  for (int i = 0; i < kernel_count; i++)
    text_addf(out, "  {\"%s\", descriptor_%d, code_%d.bytes, sizeof code_%d.bytes},\n",
              kernels[i].entry->descriptor->contract_key, i, i, i);
  text_addf(out,
            "};\n\nextern const hd_embedded %s;\nconst hd_embedded %s = {HD_EMBEDDED_VERSION, %d, %d, specs, "
            "kernels};\n",
            symbol, symbol, spec_count, kernel_count);
}

/* ---- HIP bundles ---- */

#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define BUNDLE_HOST "host-x86_64-unknown-linux-gnu-"
#define BUNDLE_DEVICE "hipv4-amdgcn-amd-amdhsa--"
enum { BUNDLE_PAGE = 4096, BUNDLE_MOST = 64 };

static void write_word(uint64_t value, text *out) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++)
    bytes[i] = (unsigned char)(value >> 8 * i);
  text_add_bytes(out, bytes, sizeof bytes);
}

static void write_entry(uint64_t offset, uint64_t size, const char *kind, const char *name, text *out) {
  write_word(offset, out);
  write_word(size, out);
  write_word(strlen(kind) + strlen(name), out);
  text_add(out, kind);
  text_add(out, name);
}

static hd_status check_bundle(const cache_entry *const *entries, int count, diags *errors) {
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->descriptor->target;
    const target *t = target_find(name);
    if (t == NULL || t->family == FAMILY_CUDA) {
      diags_errorf(errors, "embed.bundle", "targets", "%s is no target of HIP", name);
      return HD_INVALID;
    }
    for (int j = 0; j < i; j++) {
      if (strcmp(entries[j]->descriptor->target, name) != 0) continue;
      diags_errorf(errors, "embed.bundle", "targets", "a bundle has one code object for %s", name);
      return HD_INVALID;
    }
  }
  if (count <= BUNDLE_MOST) return HD_OK;
  diags_errorf(errors, "embed.bundle", "targets", "a bundle has at most %d targets", BUNDLE_MOST);
  return HD_INVALID;
}

static size_t round_up(size_t size) {
  return (size + BUNDLE_PAGE - 1) / BUNDLE_PAGE * BUNDLE_PAGE;
}

hd_status embed_write_bundle(const cache_entry *const *entries, int count, text *out, diags *errors) {
  static const char zeros[BUNDLE_PAGE];
  hd_status status = check_bundle(entries, count, errors);
  if (status != HD_OK) return status;
  size_t start = out->length, header = strlen(BUNDLE_MAGIC) + 8 + 24 + strlen(BUNDLE_HOST);
  for (int i = 0; i < count; i++)
    header += 24 + strlen(BUNDLE_DEVICE) + strlen(entries[i]->descriptor->target);
  text_add(out, BUNDLE_MAGIC);
  write_word((uint64_t)count + 1, out);
  size_t offset = round_up(header);
  write_entry(offset, 0, BUNDLE_HOST, "", out);
  for (int i = 0; i < count; i++) {
    write_entry(offset, entries[i]->code_object_size, BUNDLE_DEVICE, entries[i]->descriptor->target, out);
    offset = round_up(offset + entries[i]->code_object_size);
  }
  for (int i = 0; i < count; i++) {
    text_add_bytes(out, zeros, round_up(out->length - start) - (out->length - start));
    text_add_bytes(out, entries[i]->code_object, entries[i]->code_object_size);
  }
  return out->failed ? HD_OUT_OF_MEMORY : HD_OK;
}
