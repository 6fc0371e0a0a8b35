/* Claims about reading and writing .npy files; files are written out by hand, byte by byte. */
#include "../../runtime/npy.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A version 1 file: magic, header, then `data_size` bytes of 0xab. Owned by the caller. */
static unsigned char *file_of(const char *header, size_t data_size, size_t *out_size) {
  size_t length = strlen(header);
  unsigned char *bytes = malloc(10 + length + data_size);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (unsigned char)(length & 255);
  bytes[9] = (unsigned char)(length >> 8);
  memcpy(bytes + 10, header, length);
  memset(bytes + 10 + length, 0xab, data_size);
  *out_size = 10 + length + data_size;
  return bytes;
}

static hd_status parse(const void *bytes, size_t size, npy *out, const char **out_code) {
  diags d;
  diags_init(&d);
  hd_status status = npy_parse(bytes, size, out, &d);
  cr_assert_eq(status == HD_OK, diags_errors(&d) == 0);
  *out_code = d.count ? d.items[0].code : "";
  diags_finish(&d);
  return status;
}

static void accepts(const char *header, size_t data_size, int rank, int64_t first) {
  size_t size;
  npy n;
  const char *code;
  unsigned char *bytes = file_of(header, data_size, &size);
  cr_assert_eq(parse(bytes, size, &n, &code), HD_OK, "%s: %s", header, code);
  cr_assert_eq(n.rank, rank, "%s", header);
  if (rank > 0) cr_assert_eq(n.shape[0], first, "%s", header);
  cr_assert_eq(n.data_size, data_size);
  cr_assert_eq(n.data_offset + n.data_size, size);
  free(bytes);
}

static void refuses(const char *header, size_t data_size, const char *wanted) {
  size_t size;
  npy n;
  const char *code;
  unsigned char *bytes = file_of(header, data_size, &size);
  cr_assert_eq(parse(bytes, size, &n, &code), HD_DECLINED, "%s", header);
  cr_assert_str_eq(code, wanted, "%s", header);
  free(bytes);
}

Test(npy, what_numpy_writes_is_read) {
  accepts("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24, 2, 2);
  accepts("{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }\n", 10, 1, 5);
  accepts("{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", 1, 0, 0);
  accepts("{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }\n", 0, 1, 0);
  accepts("{\"descr\": \"<V2\", \"shape\": (3,), \"fortran_order\": True}", 6, 1, 3);
  accepts("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }\n", 8, 2, 2);
}

Test(npy, a_shape_and_its_data_have_to_agree) {
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 23, "npy.short");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 25, "npy.short");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }\n", 4, "npy.short");
}

Test(npy, sizes_that_overflow_are_refused) {
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n", 0, "npy.shape");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", 0, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 16, "npy.shape");
}

Test(npy, orders_that_would_be_misread_are_refused) {
  refuses("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 24, "npy.order");
  refuses("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n", 8, "npy.order");
}

Test(npy, types_that_are_no_numbers_are_refused) {
  refuses("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", 8, "npy.type");
  refuses("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", 8, "npy.type");
  refuses("{'descr': '', 'fortran_order': False, 'shape': (1,), }\n", 8, "npy.header");
  refuses("{'descr': '<f4x', 'fortran_order': False, 'shape': (1,), }\n", 4, "npy.type");
}

Test(npy, headers_that_are_none_are_refused) {
  refuses("", 0, "npy.header");
  refuses("{", 0, "npy.header");
  refuses("{}", 0, "npy.header");
  refuses("{'descr': '<f4'", 0, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False}", 0, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,}", 4, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} trailing", 4, "npy.header");
  refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4,
          "npy.header");
}

Test(npy, a_file_cut_anywhere_is_refused) {
  size_t size;
  npy n;
  const char *code;
  unsigned char *bytes = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, &size);
  for (size_t cut = 0; cut < size; cut++) {
    unsigned char *shorter = malloc(cut + 1); /* of its own size, so that a sanitizer sees reads beyond it */
    memcpy(shorter, bytes, cut);
    unsigned char *exact = realloc(shorter, cut > 0 ? cut : 1);
    cr_assert_eq(parse(exact, cut, &n, &code), HD_DECLINED, "cut at %zu", cut);
    free(exact);
  }
  free(bytes);
}

