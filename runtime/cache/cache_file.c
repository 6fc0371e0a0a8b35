#include "cache_file.h"
#include "../../generator/sha256.h"
#include "../../generator/target.h"
#include "../object/codeobject.h"
#include "../object/elf64.h"
#include "../object/little.h"
#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'\x8b', 'h', 'e', 'd', 'd', 'l', 'e', '\n'};
enum { VERSION_AT = 8, RESERVED_AT = 12, LENGTHS_AT = 16, HASH_AT = 40, HASH_SIZE = 32 };

/* The hash covers the header before itself and everything after. */
static void hash_file(const unsigned char *bytes, size_t size, unsigned char out_digest[HASH_SIZE]) {
  sha256 s;
  sha256_init(&s);
  sha256_update(&s, bytes, HASH_AT);
  sha256_update(&s, bytes + CACHE_FILE_HEADER, size - CACHE_FILE_HEADER);
  sha256_digest(&s, out_digest);
}

void cache_file_write(const char *key_text, const descriptor *d, const void *code_object,
                      size_t code_object_size, text *out) {
  unsigned char header[CACHE_FILE_HEADER] = {0};
  size_t start = out->length, key_size = strlen(key_text);
  text_add_bytes(out, header, sizeof header);
  text_add_bytes(out, key_text, key_size);
  size_t descriptor_at = out->length;
  descriptor_write(d, out);
  size_t descriptor_size = out->length - descriptor_at;
  text_add_bytes(out, code_object, code_object_size);
  if (out->failed) return;
  memcpy(header, magic, sizeof magic);
  put_little(header + VERSION_AT, CACHE_FILE_VERSION, 4);
  put_little(header + LENGTHS_AT, key_size, 8);
  put_little(header + LENGTHS_AT + 8, descriptor_size, 8);
  put_little(header + LENGTHS_AT + 16, code_object_size, 8);
  memcpy(out->data + start, header, sizeof header);
  unsigned char *bytes = (unsigned char *)out->data + start;
  hash_file(bytes, out->length - start, bytes + HASH_AT);
}

static hd_status refuse(diags *errors, const char *code, const char *what) {
  diags_errorf(errors, code, NULL, "%s", what);
  return HD_INVALID;
}

hd_status cache_file_parse(const void *bytes, size_t size, cache_file *out_file, diags *errors) {
  const unsigned char *p = bytes;
  if (size < CACHE_FILE_HEADER) return refuse(errors, "cache.truncated", "shorter than its header");
  if (memcmp(p, magic, sizeof magic) != 0)
    return refuse(errors, "cache.magic", "not a cache entry: wrong magic");
  uint64_t version = get_little(p + VERSION_AT, 4);
  if (version != CACHE_FILE_VERSION) {
    diags_errorf(errors, "cache.version", NULL, "format version %llu, this heddle reads %d",
                 (unsigned long long)version, CACHE_FILE_VERSION);
    return HD_INVALID;
  }
  if (get_little(p + RESERVED_AT, 4) != 0)
    return refuse(errors, "cache.reserved", "reserved bytes are not zero");
  size_t lengths[3], left = size - CACHE_FILE_HEADER;
  for (int i = 0; i < 3; i++) {
    uint64_t length = get_little(p + LENGTHS_AT + 8 * i, 8);
    if (length > left) return refuse(errors, "cache.truncated", "shorter than the lengths in its header say");
    lengths[i] = (size_t)length;
    left -= lengths[i];
  }
  if (left != 0) return refuse(errors, "cache.length", "longer than the lengths in its header say");
  p += CACHE_FILE_HEADER;
  *out_file = (cache_file){
      .key_text = (const char *)p,
      .key_text_size = lengths[0],
      .descriptor = (const char *)p + lengths[0],
      .descriptor_size = lengths[1],
      .code_object = p + lengths[0] + lengths[1],
      .code_object_size = lengths[2],
  };
  return HD_OK;
}

hd_status cache_file_check(const void *bytes, size_t size, const cache_file *file, const char *key,
                           diags *errors) {
  unsigned char digest[HASH_SIZE];
  char hex[65];
  hash_file(bytes, size, digest);
  if (memcmp(digest, (const unsigned char *)bytes + HASH_AT, HASH_SIZE) != 0)
    return refuse(errors, "cache.hash", "its bytes do not match its SHA-256");
  if (memchr(file->key_text, '\0', file->key_text_size) != NULL)
    return refuse(errors, "cache.key", "its key text holds a NUL byte");
  sha256_hex(file->key_text, file->key_text_size, hex);
  if (strcmp(hex, key) != 0)
    return refuse(errors, "cache.key", "its key text belongs to another key than its name");
  return HD_OK;
}

