/* The emulated device's inner seam: a wave, a decoded instruction, operand access, and the rows that bind a
 * mnemonic to its handler. Everything that executes an instruction includes this and nothing else of the
 * emulator.
 *
 * A handler computes all lanes (also the inactive ones: it must be safe on any bits) in plain loops over
 * `lane < EMU_LANES`, which the C compiler turns into vector code, and hands the whole result to
 * emu_result…(), which applies clamp, output modifier, destination select, DPP masks and EXEC. Sources arrive
 * from emu_source() with DPP, SDWA, op_sel, neg and abs already applied, so a handler is arithmetic and
 * nothing else:
 *
 *   static void v_add_f32(emu_wave *w, const emu_instruction *i) {
 *     emu_block x, y, r;
 *     const uint32_t *a = emu_source(w, i, 0, EMU_F32, &x).lo, *b = emu_source(w, i, 1, EMU_F32, &y).lo;
 *     for (int lane = 0; lane < EMU_LANES; ++lane) r.lane[lane] = emu_bits(emu_float(a[lane]) +
 * emu_float(b[lane])); emu_result(w, i, EMU_F32, r.lane);
 *   }
 *
 * Sources of the instruction set: AMD's public "Instinct MI300 / CDNA3", "CDNA4", "RDNA4" ISA documents and
 * LLVM's AMDGPU back end (AMDGPUUsage, the disassembler's text). Threads: a wave belongs to one thread. */
#ifndef HEDDLE_EMU_H
#define HEDDLE_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  EMU_LANES = 64, /* lanes held; a wave32 uses the lower half */
  EMU_MAX_OPERANDS = 12,
  EMU_ACCUMULATOR_BASE = 256 /* AGPR n is row 256 + n of the wave's vector registers on gfx9 */
};

/* One 32-bit value per lane. */
typedef struct emu_block {
  _Alignas(64) uint32_t lane[EMU_LANES];
} emu_block;

/* Scalar register file, one numbering for all targets. */
enum {
  EMU_S_VCC = 106,
  EMU_S_TTMP = 108, /* ttmp0 … ttmp15 */
  EMU_S_M0 = 124,
  EMU_S_NULL = 125, /* reads 0, writes vanish */
  EMU_S_EXEC = 126,
  EMU_S_FLAT_SCRATCH = 128,
  EMU_S_XNACK_MASK = 130,
  EMU_S_SCC = 132, /* bit 0 */
  EMU_S_COUNT = 136
};

typedef enum emu_operand_kind {
  EMU_NONE,
  EMU_VECTOR,      /* index: row of emu_wave.v (AGPRs included) */
  EMU_SCALAR,      /* index: emu_wave.s */
  EMU_INTEGER,     /* inline integer: bits, sign-extended to 64 */
  EMU_FLOAT,       /* inline float: value */
  EMU_LITERAL,     /* literal constant: bits (32), or all 64 when wide */
  EMU_SHARED_BASE, /* 64-bit apertures of flat addressing */
  EMU_SHARED_LIMIT,
  EMU_PRIVATE_BASE,
  EMU_PRIVATE_LIMIT,
  EMU_VCCZ,
  EMU_EXECZ,
  EMU_OFF,   /* "off": no register */
  EMU_SYMBOL /* text kept in emu_instruction.text: hwreg(…), sendmsg(…) */
} emu_operand_kind;

typedef struct emu_operand {
  uint8_t kind;
  uint8_t bank; /* which of emu_wave.row_offset counts for it: 0 src0, 1 src1, 2 src2, 3 dst */
  bool high;    /* true16: v0.h */
  bool half;    /* true16: v0.l or v0.h was written */
  bool wide;    /* literal of 64 bits */
  bool negate, absolute, sign_extend;
  uint8_t select; /* emu_select, SDWA */
  uint16_t index, count;
  uint64_t bits;
  double value;
} emu_operand;

typedef enum emu_select {
  EMU_SELECT_NONE, /* no SDWA: the whole register */
  EMU_BYTE_0,
  EMU_BYTE_1,
  EMU_BYTE_2,
  EMU_BYTE_3,
  EMU_WORD_0,
  EMU_WORD_1,
  EMU_DWORD
} emu_select;

