/* Finds the code object for a device in what a program hands over: an ELF file, or the bundle that clang
 * makes of several. */
#include "../object/elf64.h"
#include "runtime.h"
#include <elf.h>
#include <string.h>

/* clang's offload bundle, uncompressed ("ClangOffloadBundler", LLVM's documentation): the magic, the number
 * of entries, then for each: offset, size, length of its id, the id
 * ("hipv4-amdgcn-amd-amdhsa--gfx950:xnack-"). Numbers: 64 bits. */
#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define COMPRESSED_MAGIC "CCOB"
enum { BUNDLE_MAGIC_SIZE = 24, ENTRIES_MOST = 256, ID_MOST = 256 };

static uint64_t word(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* How far the file reaches, from its own tables: hipModuleLoadData is not told. */
static size_t elf_size(const unsigned char *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  uint64_t end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
  uint64_t segments_end = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
  if (segments_end > end) end = segments_end;
  for (uint64_t n = 0; n < header.e_phnum && header.e_phentsize == sizeof(Elf64_Phdr); ++n) {
    Elf64_Phdr segment;
    memcpy(&segment, image + header.e_phoff + n * sizeof segment, sizeof segment);
    if (segment.p_offset + segment.p_filesz > end) end = segment.p_offset + segment.p_filesz;
  }
  for (uint64_t n = 0; n < header.e_shnum && header.e_shentsize == sizeof(Elf64_Shdr); ++n) {
    Elf64_Shdr section;
    memcpy(&section, image + header.e_shoff + n * sizeof section, sizeof section);
    uint64_t size = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
    if (section.sh_offset + size > end) end = section.sh_offset + size;
  }
  return end;
}

static hipError_t take_elf(const unsigned char *image, size_t limit, const void **out_bytes,
                           size_t *out_size) {
  if (limit < sizeof(Elf64_Ehdr)) return hipErrorInvalidImage;
  *out_bytes = image;
  *out_size = limit == SIZE_MAX ? elf_size(image) : limit;
  return hipSuccess;
}

/* "hipv4-amdgcn-amd-amdhsa--gfx950:sramecc+" is for "gfx950". */
static bool id_names(const char *id, size_t length, const char *target) {
  static const char system[] = "-amdhsa--";
  const char *at = memmem(id, length, system, sizeof system - 1);
  if (!at) return false;
  at += sizeof system - 1;
  size_t left = length - (size_t)(at - id), name = strlen(target);
  return left >= name && memcmp(at, target, name) == 0 && (left == name || at[name] == ':');
}

static hipError_t take_entry(const unsigned char *image, size_t limit, const char *target,
                             const void **out_bytes, size_t *out_size) {
  size_t at = BUNDLE_MAGIC_SIZE;
  text have;
  if (limit - at < 8 || word(image + at) > ENTRIES_MOST) return hipErrorInvalidImage;
  uint64_t entries = word(image + at);
  at += 8;
  text_init(&have);
  for (uint64_t n = 0; n < entries; ++n) {
    if (limit - at < 24) break;
    uint64_t offset = word(image + at), size = word(image + at + 8), length = word(image + at + 16);
    at += 24;
    if (length > ID_MOST || limit - at < length || offset > limit || size > limit - offset) break;
    const char *id = (const char *)image + at;
    at += length;
    if (id_names(id, length, target)) {
      text_finish(&have);
      *out_bytes = image + offset;
      *out_size = size;
      return hipSuccess;
    }
    text_addf(&have, "%s%.*s", have.length > 0 ? ", " : "", (int)length, id);
  }
  hipemu_log("hip.image", "no code object for %s in the bundle; there are %s", target,
             have.length > 0 ? text_string(&have) : "none");
  text_finish(&have);
  return hipErrorNoBinaryForGpu;
}

hipError_t hipemu_image_find(const void *image, size_t limit, const char *target, const void **out_bytes,
                             size_t *out_size) {
  if (limit >= BUNDLE_MAGIC_SIZE && memcmp(image, BUNDLE_MAGIC, BUNDLE_MAGIC_SIZE) == 0)
    return take_entry(image, limit, target, out_bytes, out_size);
  if (limit >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0)
    return take_elf(image, limit, out_bytes, out_size);
  if (limit >= 4 && memcmp(image, COMPRESSED_MAGIC, 4) == 0) {
    hipemu_log("hip.image", "compressed bundles can't be read: compile with --no-offload-compress");
    return hipErrorInvalidImage;
  }
  hipemu_log("hip.image", "neither an ELF file nor a bundle of them");
  return hipErrorInvalidImage;
}
