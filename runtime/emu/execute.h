/* What runs: modules, kernels, launches, workgroups, and the state of a wave that handlers of arithmetic need
 * not see. */
#ifndef HEDDLE_EMU_EXECUTE_H
#define HEDDLE_EMU_EXECUTE_H

#include "../object/codeobject.h"
#include "../object/elf64.h"
#include "count.h"
#include "emu.h"
#include "watch.h"
#include <pthread.h>
#include <stdatomic.h>

/* Apertures of flat addressing, above every host address of 47 bits: the low word is an offset into LDS or
 * scratch. */
#define EMU_SHARED_APERTURE UINT64_C(0x0001000000000000)
#define EMU_PRIVATE_APERTURE UINT64_C(0x0002000000000000)

/* ---- Memory: live allocations, sorted by address ---- */

typedef enum emu_range_kind {
  EMU_RANGE_DEVICE,
  EMU_RANGE_CODE,
  EMU_RANGE_KERNARG,
  EMU_RANGE_PACKET
} emu_range_kind;

typedef struct emu_range {
  uint64_t start, size; /* bytes; the host address is the device address */
  emu_range_kind kind;
  uint64_t serial;                /* n-th allocation of the device */
  atomic_uint_least64_t *written; /* a bit per byte: something was written to it; NULL but for allocations */
} emu_range;

typedef struct emu_memory {
  emu_range *ranges;
  size_t count, capacity;
  uint64_t serial;
  uint64_t allocated; /* bytes live */
  pthread_rwlock_t lock;
} emu_memory;

bool emu_memory_init(emu_memory *memory);
void emu_memory_finish(emu_memory *memory);
/* Registers memory that somebody else owns. */
bool emu_memory_add(emu_memory *memory, uint64_t start, uint64_t size, emu_range_kind kind);
/* False when no range starts there. */
bool emu_memory_remove(emu_memory *memory, uint64_t start);
/* The range that holds `address`, or the one before it, or NULL. The caller holds the lock. */
const emu_range *emu_memory_find(const emu_memory *memory, uint64_t address);
/* Bytes of an allocation were written; the range holds them. */
void emu_range_wrote(const emu_range *range, uint64_t address, uint64_t bytes);
/* Which of up to 64 bytes of an allocation nothing wrote: bit n is byte n. */
uint64_t emu_range_unwritten(const emu_range *range, uint64_t address, uint32_t bytes);
/* "offset 16 past the end of allocation 3 (4096 bytes)": the nearest allocation, for diagnostics. */
void emu_memory_describe(const emu_memory *memory, uint64_t address, char *out, size_t out_size);

/* ---- Modules ---- */

typedef struct emu_line {
  const char *file; /* NULL: unknown; in the module's line_text */
  uint32_t line;
} emu_line;

typedef struct emu_module {
  const emu_target *target;
  uint8_t *image; /* loaded segments; virtual address 0 is image[0] */
  uint64_t image_size;
  uint64_t code_start, code_end; /* virtual addresses of executable sections, one span */
  emu_instruction *code;
  size_t code_count;
  uint32_t *index_of; /* [(address - code_start) / 4] → entry of `code`, UINT32_MAX between instructions */
  char *texts;        /* all disassembly, NUL-separated */
  size_t texts_size, texts_capacity;
  emu_line *lines; /* [(address - code_start) / 4], NULL without debug information */
  char *line_text;
  uint32_t vector_rows; /* rows of emu_wave.v that the code may touch */
  codeobject *object;
} emu_module;

typedef struct emu_descriptor {
  uint32_t lds_bytes, scratch_bytes, kernarg_bytes;
  uint64_t entry; /* virtual address */
  uint32_t rsrc1, rsrc2, rsrc3, properties, preload_length, preload_offset;
} emu_descriptor;

/* Loads an AMD code object: segments, relocations, kernels; then decodes all of its code. */
hd_status emu_module_load(const emu_target *target, const void *bytes, size_t size, emu_module *out_module,
                          diags *list);
void emu_module_finish(emu_module *module);
/* NULL when there is none of that name. */
const codeobject_kernel *emu_module_kernel(const emu_module *module, const char *symbol);
hd_status emu_module_descriptor(const emu_module *module, const codeobject_kernel *kernel,
                                emu_descriptor *out_descriptor, diags *list);
/* Source lines, if the code object tells; what can't be read is passed over. */
hd_status emu_lines_load(emu_module *module, const elf64 *elf);
/* Disassembles and decodes `module->image` between code_start and code_end. */
hd_status emu_module_decode(emu_module *module, diags *list);
/* What an instruction that could not be decoded executes: a fault that says why. */
void emu_undefined(emu_wave *w, const emu_instruction *i);
extern const emu_row emu_undefined_row;
/* The row of a mnemonic without its encoding suffix, or NULL. */
const emu_row *emu_find_row(const char *name, size_t length);
const emu_target *emu_find_target(const char *name);
const emu_target *emu_find_target_of_machine(uint32_t machine);

