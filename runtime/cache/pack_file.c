#include "pack_file.h"
#include "../../generator/sha256.h"
#include "cache_file.h"
#include "../object/little.h"
#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'\x8b', 'h', 'd', 'p', 'a', 'c', 'k', '\n'};
enum { VERSION_AT = 8, RESERVED_AT = 12, COUNT_AT = 16, SIZE_AT = 24, HASH_AT = 32, HASH_SIZE = 32 };
enum { ROW_KEY = 0, ROW_SOURCE_KEY = 32, ROW_OFFSET = 64, ROW_SIZE = 72 };

static void digest_of(const char *bytes, size_t size, unsigned char out_digest[HASH_SIZE]) {
  sha256 s;
  sha256_init(&s);
  sha256_update(&s, bytes, size);
  sha256_digest(&s, out_digest);
}

/* Bytes of the key text before the line that names the compiler. */
static size_t source_size(const char *key_text, size_t size) {
  static const char line[] = "\ncompiler: ";
  for (size_t i = 0; i + sizeof line - 1 <= size; i++)
    if (memcmp(key_text + i, line, sizeof line - 1) == 0) return i + 1;
  return size;
}

void pack_source_key(const char *key_text, size_t size, char out_key[65]) {
  sha256_hex(key_text, source_size(key_text, size), out_key);
}

/* ---- Writing ---- */

typedef struct packed {
  unsigned char key[HASH_SIZE], source_key[HASH_SIZE];
  pack_item item;
} packed;

static int compare_packed(const void *a, const void *b) {
  return memcmp(((const packed *)a)->key, ((const packed *)b)->key, HASH_SIZE);
}

/* Sorted, each key once. */
static hd_status list_packed(const pack_item *items, size_t count, packed *out, size_t *out_count,
                             diags *errors) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    cache_file file;
    hd_status status = cache_file_parse(items[i].bytes, items[i].size, &file, errors);
    if (status != HD_OK) return status;
    out[i].item = items[i];
    digest_of(file.key_text, file.key_text_size, out[i].key);
    digest_of(file.key_text, source_size(file.key_text, file.key_text_size), out[i].source_key);
  }
  if (count > 0) qsort(out, count, sizeof *out, compare_packed);
  for (size_t i = 0; i < count; i++)
    if (kept == 0 || compare_packed(&out[kept - 1], &out[i]) != 0) out[kept++] = out[i];
  *out_count = kept;
  return HD_OK;
}

static void hash_index(const unsigned char *bytes, size_t size, unsigned char out_digest[HASH_SIZE]) {
  sha256 s;
  sha256_init(&s);
  sha256_update(&s, bytes, HASH_AT);
  sha256_update(&s, bytes + PACK_HEADER, size - PACK_HEADER);
  sha256_digest(&s, out_digest);
}

static void write_packed(const packed *all, size_t count, text *out) {
  unsigned char header[PACK_HEADER] = {0};
  size_t start = out->length, index_size = PACK_HEADER + count * PACK_ROW;
  uint64_t offset = index_size;
  text_add_bytes(out, header, sizeof header);
  for (size_t i = 0; i < count; i++) {
    unsigned char row[PACK_ROW];
    memcpy(row + ROW_KEY, all[i].key, HASH_SIZE);
    memcpy(row + ROW_SOURCE_KEY, all[i].source_key, HASH_SIZE);
    put_little(row + ROW_OFFSET, offset, 8);
    put_little(row + ROW_SIZE, all[i].item.size, 8);
    text_add_bytes(out, row, sizeof row);
    offset += all[i].item.size;
  }
  if (out->failed) return;
  memcpy(header, magic, sizeof magic);
  put_little(header + VERSION_AT, PACK_VERSION, 4);
  put_little(header + COUNT_AT, count, 8);
  put_little(header + SIZE_AT, offset, 8);
  unsigned char *bytes = (unsigned char *)out->data + start;
  memcpy(bytes, header, sizeof header);
  hash_index(bytes, index_size, bytes + HASH_AT);
  for (size_t i = 0; i < count; i++)
    text_add_bytes(out, all[i].item.bytes, all[i].item.size);
}

