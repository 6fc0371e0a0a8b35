/* The matrix instructions as data: one row each, read by matrix.c and by its test.
 *
 * X(name, M, N, K, blocks, A, B, CD, A chunk, B chunk, run)
 *   A, B, CD   element types; BY_FORMAT: chosen by cbsz/blgp (gfx9) or matrix_a_fmt/matrix_b_fmt (gfx12);
 *              BF16F32: C is f32, D bf16
 *   chunk      consecutive k that one lane holds before the next lane group's turn: with G = wave / (M *
 * blocks) lane groups, element k of row i in block b sits in lane i + M * (b + blocks * ((k / chunk) % G)),
 * slot (k / chunk / G) * chunk + k % chunk; slots are packed from bit 0 of the first register upwards. B is
 * the same with column j for row i. run        consecutive rows of C/D that one lane holds: row i, column j
 * sits in lane j + N * ((i / run) % groups), slot run * (i / (run * groups)) + i % run, groups = wave / N;
 * blocks follow each other in registers, except where M = 4, where they lie across the lanes (groups = wave /
 * (N * blocks)).
 *
 * Sources: the CDNA3, CDNA4 and RDNA4 ISA documents' matrix chapters; gfx1250 as LLVM's sources and tests
 * imply it (fp8: blocks of 16 bytes alternate between the lane halves). */
#ifndef HEDDLE_EMU_MATRIX_TABLE_H
#define HEDDLE_EMU_MATRIX_TABLE_H

