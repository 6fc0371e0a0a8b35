/* heddle: paged-attention kernels for the KV cache that you have.
 *
 * The C interface, and its reference; docs/api.md is the guide. A contract (a YAML spec) says what the cache
 * is like, a context is a device with a cache of code objects and a compiler, hd_prepare makes a kernel of
 * the two, hd_launch puts it on your stream with your buffers.
 *
 *   hd_context_create ─▶ hd_contract_read ─▶ hd_prepare ─▶ hd_launch, hd_launch, …
 *                                                      └─▶ hd_bind ─▶ hd_binding_launch, …
 *
 * Rules that hold everywhere, unless a function says otherwise
 *
 * Errors. A function that can fail returns an hd_status and leaves its out_ parameters untouched when that is
 * not HD_OK. A status says that a call could not be carried out: misuse, memory, files, a device. HD_DECLINED
 * is no failure but an answer: the contract isn't served, a tensor doesn't fit, a source doesn't compile.
 * What exactly, goes into the hd_diagnostics that the caller passes last, of which NULL means "not wanted". A
 * function first empties the diagnostics that it is given; on HD_OK they may hold warnings. Nothing in this
 * library prints, exits or aborts.
 *
 * Ownership. What a …_create, …_read, …_parse, hd_prepare…, hd_bind or hd_view_… function gives is the
 * caller's, and goes back through the …_destroy (…_release) function of its type; each takes NULL. Strings
 * and structs that are passed in are copied before the call returns. Strings that come back belong to the
 * object they were asked of and live as long as it does.
 *
 * Lifetime. Objects keep alive what they are made of: a context, contract or kernel may be destroyed in any
 * order, and goes when the last that needs it goes. Device memory and streams are the exception: give them
 * back before you let go of the context.
 *
 * Threads. Contexts, contracts and kernels may be used by any number of threads at a time, and never change
 * once they are made. Diagnostics, futures and bindings, and every stream, are for one thread at a time.
 * Destroying is for the thread that has the last use of the object.
 *
 * Launch path. hd_launch, hd_binding_set_… and hd_binding_launch on a kernel that is ready allocate no
 * memory, take no lock, make no system call and wait for nothing, beyond what the device's driver does in its
 * own launch call; so they may be captured into a graph. They allocate to word a refusal. (The emulated
 * devices execute within the launch call, and allocate there.)
 *
 * Fork. A child process can't use the contexts it inherited, nor what came from them: every call says
 * HD_INVALID ("context.forked"), and destroying them there is allowed and touches no device. It may make
 * contexts of its own, if at the fork no other thread was inside a heddle call. Processes share the cache of
 * code objects: of any number that want the same kernel at the same time one compiles it, and when that one
 * is killed another does.
 *
 * Structs that may grow begin with `size`: zero the struct, set `size` to its sizeof, then what you want. The
 * library takes a smaller (older) one as if the rest were 0, and refuses a larger one that has something
 * it doesn't know set. Numbers of enumerations never change their meaning.
 *
 * Shapes are counted in elements, outermost first. seqs: sequences in a call. rows: query rows for each
 * sequence. tokens: rows of k and v. A page has as many slots as the contract says. */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HD_API
#if defined(__GNUC__)
#define HD_API __attribute__((visibility("default")))
#else
#define HD_API
#endif
#endif

/* ---- Version ---- */

/* Of this header. Within one major version (while that is 0: one minor version) programs keep working with
 * later libraries without being compiled anew; the SONAME says which ones belong together. */
#define HD_VERSION_MAJOR 0
#define HD_VERSION_MINOR 1
#define HD_VERSION_PATCH 0
#define HD_VERSION_TEXT "0.1.0"

/* Of the library that is loaded: major * 1000000 + minor * 1000 + patch. */
HD_API uint32_t hd_version(void);
HD_API const char *hd_version_text(void); /* static */

/* ---- Status ---- */

