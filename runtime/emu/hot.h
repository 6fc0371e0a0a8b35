/* Compiler-specific hints of the emulator's inner loops; everything else is plain C17. */
#ifndef HEDDLE_EMU_HOT_H
#define HEDDLE_EMU_HOT_H

/* EMU_HOT: compiled twice, for any x86-64 and for one with AVX2 and FMA, and chosen when the library is
 * loaded. The resolver runs before a sanitizer's shadow memory exists, so sanitizer builds keep the plain
 * version. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) &&             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMU_HOT __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define EMU_HOT
#endif

/* EMU_GUEST: moves bytes of the emulated program's memory. Whether workgroups race there is that program's
 * affair, as on the hardware, and no finding about the emulator: ThreadSanitizer looks away. */
#if defined(__SANITIZE_THREAD__)
#define EMU_GUEST __attribute__((no_sanitize("thread"), noinline))
#else
#define EMU_GUEST
#endif

/* Helpers of EMU_HOT functions must be inlined into both versions, or they would stay plain code. */
#if defined(__GNUC__)
#define EMU_INLINE static inline __attribute__((always_inline))
#else
#define EMU_INLINE static inline
#endif

#endif