/* End of the arguments a caller passes; hidden ones are the runtime's. */
static size_t explicit_argument_bytes(const codeobject_kernel *k) {
  size_t end = 0;
  for (int i = 0; i < k->argument_count; i++) {
    const codeobject_argument *a = &k->arguments[i];
    size_t after = (size_t)a->offset + a->size;
    if (strncmp(a->value_kind, "hidden_", 7) != 0 && after > end) end = after;
  }
  return end;
}

static size_t round_up_8(size_t bytes) {
  return (bytes + 7) & ~(size_t)7;
}

static hd_status check_amd_kernel(const kernel_descriptor *wanted, const codeobject *object, diags *errors) {
  for (int i = 0; i < object->kernel_count; i++) {
    const codeobject_kernel *k = &object->kernels[i];
    if (strcmp(k->symbol, wanted->symbol) != 0) continue;
    /* A C struct of the arguments may or may not count its tail padding. */
    size_t bytes = kernel_arguments_layout(wanted, NULL), found = explicit_argument_bytes(k);
    if (round_up_8(bytes) == round_up_8(found)) return HD_OK;
    diags_errorf(errors, "cache.arguments", NULL,
                 "kernel %s takes %zu bytes of arguments, its descriptor says %zu", wanted->symbol, found,
                 bytes);
    return HD_INVALID;
  }
  diags_errorf(errors, "cache.symbol", NULL, "the code object has no kernel %s", wanted->symbol);
  return HD_INVALID;
}

static hd_status check_amd(const descriptor *d, const void *code_object, size_t size, diags *errors) {
  codeobject *object = malloc(sizeof *object);
  if (object == NULL) return HD_OUT_OF_MEMORY;
  hd_status status = codeobject_parse(code_object, size, object, errors);
  if (status == HD_OK && strcmp(object->target, d->target) != 0) {
    diags_errorf(
        errors, "cache.target", NULL, "the code object is for %s (machine 0x%02x), its descriptor says %s",
        object->target[0] != '\0' ? object->target : "an unknown target", object->machine, d->target);
    status = HD_INVALID;
  }
  for (int i = 0; status == HD_OK && i < d->kernel_count; i++)
    status = check_amd_kernel(&d->kernels[i], object, errors);
  free(object);
  return status;
}

/* The SM number of a CUDA binary: the low byte of e_flags up to CUDA 12, the next one from ABI version 8 on
 * (CUDA 13). */
static unsigned cuda_sm(const elf64 *e) {
  return e->abi_version >= 8 ? e->flags >> 8 & 0xff : e->flags & 0xff;
}

static hd_status check_cuda(const descriptor *d, const void *code_object, size_t size, diags *errors) {
  elf64 e;
  elf64_symbol symbol;
  hd_status status = elf64_open(code_object, size, &e, errors);
  if (status != HD_OK) return status;
  if (e.machine != ELF_MACHINE_CUDA)
    return refuse(errors, "cache.target", "the code object is an ELF file, but no CUDA binary");
  if ((unsigned long)cuda_sm(&e) != strtoul(d->target + strlen("sm_"), NULL, 10)) {
    diags_errorf(errors, "cache.target", NULL, "the code object is for sm_%u, its descriptor says %s",
                 cuda_sm(&e), d->target);
    return HD_INVALID;
  }
  for (int i = 0; i < d->kernel_count; i++) {
    if (elf64_symbol_find(&e, d->kernels[i].symbol, &symbol)) continue;
    diags_errorf(errors, "cache.symbol", NULL, "the code object has no kernel %s", d->kernels[i].symbol);
    return HD_INVALID;
  }
  return HD_OK;
}

hd_status cache_check_code(const descriptor *d, const void *code_object, size_t size, diags *errors) {
  const target *t = target_find(d->target);
  if (t == NULL) {
    diags_errorf(errors, "cache.target", NULL, "its descriptor names an unknown target \"%s\"", d->target);
    return HD_INVALID;
  }
  if (d->kernel_count < 1) return refuse(errors, "cache.symbol", "its descriptor names no kernel");
  return t->family == FAMILY_CUDA ? check_cuda(d, code_object, size, errors)
                                  : check_amd(d, code_object, size, errors);
}

hd_status cache_file_verify(const void *bytes, size_t size, const char *key, cache_file *out_file,
                            descriptor *out_descriptor, diags *errors) {
  hd_status status = cache_file_parse(bytes, size, out_file, errors);
  if (status == HD_OK) status = cache_file_check(bytes, size, out_file, key, errors);
  if (status != HD_OK) return status;
  status = descriptor_parse(out_file->descriptor, out_file->descriptor_size, out_descriptor);
  if (status == HD_INVALID) return refuse(errors, "cache.descriptor", "its launch descriptor can't be read");
  if (status != HD_OK) return status;
  return cache_check_code(out_descriptor, out_file->code_object, out_file->code_object_size, errors);
}
