/* What a compiler made of kernels, read from an AMD code object: registers, spills, LDS, occupancy, and from
 * its disassembly what the main loop does. Evidence grade: artifact. */
#ifndef HEDDLE_INSPECT_H
#define HEDDLE_INSPECT_H

#include "codeobject.h"
#include "../../generator/target.h"

/* Instructions of a stretch of code, as they stand there: a loop's once. */
typedef struct inspect_mix {
  int instructions;
  int matrix;                    /* v_mfma…, v_wmma… and their like */
  int conversions;               /* v_cvt…: between number formats */
  int fp8_conversions;           /* of these: from fp8 or bf8 */
  int loads, loads_16;           /* vector loads of global memory; of 16 bytes a lane */
  int load_bytes, load_bytes_16; /* a lane */
  int lds;                       /* LDS reads and writes */
  int scratch;                   /* accesses of scratch: spills */
  int waits;                     /* waits for vector loads and for copies to LDS, whatever counts them */
  int draining;                  /* of these: waits after which neither is on its way */
} inspect_mix;

/* Share of the bytes that vector loads bring in 16 bytes at a time; 1 where nothing is loaded. */
double inspect_share_16(const inspect_mix *m);

typedef struct inspect_kernel {
  codeobject_kernel resources;
  int waves_per_simd;      /* that registers and LDS leave room for; -1: not known for the target */
  int workgroups_per_unit; /* -1: not known */
  const char *limit;       /* "registers", "LDS", "waves"; "" when not known */
  inspect_mix all, loop;
  bool has_loop;
  uint64_t loop_start; /* address */
} inspect_kernel;

typedef struct inspection {
  char target[16];
  int count;
  inspect_kernel kernels[CODEOBJECT_MAX_KERNELS];
} inspection;

/* A loop is what is reached from the target of a backward branch and leads back to it, without what lies
 * before it in the code. The main loop is that with the most matrix instructions, of those the one
 * that loads most (compilers give one loop several heads), then the shortest; without any the longest loop.
 * Waits are counted as if the loop's instructions ran in order, the second time round. HD_INVALID for what is
 * no AMD code object, HD_DECLINED for a target that heddle does not know, HD_UNAVAILABLE without the plug-in
 * that disassembles. */
hd_status inspect_code_object(const void *bytes, size_t size, inspection *out_inspection, diags *errors);

/* Waves and workgroups that fit. `lds`: bytes of a workgroup. False where the table does not know the target.
 */
bool inspect_occupancy(const char *target_name, int vgprs, int lds, int threads, int *out_waves_per_simd,
                       int *out_workgroups, const char **out_limit);

#endif