#ifndef HEDDLE_STATUS_H /* inside heddle generator/status.h has the same list */
typedef enum hd_status {
  HD_OK = 0,
  HD_DECLINED = 1,      /* an answer: not served, doesn't fit, doesn't compile; diagnostics say what */
  HD_INVALID = 2,       /* misuse by the caller */
  HD_OUT_OF_MEMORY = 3, /* of the host, or of the device where HD_DEVICE doesn't say so */
  HD_IO = 4,            /* a file can't be read or written */
  HD_UNAVAILABLE = 5,   /* a library, compiler or device that isn't there; time that ran out */
  HD_DEVICE = 6,        /* a driver call failed */
  HD_INTERNAL = 7       /* a fault of heddle's own: please report it */
} hd_status;

/* A few words in lower case; never NULL, also for a number that is no status. Static. */
HD_API const char *hd_status_text(hd_status status);
#endif

/* ---- Diagnostics ---- */

/* What is wrong, where, what was found and what is allowed: a list that one call fills and the next call
 * empties. Make one for each thread and keep it. */
typedef struct hd_diagnostics hd_diagnostics;

typedef enum hd_severity { HD_ERROR = 0, HD_WARNING = 1, HD_NOTE = 2 } hd_severity;

/* Strings live until the list is filled or emptied anew. */
typedef struct hd_diagnostic {
  hd_severity severity;
  const char *code;            /* stable: "decline.head-dim"; docs/declines.md has all of them */
  const char *field;           /* of the spec or the call, "kv.page"; NULL: none */
  const char *message;         /* one line; its wording may change */
  const char *found, *allowed; /* the value and what it may be, or both NULL */
  int line, column;            /* in the spec, from 1; 0: no place */
} hd_diagnostic;

HD_API hd_status hd_diagnostics_create(hd_diagnostics **out_diagnostics);
HD_API void hd_diagnostics_destroy(hd_diagnostics *diagnostics);
HD_API size_t hd_diagnostics_count(const hd_diagnostics *diagnostics); /* NULL: 0 */
/* HD_INVALID when there are not so many. */
HD_API hd_status hd_diagnostics_get(const hd_diagnostics *diagnostics, size_t index,
                                    hd_diagnostic *out_diagnostic);
/* All of them as lines for people. Lives as the strings of hd_diagnostic do; "" when there are none or memory
 * is short. */
HD_API const char *hd_diagnostics_text(hd_diagnostics *diagnostics);

/* ---- Contracts ---- */

/* What two programs must agree on to share a KV cache and to call a kernel (docs/spec.md). */
typedef struct hd_contract hd_contract;

typedef enum hd_operation {
  HD_WRITE = 0, /* tokens' k and v into the cache */
  HD_DECODE = 1 /* attention of a few query rows over the cache */
} hd_operation;

/* From a spec's text (YAML, at most 1 MiB; need not end with NUL) or file. HD_DECLINED: it isn't valid; every
 * error with line and column. HD_IO: the file can't be read. */
HD_API hd_status hd_contract_parse(const char *yaml, size_t length, hd_contract **out_contract,
                                   hd_diagnostics *diagnostics);
HD_API hd_status hd_contract_read(const char *path, hd_contract **out_contract, hd_diagnostics *diagnostics);
HD_API void hd_contract_destroy(hd_contract *contract);

HD_API const char *hd_contract_name(const hd_contract *contract);
/* SHA-256 of the canonical text, 64 hex digits: two specs with the same key mean the same. */
HD_API const char *hd_contract_key(const hd_contract *contract);
/* The canonical text: every field that applies, one spelling; itself a spec. */
HD_API const char *hd_contract_text(const hd_contract *contract);
/* Whether the spec lists the operation among its kernels: 1 or 0. */
HD_API int hd_contract_has(const hd_contract *contract, hd_operation operation);

/* ---- Tensors ---- */

typedef enum hd_dtype {
  HD_DTYPE_BF16 = 0,
  HD_DTYPE_FP16 = 1,
  HD_DTYPE_FP32 = 2,
  HD_DTYPE_FP8_E4M3FN = 3,
  HD_DTYPE_FP8_E4M3FNUZ = 4,
  HD_DTYPE_FP8_E5M2 = 5,
  HD_DTYPE_INT8 = 6,
  HD_DTYPE_E8M0 = 7,
  HD_DTYPE_INT32 = 8,
  HD_DTYPE_INT64 = 9,
  HD_DTYPE_UINT8 = 10 /* bytes, of caches whose pages are records: codes beside scales, a tail, or padding */
} hd_dtype;

