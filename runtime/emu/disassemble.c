#include "disassemble.h"
#include "../device/device.h"
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_INSTRUCTION = 32 /* bytes, or more */ };

/* Targets of the AMDGPU back end only; declared by llvm-c/Target.h per target. */
static pthread_once_t initialised = PTHREAD_ONCE_INIT;
static void initialise(void) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
}

hd_status emu_disassembler_open(const char *target_name, emu_disassembler *out, diags *list) {
  pthread_once(&initialised, initialise);
  LLVMDisasmContextRef context = LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", target_name, NULL, 0, NULL, NULL);
  if (!context) {
    diags_errorf(list, "emu.disassembler", NULL, "LLVM has no disassembler for %s", target_name);
    return HD_UNAVAILABLE;
  }
  *out = (emu_disassembler){context, strncmp(target_name, "gfx9", 4) == 0 ? 9 : 12};
  return HD_OK;
}

void emu_disassembler_close(emu_disassembler *d) {
  LLVMDisasmDispose(d->context);
}

/* Where an operand can't be, LLVM 22 writes a remark to a stream that nobody gave it: a null pointer (llvm-mc
 * ends so, too). No assembler makes these encodings; found by fuzzing and by trying millions of words. A row
 * is of one generation and the first two words of an instruction; words that agree in the masked bits are
 * data. */
#define VOP3 0xfc000000, 0xd0000000
#define SDWA 0x800001ff, 0x000000f9
static const struct encoding {
  int generation;
  uint32_t mask0, bits0, mask1, bits1;
  bool compares; /* VOPC is meant, too: its second word has no dst_sel */
} not_for_llvm[] = {
    /* a literal (255) behind an encoding of 8 bytes: of src0, src1, src2, of a compare's destination, of
       v_readlane's */
    {9, VOP3, 0x1ff, 0xff, true},
    {9, VOP3, 0x1ff << 9, 0xff << 9, true},
    {9, VOP3, 0x1ff << 18, 0xff << 18, true},
    {9, 0xff0000ff, 0xd00000ff, 0, 0, true},
    {9, 0xffff00ff, 0xd28900ff, 0, 0, true},
    /* and of soffset, in MUBUF and MTBUF */
    {9, 0xfc000000, 0xe0000000, 0xff000000, 0xff000000, true},
    {9, 0xfc000000, 0xe8000000, 0xff000000, 0xff000000, true},
    /* the reserved select 7 in SDWA: dst_sel, src0_sel, src1_sel */
    {9, SDWA, 0x7 << 8, 0x7 << 8, false},
    {9, SDWA, 0x7 << 16, 0x7 << 16, true},
    {9, SDWA, 0x7 << 24, 0x7 << 24, true},
    /* scalars as matrices of f8f6f4: src0, src1 */
    {9, 0xffff0000, 0xd3ad0000, 0x100, 0, true},
    {9, 0xffff0000, 0xd3ad0000, 0x100 << 9, 0, true},
    {9, 0xffff0000, 0xd3ae0000, 0x100, 0, true},
    {9, 0xffff0000, 0xd3ae0000, 0x100 << 9, 0, true},
    /* a literal as a barrier: s_barrier_signal, _signal_isfirst, s_get_barrier_state, s_barrier_init, _join
     */
    {12, 0xff80ffff, 0xbe804eff, 0, 0, true},
    {12, 0xff80ffff, 0xbe804fff, 0, 0, true},
    {12, 0xff80ffff, 0xbe8050ff, 0, 0, true},
    {12, 0xff80ffff, 0xbe8051ff, 0, 0, true},
    {12, 0xff80ffff, 0xbe8052ff, 0, 0, true},
    {12, 0xff80ffff, 0xbe8057ff, 0, 0, true},
};

static bool is_for_llvm(int generation, const uint8_t *bytes) {
  uint32_t word[2];
  memcpy(word, bytes, sizeof word);
  bool compare = word[0] >> 25 == 0x3e;
  for (size_t i = 0; i < sizeof not_for_llvm / sizeof *not_for_llvm; ++i) {
    const struct encoding *e = &not_for_llvm[i];
    if (e->generation == generation && (word[0] & e->mask0) == e->bits0 && (word[1] & e->mask1) == e->bits1 &&
        (e->compares || !compare))
      return false;
  }
  return true;
}

size_t emu_disassemble(const emu_disassembler *d, uint8_t *bytes, uint64_t left, uint64_t address,
                       char line[EMU_LINE_BYTES]) {
  uint8_t padded[2 * LONGEST_INSTRUCTION] = {0};
  uint8_t *from = bytes;
  uint64_t given = left;
  if (left <
      LONGEST_INSTRUCTION) { /* a literal that lies behind the end of the code is such an operand, too */
    memcpy(padded, bytes, left);
    from = padded;
    given = sizeof padded;
  }
  size_t size = is_for_llvm(d->generation, from)
                    ? LLVMDisasmInstruction(d->context, from, given, address, line, EMU_LINE_BYTES)
                    : 0;
  if (size > 0 && size % 4 == 0 && size <= left) return size;
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  snprintf(line, EMU_LINE_BYTES, ".long 0x%08x", word);
  return 4;
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
hd_status
heddle_emu_disassemble(const char *target_name, const void *code, size_t bytes, uint64_t address,
                       device_disassembly line, void *user, diags *list);

hd_status heddle_emu_disassemble(const char *target_name, const void *code, size_t bytes, uint64_t address,
                                 device_disassembly line, void *user, diags *list) {
  emu_disassembler d;
  char written[EMU_LINE_BYTES];
  hd_status status = emu_disassembler_open(target_name, &d, list);
  if (status != HD_OK) return status;
  uint8_t *copy = malloc(bytes + 1); /* LLVM takes no const */
  if (copy) memcpy(copy, code, bytes);
  for (size_t at = 0; copy && at + 4 <= bytes;) {
    size_t size = emu_disassemble(&d, copy + at, bytes - at, address + at, written);
    line(user, address + at, size, written + strspn(written, " \t"));
    at += size;
  }
  emu_disassembler_close(&d);
  free(copy);
  return copy ? HD_OK : HD_OUT_OF_MEMORY;
}
