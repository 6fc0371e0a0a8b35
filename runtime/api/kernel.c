/* What a kernel says of itself. */
#include "parts.h"
#include <stdio.h>
#include <string.h>

/* Begins a query: the kernel is prepared then. NULL with the status. */
static const prepared *begin(hd_kernel *k, hd_status *out_status) {
  diags ignored;
  *out_status = HD_INVALID;
  if (k == NULL) return NULL;
  diags_init(&ignored);
  const prepared *p = api_alive(k->context, &ignored) ? api_ready(k, out_status, &ignored) : NULL;
  diags_finish(&ignored);
  return p;
}

hd_status hd_kernel_get_info(hd_kernel *k, hd_kernel_info *out_info) {
  hd_status status;
  const prepared *p = begin(k, &status);
  if (p == NULL) return status;
  const hd_kernel_info info = {
      .contract_name = k->name,
      .contract_key = k->contract_key,
      .operation = p->descriptor.operation,
      .target = p->descriptor.target,
      .variant = p->descriptor.variant,
      .code_key = p->key,
      .compiler = p->compiler,
      .origin = p->origin,
      .descriptor = p->json,
      .code_object = p->code,
      .code_object_bytes = p->code_bytes,
      .compile_seconds = p->compile_seconds,
      .parts = p->descriptor.kernel_count,
      .tile_tokens = p->descriptor.tile_tokens,
      .choice = k->choice,
  };
  return api_give_struct(&info, sizeof info, out_info, offsetof(hd_kernel_info, contract_key));
}

hd_status hd_kernel_tensor(hd_kernel *k, hd_tensor_name name, hd_role *out_role, hd_dtype *out_dtype,
                           char *out_shape, size_t size) {
  static const hd_role roles[] = {[ROLE_NONE] = HD_ROLE_NONE,
                                  [ROLE_INPUT] = HD_ROLE_INPUT,
                                  [ROLE_OUTPUT] = HD_ROLE_OUTPUT,
                                  [ROLE_UPDATED] = HD_ROLE_UPDATED};
  const int64_t unknown[DIM_COUNT] = {0};
  tensor_name inner;
  tensor wanted;
  if (k == NULL || out_role == NULL || !api_tensor_name(name, &inner)) return HD_INVALID;
  tensor_role role = bind_role(&k->contract, k->operation, inner);
  if (role != ROLE_NONE && bind_tensor(&k->contract, inner, unknown, &wanted)) {
    if (out_dtype != NULL && !api_dtype_back(wanted.dtype, out_dtype)) return HD_INTERNAL;
    text shape;
    text_init(&shape);
    bind_expected_shape(&k->contract, inner, &shape);
    if (out_shape != NULL && size > 0) snprintf(out_shape, size, "%s", text_string(&shape));
    text_finish(&shape);
  }
  *out_role = roles[role];
  return HD_OK;
}

/* The sizes as dims; false when one is negative or beyond 31 bits. Strides don't matter here. */
static bool read_sizes(const hd_kernel *k, const hd_sizes *from, hd_sizes *out_sizes,
                       int64_t out_dims[DIM_COUNT]) {
  hd_sizes s;
  diags ignored;
  diags_init(&ignored);
  bool sound = api_take_struct(from, offsetof(hd_sizes, longest), &s, sizeof s, "sizes", &ignored);
  diags_finish(&ignored);
  if (!sound) return false;
  if (s.rows == 0) s.rows = 1;
  const int64_t all[] = {s.seqs, s.rows, s.kv_heads, s.longest, s.splits, s.tokens, s.listed};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] < 0 || all[i] > INT32_MAX) return false;
  if (contract_rows_are_sequences(&k->contract)) {
    s.seqs *= s.rows;
    s.rows = 1;
  }
  memset(out_dims, 0, DIM_COUNT * sizeof *out_dims);
  out_dims[DIM_SEQS] = s.seqs;
  out_dims[DIM_ROWS] = s.rows;
  out_dims[DIM_KV_HEADS] = s.kv_heads;
  out_dims[DIM_TOKENS] = s.tokens;
  out_dims[DIM_SPLITS] = s.splits;
  out_dims[DIM_LISTED] = s.listed;
  out_dims[DIM_LIST_WIDTH] = bind_list_width(&k->contract, s.listed);
  *out_sizes = s;
  return true;
}

/* As the record or the policy has it. */
static int64_t wanted_splits(const hd_kernel *k, const prepared *p, const int64_t dims[DIM_COUNT],
                             int64_t longest) {
  const session *s = &k->context->session;
  if (!p->by_record) return session_splits(s, &p->loaded, dims, longest, 0);
  const tune_shape launch = {dims[DIM_SEQS], longest, dims[DIM_KV_HEADS], (int)dims[DIM_ROWS], false};
  const split_facts facts = split_facts_of(&p->descriptor);
  const tune_entry entry = {.shape = k->bucket, .splits = k->bucket_splits};
  const tune_choice choice = {
      .entry = &entry,
      .splits = tune_scale_splits(&k->bucket, k->bucket_splits, &launch, s->facts.compute_units)};
  return tune_choice_splits(&choice, facts, &launch, s->facts.compute_units);
}