HD_API const char *hd_dtype_text(hd_dtype dtype); /* "bf16"; NULL for a number that is none. Static */
HD_API int hd_dtype_bytes(hd_dtype dtype);        /* of an element; 0 for a number that is none */

/* Shapes below: by contract a cache or scale has the factors of its layout, or is flat. */
typedef enum hd_tensor_name {
  /* [seqs * rows, q_heads, head_dim.qk]: row r of sequence i is i * rows + r, and query head i reads kv head
   * i / heads_per_kv */
  HD_TENSOR_Q = 0,
  HD_TENSOR_K_CACHE = 1,       /* the layout's factors */
  HD_TENSOR_V_CACHE = 2,       /* the layout's factors */
  HD_TENSOR_K_SCALE = 3,       /* the layout's factors; [1] for one scale, unless that is a number */
  HD_TENSOR_V_SCALE = 4,       /* the layout's factors; [1] for one scale, unless that is a number */
  HD_TENSOR_PAGE_TABLE = 5,    /* [seqs, table_pages]; [seqs, kv_heads, table_pages] for lists by kv head */
  HD_TENSOR_LENGTHS = 6,       /* int32 [seqs]: tokens, those of this step included */
  HD_TENSOR_KV_INDPTR = 7,     /* int32 [lists + 1]; lists by kv head: seq * kv_heads + kv_head is the list */
  HD_TENSOR_KV_INDICES = 8,    /* [pages of all lists] */
  HD_TENSOR_LAST_PAGE_LEN = 9, /* int32 [lists] */
  HD_TENSOR_SINKS = 10,        /* fp32 [q_heads] */
  HD_TENSOR_K = 11,            /* [tokens, kv_heads, head_dim.qk] */
  HD_TENSOR_V = 12,            /* [tokens, kv_heads, head_dim.v] */
  HD_TENSOR_SLOT_MAPPING = 13, /* int64 [tokens]: page * page_size + slot; -1: skip the token */
  HD_TENSOR_OUT = 14,          /* [seqs * rows, q_heads, head_dim.v] */
  HD_TENSOR_LSE = 15,          /* fp32 [seqs * rows, q_heads] */
  HD_TENSOR_BLOCK_LIST = 16,   /* int32 [kv_heads, seqs * rows, listed] */
  HD_TENSOR_TOKEN_LIST = 17, /* [seqs * rows, listed]; [kv_heads, seqs * rows, listed] for lists by kv head */
  HD_TENSOR_ROW_SEQUENCES = 18 /* int32 [seqs * rows]: which row of the page table */
} hd_tensor_name;

HD_API const char *hd_tensor_text(hd_tensor_name name); /* "q"; NULL for a number that is none. Static */
/* HD_INVALID when there is no tensor of this name. */
HD_API hd_status hd_tensor_find(const char *text, hd_tensor_name *out_name);

/* Which digit of which axis each dimension of a permuted cache or scale is, outermost first: "[b, s, h, d]".
 * Only for tensors whose dimensions aren't the factors of the contract's layout in their order. `page`: slots
 * of a page, `head_dim`: channels of a head. Immutable; outlives the calls it is used in. */
typedef struct hd_axes hd_axes;
HD_API hd_status hd_axes_parse(const char *text, int64_t page, int64_t head_dim, hd_axes **out_axes,
                               hd_diagnostics *diagnostics);
HD_API void hd_axes_destroy(hd_axes *axes);

enum { HD_MAX_RANK = 16 };

/* A tensor in your memory; heddle reads the description during the call only, and never the elements. */
typedef struct hd_tensor {
  hd_tensor_name name;
  hd_dtype dtype;
  uint64_t address; /* of the first element, in the device's memory; a multiple of 16, of indices, lengths,
                       sinks and lse of an element's bytes */
  const int64_t *shape;
  const int64_t *strides; /* elements, one a dimension; NULL: dense, row-major */
  const hd_axes *axes;    /* NULL: the contract's factors */
  int32_t rank;           /* at most HD_MAX_RANK */
  int32_t reserved;       /* 0 */
} hd_tensor;

/* ---- Matching ---- */

