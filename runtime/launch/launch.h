/* Binding tensors to a kernel and launching it. */
#ifndef HEDDLE_LAUNCH_H
#define HEDDLE_LAUNCH_H

#include "../../generator/contract.h"
#include "../../generator/descriptor.h"
#include "../../generator/spec.h"
#include "../device/device.h"

enum { TENSOR_MAX_RANK = LAYOUT_MAX_FACTORS };

/* A tensor as the caller has it: dense and row-major unless `strided`. Zero-initialise what is not set. */
typedef struct tensor {
  dtype dtype;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
  uint64_t data; /* device or host address */
  bool strided;
  int64_t strides[TENSOR_MAX_RANK]; /* elements, one a dimension, when strided */
  /* Caches and scales: which digit of which axis each dimension is, where they are not the factors of the
   * contract's layout in their order: a permuted view. NULL: they are. Outlives the tensor. */
  const layout *axes;
} tensor;

/* A scale that the caller has as a number, where the contract takes it as an argument (scale.source). It is
 * treated as one that lies in memory would be: 0, NaN and infinities go where arithmetic takes them. */
typedef struct scale_number {
  bool given;
  float value;
} scale_number;

typedef struct tensors {
  tensor by_name[TENSOR_COUNT];
  bool present[TENSOR_COUNT];
  scale_number k_scale, v_scale; /* instead of the tensors of these names */
} tensors;

/* What a tensor is to an operation. UPDATED: read and written in place. */
typedef enum tensor_role { ROLE_NONE, ROLE_INPUT, ROLE_OUTPUT, ROLE_UPDATED } tensor_role;

/* The role of `name` in an operation under this contract. */
tensor_role bind_role(const contract *c, operation o, tensor_name name);

/* Whether the contract takes K's or V's scale as a number. */
bool bind_takes_number(const contract *c, bool is_k);
/* Refuses a tensor that the operation has no use for, with "bind.unneeded". */
void bind_refuse_unneeded(const contract *c, operation o, tensor_name name, diags *diags);

/* Works out every dim from the shapes and strides of the tensors and checks all of them against the contract;
 * dispatch (match.h) and launch ask here alike. Inputs and updated tensors must be there, outputs are checked
 * when they are; everything else is refused. So it is with numbers. HD_DECLINED: what does not fit is named
 * in `diags` (codes "bind.…") with what was found and what was expected. Page and head strides are the
 * tensors' own: padded, permuted and interleaved caches bind as they are. DIM_TABLE_PAGES is the stride of a
 * page table's rows. DIM_SPLITS is left at 1. A cache may also come flat (rank 1, dense): the number of pages
 * then follows from its size. DIM_LIST_WIDTH is worked out. The contract's dtypes must be resolved. Allocates
 * only to word a refusal. */
hd_status bind_dims(const contract *c, operation o, const tensors *t, int64_t out_dims[DIM_COUNT],
                    diags *diags);

/* Format and shape `name` has to have for these dims (dims as bind_dims leaves them); `data` is 0. False when
 * the contract has no such tensor. */
bool bind_tensor(const contract *c, tensor_name name, const int64_t dims[DIM_COUNT], tensor *out_tensor);

/* The expected shape of `name` as text ("[seqs*rows, q_heads, 128]"), for messages and --help. */
void bind_expected_shape(const contract *c, tensor_name name, text *out);

/* Bytes that the address of `name` is a multiple of: an element's of what kernels read or write one at a time
 * (indices, lengths, sinks, lse), else those of the widest load. `format`: the tensor's. */
int bind_alignment(tensor_name name, dtype format);

/* Entries of a list of pages that is made of `listed` blocks or tokens: its length, then the pages. */
int64_t bind_list_width(const contract *c, int64_t listed);
/* Most tokens that a row can list; INT64_MAX where it lists nothing. */
int64_t bind_listed_tokens(const contract *c, const int64_t dims[DIM_COUNT]);
/* Tokens that a row of the page table or of a list has room for; with ragged lists, all of them together.
 * 2^31 - 1 at most: lengths are int32. */
int64_t bind_capacity(const contract *c, const tensors *t, const int64_t dims[DIM_COUNT]);

/* Tokens of the longest sequence (with ragged lists: of whole pages; with lists of blocks or tokens: at most
 * what a list can hold). Tensors in host memory, bound. */
int64_t bind_longest(const contract *c, const tensors *host, const int64_t dims[DIM_COUNT]);