/* How an instruction reads or writes an operand: its width, and where neg/abs act. */
typedef enum emu_type {
  EMU_B32, /* 32 bits, no float modifiers; SDWA selects zero- or sign-extend */
  EMU_F32,
  EMU_B16, /* low 16 bits of the lane value, upper bits zero; op_sel and true16 halves applied */
  EMU_F16,
  EMU_BF16,
  EMU_B64,    /* lo, hi */
  EMU_F64,    /* lo, hi; a 32-bit literal is the high half */
  EMU_PK_B16, /* two halves, op_sel/op_sel_hi applied: bits 15:0 feed the low result, 31:16 the high result */
  EMU_PK_F16,
  EMU_PK_BF16,
  EMU_PK_B32, /* lo, hi, op_sel/op_sel_hi applied */
  EMU_PK_F32
} emu_type;

typedef struct emu_lanes {
  const uint32_t *lo, *hi; /* [EMU_LANES]; hi only for 64-bit and packed 32-bit types */
} emu_lanes;

typedef enum emu_dpp {
  EMU_DPP_NONE,
  EMU_DPP_QUAD_PERM, /* dpp_value: four 2-bit selects */
  EMU_DPP_ROW_SHL,
  EMU_DPP_ROW_SHR,
  EMU_DPP_ROW_ROR,
  EMU_DPP_WAVE_SHL,
  EMU_DPP_WAVE_ROL,
  EMU_DPP_WAVE_SHR,
  EMU_DPP_WAVE_ROR,
  EMU_DPP_ROW_MIRROR,
  EMU_DPP_ROW_HALF_MIRROR,
  EMU_DPP_ROW_BCAST_15,
  EMU_DPP_ROW_BCAST_31,
  EMU_DPP_ROW_NEWBCAST,
  EMU_DPP_ROW_SHARE,
  EMU_DPP_ROW_XMASK,
  EMU_DPP_8 /* dpp_value: eight 3-bit selects */
} emu_dpp;

typedef struct emu_wave emu_wave;
typedef struct emu_instruction emu_instruction;
typedef void (*emu_handler)(emu_wave *w, const emu_instruction *i);

enum { /* emu_row.flags */
       EMU_KEEPS_HIGH =
           1, /* gfx9: a 16-bit result keeps bits 31:16 of its register (default there: cleared) */
       EMU_ENDS_BLOCK = 2, /* may change the program counter */
       EMU_NO_DESTINATION = 4,
       EMU_MEMORY = 8,
       EMU_MATRIX = 16,
       EMU_TRANSCENDENTAL = 32,
       EMU_COMPARE = 64,        /* the destination is a lane mask; "v_cmpx" without one writes EXEC */
       EMU_YIELDS = 128,        /* the scheduler turns to another wave after it */
       EMU_BRANCH = 256,        /* `target` follows from the encoding's signed word offset */
       EMU_TEXT_IGNORED = 512,  /* everything the handler needs is in `immediate` */
       EMU_WAITS = 2048,        /* lowers wait counters by `immediate` */
       EMU_SCALAR_LOAD = 4096,  /* its result comes through lgkmcnt or kmcnt */
       EMU_LDS_CROSSBAR = 8192, /* a ds_ instruction that touches no memory */
       EMU_INDEXES = 1024 /* registers named afterwards may lie up to 255 (512: any two high bits) further */
};

/* One instruction: the mnemonic without _e32, _e64, _dpp, _sdwa. `destinations`: leading operands that are
 * written, so source 0 is operand `destinations` (2 for v_add_co_u32, v_div_scale_f32, v_mad_u64_u32 …). */
typedef struct emu_row {
  const char *name;
  emu_handler handler;
  uint8_t destinations;
  uint16_t flags;
} emu_row;

struct emu_instruction {
  emu_handler handler;
  const emu_row *row;
  uint32_t size; /* bytes; a v_dual_ pair: the first half has the size, both are adjacent, see `dual` */
  bool dual;     /* the next entry executes together with this one: both read before either writes */
  bool clamp;
  uint8_t output_modifier; /* 0, 1: ×2, 2: ×4, 3: ÷2 */
  uint8_t operand_count, source0;
  uint8_t op_sel, op_sel_hi, neg_lo, neg_hi; /* bit k: source k; op_sel bit 3: destination */
  uint8_t op_sel_count;                      /* how many entries op_sel:[…] had, 0 when absent */
  uint8_t dpp;                               /* emu_dpp, acts on source 0 */
  uint8_t row_mask, bank_mask;
  bool bound_control, fetch_inactive, sdwa;
  uint8_t destination_select, destination_unused; /* SDWA: emu_select; 0 pad, 1 sext, 2 preserve */
  uint32_t dpp_value;
  /* named immediates; absent: 0 */
  int64_t offset;
  uint8_t offset0, offset1;
  uint8_t cbsz, abid, blgp;
  uint8_t matrix_a_format, matrix_b_format, matrix_a_scale, matrix_b_scale; /* gfx1250, see matrix.c */
  uint8_t matrix_a_scale_format, matrix_b_scale_format;
  bool matrix_a_reuse, matrix_b_reuse;
  bool glc, slc, nontemporal, sc0, sc1, lds, offen, idxen, addr64, scale_offset, gds, tfe;
  uint16_t bitop3;      /* v_bitop3_b32 bitop3:0x… */
  uint8_t byte_sel;     /* byte_sel:n of gfx12 conversions */
  uint8_t index_key;    /* sparse matrix instructions */
  uint8_t scale_select; /* scale_sel:n of conversions whose scale comes by lane */
  emu_operand operand[EMU_MAX_OPERANDS];
  uint64_t address;                /* of the instruction in the code object */
  uint32_t target;                 /* branches: index of the instruction jumped to */
  uint32_t immediate;              /* parsed symbol: hwreg, waits, s_nop count … */
  const char *text;                /* disassembly; owned by the module */
  const struct emu_access *access; /* memory instructions: what moves (access.h) */
  uint8_t space;                   /* emu_space (access.h) */
  const char *problem;             /* why it could not be decoded, or NULL */
};