/* What an engine has and wants. 0 means "as the tensors say", "none" or "no". */
typedef struct hd_match_request {
  size_t size;
  hd_operation operation;
  int32_t lse, sinks; /* whether decode is to give the log-sum-exp, and takes sink logits */
  int32_t causal;     /* a row sees no later row of its own sequence; means nothing with one row */
  int32_t prefix; /* rows follow cached tokens, and sequences of one call differ in their number of rows */
  int32_t window; /* tokens */
  int32_t splits; /* workgroups that are to share one sequence and kv head, or the whole line of tiles (ring,
                     sm_90) */
  const hd_tensor *tensors; /* `address` may be any number with the right alignment */
  size_t tensor_count;
  int64_t longest;                     /* tokens of the longest sequence, those of this step included */
  int64_t rows, query_heads, kv_heads; /* held against the tensors when not 0 */
  double softcap, logits_scale;        /* logits_scale 0: 1 / sqrt(head_dim.qk) */
  /* A kernel that the engine already has for these tensors, by a name of its choice; NULL: none. With one
   * only candidates that are known to be better than it are used. */
  const char *incumbent;
  int32_t block;    /* tokens of a block of block_list; 0: not said */
  int32_t reserved; /* 0 */
  /* The scales of K and V where the engine has them as numbers of the host, as in hd_arguments; NULL: it
   * hasn't, or has them as tensors. What the numbers are doesn't matter here. */
  const float *k_scale, *v_scale;
} hd_match_request;

typedef struct hd_candidate {
  const hd_contract *contract;
  const char *const *better_than; /* incumbents that measurements show it to be faster than */
  size_t better_count;
} hd_candidate;

/* Which of `count` contracts serves the request on `target` ("gfx950", "sm_90"; hd_context_info has a
 * device's). HD_OK: *out_chosen is its index: of those that serve the one with the fewest query rows, then
 * the first. HD_DECLINED: none does. `answers`: NULL, or `count` pointers (each may be NULL) to diagnostics
 * that are filled with the reasons of the candidate of that index. Nothing is compiled or read; hd_launch
 * asks the same functions. A candidate that serves costs no allocation. */
HD_API hd_status hd_match(const hd_match_request *request, const hd_candidate *candidates, size_t count,
                          const char *target, size_t *out_chosen, hd_diagnostics *const *answers);

/* ---- Contexts ---- */

/* A device, a cache of code objects, and a compiler. */
typedef struct hd_context hd_context;

/* Called from whichever thread has something to say, also from several at a time. `message`: one line, valid
 * during the call. It must not call heddle. */
typedef void (*hd_log_function)(void *user, hd_severity severity, const char *message);

typedef struct hd_context_options {
  size_t size;
  const char *device;          /* "cuda:0", "hip:1", "emu:gfx950" (docs/devices.md) */
  const char *cache_directory; /* NULL: HEDDLE_CACHE_DIR, else the user's; "": in memory only */
  const char *compiler;        /* "hiprtc", "llvm", "nvrtc"; NULL: what there is */
  hd_log_function log;         /* NULL: nobody listens */
  void *log_user;
  double compile_seconds; /* that one kernel may take; 0: 60 */
  int32_t jobs;           /* kernels compiled at a time; 0: as many as there are cores */
  int32_t reserved;       /* 0 */
  /* A tuned record, or a folder of them (docs/tuning.md); NULL: HEDDLE_TUNED_DIR; "": none. */
  const char *tuned;
} hd_context_options;

/* HD_UNAVAILABLE: the device or its library isn't there, and what was tried. A cache folder that can't be
 * used is a warning: kernels then stay in memory. */
HD_API hd_status hd_context_create(const hd_context_options *options, hd_context **out_context,
                                   hd_diagnostics *diagnostics);
HD_API void hd_context_destroy(hd_context *context);

typedef struct hd_context_info {
  size_t size;
  const char *device;          /* as it was asked for */
  const char *name;            /* "NVIDIA H200" */
  const char *target;          /* "sm_90" */
  const char *cache_directory; /* "": in memory only */
  int32_t compute_units, emulated;
  int64_t memory_bytes;
} hd_context_info;

