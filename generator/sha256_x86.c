/* SHA-256 with the instructions that x86-64 processors have had for it since 2017 or so: some ten times as
 * fast, which is what a first use of a cache waits for, since it hashes the compiler's libraries. Elsewhere:
 * nothing. */
#include "sha256_blocks.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

bool sha256_has_instructions(void) {
  return __builtin_cpu_supports("sha") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1");
}

/* State words travel as (a b e f) and (c d g h), highest first; a message word with its neighbours, four at a
 * time. */
__attribute__((target("sha,ssse3,sse4.1"))) void
sha256_blocks_instructions(uint32_t state[8], const unsigned char *blocks, size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i *constants = (const __m128i *)(const void *)sha256_round_constants;
  __m128i *words = (__m128i *)(void *)state;
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1),
                efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; count--, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    const __m128i *block = (const __m128i *)(const void *)blocks;
    __m128i w[4];
    for (int i = 0; i < 16; i++) {
      __m128i *next = &w[i % 4];
      if (i < 4) {
        *next = _mm_shuffle_epi8(_mm_loadu_si128(block + i), big_endian);
      } else { /* of the sixteen words before */
        const __m128i last = w[(i + 3) % 4], seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        *next = _mm_sha256msg1_epu32(*next, w[(i + 1) % 4]);
        *next = _mm_sha256msg2_epu32(_mm_add_epi32(*next, seven_back), last);
      }
      const __m128i sum = _mm_add_epi32(*next, _mm_loadu_si128(constants + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_has_instructions(void) {
  return false;
}

void sha256_blocks_instructions(uint32_t state[8], const unsigned char *blocks, size_t count) {
  sha256_blocks_portable(state, blocks, count);
}

#endif