#define EMU_MFMA_LIST(X)                                                                                     \
  X(v_mfma_f32_32x32x1_2b_f32, 32, 32, 1, 2, F32, F32, F32, 1, 1, 4)                                         \
  X(v_mfma_f32_16x16x1_4b_f32, 16, 16, 1, 4, F32, F32, F32, 1, 1, 4)                                         \
  X(v_mfma_f32_4x4x1_16b_f32, 4, 4, 1, 16, F32, F32, F32, 1, 1, 4)                                           \
  X(v_mfma_f32_32x32x2_f32, 32, 32, 2, 1, F32, F32, F32, 1, 1, 4)                                            \
  X(v_mfma_f32_16x16x4_f32, 16, 16, 4, 1, F32, F32, F32, 1, 1, 4)                                            \
  X(v_mfma_f32_32x32x4_xf32, 32, 32, 4, 1, XF32, XF32, F32, 2, 2, 4)                                         \
  X(v_mfma_f32_16x16x8_xf32, 16, 16, 8, 1, XF32, XF32, F32, 2, 2, 4)                                         \
  X(v_mfma_f32_32x32x4_2b_f16, 32, 32, 4, 2, F16, F16, F32, 4, 4, 4)                                         \
  X(v_mfma_f32_16x16x4_4b_f16, 16, 16, 4, 4, F16, F16, F32, 4, 4, 4)                                         \
  X(v_mfma_f32_4x4x4_16b_f16, 4, 4, 4, 16, F16, F16, F32, 4, 4, 4)                                           \
  X(v_mfma_f32_32x32x8_f16, 32, 32, 8, 1, F16, F16, F32, 4, 4, 4)                                            \
  X(v_mfma_f32_16x16x16_f16, 16, 16, 16, 1, F16, F16, F32, 4, 4, 4)                                          \
  X(v_mfma_f32_32x32x16_f16, 32, 32, 16, 1, F16, F16, F32, 8, 8, 4)                                          \
  X(v_mfma_f32_16x16x32_f16, 16, 16, 32, 1, F16, F16, F32, 8, 8, 4)                                          \
  X(v_mfma_f32_32x32x4_2b_bf16, 32, 32, 4, 2, BF16, BF16, F32, 4, 4, 4)                                      \
  X(v_mfma_f32_16x16x4_4b_bf16, 16, 16, 4, 4, BF16, BF16, F32, 4, 4, 4)                                      \
  X(v_mfma_f32_4x4x4_16b_bf16, 4, 4, 4, 16, BF16, BF16, F32, 4, 4, 4)                                        \
  X(v_mfma_f32_32x32x8_bf16, 32, 32, 8, 1, BF16, BF16, F32, 4, 4, 4)                                         \
  X(v_mfma_f32_16x16x16_bf16, 16, 16, 16, 1, BF16, BF16, F32, 4, 4, 4)                                       \
  X(v_mfma_f32_32x32x16_bf16, 32, 32, 16, 1, BF16, BF16, F32, 8, 8, 4)                                       \
  X(v_mfma_f32_16x16x32_bf16, 16, 16, 32, 1, BF16, BF16, F32, 8, 8, 4)                                       \
  X(v_mfma_f32_16x16x32_fp8_fp8, 16, 16, 32, 1, FP8, FP8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_16x16x32_fp8_bf8, 16, 16, 32, 1, FP8, BF8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_16x16x32_bf8_fp8, 16, 16, 32, 1, BF8, FP8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_16x16x32_bf8_bf8, 16, 16, 32, 1, BF8, BF8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_32x32x16_fp8_fp8, 32, 32, 16, 1, FP8, FP8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_32x32x16_fp8_bf8, 32, 32, 16, 1, FP8, BF8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_32x32x16_bf8_fp8, 32, 32, 16, 1, BF8, FP8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_32x32x16_bf8_bf8, 32, 32, 16, 1, BF8, BF8, F32, 8, 8, 4)                                      \
  X(v_mfma_f32_16x16x128_f8f6f4, 16, 16, 128, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 4)                       \
  X(v_mfma_f32_32x32x64_f8f6f4, 32, 32, 64, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 4)                         \
  X(v_mfma_scale_f32_16x16x128_f8f6f4, 16, 16, 128, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 4)                 \
  X(v_mfma_scale_f32_32x32x64_f8f6f4, 32, 32, 64, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 4)                   \
  X(v_mfma_i32_32x32x4_2b_i8, 32, 32, 4, 2, I8, I8, I32, 4, 4, 4)                                            \
  X(v_mfma_i32_16x16x4_4b_i8, 16, 16, 4, 4, I8, I8, I32, 4, 4, 4)                                            \
  X(v_mfma_i32_4x4x4_16b_i8, 4, 4, 4, 16, I8, I8, I32, 4, 4, 4)                                              \
  X(v_mfma_i32_32x32x16_i8, 32, 32, 16, 1, I8, I8, I32, 8, 8, 4)                                             \
  X(v_mfma_i32_16x16x32_i8, 16, 16, 32, 1, I8, I8, I32, 8, 8, 4)                                             \
  X(v_mfma_i32_32x32x32_i8, 32, 32, 32, 1, I8, I8, I32, 16, 16, 4)                                           \
  X(v_mfma_i32_16x16x64_i8, 16, 16, 64, 1, I8, I8, I32, 16, 16, 4)                                           \
  X(v_mfma_f64_16x16x4_f64, 16, 16, 4, 1, F64, F64, F64, 1, 1, 1)                                            \
  X(v_mfma_f64_4x4x4_4b_f64, 4, 4, 4, 4, F64, F64, F64, 1, 1, 1)