Test(npy, any_byte_may_be_changed_without_harm) {
  size_t size;
  npy n;
  const char *code;
  unsigned char *bytes = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, &size);
  for (size_t at = 0; at < size; at++)
    for (int value = 0; value < 256; value++) {
      unsigned char kept = bytes[at];
      bytes[at] = (unsigned char)value;
      if (parse(bytes, size, &n, &code) == HD_OK) cr_assert_leq(n.data_offset + n.data_size, size);
      bytes[at] = kept;
    }
  free(bytes);
}

Test(npy, later_versions_have_a_longer_length) {
  const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
  unsigned char bytes[128] = "\x93NUMPY\x02\x00";
  npy n;
  const char *code;
  bytes[8] = sizeof header - 1;
  memcpy(bytes + 12, header, sizeof header - 1);
  cr_assert_eq(parse(bytes, 12 + sizeof header - 1 + 2, &n, &code), HD_OK);
  bytes[6] = 3;
  cr_assert_eq(parse(bytes, 12 + sizeof header - 1 + 2, &n, &code), HD_OK);
  bytes[6] = 4;
  cr_assert_eq(parse(bytes, 12 + sizeof header - 1 + 2, &n, &code), HD_DECLINED);
  bytes[6] = 2;
  bytes[11] = 0x80; /* a header of 2 GiB */
  cr_assert_eq(parse(bytes, sizeof bytes, &n, &code), HD_DECLINED);
}

Test(npy, what_is_written_is_read_back) {
  const dtype types[] = {DTYPE_BF16,     DTYPE_FP16, DTYPE_FP32, DTYPE_FP8_E4M3FN, DTYPE_FP8_E4M3FNUZ,
                         DTYPE_FP8_E5M2, DTYPE_INT8, DTYPE_E8M0, DTYPE_INT32,      DTYPE_INT64};
  const unsigned char data[6 * 8] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    for (int rank = 0; rank <= 3; rank++) {
      tensor t = {.dtype = types[i], .rank = rank, .shape = {rank == 1 ? 6 : 2, 3, 1}};
      text file;
      npy n;
      const char *code;
      text_init(&file);
      npy_write(&t, data, &file);
      cr_assert_eq(parse(file.data, file.length, &n, &code), HD_OK, "%s", code);
      cr_assert_eq(n.rank, rank);
      cr_assert_eq(n.data_offset % 64, 0);
      cr_assert(npy_holds(&n, types[i]), "%s", dtype_name(types[i]));
      cr_assert_eq(n.data_size, tensor_bytes(&t));
      cr_assert_arr_eq(file.data + n.data_offset, data, n.data_size);
      text_finish(&file);
    }
}

Test(npy, an_array_holds_a_format_when_its_bits_can) {
  npy n = {.kind = 'u', .item_size = 2};
  cr_assert(npy_holds(&n, DTYPE_BF16));
  cr_assert_not(npy_holds(&n, DTYPE_FP16), "fp16 travels as float16");
  n.kind = 'V';
  cr_assert(npy_holds(&n, DTYPE_BF16));
  n = (npy){.kind = 'f', .item_size = 2};
  cr_assert(npy_holds(&n, DTYPE_FP16));
  cr_assert_not(npy_holds(&n, DTYPE_BF16), "float16 bits are not bf16");
  n = (npy){.kind = 'i', .item_size = 8};
  cr_assert(npy_holds(&n, DTYPE_INT64));
  cr_assert_not(npy_holds(&n, DTYPE_INT32));
  n = (npy){.kind = 'i', .item_size = 1};
  cr_assert(npy_holds(&n, DTYPE_FP8_E4M3FN));
  n = (npy){.kind = 'u', .item_size = 4};
  cr_assert_not(npy_holds(&n, DTYPE_INT32), "unsigned page numbers would be misread");
}
