#include "counts.h"
#include <stdlib.h>

const char *count_class_name(count_class c) {
#define COUNT_NAME(identifier, name) name,
  static const char *const names[] = {COUNT_CLASSES(COUNT_NAME)};
#undef COUNT_NAME
  return names[c];
}

double count_efficiency(const count_traffic *t, int size) {
  return t->segments[size] ? (double)t->least[size] / (double)t->segments[size] : 1;
}

void count_traffic_add(count_traffic *to, const count_traffic *t) {
  to->instructions += t->instructions;
  to->bytes += t->bytes;
  to->distinct += t->distinct;
  for (int n = 0; n < COUNT_SEGMENT_SIZES; n++) {
    to->segments[n] += t->segments[n];
    to->least[n] += t->least[n];
  }
}

bool counts_add(counts *c, const launch_counts *launch) {
  if (c->count == c->capacity) {
    size_t capacity = c->capacity ? 2 * c->capacity : 8;
    launch_counts *grown = realloc(c->launches, capacity * sizeof *grown);
    if (!grown) return false;
    c->launches = grown;
    c->capacity = capacity;
  }
  c->launches[c->count++] = *launch;
  return true;
}

void launch_counts_finish(launch_counts *launch) {
  for (size_t n = 0; n < launch->site_count; n++)
    free(launch->sites[n].text);
  free(launch->sites);
  free(launch->buffers);
  free(launch->matrix);
  *launch = (launch_counts){0};
}

void counts_finish(counts *c) {
  for (size_t n = 0; n < c->count; n++)
    launch_counts_finish(&c->launches[n]);
  free(c->launches);
  *c = (counts){0};
}

uint64_t launch_counts_total(const launch_counts *launch) {
  uint64_t sum = 0;
  for (int n = 0; n < COUNT_CLASS_COUNT; n++)
    sum += launch->instructions[n];
  return sum;
}
