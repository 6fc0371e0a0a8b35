/* One cache entry as a file. Format: docs/cache.md. Pure: bytes in, bytes out.
 *
 *   0  magic "\x8bheddle\n"
 *   8  format version, u32 little endian; 12 reserved, 0
 *  16  bytes of key text, descriptor and code object, u64 each
 *  40  SHA-256 of everything else: bytes 0..39, then 72..end
 *  72  key text, descriptor (JSON), code object; the file ends with the last
 */
#ifndef HEDDLE_CACHE_FILE_H
#define HEDDLE_CACHE_FILE_H

#include "../../generator/descriptor.h"
#include "../../generator/text.h"

enum { CACHE_FILE_VERSION = 1, CACHE_FILE_HEADER = 72, CACHE_FILE_MOST = 256 << 20 /* bytes */ };

/* The parts of an entry, pointing into the file's bytes. */
typedef struct cache_file {
  const char *key_text, *descriptor; /* not NUL-terminated */
  const void *code_object;
  size_t key_text_size, descriptor_size, code_object_size;
} cache_file;

/* Fails by `out->failed`. */
void cache_file_write(const char *key_text, const descriptor *d, const void *code_object,
                      size_t code_object_size, text *out);

/* Checks magic, version and lengths. HD_INVALID with a diagnostic ("cache.…"). */
hd_status cache_file_parse(const void *bytes, size_t size, cache_file *out_file, diags *errors);
/* Checks every byte: the hash, and that the key text is the one that `key` (64 hex digits, the file's name)
 * stands for. */
hd_status cache_file_check(const void *bytes, size_t size, const cache_file *file, const char *key,
                           diags *errors);

/* Whether a code object is what its descriptor says: ELF machine and target, kernels, and for AMD targets the
 * size of their arguments. Also the judge of what a compiler returns. HD_INVALID with a diagnostic. */
hd_status cache_check_code(const descriptor *d, const void *code_object, size_t size, diags *errors);

/* All of these checks, of bytes from wherever they come: an entry that passes is used. */
hd_status cache_file_verify(const void *bytes, size_t size, const char *key, cache_file *out_file,
                            descriptor *out_descriptor, diags *errors);

#endif