typedef struct emu_target {
  const char *name; /* "gfx950" */
  uint32_t machine; /* e_flags & 0xff */
  int generation;   /* 9, 12 */
  int wave;
  int lds_bytes;
  int lds_banks, lds_wide_read_banks; /* of 4 bytes, each gives one a cycle; in reads of 8 and 16 bytes */
  bool fnuz;                          /* fp8 dialect of the unscaled conversions and matrix instructions */
  bool
      replicates_packed_scalar; /* gfx1250: packed f32 reads the low half of a scalar pair for both results */
  bool global_scratch;          /* gfx1250: scratch has global addresses, flat_scratch_base + lane << 52 */
  bool signed_address_offset;   /* gfx1250: the 32-bit offset beside a scalar base is signed */
  bool wide_buffers;            /* gfx1250: buffer descriptors with 57 bits of address */
  bool setreg_extends_rows;     /* gfx1250: s_setreg_imm32_b32 of MODE does s_set_vgpr_msb's work too */
  int compute_units;
  int64_t memory_bytes, l2_bytes;
  const char *product;
} emu_target;

typedef struct emu_group emu_group; /* a running workgroup: LDS, barrier state (execute.h) */

struct emu_wave {
  uint32_t (*v)[EMU_LANES]; /* [row][lane]; rows as many as vector_rows */
  uint32_t vector_rows;
  int lanes; /* 32 or 64 */
  uint32_t s[EMU_S_COUNT];
  uint32_t mode; /* 1:0 round f32, 3:2 round f16/f64, 5:4 denormals f32, 7:6 f16/f64, 8 dx10 clamp, 9 ieee, 23
                    fp16_ovfl */
  uint32_t row_offset[4]; /* added to the rows of src0, src1, src2, dst: s_set_vgpr_msb (gfx1250),
                             s_set_gpr_idx (gfx9) */
  const emu_target *target;
  emu_group *group;
  uint32_t next; /* index of the next instruction */
  bool ended, faulted, yielded;
  int index;               /* wave within its workgroup */
  uint64_t executed;       /* instructions */
  struct emu_state *state; /* scratch memory, barrier and wait counters (execute.h) */
};

/* Bits and floats. */
static inline float emu_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline uint32_t emu_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}
static inline double emu_double(uint32_t lo, uint32_t hi) {
  uint64_t bits = (uint64_t)hi << 32 | lo;
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}
static inline uint64_t emu_double_bits(double d) {
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return bits;
}

static inline uint64_t emu_pair(const emu_wave *w, int index) {
  return (uint64_t)w->s[index + 1] << 32 | w->s[index];
}
static inline void emu_set_pair(emu_wave *w, int index, uint64_t value) {
  w->s[index] = (uint32_t)value;
  w->s[index + 1] = (uint32_t)(value >> 32);
}
/* Active lanes; bits past the wave's width are 0. */
static inline uint64_t emu_exec(const emu_wave *w) {
  return w->lanes == 64 ? emu_pair(w, EMU_S_EXEC) : w->s[EMU_S_EXEC];
}

/* Row of `w->v` of a vector operand, s_set_vgpr_msb or s_set_gpr_idx applied. */
static inline uint32_t emu_row_of(const emu_wave *w, const emu_operand *o) {
  return o->index + w->row_offset[o->bank];
}
/* [register][lane] of a vector operand, for matrix and memory instructions. */
static inline uint32_t (*emu_registers(emu_wave *w, const emu_operand *o))[EMU_LANES] {
  return w->v + emu_row_of(w, o);
}