HD_API hd_status hd_context_get_info(const hd_context *context, hd_context_info *out_info);

/* ---- Preparing ---- */

/* One operation of one contract, compiled, loaded and ready to launch on the context's device. */
typedef struct hd_kernel hd_kernel;

/* Sizes of launches that may come. */
typedef struct hd_sizes {
  size_t size;
  int64_t seqs, rows, kv_heads; /* decode; rows 0: 1 */
  int64_t longest;              /* tokens of the longest sequence */
  int64_t splits;               /* 0: by the tuned record, else by policy */
  int64_t tokens;               /* write */
  int64_t listed;               /* entries of a block or token list */
} hd_sizes;

typedef struct hd_job {
  size_t size;
  const hd_contract *contract;
  hd_operation operation;
  int32_t reserved; /* 0 */
  /* "default", "w8", "ring-s4-o2"; NULL: what the context's tuned records have for `shape`, else the
   * generator's choice. */
  const char *variant;
  /* Launches to be fastest for (seqs, kv_heads, longest, rows); NULL: nothing is looked up. A kernel serves
   * all shapes whatever it says here. */
  const hd_sizes *shape;
} hd_job;

/* Finds the code object (embedded, in packs, in the cache folder, in a shared cache), or compiles it, and
 * loads it. Takes as long as that: microseconds to seconds. HD_DECLINED: the contract isn't served here, or
 * doesn't compile. HD_UNAVAILABLE: no compiler, or it couldn't be started, or HEDDLE_NO_JIT is set
 * ("compile.no-jit" names what is missing). Never call it while this thread captures a graph. */
HD_API hd_status hd_prepare(hd_context *context, const hd_job *job, hd_kernel **out_kernel,
                            hd_diagnostics *diagnostics);

/* How far a call for many kernels is. */
typedef struct hd_progress {
  size_t done, count; /* kernels */
  size_t index;       /* the one that was finished now */
  hd_status status;
  const char *name; /* of its contract, during the call */
} hd_progress;

/* From any thread, but one call at a time. It must not call heddle. */
typedef void (*hd_progress_function)(void *user, const hd_progress *progress);

/* The same for `count` jobs, several compiled at a time. `out_kernels` and `out_statuses` have room for
 * `count`; every status is set, and a kernel is NULL where its status isn't HD_OK. Returns HD_OK when all
 * are, else the first other status; diagnostics are those of all jobs. `progress` may be NULL. */
HD_API hd_status hd_prepare_many(hd_context *context, const hd_job *jobs, size_t count,
                                 hd_progress_function progress, void *user, hd_kernel **out_kernels,
                                 hd_status *out_statuses, hd_diagnostics *diagnostics);

/* The same in a thread of its own: returns at once with a future. */
typedef struct hd_future hd_future;
HD_API hd_status hd_prepare_async(hd_context *context, const hd_job *jobs, size_t count,
                                  hd_progress_function progress, void *user, hd_future **out_future,
                                  hd_diagnostics *diagnostics);
/* Whether all jobs are finished: 1 or 0. Any thread may ask. */
HD_API int hd_future_done(const hd_future *future);
/* Waits at most so many seconds; less than 0: as long as it takes. HD_UNAVAILABLE: not finished yet. */
HD_API hd_status hd_future_wait(hd_future *future, double seconds);
/* Waits, then gives the kernel of a job away: its status, its diagnostics, and on HD_OK the kernel, once;
 * HD_INVALID for a kernel that was taken before. */
HD_API hd_status hd_future_take(hd_future *future, size_t index, hd_kernel **out_kernel,
                                hd_diagnostics *diagnostics);
/* Waits for what is being compiled, and destroys the kernels that nobody took. */
HD_API void hd_future_destroy(hd_future *future);

/* A kernel that is prepared by its first launch or query, unless hd_kernel_ready comes before. The contract
 * is checked now (HD_DECLINED). A launch that would have to compile while its stream captures a graph is
 * refused with the contract's name ("launch.capture"). */
HD_API hd_status hd_prepare_lazily(hd_context *context, const hd_job *job, hd_kernel **out_kernel,
                                   hd_diagnostics *diagnostics);