/* ---- Launch ---- */

typedef struct emu_launch {
  const emu_module *module;
  const char *kernel;
  emu_descriptor descriptor;
  emu_memory *memory;
  uint32_t grid[3], block[3];
  uint32_t lds_bytes; /* static and dynamic */
  uint8_t *kernarg;
  uint8_t *packet;  /* the 64-byte AQL dispatch packet */
  emu_range own[2]; /* kernarg and packet: memory that only this launch may read */
  uint64_t budget;  /* instructions a wave may execute */
  bool watch;
  emu_count *count; /* NULL when not counting */
  int waves;        /* per workgroup */
  int lanes;
  atomic_uint_least64_t next_group;
  atomic_bool stop;
  pthread_mutex_t fault_lock;
  bool faulted;
  diags *messages;   /* under fault_lock */
  uint64_t executed; /* instructions, under fault_lock */
} emu_launch;

/* Runs a prepared launch on the machine's cores; HD_DEVICE when the kernel did something it must not. */
hd_status emu_run(emu_launch *launch);

/* ---- Workgroup and wave ---- */

enum { EMU_NAMED_BARRIERS = 17 }; /* [0] the workgroup's own, then gfx12.5's named ones */

typedef struct emu_barrier {
  uint32_t members, arrived, phase;
} emu_barrier;

/* Where a wave stopped for good or for others. */
typedef struct emu_stop {
  const emu_instruction *at; /* NULL: none did */
  int wave;
} emu_stop;

struct emu_group {
  emu_launch *launch;
  uint32_t id[3];
  uint8_t *lds;
  uint32_t lds_bytes;
  emu_wave *waves;
  int wave_count, live;
  emu_barrier barrier[EMU_NAMED_BARRIERS];
  emu_stop arrived, ended; /* the first wave at the workgroup's barrier; the last one that ended */
  emu_shadow *shadow;      /* [lds_bytes] when watching, else NULL */
  bool copies_in_flight;   /* some wave has copied to LDS without registers */
  bool named_barriers;     /* were used: divergence is not reported */
  emu_order order[EMU_NAMED_BARRIERS]; /* beside `barrier`, when watching */
};

typedef struct emu_deferred {
  uint32_t row;
  uint64_t mask;
  emu_block value;
} emu_deferred;

typedef struct emu_state {
  uint8_t *scratch;       /* [lane][scratch_bytes] */
  uint32_t scratch_bytes; /* per lane */
  bool deferring;
  int deferred_count;
  emu_deferred deferred[4];
  emu_range last; /* the range that the last access hit: programs mostly stay in one */
  uint32_t barrier_phase[EMU_NAMED_BARRIERS]; /* phase in which this wave signalled */
  uint32_t joined;                            /* the named barrier that s_barrier_wait means, or 0 */
  bool at_barrier;                            /* s_barrier reached, not yet released */
  emu_watch *watch;                           /* NULL when not watching */
  emu_tally *tally;                           /* NULL when not counting */
  uint64_t counted;                           /* instructions, when counting */
  bool blocked;                               /* yielded because a barrier holds it */
} emu_state;

/* Writes one row under `mask`; inside a v_dual pair the write is held back. */
void emu_write_row(emu_wave *w, uint32_t row, uint64_t mask, const uint32_t *value);

/* Global memory at `address`, or NULL and a fault. */
uint8_t *emu_global(emu_wave *w, const emu_instruction *i, int lane, uint64_t address, uint32_t bytes,
                    bool write);
/* Copies between memory, LDS and registers. */
void emu_copy(void *to, const void *from, size_t bytes);
/* LDS at byte `offset`, or NULL and a fault. */
uint8_t *emu_lds(emu_wave *w, const emu_instruction *i, int lane, uint32_t offset, uint32_t bytes,
                 emu_touch touch);
/* The lane's private memory at byte `offset`, or NULL and a fault. */
uint8_t *emu_scratch(emu_wave *w, const emu_instruction *i, int lane, uint64_t offset, uint32_t bytes);

/* A buffer: what four scalars from `index` describe. */
typedef struct emu_buffer {
  uint64_t base, records; /* records: bytes, or with a stride elements */
  uint64_t stride;        /* bytes */
} emu_buffer;
emu_buffer emu_read_buffer(const emu_wave *w, int index);

/* Barrier arithmetic shared by s_barrier, the split forms and the end of a wave. */
void emu_barrier_arrive(emu_wave *w, const emu_instruction *i, emu_barrier *barrier);
void emu_wave_ends(emu_wave *w, const emu_instruction *i);

#endif