/* Source k (0, 1, 2): operand `source0 + k` with every modifier applied. Points into the register file when
 * it can, else into `block` (and `block2` for the high half: emu_source64). */
emu_lanes emu_source(emu_wave *w, const emu_instruction *i, int k, emu_type type, emu_block *block);
emu_lanes emu_source64(emu_wave *w, const emu_instruction *i, int k, emu_type type, emu_block *lo,
                       emu_block *hi);
/* The destination's present value (v_fmac…), read as `type`, no modifiers. */
emu_lanes emu_previous(emu_wave *w, const emu_instruction *i, emu_type type, emu_block *block);
emu_lanes emu_previous64(emu_wave *w, const emu_instruction *i, emu_type type, emu_block *lo, emu_block *hi);
/* Scalar value of source k: SGPR, constant or, for a VGPR, its first active lane. */
uint32_t emu_source_scalar(emu_wave *w, const emu_instruction *i, int k);
/* Lane mask held in a scalar (vcc, s[0:1], s0 in wave32) of source k. */
uint64_t emu_source_mask(emu_wave *w, const emu_instruction *i, int k);

/* Operand 0 := result; 16-bit types take the value from bits 15:0. Clamp, omod (float types only), SDWA
 * destination, op_sel[3], DPP masks and EXEC are applied here. Integer clamp (saturation) is the handler's
 * business: it sees i->clamp. */
void emu_result(emu_wave *w, const emu_instruction *i, emu_type type, const uint32_t *lo);
void emu_result64(emu_wave *w, const emu_instruction *i, emu_type type, const uint32_t *lo,
                  const uint32_t *hi);
/* Operand n (a lane mask in scalars) := mask & EXEC. */
void emu_result_mask(emu_wave *w, const emu_instruction *i, int n, uint64_t mask);

/* Scalars: any operand as 32 or 64 bits (a 32-bit literal is sign-extended for 64), and writes to scalar
 * destinations. */
uint32_t emu_scalar32(emu_wave *w, const emu_operand *o);
uint64_t emu_scalar64(emu_wave *w, const emu_operand *o);
void emu_set_scalar32(emu_wave *w, const emu_operand *o, uint32_t value);
void emu_set_scalar64(emu_wave *w, const emu_operand *o, uint64_t value);

/* A constant operand as `type` would read it (low word, high word). */
uint64_t emu_constant(const emu_operand *o, emu_type type);

/* Stops the launch with a diagnostic that quotes the instruction and its neighbours; `lane` -1 when no lane
 * is to blame. The handler returns normally afterwards. */
void emu_fault(emu_wave *w, const emu_instruction *i, int lane, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* The tables, each ended by a row whose name is NULL. Owners: this half … */
extern const emu_row emu_scalar_rows[], emu_control_rows[], emu_lane_rows[], emu_tensor_rows[];
/* … and the mathematics. vector_*.c each end with their own table. */
extern const emu_row emu_vector_float_rows[];  /* vector_float.c: f32, transcendental */
extern const emu_row emu_vector_double_rows[]; /* vector_double.c: f64 */
extern const emu_row emu_vector_divide_rows[]; /* vector_divide.c: div_scale, div_fmas, div_fixup */
extern const emu_row emu_vector_half_rows[];   /* vector_half.c: f16, bf16 */
extern const emu_row emu_vector_bits_rows[];   /* vector_bits.c: moves, shifts, bit fields, perm, cndmask */
extern const emu_row
    emu_vector_integer_rows[]; /* vector_integer.c: 32 and 16 bits, carries, sums of differences */
extern const emu_row emu_vector_packed_rows[];  /* vector_packed.c: v_pk_*, dot */
extern const emu_row emu_vector_wide_rows[];    /* vector_wide.c: 64-bit integers */
extern const emu_row emu_vector_span_rows[];    /* vector_span.c: results of several registers */
extern const emu_row emu_vector_scale_rows[];   /* vector_scale.c: conversions with a block scale */
extern const emu_row emu_vector_convert_rows[]; /* vector_convert.c: v_cvt_* of 16 bits and more */
extern const emu_row emu_vector_bytes_rows[];   /* vector_bytes.c: v_cvt_* of 8-bit floats */
extern const emu_row emu_vector_compare_rows[]; /* vector_compare.c: v_cmp_*, v_cmpx_*, v_cmp_class */
extern const emu_row
    emu_matrix_rows[]; /* matrix.c: v_mfma_*, v_smfmac_*, v_wmma_*, v_swmmac_* (v_accvgpr_* are moves) */

#endif
