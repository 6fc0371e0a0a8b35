#include "npy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { HEADER_MAX_BYTES = 65536, ITEM_MAX_BYTES = 1 << 20 };

/* How a format travels: NumPy has neither bf16 nor 8-bit floats, which go as their codes. */
static char kind_of(dtype type) {
  if (dtype_is_integer(type)) return 'i';
  return dtype_bytes(type) > 1 && type != DTYPE_BF16 ? 'f' : 'u';
}

/* Cursor over the header, a Python dictionary literal. */
typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip_space(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
    c->at++;
}

static bool take(cursor *c, char wanted) {
  skip_space(c);
  if (c->at >= c->end || *c->at != wanted) return false;
  c->at++;
  return true;
}

static bool take_word(cursor *c, const char *word) {
  size_t length = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
  c->at += length;
  return true;
}

/* 'text' or "text", without escapes. */
static bool take_string(cursor *c, char *out, size_t out_size) {
  skip_space(c);
  if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) return false;
  char quote = *c->at++;
  size_t length = 0;
  while (c->at < c->end && *c->at != quote) {
    if (*c->at == '\\' || length + 1 >= out_size) return false;
    out[length++] = *c->at++;
  }
  if (c->at >= c->end) return false;
  c->at++;
  out[length] = 0;
  return true;
}

static bool take_size(cursor *c, int64_t *out_value) {
  int64_t value = 0;
  skip_space(c);
  if (c->at >= c->end || *c->at < '0' || *c->at > '9') return false;
  while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
    if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
        __builtin_add_overflow(value, (int64_t)(*c->at - '0'), &value))
      return false;
    c->at++;
  }
  if (c->at < c->end && *c->at == 'L') c->at++; /* Python 2 wrote 16L */
  *out_value = value;
  return true;
}

/* (2, 3), (2,) or () */
static bool take_shape(cursor *c, npy *n) {
  if (!take(c, '(')) return false;
  while (!take(c, ')')) {
    if (n->rank >= TENSOR_MAX_RANK || !take_size(c, &n->shape[n->rank])) return false;
    n->rank++;
    if (take(c, ',')) continue;
    if (!take(c, ')')) return false;
    break;
  }
  return true;
}

static hd_status refuse(diags *errors, const char *code, const char *message) {
  diags_errorf(errors, code, NULL, "%s", message);
  return HD_DECLINED;
}

/* "<f4": byte order, kind, size. */
static hd_status parse_type(const char *description, npy *n, diags *errors) {
  const char *at = description;
  char order = '|';
  if (*at == '<' || *at == '>' || *at == '|' || *at == '=') order = *at++;
  n->kind = *at ? *at++ : 0;
  long size = *at >= '0' && *at <= '9' ? strtol(at, NULL, 10) : 0;
  bool digits = strspn(at, "0123456789") == strlen(at);
  if (!n->kind || !strchr("biufcVSUOmM", n->kind) || !digits || size < 1 || size > ITEM_MAX_BYTES) {
    diags_errorf(errors, "npy.type", NULL, "the array's type is '%s', which is not a plain number type",
                 description);
    return HD_DECLINED;
  }
  n->item_size = (int)size;
  if (order == '>' && size > 1)
    return refuse(errors, "npy.order", "the array is big-endian, expected little-endian");
  return HD_OK;
}

static hd_status parse_header(const char *header, size_t length, npy *n, diags *errors) {
  cursor c = {header, header + length};
  char name[32], description[64] = "";
  bool fortran = false, has_order = false, has_shape = false;
  bool good = take(&c, '{');
  while (good && !take(&c, '}')) {
    good = take_string(&c, name, sizeof name) && take(&c, ':');
    if (!good) break;
    if (strcmp(name, "descr") == 0) {
      good = !description[0] && take_string(&c, description, sizeof description);
      if (!good) return refuse(errors, "npy.type", "the array's type is not a plain number type");
    } else if (strcmp(name, "fortran_order") == 0) {
      fortran = take_word(&c, "True");
      good = !has_order && (fortran || take_word(&c, "False"));
      has_order = true;
    } else if (strcmp(name, "shape") == 0) {
      good = !has_shape && take_shape(&c, n);
      has_shape = true;
    } else {
      good = false;
    }
    if (good && !take(&c, ',')) {
      good = take(&c, '}');
      break;
    }
  }
  skip_space(&c);
  if (!good || c.at != c.end || !description[0] || !has_order || !has_shape)
    return refuse(errors, "npy.header", "the header is not that of an array of at most 16 dimensions");
  int larger = 0;
  for (int i = 0; i < n->rank; i++)
    larger += n->shape[i] > 1;
  if (fortran && larger > 1)
    return refuse(errors, "npy.order", "the array is in Fortran order; save it with numpy.ascontiguousarray");
  return parse_type(description, n, errors);
}

