/* Numbers of the hardware registers that s_getreg and s_setreg know (LLVM's AMDGPU user guide, "hwreg"). */
#ifndef HEDDLE_EMU_HWREG_H
#define HEDDLE_EMU_HWREG_H

enum { EMU_HWREG_MODE = 1, EMU_HWREG_SHADER_CYCLES = 29 };

#endif