/* Prepares a lazy kernel now; HD_OK at once for one that is ready. */
HD_API hd_status hd_kernel_ready(hd_kernel *kernel, hd_diagnostics *diagnostics);

/* One more owner of the same kernel, for other threads and objects: each calls hd_kernel_release. */
HD_API hd_kernel *hd_kernel_retain(hd_kernel *kernel);
/* Work that was launched must have ended before the last owner lets go: the code is unloaded then. */
HD_API void hd_kernel_release(hd_kernel *kernel);

/* ---- Queries ---- */

typedef struct hd_kernel_info {
  size_t size;
  const char *contract_name, *contract_key; /* the key with the target's fp8 dialect named */
  const char *operation, *target, *variant;
  const char *code_key;   /* of the code object in the cache; "" when embedded */
  const char *compiler;   /* "" when embedded */
  const char *origin;     /* "compiled", "cache" (packs and shared cache included) or "embedded" */
  const char *descriptor; /* launch descriptor, JSON */
  const void *code_object;
  size_t code_object_bytes;
  double compile_seconds; /* 0 unless compiled */
  int32_t parts;          /* kernels of the device in it: hd_kernel_part */
  int32_t tile_tokens;    /* tokens that a workgroup takes at a step */
  const char *choice;     /* in words: which tuned record chose the variant, or why none did */
} hd_kernel_info;

HD_API hd_status hd_kernel_get_info(hd_kernel *kernel, hd_kernel_info *out_info);

/* What a tensor is to a kernel. */
typedef enum hd_role { HD_ROLE_NONE = 0, HD_ROLE_INPUT = 1, HD_ROLE_OUTPUT = 2, HD_ROLE_UPDATED = 3 } hd_role;
/* `out_dtype` and `out_shape` may be NULL. The shape is text with names in it, "[seqs*rows, q_heads, 128]",
 * cut to `size` bytes with its NUL. */
HD_API hd_status hd_kernel_tensor(hd_kernel *kernel, hd_tensor_name name, hd_role *out_role,
                                  hd_dtype *out_dtype, char *out_shape, size_t size);

/* How many workgroups share one sequence and kv head, or all of them where the kernel cuts the line of tiles
 * itself (docs/architecture.md): `sizes->splits`, or what a launch takes by itself. */
HD_API hd_status hd_kernel_splits(hd_kernel *kernel, const hd_sizes *sizes, int64_t *out_splits);
/* Bytes of workspace that are enough for every launch whose sizes are at most these (each of seqs, rows,
 * kv_heads, longest; with splits 0 for every split that the policy comes to). 0: none needed. */
HD_API hd_status hd_kernel_workspace(hd_kernel *kernel, const hd_sizes *sizes, int64_t *out_bytes);

typedef struct hd_part {
  size_t size;
  const char *symbol;
  uint32_t grid[3];   /* workgroups; 0 where there is nothing to do */
  uint32_t threads;   /* of a workgroup */
  uint32_t lds_bytes; /* dynamic */
  int32_t launched;   /* 0: left out for these sizes (the merge, when nothing is split) */
} hd_part;

HD_API hd_status hd_kernel_part(hd_kernel *kernel, int index, const hd_sizes *sizes, hd_part *out_part);

/* ---- Launching ---- */

/* A stream of the device's own API, cast: a CUstream or cudaStream_t, a hipStream_t, or one of
 * hd_stream_create. NULL: the default stream. */
typedef struct hd_stream hd_stream;

typedef struct hd_arguments {
  size_t size;
  const hd_tensor *tensors; /* every input, updated tensor and output, each once, in any order */
  size_t tensor_count;
  uint64_t
      workspace; /* address in the device's memory, a multiple of 16; of this launch alone while it runs */
  int64_t workspace_bytes;
  int64_t splits; /* 0: by policy, from seqs, kv heads and `longest` */
  /* For the policy: at least the tokens of the longest sequence that this launch, or the graph it is captured
   * into, will ever see. It settles speed, never results. 0: as many as a row of the page table has room for,
   * which is what a captured launch should use: a split count taken from a short sequence would stay. */
  int64_t longest;
  float
      logits_scale; /* what q·k is multiplied by; 0: 1 / sqrt(head_dim.qk). Where the contract fixes it: 0 */
  /* 1: the kernel directly before this launch on the stream writes neither page table nor lengths (of the
   * `table` form), and what writes them has ended before that one starts or lets the next start. So a kernel
   * that starts before its predecessor has ended may read them at once. That holds for every layer but one
   * that follows what makes the step's lists. 0: nothing is read before the predecessor has ended. */
  int32_t lists_settled;
  /* The scales of K and V of a contract whose scale.source is argument, each one number in the host's memory,
   * read during the call; elsewhere, and v_scale where V lies in K, NULL. Numbers are not judged: they count
   * as they would in the device's memory, 0 is a scale of 0 and NaN spreads. */
  const float *k_scale, *v_scale;
} hd_arguments;

