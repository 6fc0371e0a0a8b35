#include "shapes.h"

int cli_bench_shape(const cli *c, const char *word, bench_shape *out_shape) {
  if (bench_shape_parse(word, out_shape)) return EXIT_FINE;
  return cli_usage(
      c,
      "'%s' is not a shape: SEQSxLENGTHxKV_HEADS or SEQSxLENGTHxKV_HEADSxG, such as 64x8192x4x16 (at "
      "most 2^31 - 1 tokens)",
      word);
}

int cli_tune_shape(const cli *c, const char *word, tune_shape *out_shape) {
  if (tune_shape_parse(word, out_shape)) return EXIT_FINE;
  return cli_usage(
      c, "'%s' is not a shape: SEQSxLENGTHxKV_HEADS, such as 64x8192x4, 64x8192x4-ragged or 64x8192x4-2rows",
      word);
}

void json_extents(text *t, bool *first, int64_t seqs, int64_t length, int64_t kv_heads) {
  json_int(t, first, "seqs", seqs);
  json_int(t, first, "length", length);
  json_int(t, first, "kv_heads", kv_heads);
}
