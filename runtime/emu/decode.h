/* The text of an instruction, word by word. Each returns false at what it doesn't know. */
#ifndef HEDDLE_EMU_DECODE_H
#define HEDDLE_EMU_DECODE_H

#include "execute.h"

/* One operand with its sign, bars and sext(). Destroys `s`. */
bool emu_parse_operand(char *s, emu_operand *o);
/* One modifier: sets a field of the instruction; `word` is changed. `selects`: which part of each of its two
 * sources an SDWA instruction takes. */
bool emu_parse_modifier(emu_instruction *i, char *word, uint8_t selects[2]);

#endif