/* Binds the tensors to the contract and launches every part of the kernel. HD_DECLINED ("bind.…",
 * "launch.…"): what doesn't fit, with what was found and what is expected; nothing was launched. */
HD_API hd_status hd_launch(hd_kernel *kernel, const hd_arguments *arguments, hd_stream *stream,
                           hd_diagnostics *diagnostics);

/* Arguments bound once, for launches that differ in addresses only: what is left is the driver's call. */
typedef struct hd_binding hd_binding;
HD_API hd_status hd_bind(hd_kernel *kernel, const hd_arguments *arguments, hd_binding **out_binding,
                         hd_diagnostics *diagnostics);
HD_API void hd_binding_destroy(hd_binding *binding);
/* Another buffer of the same dtype, shape and strides. HD_INVALID: no multiple of 16, or the kernel takes no
 * such tensor. */
HD_API hd_status hd_binding_set_address(hd_binding *binding, hd_tensor_name name, uint64_t address);
/* Other scales of K and V, where the contract takes them as numbers; NULL: that one stays. HD_INVALID, and
 * neither is changed: the kernel takes no such number. */
HD_API hd_status hd_binding_set_scales(hd_binding *binding, const float *k_scale, const float *v_scale);
/* Another workspace, of as many bytes at least. */
HD_API hd_status hd_binding_set_workspace(hd_binding *binding, uint64_t address);
HD_API hd_status hd_binding_launch(hd_binding *binding, hd_stream *stream, hd_diagnostics *diagnostics);

/* ---- Views ---- */

/* The same memory under another contract (docs/match.md). Never copies, moves or reads an element. */
typedef struct hd_view hd_view;

typedef enum hd_meaning {
  HD_SAME_BYTES = 0,  /* each element is the byte that it was */
  HD_SAME_STORAGE = 1 /* a byte is another element's: what is read through the view was written through it */
} hd_meaning;

/* Pages of `page` tokens where the contract has longer ones. Part j of page p is page p * parts + j.
 * HD_DECLINED ("view.…"): it can't be had with this meaning. */
HD_API hd_status hd_view_page_split(const hd_context *context, const hd_contract *contract,
                                    const hd_tensor *tensors, size_t tensor_count, int page,
                                    hd_meaning wanted, hd_view **out_view, hd_diagnostics *diagnostics);
/* Every (page, kv head) a page of its own with one head, every (query row, kv head) a sequence of its own. */
HD_API hd_status hd_view_collapse_heads(const hd_context *context, const hd_contract *contract,
                                        const hd_tensor *tensors, size_t tensor_count, hd_view **out_view,
                                        hd_diagnostics *diagnostics);
HD_API void hd_view_destroy(hd_view *view);
/* The contract that the viewed tensors hold to; lives as long as the view. */
HD_API const hd_contract *hd_view_contract(const hd_view *view);
/* The tensors of the view; `*out_tensors` lives as long as it. Those whose values would be others (page
 * tables, lengths) are not among them. */
HD_API size_t hd_view_tensors(const hd_view *view, const hd_tensor **out_tensors);
HD_API hd_meaning hd_view_meaning(const hd_view *view);
/* Page id under the view of part j of page p, for kv head h: (p * parts + j) * heads + h. */
HD_API void hd_view_pages(const hd_view *view, int64_t *out_parts, int64_t *out_heads);

/* ---- Kernels that were built with the program ---- */

/* What `heddle build --embed c` writes into a C file: specs, and code objects with their launch descriptors,
 * all in constant memory. */