hd_status npy_parse(const void *file, size_t size, npy *out_npy, diags *errors) {
  const unsigned char *bytes = file;
  if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
    return refuse(errors, "npy.magic", "this is not a .npy file");
  int version = bytes[6];
  if (version < 1 || version > 3) {
    diags_errorf(errors, "npy.version", NULL, "the file is in .npy version %d, known are 1 to 3", version);
    return HD_DECLINED;
  }
  size_t start = version == 1 ? 10 : 12;
  if (size < start) return refuse(errors, "npy.short", "the file ends inside its header");
  size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
  if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  if (length > HEADER_MAX_BYTES) return refuse(errors, "npy.header", "the header is larger than 64 KiB");
  if (size - start < length) return refuse(errors, "npy.short", "the file ends inside its header");
  npy n = {0};
  hd_status status = parse_header((const char *)bytes + start, length, &n, errors);
  if (status != HD_OK) return status;
  n.data_offset = start + length;
  size_t wanted = (size_t)n.item_size;
  for (int i = 0; i < n.rank; i++)
    if (n.shape[i] == 0) wanted = 0;
  for (int i = 0; i < n.rank && wanted; i++)
    if (__builtin_mul_overflow(wanted, (size_t)n.shape[i], &wanted))
      return refuse(errors, "npy.shape", "the product of the array's shape overflows");
  size_t there = size - n.data_offset;
  if (there != wanted) {
    diags_errorf(errors, "npy.short", NULL, "the header announces %zu bytes of data, the file has %zu",
                 wanted, there);
    return HD_DECLINED;
  }
  n.data_size = wanted;
  *out_npy = n;
  return HD_OK;
}

bool npy_holds(const npy *n, dtype type) {
  const char kind = kind_of(type);
  if (n->item_size != dtype_bytes(type)) return false;
  if (n->kind == kind) return true;
  /* Bits are bits: one- and two-byte codes in another integer type of the size, or raw as ml_dtypes saves
   * them. */
  bool codes = dtype_bytes(type) <= 2, integer = n->kind == 'i' || n->kind == 'u';
  return codes && (n->kind == 'V' || (integer && kind != 'f'));
}

void npy_type_name(const npy *n, char *out, size_t out_size) {
  const char *base = n->kind == 'f'   ? "float"
                     : n->kind == 'i' ? "int"
                     : n->kind == 'u' ? "uint"
                     : n->kind == 'c' ? "complex"
                     : n->kind == 'b' ? "bool"
                                      : "";
  if (n->kind == 'b')
    snprintf(out, out_size, "bool");
  else if (base[0])
    snprintf(out, out_size, "%s%d", base, n->item_size * 8);
  else
    snprintf(out, out_size, "%c%d", n->kind, n->item_size);
}

const char *npy_travels_as(dtype type) {
  static const char *const names[3][4] = {{"uint8", "uint16", "uint32", "uint64"},
                                          {"int8", "int16", "int32", "int64"},
                                          {"float8", "float16", "float32", "float64"}};
  const char kind = kind_of(type);
  int size = 0;
  while (1 << size < dtype_bytes(type))
    size++;
  return names[kind == 'u' ? 0 : kind == 'i' ? 1 : 2][size];
}

void npy_write(const tensor *t, const void *data, text *out) {
  text header;
  text_init(&header);
  const int bytes = dtype_bytes(t->dtype);
  text_addf(&header, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", bytes > 1 ? '<' : '|',
            kind_of(t->dtype), bytes);
  for (int i = 0; i < t->rank; i++)
    text_addf(&header, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(&header, t->rank == 1 ? ",), }" : "), }");
  /* The data starts at a multiple of 64 bytes; the header ends with a newline. */
  while ((10 + header.length + 1) % 64 != 0 && !header.failed)
    text_add(&header, " ");
  text_add(&header, "\n");
  const unsigned char start[4] = {1, 0, (unsigned char)(header.length & 255),
                                  (unsigned char)(header.length >> 8)};
  text_add_bytes(out, magic, sizeof magic);
  text_add_bytes(out, start, sizeof start);
  text_add_bytes(out, header.data, header.length);
  text_add_bytes(out, data, tensor_bytes(t));
  if (header.failed) out->failed = true;
  text_finish(&header);
}
