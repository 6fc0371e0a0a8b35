#include "codeobject.h"
#include "../../generator/target.h"
#include "elf64.h"
#include "msgpack.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Note type and layout, metadata map keys: LLVM's "User Guide for AMDGPU Backend", code object V3 and later.
 */
enum {
  NOTE_AMDGPU_METADATA = 32,
  ABI_AMDGPU_HSA = 64,
  KERNEL_DESCRIPTOR_BYTES = 64,
  MOST_METADATA = 1 << 20 /* bytes */
};

static hd_status refuse(diags *errors, const char *what) {
  diags_errorf(errors, "codeobject.metadata", NULL, "unusable code-object metadata: %s", what);
  return HD_INVALID;
}

/* Number fields of a kernel's and an argument's map. */
typedef struct number_field {
  const char *key;
  size_t offset; /* of a uint32_t in the struct */
} number_field;

static const number_field kernel_fields[] = {
    {".vgpr_count", offsetof(codeobject_kernel, vgprs)},
    {".agpr_count", offsetof(codeobject_kernel, agprs)},
    {".sgpr_count", offsetof(codeobject_kernel, sgprs)},
    {".vgpr_spill_count", offsetof(codeobject_kernel, vgpr_spills)},
    {".sgpr_spill_count", offsetof(codeobject_kernel, sgpr_spills)},
    {".group_segment_fixed_size", offsetof(codeobject_kernel, static_lds)},
    {".private_segment_fixed_size", offsetof(codeobject_kernel, scratch)},
    {".kernarg_segment_size", offsetof(codeobject_kernel, kernarg_size)},
    {".kernarg_segment_align", offsetof(codeobject_kernel, kernarg_align)},
    {".max_flat_workgroup_size", offsetof(codeobject_kernel, max_workgroup)},
    {".wavefront_size", offsetof(codeobject_kernel, wave)},
};

static const number_field argument_fields[] = {
    {".offset", offsetof(codeobject_argument, offset)},
    {".size", offsetof(codeobject_argument, size)},
};

static const number_field *field_find(const number_field *fields, size_t count, const msgpack_item *key) {
  for (size_t i = 0; i < count; i++) {
    if (msgpack_is(key, fields[i].key)) return &fields[i];
  }
  return NULL;
}
#define FIELD_FIND(fields, key) field_find(fields, sizeof(fields) / sizeof *(fields), key)

/* Reads a 32-bit number into `field` of the struct at `base`. */
static bool read_number(msgpack *m, void *base, const number_field *field) {
  msgpack_item item;
  if (!msgpack_next(m, &item) || item.kind != MSGPACK_UNSIGNED || item.number > UINT32_MAX) return false;
  uint32_t number = (uint32_t)item.number;
  memcpy((char *)base + field->offset, &number, sizeof number);
  return true;
}

/* Reads a string that must fit into `size` bytes with its NUL and hold none itself. */
static bool read_string(msgpack *m, char *out, size_t size) {
  msgpack_item item;
  if (!msgpack_next(m, &item) || item.kind != MSGPACK_STRING || item.length >= size ||
      memchr(item.string, '\0', item.length) != NULL)
    return false;
  memcpy(out, item.string, item.length);
  out[item.length] = '\0';
  return true;
}

/* A string for reading only: cut to `size` bytes with its NUL. */
static bool read_label(msgpack *m, char *out, size_t size) {
  msgpack_item item;
  if (!msgpack_next(m, &item) || item.kind != MSGPACK_STRING) return false;
  size_t length = item.length < size ? item.length : size - 1;
  memcpy(out, item.string, length);
  out[length] = '\0';
  return true;
}

static bool read_argument(msgpack *m, codeobject_argument *a) {
  msgpack_item map, key;
  if (!msgpack_next(m, &map) || map.kind != MSGPACK_MAP) return false;
  for (uint64_t i = 0; i < map.number; i++) {
    if (!msgpack_next(m, &key)) return false;
    const number_field *field = FIELD_FIND(argument_fields, &key);
    bool good;
    if (field != NULL)
      good = read_number(m, a, field);
    else if (msgpack_is(&key, ".name"))
      good = read_label(m, a->name, sizeof a->name);
    else if (msgpack_is(&key, ".value_kind"))
      good = read_label(m, a->value_kind, sizeof a->value_kind);
    else
      good = msgpack_skip(m);
    if (!good) return false;
  }
  return true;
}

static bool read_arguments(msgpack *m, codeobject_kernel *k) {
  msgpack_item list;
  if (!msgpack_next(m, &list) || list.kind != MSGPACK_ARRAY || list.number > CODEOBJECT_MAX_ARGUMENTS)
    return false;
  k->argument_count = (int)list.number;
  memset(k->arguments, 0, sizeof k->arguments);
  for (int i = 0; i < k->argument_count; i++) {
    if (!read_argument(m, &k->arguments[i])) return false;
  }
  return true;
}

