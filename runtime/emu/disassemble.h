/* LLVM's disassembler, one instruction at a time. It runs in this process and on whatever bytes a code object
 * has. */
#ifndef HEDDLE_EMU_DISASSEMBLE_H
#define HEDDLE_EMU_DISASSEMBLE_H

#include "../../generator/diag.h"
#include <stdint.h>

enum { EMU_LINE_BYTES = 512 };

typedef struct emu_disassembler {
  void *context; /* LLVM's */
  int generation;
} emu_disassembler;

/* HD_UNAVAILABLE with "emu.disassembler" where LLVM has none for the target. */
hd_status emu_disassembler_open(const char *target_name, emu_disassembler *out_disassembler, diags *list);
void emu_disassembler_close(emu_disassembler *d);

/* The instruction at `bytes`, of which `left` (4 or more) are code, as text. Returns its size, a multiple
 * of 4. What is no instruction is a word of data: ".long 0x…". */
size_t emu_disassemble(const emu_disassembler *d, uint8_t *bytes, uint64_t left, uint64_t address,
                       char line[EMU_LINE_BYTES]);

#endif
