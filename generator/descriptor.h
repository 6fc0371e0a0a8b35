/* The launch descriptor: how an emitted kernel is launched, as data. It travels with the code object, so a
 * launcher needs neither the spec nor the generator. */
#ifndef HEDDLE_DESCRIPTOR_H
#define HEDDLE_DESCRIPTOR_H

#include "diag.h"
#include <stdint.h>

/* Run-time sizes a launch depends on. Strides are in elements. */
#define DIM_LIST(X)                                                                                          \
  X(DIM_SEQS, "seqs")                                                                                        \
  X(DIM_ROWS, "rows") /* query rows per sequence */                                                          \
  X(DIM_KV_HEADS, "kv_heads")                                                                                \
  X(DIM_PAGES, "pages")             /* pages in the cache */                                                 \
  X(DIM_TABLE_PAGES, "table_pages") /* row length of the page table */                                       \
  X(DIM_TOKENS, "tokens")           /* rows of k and v for the writer */                                     \
  X(DIM_TABLE_ROWS, "table_rows")   /* rows of the page table */                                             \
  X(DIM_LISTED, "listed")           /* entries of a block or token list */                                   \
  X(DIM_LIST_WIDTH, "list_width")   /* entries of a list in `lists`: its length, then its pages */           \
  X(DIM_SPLITS, "splits")                                                                                    \
  X(DIM_LISTS_SETTLED, "lists_settled") /* 1: the kernel before does not write page lists or lengths */      \
  X(DIM_K_STRIDE_B, "k_stride_b")                                                                            \
  X(DIM_K_STRIDE_H, "k_stride_h")                                                                            \
  X(DIM_V_STRIDE_B, "v_stride_b")                                                                            \
  X(DIM_V_STRIDE_H, "v_stride_h")                                                                            \
  X(DIM_K_SCALE_STRIDE_B, "k_scale_stride_b")                                                                \
  X(DIM_K_SCALE_STRIDE_H, "k_scale_stride_h")                                                                \
  X(DIM_V_SCALE_STRIDE_B, "v_scale_stride_b")                                                                \
  X(DIM_V_SCALE_STRIDE_H, "v_scale_stride_h")                                                                \
  X(DIM_LISTED_STRIDE_H, "listed_stride_h") /* of the block or token list, a kv head on */                   \
  X(DIM_LISTED_STRIDE_ROW, "listed_stride_row")

typedef enum dim {
#define X(name, text) name,
  DIM_LIST(X)
#undef X
      DIM_COUNT
} dim;

/* Tensors by name. */
#define TENSOR_LIST(X)                                                                                       \
  X(TENSOR_Q, "q")                                                                                           \
  X(TENSOR_K_CACHE, "k_cache")                                                                               \
  X(TENSOR_V_CACHE, "v_cache")                                                                               \
  X(TENSOR_K_SCALE, "k_scale")                                                                               \
  X(TENSOR_V_SCALE, "v_scale")                                                                               \
  X(TENSOR_PAGE_TABLE, "page_table")                                                                         \
  X(TENSOR_LENGTHS, "lengths")                                                                               \
  X(TENSOR_KV_INDPTR, "kv_indptr")                                                                           \
  X(TENSOR_KV_INDICES, "kv_indices")                                                                         \
  X(TENSOR_LAST_PAGE_LEN, "last_page_len")                                                                   \
  X(TENSOR_BLOCK_LIST, "block_list")                                                                         \
  X(TENSOR_TOKEN_LIST, "token_list")                                                                         \
  X(TENSOR_ROW_SEQUENCES, "row_sequences")                                                                   \
  X(TENSOR_SINKS, "sinks")                                                                                   \
  X(TENSOR_K, "k")                                                                                           \
  X(TENSOR_V, "v")                                                                                           \
  X(TENSOR_SLOT_MAPPING, "slot_mapping")                                                                     \
  X(TENSOR_OUT, "out")                                                                                       \
  X(TENSOR_LSE, "lse")                                                                                       \
  X(TENSOR_LISTS, "lists")                                                                                   \
  X(TENSOR_WORKSPACE, "workspace")

typedef enum tensor_name {
#define X(name, text) name,
  TENSOR_LIST(X)
#undef X
      TENSOR_COUNT
} tensor_name;

/* Numbers that a launch is given by value. Names differ from those of tensors, which say the type of an
 * argument. */