#define EMU_WMMA_LIST(X)                                                                                     \
  X(v_wmma_f32_16x16x16_f16, 16, 16, 16, 1, F16, F16, F32, 8, 8, 8)                                          \
  X(v_wmma_f32_16x16x16_bf16, 16, 16, 16, 1, BF16, BF16, F32, 8, 8, 8)                                       \
  X(v_wmma_f16_16x16x16_f16, 16, 16, 16, 1, F16, F16, F16, 8, 8, 8)                                          \
  X(v_wmma_bf16_16x16x16_bf16, 16, 16, 16, 1, BF16, BF16, BF16, 8, 8, 8)                                     \
  X(v_wmma_f32_16x16x16_fp8_fp8, 16, 16, 16, 1, FP8, FP8, F32, 8, 8, 8)                                      \
  X(v_wmma_f32_16x16x16_fp8_bf8, 16, 16, 16, 1, FP8, BF8, F32, 8, 8, 8)                                      \
  X(v_wmma_f32_16x16x16_bf8_fp8, 16, 16, 16, 1, BF8, FP8, F32, 8, 8, 8)                                      \
  X(v_wmma_f32_16x16x16_bf8_bf8, 16, 16, 16, 1, BF8, BF8, F32, 8, 8, 8)                                      \
  X(v_wmma_i32_16x16x16_iu8, 16, 16, 16, 1, IU8, IU8, I32, 8, 8, 8)                                          \
  X(v_wmma_i32_16x16x16_iu4, 16, 16, 16, 1, IU4, IU4, I32, 8, 8, 8)                                          \
  X(v_wmma_i32_16x16x32_iu4, 16, 16, 32, 1, IU4, IU4, I32, 16, 16, 8)                                        \
  X(v_wmma_f32_16x16x4_f32, 16, 16, 4, 1, F32, F32, F32, 2, 2, 8)                                            \
  X(v_wmma_f32_16x16x32_f16, 16, 16, 32, 1, F16, F16, F32, 8, 8, 8)                                          \
  X(v_wmma_f32_16x16x32_bf16, 16, 16, 32, 1, BF16, BF16, F32, 8, 8, 8)                                       \
  X(v_wmma_f16_16x16x32_f16, 16, 16, 32, 1, F16, F16, F16, 8, 8, 8)                                          \
  X(v_wmma_bf16_16x16x32_bf16, 16, 16, 32, 1, BF16, BF16, BF16, 8, 8, 8)                                     \
  X(v_wmma_bf16f32_16x16x32_bf16, 16, 16, 32, 1, BF16, BF16, BF16F32, 8, 8, 8)                               \
  X(v_wmma_f32_16x16x64_fp8_fp8, 16, 16, 64, 1, FP8, FP8, F32, 16, 16, 8)                                    \
  X(v_wmma_f32_16x16x64_fp8_bf8, 16, 16, 64, 1, FP8, BF8, F32, 16, 16, 8)                                    \
  X(v_wmma_f32_16x16x64_bf8_fp8, 16, 16, 64, 1, BF8, FP8, F32, 16, 16, 8)                                    \
  X(v_wmma_f32_16x16x64_bf8_bf8, 16, 16, 64, 1, BF8, BF8, F32, 16, 16, 8)                                    \
  X(v_wmma_f16_16x16x64_fp8_fp8, 16, 16, 64, 1, FP8, FP8, F16, 16, 16, 8)                                    \
  X(v_wmma_f16_16x16x64_fp8_bf8, 16, 16, 64, 1, FP8, BF8, F16, 16, 16, 8)                                    \
  X(v_wmma_f16_16x16x64_bf8_fp8, 16, 16, 64, 1, BF8, FP8, F16, 16, 16, 8)                                    \
  X(v_wmma_f16_16x16x64_bf8_bf8, 16, 16, 64, 1, BF8, BF8, F16, 16, 16, 8)                                    \
  X(v_wmma_f32_16x16x128_fp8_fp8, 16, 16, 128, 1, FP8, FP8, F32, 16, 16, 8)                                  \
  X(v_wmma_f32_16x16x128_fp8_bf8, 16, 16, 128, 1, FP8, BF8, F32, 16, 16, 8)                                  \
  X(v_wmma_f32_16x16x128_bf8_fp8, 16, 16, 128, 1, BF8, FP8, F32, 16, 16, 8)                                  \
  X(v_wmma_f32_16x16x128_bf8_bf8, 16, 16, 128, 1, BF8, BF8, F32, 16, 16, 8)                                  \
  X(v_wmma_f16_16x16x128_fp8_fp8, 16, 16, 128, 1, FP8, FP8, F16, 16, 16, 8)                                  \
  X(v_wmma_f16_16x16x128_fp8_bf8, 16, 16, 128, 1, FP8, BF8, F16, 16, 16, 8)                                  \
  X(v_wmma_f16_16x16x128_bf8_fp8, 16, 16, 128, 1, BF8, FP8, F16, 16, 16, 8)                                  \
  X(v_wmma_f16_16x16x128_bf8_bf8, 16, 16, 128, 1, BF8, BF8, F16, 16, 16, 8)                                  \
  X(v_wmma_i32_16x16x64_iu8, 16, 16, 64, 1, IU8, IU8, I32, 16, 16, 8)                                        \
  X(v_wmma_f32_16x16x128_f8f6f4, 16, 16, 128, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 8)                       \
  X(v_wmma_scale_f32_16x16x128_f8f6f4, 16, 16, 128, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 8)                 \
  X(v_wmma_scale16_f32_16x16x128_f8f6f4, 16, 16, 128, 1, BY_FORMAT, BY_FORMAT, F32, 16, 16, 8)

#endif
