/* What is called: one row for each operation that a spec can ask for. */
#ifndef HEDDLE_OPERATION_H
#define HEDDLE_OPERATION_H

#include <stdbool.h>

/* X(enumerator, bit of a contract's kernels, word, attends). An operation that attends reads a cache through
 * queries: it has page lists, lengths, splits, a scale of its logits, and a variant that tuning chooses. The
 * others change the cache. */
#define OPERATION_LIST(X)                                                                                    \
  X(OPERATION_WRITE, KERNEL_WRITE, "write", false)                                                           \
  X(OPERATION_DECODE, KERNEL_DECODE, "decode", true)

/* read only reads what decode has to read: a yardstick (emit_read.h), which no spec asks for. */
typedef enum operation {
#define X(name, bit, word, attends) name,
  OPERATION_LIST(X)
#undef X
      OPERATION_COUNT,
  OPERATION_READ = OPERATION_COUNT
} operation;

enum {
#define X(name, bit, word, attends) bit = 1 << name,
  OPERATION_LIST(X)
#undef X
};

const char *operation_name(operation o);
/* Of those that a spec can ask for. */
bool operation_parse(const char *name, operation *out_operation);
bool operation_attends(operation o);

#endif