enum { HD_EMBEDDED_VERSION = 1 };

typedef struct hd_embedded_kernel {
  const char *key;        /* of the contract, resolved for the target */
  const char *descriptor; /* JSON; says operation, target and variant */
  const void *code_object;
  size_t code_object_bytes;
} hd_embedded_kernel;

typedef struct hd_embedded_spec {
  const char *name, *yaml;
} hd_embedded_spec;

typedef struct hd_embedded {
  uint32_t version; /* HD_EMBEDDED_VERSION */
  uint32_t spec_count, kernel_count;
  const hd_embedded_spec *specs;
  const hd_embedded_kernel *kernels;
} hd_embedded;

/* Lets the context find kernels there before it looks into its cache or for a compiler. Nothing is copied:
 * `embedded` stays as it is for as long as the context lives. May be called for several, the last one first;
 * not while another thread prepares. */
HD_API hd_status hd_context_add_embedded(hd_context *context, const hd_embedded *embedded,
                                         hd_diagnostics *diagnostics);
/* Lets the context find kernels in a file that `heddle pack` wrote (docs/cache.md), behind the packs that are
 * there: those of the environment variable HEDDLE_PACKS, and earlier ones. HD_IO, HD_INVALID ("cache.pack"):
 * it can't be read, isn't sound, or somebody else than root and the caller can write it: its code runs in
 * this process. An entry is checked when it is used. Not while another thread prepares. */
HD_API hd_status hd_context_add_pack(hd_context *context, const char *path, hd_diagnostics *diagnostics);
/* The contract of an embedded spec by its name. HD_INVALID: there is none of this name. */
HD_API hd_status hd_contract_embedded(const hd_embedded *embedded, const char *name,
                                      hd_contract **out_contract, hd_diagnostics *diagnostics);

/* ---- Device memory, streams and graphs ---- */

/* For programs without a device API of their own, and for emulated devices, whose kernels reach this memory
 * only. Addresses are the device's. Copies and fills are ordered behind earlier work of the stream and have
 * ended when the call returns. */
HD_API hd_status hd_memory_allocate(hd_context *context, size_t bytes, uint64_t *out_address,
                                    hd_diagnostics *diagnostics);
HD_API hd_status hd_memory_release(hd_context *context, uint64_t address, hd_diagnostics *diagnostics);
HD_API hd_status hd_memory_copy_in(hd_context *context, hd_stream *stream, uint64_t to, const void *from,
                                   size_t bytes, hd_diagnostics *diagnostics);
HD_API hd_status hd_memory_copy_out(hd_context *context, hd_stream *stream, void *to, uint64_t from,
                                    size_t bytes, hd_diagnostics *diagnostics);
HD_API hd_status hd_memory_fill(hd_context *context, hd_stream *stream, uint64_t to, unsigned char value,
                                size_t bytes, hd_diagnostics *diagnostics);

/* Streams don't wait for the default stream, nor it for them. */
HD_API hd_status hd_stream_create(hd_context *context, hd_stream **out_stream, hd_diagnostics *diagnostics);
HD_API void hd_stream_destroy(hd_context *context, hd_stream *stream);
/* Waits until all its work has ended; NULL: all work of the device. */
HD_API hd_status hd_stream_wait(hd_context *context, hd_stream *stream, hd_diagnostics *diagnostics);

/* What is launched between begin and end is recorded, not executed; hd_graph_launch executes all of it. The
 * graph reads addresses, sizes and numbers (logits_scale, k_scale, v_scale) as they were, and the memory
 * behind addresses as it is when it runs: lengths and page tables may change from one replay to the next. */
typedef struct hd_graph hd_graph;
HD_API hd_status hd_capture_begin(hd_context *context, hd_stream *stream, hd_diagnostics *diagnostics);
HD_API hd_status hd_capture_end(hd_context *context, hd_stream *stream, hd_graph **out_graph,
                                hd_diagnostics *diagnostics);
HD_API hd_status hd_graph_launch(hd_context *context, hd_graph *graph, hd_stream *stream,
                                 hd_diagnostics *diagnostics);
HD_API void hd_graph_destroy(hd_context *context, hd_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