hd_status pack_write(const pack_item *items, size_t count, text *out, diags *errors) {
  if (count > PACK_MOST_ENTRIES) {
    diags_errorf(errors, "cache.pack", NULL, "a pack has at most %d entries", PACK_MOST_ENTRIES);
    return HD_INVALID;
  }
  packed *all = calloc(count + 1, sizeof *all);
  size_t kept = 0;
  hd_status status = all != NULL ? list_packed(items, count, all, &kept, errors) : HD_OUT_OF_MEMORY;
  if (status == HD_OK) write_packed(all, kept, out);
  free(all);
  return status == HD_OK && out->failed ? HD_OUT_OF_MEMORY : status;
}

/* ---- Reading ---- */

static hd_status refuse(diags *errors, const char *what) {
  diags_errorf(errors, "cache.pack", NULL, "%s", what);
  return HD_INVALID;
}

hd_status pack_index_size(const void *header, uint64_t file_size, size_t *out_size, diags *errors) {
  const unsigned char *p = header;
  if (file_size < PACK_HEADER) return refuse(errors, "shorter than the header of a pack");
  if (memcmp(p, magic, sizeof magic) != 0) return refuse(errors, "not a pack: wrong magic");
  uint64_t version = get_little(p + VERSION_AT, 4), count = get_little(p + COUNT_AT, 8);
  if (version != PACK_VERSION) {
    diags_errorf(errors, "cache.pack", NULL, "a pack of format version %llu, this heddle reads %d",
                 (unsigned long long)version, PACK_VERSION);
    return HD_INVALID;
  }
  if (get_little(p + RESERVED_AT, 4) != 0) return refuse(errors, "reserved bytes are not zero");
  if (get_little(p + SIZE_AT, 8) != file_size)
    return refuse(errors, "not of the size that its header says: cut off, or not copied to its end");
  if (count > PACK_MOST_ENTRIES || PACK_HEADER + count * PACK_ROW > file_size)
    return refuse(errors, "its header says more entries than fit into it");
  *out_size = (size_t)(PACK_HEADER + count * PACK_ROW);
  return HD_OK;
}

hd_status pack_index_check(const void *bytes, size_t size, diags *errors) {
  const unsigned char *p = bytes;
  unsigned char digest[HASH_SIZE];
  hash_index(p, size, digest);
  if (memcmp(digest, p + HASH_AT, HASH_SIZE) != 0)
    return refuse(errors, "its index does not match its SHA-256");
  uint64_t offset = size, file_size = get_little(p + SIZE_AT, 8);
  size_t count = pack_count(bytes);
  for (size_t i = 0; i < count; i++) {
    const unsigned char *row = p + PACK_HEADER + i * PACK_ROW;
    uint64_t entry_size = get_little(row + ROW_SIZE, 8);
    if (i > 0 && memcmp(row - PACK_ROW, row, HASH_SIZE) >= 0)
      return refuse(errors, "its index is not in the order of the keys");
    if (get_little(row + ROW_OFFSET, 8) != offset || entry_size < CACHE_FILE_HEADER ||
        entry_size > CACHE_FILE_MOST || entry_size > file_size - offset)
      return refuse(errors, "its index has an entry where there is none");
    offset += entry_size;
  }
  return offset == file_size ? HD_OK : refuse(errors, "it has bytes that belong to no entry");
}

size_t pack_count(const void *index) {
  return (size_t)get_little((const unsigned char *)index + COUNT_AT, 8);
}

pack_row pack_row_at(const void *index, size_t i) {
  const unsigned char *row = (const unsigned char *)index + PACK_HEADER + i * PACK_ROW;
  pack_row r = {.offset = get_little(row + ROW_OFFSET, 8), .size = get_little(row + ROW_SIZE, 8)};
  sha256_digest_hex(row + ROW_KEY, r.key);
  sha256_digest_hex(row + ROW_SOURCE_KEY, r.source_key);
  return r;
}

bool pack_find_key(const void *index, const char *key, size_t *out_row) {
  size_t low = 0, high = pack_count(index);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(pack_row_at(index, middle).key, key);
    if (order == 0) {
      *out_row = middle;
      return true;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

bool pack_find_source_key(const void *index, const char *source_key, size_t *out_row) {
  size_t count = pack_count(index);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(pack_row_at(index, i).source_key, source_key) != 0) continue;
    *out_row = i;
    return true;
  }
  return false;
}