/* Elements of a tensor; bytes from its first element to its last, gaps included. */
int64_t tensor_elements(const tensor *t);
size_t tensor_bytes(const tensor *t);

/* How many workgroups share one sequence and kv head: docs/kernels "split-K and merge". `longest`: tokens of
 * the longest sequence, `tile_tokens`: the descriptor's. At least 1. */
int64_t split_policy(int64_t seqs, int64_t kv_heads, int64_t longest, int64_t tile_tokens, int compute_units);

/* DIM_SPLITS for a launch nobody asked a number for: by split_policy, or as many parts of the line of tiles
 * as run at a time, which serve all lengths. At least 1. `items`: (sequence, kv head) pairs with lengths of
 * their own. */
typedef struct split_facts {
  int tile_tokens, line_parts; /* the descriptor's */
  int line_shares;             /* workgroups that take the same part of a line; 0: one */
  bool by_row;                 /* each query row has a list of its own and is split alone */
} split_facts;

split_facts split_facts_of(const descriptor *desc);
/* What a launch splits, each by itself. */
int64_t split_items(split_facts facts, int64_t seqs, int64_t rows, int64_t kv_heads);
/* Parts of a line that run at a time on so many units. */
int64_t line_resident(split_facts facts, int compute_units);
int64_t launch_splits(split_facts facts, int64_t items, int64_t longest, int compute_units);
/* Most splits of a launch, and workgroups in its second and third dimension: what every driver takes. */
enum { MOST_SPLITS = 65535 };
/* Whether a launch may use this number of splits: with `factors` (split.factors of a spec; NULL or of no
 * entries: any) one of them. Matches and launches ask here alike. */
bool splits_allowed(const spec_ints *factors, int64_t splits);
/* The factor to take where `splits` are wanted: the largest up to that, else the smallest. */
int64_t splits_among(const spec_ints *factors, int64_t splits);

/* `splits` as far as they are of use: of a single sequence and kv head, one a tile. */
int64_t useful_splits(split_facts facts, int64_t splits, int64_t longest);

enum { LAUNCH_ARGUMENTS_BYTES = DESCRIPTOR_MAX_ARGUMENTS * 8 };

/* One kernel, ready for the device but for the address of its packed arguments. */
typedef struct launch_part {
  int kernel; /* which of the descriptor's */
  device_function *function;
  device_launch launch;
  union {
    uint64_t align;
    unsigned char bytes[LAUNCH_ARGUMENTS_BYTES];
  } arguments;
} launch_part;

/* An operation's kernels that have something to do, in order. Plain data: may be copied. */
typedef struct launch_pack {
  int64_t lists_bytes; /* of the workspace, before the partial results */
  int count;
  launch_part parts[DESCRIPTOR_MAX_KERNELS];
} launch_pack;

/* Workgroups of a kernel; false with "launch.grid" when they are too many. A dimension of 0: nothing to do.
 */
bool launch_grid(const kernel_descriptor *k, const int64_t dims[DIM_COUNT], uint32_t out_grid[3],
                 diags *diags);

/* Packs the arguments of every kernel of the operation. No allocation but to word a refusal. `functions` in
 * the descriptor's kernel order. A tensor that a kernel takes and `t` lacks is refused. TENSOR_WORKSPACE is
 * descriptor_workspace_bytes of memory; it may be absent when that is 0. */
hd_status launch_pack_init(const descriptor *desc, device_function *const *functions, const tensors *t,
                           const int64_t dims[DIM_COUNT], float logits_scale, launch_pack *out_pack,
                           diags *diags);
/* Puts another address where the kernels take `name`; TENSOR_WORKSPACE is the whole of that memory. False
 * when none takes it. */
bool launch_pack_set(launch_pack *pack, const descriptor *desc, tensor_name name, uint64_t address);
/* Likewise another number; the address of no tensor changes. */
bool launch_pack_set_number(launch_pack *pack, const descriptor *desc, number_name n, float value);
/* Launches them on the stream. No allocation, no lock, no sync. */
hd_status launch_pack_run(device *d, device_stream *s, const launch_pack *pack, diags *diags);

/* Both in one. Nothing is launched unless everything can be packed. */
hd_status launch_operation(device *d, device_stream *s, const descriptor *desc,
                           device_function *const *functions, const tensors *t, const int64_t dims[DIM_COUNT],
                           float logits_scale, diags *diags);

#endif