static hd_status read_kernel(msgpack *m, const elf64 *e, codeobject_kernel *k, diags *errors) {
  msgpack_item map, key;
  char descriptor_symbol[sizeof k->symbol + 3] = "";
  if (!msgpack_next(m, &map) || map.kind != MSGPACK_MAP) return refuse(errors, "a kernel that is no map");
  for (uint64_t i = 0; i < map.number; i++) {
    if (!msgpack_next(m, &key)) return refuse(errors, "it ends inside a kernel");
    const number_field *field = FIELD_FIND(kernel_fields, &key);
    if (field != NULL) {
      if (!read_number(m, k, field)) {
        diags_errorf(errors, "codeobject.metadata", NULL,
                     "unusable code-object metadata: %s is no 32-bit number", field->key);
        return HD_INVALID;
      }
    } else if (msgpack_is(&key, ".name")) {
      if (!read_string(m, k->symbol, sizeof k->symbol))
        return refuse(errors, "a kernel name that is no string or longer than 63 bytes");
    } else if (msgpack_is(&key, ".symbol")) {
      if (!read_string(m, descriptor_symbol, sizeof descriptor_symbol))
        return refuse(errors, "a kernel symbol that is no string or longer than 66 bytes");
    } else if (msgpack_is(&key, ".args")) {
      if (!read_arguments(m, k))
        return refuse(errors, "a malformed argument list, or more than 64 arguments");
    } else if (!msgpack_skip(m)) {
      return refuse(errors, "it ends inside a kernel");
    }
  }
  elf64_symbol symbol;
  if (k->symbol[0] == '\0' || !elf64_symbol_find(e, descriptor_symbol, &symbol) ||
      !elf64_file_offset(e, symbol.address, KERNEL_DESCRIPTOR_BYTES, &k->descriptor_offset)) {
    diags_errorf(errors, "codeobject.symbol", NULL,
                 "kernel \"%s\" has no descriptor in the code object (symbol \"%s\")", k->symbol,
                 descriptor_symbol);
    return HD_INVALID;
  }
  k->descriptor_address = symbol.address;
  return HD_OK;
}

static hd_status read_metadata(msgpack *m, const elf64 *e, codeobject *object, diags *errors) {
  msgpack_item root, key, list;
  if (!msgpack_next(m, &root) || root.kind != MSGPACK_MAP)
    return refuse(errors, "it does not begin with a map");
  for (uint64_t i = 0; i < root.number; i++) {
    if (!msgpack_next(m, &key)) return refuse(errors, "it ends early");
    if (!msgpack_is(&key, "amdhsa.kernels")) {
      if (!msgpack_skip(m)) return refuse(errors, "it ends early");
      continue;
    }
    if (object->kernel_count > 0 || !msgpack_next(m, &list) || list.kind != MSGPACK_ARRAY)
      return refuse(errors, "amdhsa.kernels is no list");
    if (list.number > CODEOBJECT_MAX_KERNELS) return refuse(errors, "more than 16 kernels");
    for (uint64_t n = 0; n < list.number; n++) {
      hd_status status = read_kernel(m, e, &object->kernels[n], errors);
      if (status != HD_OK) return status;
      object->kernel_count++;
    }
  }
  return HD_OK;
}

static size_t read_u32(const unsigned char *p) {
  return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* The AMDGPU metadata note of one note segment. */
static bool note_find(const elf64 *e, const elf64_segment *s, msgpack *out_metadata) {
  const unsigned char *p = e->bytes + s->offset;
  size_t left = (size_t)s->file_size;
  while (left >= 12) {
    size_t name_size = read_u32(p), size = read_u32(p + 4), type = read_u32(p + 8);
    size_t name_room = (name_size + 3) & ~(size_t)3, room = (size + 3) & ~(size_t)3;
    p += 12;
    left -= 12;
    if (name_size > left || name_room > left || size > left - name_room) return false;
    if (type == NOTE_AMDGPU_METADATA && name_size == sizeof "AMDGPU" &&
        memcmp(p, "AMDGPU", sizeof "AMDGPU") == 0) {
      *out_metadata = (msgpack){.bytes = p + name_room, .size = size};
      return true;
    }
    if (room > left - name_room) return false;
    p += name_room + room;
    left -= name_room + room;
  }
  return false;
}

static const char *target_of_machine(uint32_t machine) {
  for (size_t i = 0; i < target_count(); i++) {
    const target *t = target_at(i);
    if (t->elf_machine != 0 && t->elf_machine == machine) return t->name;
  }
  return "";
}

static hd_status parse(const elf64 *e, codeobject *object, diags *errors) {
  if (e->machine != ELF_MACHINE_AMDGPU || e->abi != ABI_AMDGPU_HSA) {
    diags_errorf(errors, "codeobject.machine", NULL,
                 "not an AMD code object: ELF machine %u with ABI %u, where %d with ABI %d is needed",
                 e->machine, e->abi, ELF_MACHINE_AMDGPU, ABI_AMDGPU_HSA);
    return HD_INVALID;
  }
  object->machine = e->flags & 0xff;
  const char *name = target_of_machine(object->machine);
  memcpy(object->target, name, strnlen(name, sizeof object->target - 1));
  for (int i = 0; i < e->segment_count; i++) {
    elf64_segment s;
    msgpack metadata;
    if (!elf64_segment_at(e, i, &s) || s.type != PT_NOTE || !note_find(e, &s, &metadata)) continue;
    /* Some bytes of it ask for kilobytes of work. */
    if (metadata.size > MOST_METADATA) return refuse(errors, "it is longer than 1 MiB");
    return read_metadata(&metadata, e, object, errors);
  }
  return refuse(errors, "there is no AMDGPU metadata note");
}

hd_status codeobject_parse(const void *bytes, size_t size, codeobject *out_object, diags *errors) {
  elf64 e;
  hd_status status = elf64_open(bytes, size, &e, errors);
  if (status != HD_OK) return status;
  codeobject *object = calloc(1, sizeof *object); /* 90 KB, and *out_object stays untouched on failure */
  if (object == NULL) return HD_OUT_OF_MEMORY;
  status = parse(&e, object, errors);
  if (status == HD_OK) *out_object = *object;
  free(object);
  return status;
}
