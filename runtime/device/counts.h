/* What launches executed, where a device can tell (device.h): instructions by class, memory traffic by
 * allocation and by instruction, LDS bank conflicts, matrix operations. Exact counts, the same whatever the
 * number of threads; what follows from them for a real device is an estimate (estimate.h). */
#ifndef HEDDLE_COUNTS_H
#define HEDDLE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(identifier, name in tables and JSON). Every executed instruction is in one class. */
#define COUNT_CLASSES(X)                                                                                     \
  X(SCALAR, "scalar")                                                                                        \
  X(SCALAR_MEMORY, "scalar_memory")                                                                          \
  X(VECTOR, "vector")                                                                                        \
  X(TRANSCENDENTAL, "transcendental")                                                                        \
  X(MATRIX, "matrix")                                                                                        \
  X(MEMORY, "memory") /* global, flat, buffer; copies between memory and LDS */                              \
  X(LDS, "lds")                                                                                              \
  X(SCRATCH, "scratch")                                                                                      \
  X(BRANCH, "branch")                                                                                        \
  X(WAIT, "wait")                                                                                            \
  X(BARRIER, "barrier")                                                                                      \
  X(OTHER, "other") /* hints, cache control, s_endpgm */

#define COUNT_ENUMERATOR(identifier, name) COUNT_##identifier,
typedef enum count_class { COUNT_CLASSES(COUNT_ENUMERATOR) COUNT_CLASS_COUNT } count_class;
#undef COUNT_ENUMERATOR

const char *count_class_name(count_class c);

/* Segments are aligned pieces of memory of 32, 64 and 128 bytes; 128 is a cache line of every AMD target
 * here. */
enum { COUNT_SEGMENT_SIZES = 3, COUNT_LINE = 2, COUNT_LINE_BYTES = 128 };

typedef struct count_traffic {
  uint64_t instructions; /* executed by waves, with at least one lane that moved something */
  uint64_t bytes;        /* of all lanes together */
  uint64_t distinct;     /* of each instruction the bytes that differ: a broadcast counts once */
  /* By size: segments that the lanes of each instruction touched, and the fewest that hold its bytes. */
  uint64_t segments[COUNT_SEGMENT_SIZES], least[COUNT_SEGMENT_SIZES];
} count_traffic;

/* least / segments; 1 where nothing moved. `size`: index of the segment size. */
double count_efficiency(const count_traffic *t, int size);
void count_traffic_add(count_traffic *to, const count_traffic *t);

/* One allocation. Atomics count as stores. */
typedef struct count_buffer {
  uint64_t start, size; /* bytes */
  uint64_t serial;      /* n-th allocation of the device; 0: kernel arguments, packets, code */
  count_traffic loads, stores;
  uint64_t lines_read, lines_written; /* different cache lines over the whole launch */
} count_buffer;

/* One instruction of memory or LDS. */
typedef struct count_site {
  uint64_t address; /* in the code object */
  char *text;       /* disassembly */
  count_class class;
  uint64_t executed;
  bool writes;
  bool several;    /* touched more than one allocation; `buffer` is the first of them by address */
  uint64_t buffer; /* start of the allocation, 0: none */
  count_traffic traffic;
  uint64_t lds_cycles, lds_least;
} count_site;

/* One matrix instruction by name. */
typedef struct count_matrix {
  char name[64];
  int bits; /* of an operand's element */
  uint64_t executed, multiply_adds;
} count_matrix;

typedef struct launch_counts {
  char kernel[128];
  int lanes; /* of a wave */
  uint64_t workgroups, waves;
  uint64_t longest_wave; /* instructions */
  uint64_t instructions[COUNT_CLASS_COUNT];
  count_traffic loads, stores; /* global memory, vector and scalar */
  uint64_t lines_read, lines_written;
  uint64_t lds_bytes, lds_cycles, lds_least; /* cycles at one access a bank and cycle; the least possible */
  uint64_t matrix_operations, multiply_adds;
  count_buffer *buffers;
  count_site *sites;
  count_matrix *matrix;
  size_t buffer_count, site_count, matrix_count;
} launch_counts;

typedef struct counts {
  launch_counts *launches; /* in the order they were launched */
  size_t count, capacity;
} counts;

/* Takes what `launch` owns; false (and nothing taken) without memory. */
bool counts_add(counts *c, const launch_counts *launch);
void launch_counts_finish(launch_counts *launch);
void counts_finish(counts *c);

uint64_t launch_counts_total(const launch_counts *launch); /* instructions of all classes */

#endif