int64_t api_splits(const hd_kernel *k, const prepared *p, const int64_t dims[DIM_COUNT], int64_t longest) {
  if (!operation_attends(k->operation)) return 1;
  return splits_among(&k->split_factors, wanted_splits(k, p, dims, longest));
}

hd_status hd_kernel_splits(hd_kernel *k, const hd_sizes *sizes, int64_t *out_splits) {
  hd_status status;
  hd_sizes s;
  int64_t dims[DIM_COUNT];
  const prepared *p = begin(k, &status);
  if (p == NULL) return status;
  if (out_splits == NULL || !read_sizes(k, sizes, &s, dims)) return HD_INVALID;
  *out_splits = s.splits > 0 ? s.splits : api_splits(k, p, dims, s.longest);
  return HD_OK;
}

/* Workgroups beyond which nothing is split: of the policy, and of a record that counts (tune_scale_splits).
 */
static int64_t split_limit(const hd_kernel *k, const prepared *p) {
  int64_t units = k->context->session.facts.compute_units, own = k->bucket.seqs * k->bucket.kv_heads;
  int64_t measured = p->by_record ? (k->bucket_splits + 1) * own : 0;
  return measured > units ? measured : units;
}

/* Fewer sequences may be split into more parts, so the largest call need not be the hungriest. Beyond as many
 * (sequence, kv head) pairs as split_limit nothing is gained by looking further. */
static int64_t most_workspace(const hd_kernel *k, const prepared *p, const hd_sizes *s,
                              int64_t dims[DIM_COUNT]) {
  int64_t most = 0, limit = split_limit(k, p);
  int64_t fewest_rows =
      contract_makes_lists(&k->contract) ? 1 : s->rows; /* rows with lists are split alone */
  for (int64_t rows = fewest_rows; rows <= s->rows; rows++)
    for (int64_t heads = 1; heads <= s->kv_heads; heads++) {
      int64_t last = limit / heads + 1;
      for (int64_t n = 0; n <= last; n++) {
        int64_t seqs = n == 0 ? s->seqs : n;
        if (seqs > s->seqs) break;
        dims[DIM_SEQS] = seqs;
        dims[DIM_ROWS] = rows;
        dims[DIM_KV_HEADS] = heads;
        dims[DIM_SPLITS] = api_splits(k, p, dims, s->longest);
        int64_t bytes = descriptor_workspace_bytes(&p->descriptor, dims);
        if (bytes > most) most = bytes;
      }
    }
  return most;
}

hd_status hd_kernel_workspace(hd_kernel *k, const hd_sizes *sizes, int64_t *out_bytes) {
  hd_status status;
  hd_sizes s;
  int64_t dims[DIM_COUNT];
  const prepared *p = begin(k, &status);
  if (p == NULL) return status;
  if (out_bytes == NULL || !read_sizes(k, sizes, &s, dims)) return HD_INVALID;
  if (!operation_attends(k->operation))
    *out_bytes = 0;
  else
    *out_bytes =
        s.splits > 0 ? descriptor_workspace_bytes(&p->descriptor, dims) : most_workspace(k, p, &s, dims);
  return HD_OK;
}

hd_status hd_kernel_part(hd_kernel *k, int index, const hd_sizes *sizes, hd_part *out_part) {
  hd_status status;
  hd_sizes s;
  int64_t dims[DIM_COUNT];
  diags ignored;
  const prepared *p = begin(k, &status);
  if (p == NULL) return status;
  if (index < 0 || index >= p->descriptor.kernel_count || !read_sizes(k, sizes, &s, dims)) return HD_INVALID;
  if (s.splits == 0) dims[DIM_SPLITS] = api_splits(k, p, dims, s.longest);
  const kernel_descriptor *kernel = &p->descriptor.kernels[index];
  hd_part part = {
      .symbol = kernel->symbol, .threads = (uint32_t)kernel->block, .lds_bytes = (uint32_t)kernel->lds_bytes};
  diags_init(&ignored);
  bool fits = launch_grid(kernel, dims, part.grid, &ignored);
  diags_finish(&ignored);
  if (!fits) return HD_DECLINED;
  bool split = !kernel->only_when_split || dims[DIM_SPLITS] > 1;
  part.launched = split && part.grid[0] > 0 && part.grid[1] > 0 && part.grid[2] > 0;
  return api_give_struct(&part, sizeof part, out_part, offsetof(hd_part, threads));
}
