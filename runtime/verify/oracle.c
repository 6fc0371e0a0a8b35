#include "oracle.h"
#include <math.h>
#include <stdlib.h>

static void *address(const tensors *t, tensor_name name) {
  return t->present[name] ? (void *)(uintptr_t)t->by_name[name].data : NULL;
}

/* The scales of K or V: an array, or where the contract takes it as an argument the number itself. */
static const void *scale_address(const contract *c, const tensors *t, bool is_k) {
  if (c->scale.argument) return is_k ? &t->k_scale.value : &t->v_scale.value;
  return address(t, is_k ? TENSOR_K_SCALE : TENSOR_V_SCALE);
}

double oracle_logits_scale(const contract *c, double given) {
  if (c->logits.scale == LOGITS_NUMBER) return c->logits.number;
  if (c->logits.scale == LOGITS_RSQRT_D) return 1.0 / sqrt((double)c->head_dim.qk);
  return given;
}

hd_status oracle_decode(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT], double scale,
                        double *out, double *lse, diags *errors) {
  return oracle_decode_terms(c, host, dims, scale, out, lse, NULL, errors);
}

hd_status oracle_decode_terms(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT],
                              double scale, double *out, double *lse, reference_terms *terms, diags *errors) {
  const reference_decode_args args = {
      .seqs = dims[DIM_SEQS],
      .rows = dims[DIM_ROWS],
      .kv_heads = dims[DIM_KV_HEADS],
      .table_pages = dims[DIM_TABLE_PAGES],
      .pages = dims[DIM_PAGES],
      .q = address(host, TENSOR_Q),
      .k_cache = {address(host, TENSOR_K_CACHE), dims[DIM_K_STRIDE_B], dims[DIM_K_STRIDE_H]},
      .v_cache = {address(host, TENSOR_V_CACHE), dims[DIM_V_STRIDE_B], dims[DIM_V_STRIDE_H]},
      .k_scale = {scale_address(c, host, true), dims[DIM_K_SCALE_STRIDE_B], dims[DIM_K_SCALE_STRIDE_H]},
      .v_scale = {scale_address(c, host, false), dims[DIM_V_SCALE_STRIDE_B], dims[DIM_V_SCALE_STRIDE_H]},
      .page_table = address(host, TENSOR_PAGE_TABLE),
      .lengths = address(host, TENSOR_LENGTHS),
      .kv_indptr = address(host, TENSOR_KV_INDPTR),
      .kv_indices = address(host, TENSOR_KV_INDICES),
      .last_page_len = address(host, TENSOR_LAST_PAGE_LEN),
      .block_list = address(host, TENSOR_BLOCK_LIST),
      .token_list = address(host, TENSOR_TOKEN_LIST),
      .listed = dims[DIM_LISTED],
      .listed_stride_h = dims[DIM_LISTED_STRIDE_H],
      .listed_stride_row = dims[DIM_LISTED_STRIDE_ROW],
      .row_sequences = address(host, TENSOR_ROW_SEQUENCES),
      .table_rows = dims[DIM_TABLE_ROWS],
      .sinks = address(host, TENSOR_SINKS),
      .logits_scale = scale,
      .out = out,
      .lse = lse,
      .terms = terms,
  };
  return reference_decode(c, &args, errors);
}

hd_status oracle_write(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT], diags *errors) {
  const reference_write_args args = {
      .tokens = dims[DIM_TOKENS],
      .kv_heads = dims[DIM_KV_HEADS],
      .pages = dims[DIM_PAGES],
      .k = address(host, TENSOR_K),
      .v = address(host, TENSOR_V),
      .slot_mapping = address(host, TENSOR_SLOT_MAPPING),
      .k_cache = address(host, TENSOR_K_CACHE),
      .v_cache = address(host, TENSOR_V_CACHE),
      .k_scale = (void *)(uintptr_t)scale_address(c, host, true), /* read only, where it is a number */
      .v_scale = (void *)(uintptr_t)scale_address(c, host, false),
      .k_stride_b = dims[DIM_K_STRIDE_B],
      .k_stride_h = dims[DIM_K_STRIDE_H],
      .v_stride_b = dims[DIM_V_STRIDE_B],
      .v_stride_h = dims[DIM_V_STRIDE_H],
      .k_scale_stride_b = dims[DIM_K_SCALE_STRIDE_B],
      .k_scale_stride_h = dims[DIM_K_SCALE_STRIDE_H],
      .v_scale_stride_b = dims[DIM_V_SCALE_STRIDE_B],
      .v_scale_stride_h = dims[DIM_V_SCALE_STRIDE_H],
  };
  return reference_write(c, &args, errors);
}

static void round_all(const double *from, int64_t count, dtype type, unsigned char *to) {
  size_t bytes = (size_t)dtype_bytes(type);
  for (int64_t i = 0; i < count; i++)
    dtype_encode(type, from[i], to + (size_t)i * bytes);
}

hd_status oracle_decode_rounded(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT],
                                double scale, diags *errors) {
  const tensor *out = &host->by_name[TENSOR_OUT], *lse = &host->by_name[TENSOR_LSE];
  bool with_lse = c->output.lse && host->present[TENSOR_LSE];
  size_t out_count = (size_t)tensor_elements(out), lse_count = with_lse ? (size_t)tensor_elements(lse) : 0;
  double *exact = calloc(out_count + lse_count + 1, sizeof *exact);
  if (!exact) return HD_OUT_OF_MEMORY;
  hd_status status = oracle_decode(c, host, dims, scale, exact, with_lse ? exact + out_count : NULL, errors);
  if (status == HD_OK) {
    round_all(exact, (int64_t)out_count, out->dtype, address(host, TENSOR_OUT));
    if (with_lse) round_all(exact + out_count, (int64_t)lse_count, lse->dtype, address(host, TENSOR_LSE));
  }
  free(exact);
  return status;
}