#define NUMBER_LIST(X)                                                                                       \
  X(NUMBER_LOGITS_SCALE, "logits_scale") /* what logits are multiplied by */                                 \
  X(NUMBER_K_SCALE, "k_scale_value")     /* the one scale of K where the contract has it as an argument */   \
  X(NUMBER_V_SCALE, "v_scale_value")

typedef enum number_name {
#define X(name, text) name,
  NUMBER_LIST(X)
#undef X
      NUMBER_COUNT
} number_name;

const char *dim_name(dim d);
const char *tensor_name_text(tensor_name t);
bool tensor_name_parse(const char *text, tensor_name *out_name);

/* ceil(multiplier * product of dims / divisor). All zero: 0. */
typedef struct extent {
  int64_t multiplier, divisor; /* divisor >= 1 */
  int dim_count;
  dim dims[4];
} extent;

typedef enum argument_kind { ARGUMENT_TENSOR, ARGUMENT_DIM, ARGUMENT_NUMBER } argument_kind;

/* Types in memory: tensors are 8-byte pointers, strides (DIM_…_STRIDE_…) int64, other dims int32,
 * numbers fp32; each aligned to its size, in order: the C struct of the arguments. */
typedef struct argument {
  argument_kind kind;
  int index; /* tensor_name, dim or number_name */
} argument;

enum { DESCRIPTOR_MAX_ARGUMENTS = 32, DESCRIPTOR_MAX_KERNELS = 4, DESCRIPTOR_ALIGNMENT = 256 };

typedef struct kernel_descriptor {
  char symbol[64];
  extent grid[3];       /* workgroups */
  int block;            /* threads, x only */
  int lds_bytes;        /* dynamic; static LDS is in the code object */
  bool only_when_split; /* launched only when splits > 1 */
  bool waits_itself;    /* for the kernel before it: a device may start it early */
  int argument_count;
  argument arguments[DESCRIPTOR_MAX_ARGUMENTS];
} kernel_descriptor;

/* One operation (write or decode): its kernels in launch order, all in one code object. */
typedef struct descriptor {
  char operation[16]; /* "write" or "decode" */
  char target[16];
  char variant[64];
  char contract_key[65];
  int tile_tokens; /* tokens a workgroup step covers; what a split count is limited by */
  /* 0: splits cut the tokens of each sequence and kv head. n: they cut the line of all tiles, one sequence
   * and kv head behind the other, whatever the lengths, and n for each compute unit run at a time. */
  int line_parts;
  /* Bytes of what kernels hand on to each other, one piece of memory: `lists` first, when the extent is not
   * 0; behind them, from a multiple of DESCRIPTOR_ALIGNMENT on, the partial results, when splits > 1. */
  extent lists, workspace;
  int kernel_count;
  kernel_descriptor kernels[DESCRIPTOR_MAX_KERNELS];
} descriptor;

/* 0 when a factor is 0 or negative; INT64_MAX when the product does not fit. */
int64_t extent_value(const extent *e, const int64_t dims[DIM_COUNT]);
/* Bytes of the lists, rounded up to where the partial results begin. */
int64_t descriptor_lists_bytes(const descriptor *d, const int64_t dims[DIM_COUNT]);
/* Bytes of the whole piece of memory that a launch needs: 0 when it needs none. */
int64_t descriptor_workspace_bytes(const descriptor *d, const int64_t dims[DIM_COUNT]);
/* Offset of each argument in bytes; returns where the last one ends. That is what CUDA's parameter buffer and
 * an AMD code object's kernarg size count: no padding behind the last argument. `out_offsets` may be NULL. */
size_t kernel_arguments_layout(const kernel_descriptor *k, size_t out_offsets[DESCRIPTOR_MAX_ARGUMENTS]);
size_t argument_bytes(argument a);
const char *argument_name(argument a);

/* JSON, deterministic: fixed order of keys, type and offset of every argument spelt out. */
void descriptor_write(const descriptor *d, text *out);
/* Reads what descriptor_write writes, white space apart, and nothing else: HD_INVALID for an unknown, missing
 * or misplaced key, a value out of range, an argument whose type or offset is not the one its name implies,
 * or anything behind the end. Safe on any bytes; `json` need not be NUL-terminated. Strings are printable
 * ASCII without quotes and backslashes. */
hd_status descriptor_parse(const char *json, size_t length, descriptor *out_descriptor);
/* Whether it begins as a descriptor of another version of the format does: nothing is wrong with it, but
 * descriptor_parse refuses it. */
bool descriptor_is_of_another_version(const char *json, size_t length);

#endif
