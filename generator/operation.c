#include "operation.h"
#include <string.h>

static const struct {
  const char *word;
  bool attends;
} rows[] = {
#define X(name, bit, word, attends) {word, attends},
    OPERATION_LIST(X)
#undef X
    [OPERATION_READ] = {"read", false},
};

const char *operation_name(operation o) {
  return rows[o].word;
}

bool operation_attends(operation o) {
  return rows[o].attends;
}

bool operation_parse(const char *name, operation *out_operation) {
  for (operation o = 0; o < OPERATION_COUNT; o++)
    if (strcmp(name, rows[o].word) == 0) {
      *out_operation = o;
      return true;
    }
  return false;
}
