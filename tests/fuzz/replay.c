/* Runs kept inputs through the fuzz targets with any compiler: replay [--mutate N] [--only TARGET] FOLDER…
 *
 * FOLDER has a folder for each target. Each file in it is run, then N changes of it that are the same in
 * every run. An input that brings a target down is left in the working folder as crash-TARGET. */
#include "fuzz.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct input {
  uint8_t *bytes;
  size_t size;
} input;

typedef struct inputs {
  input *items;
  size_t count;
} inputs;

enum { MOST_BYTES = 1 << 20, SECONDS = 20 /* that one input may take */ };

static const struct {
  const char *name;
  int (*run)(const uint8_t *bytes, size_t size);
} targets[] = {
#define X(name) {#name, fuzz_##name},
    FUZZ_LIST(X)
#undef X
};

/* ---- What runs now, for the handler ---- */

static const char *volatile now_target;
static const uint8_t *volatile now_bytes;
static volatile size_t now_size;

/* Only calls that a handler may make. */
static void on_signal(int number) {
  char path[64] = "crash-";
  size_t length = strlen(path), room = sizeof path - length - 1;
  for (size_t i = 0; i < room && now_target[i] != '\0'; i++)
    path[length + i] = now_target[i];
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ssize_t written = write(fd, now_bytes, now_size);
  close(fd);
  written += write(STDERR_FILENO, "FAIL: input kept as ", 20);
  written += write(STDERR_FILENO, path, strlen(path));
  written += write(STDERR_FILENO, "\n", 1);
  signal(number, SIG_DFL);
  raise(written >= 0 ? number : SIGABRT);
}

static void run(size_t target, const uint8_t *bytes, size_t size) {
  now_target = targets[target].name;
  now_bytes = bytes;
  now_size = size;
  alarm(SECONDS);
  if (targets[target].run(bytes, size) != 0) abort();
}

/* ---- Inputs ---- */

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_file(inputs *all, const char *path) {
  input *grown = realloc(all->items, (all->count + 1) * sizeof *grown);
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = malloc(MOST_BYTES);
  if (grown == NULL || file == NULL || bytes == NULL) {
    fprintf(stderr, "%s can't be read\n", path);
    exit(1);
  }
  all->items = grown;
  input *i = &all->items[all->count++];
  i->size = fread(bytes, 1, MOST_BYTES, file);
  fclose(file);
  /* of just its size, so that a sanitizer sees reads beyond it */
  i->bytes = malloc(i->size > 0 ? i->size : 1);
  if (i->bytes == NULL) exit(1);
  memcpy(i->bytes, bytes, i->size);
  free(bytes);
}

static void add_folder(inputs *all, const char *folder, const char *target) {
  char path[4096];
  struct dirent **names;
  snprintf(path, sizeof path, "%s/%s", folder, target);
  int count = scandir(path, &names, NULL, by_name);
  for (int i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%s/%s/%s", folder, target, names[i]->d_name);
    if (names[i]->d_name[0] != '.') add_file(all, path);
    free(names[i]);
  }
  if (count >= 0) free(names);
}

/* ---- Changes ---- */

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* One change in place or in length; `room` bytes are there. */
static size_t change(uint8_t *bytes, size_t size, size_t room, const inputs *all, uint64_t *state) {
  static const uint64_t numbers[] = {
      0,      1,          0x7f,       0x80,       0xff,       0x7fff,          0x8000,
      0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40, UINT64_MAX >> 1, UINT64_MAX};
  uint64_t r = next_random(state);
  size_t at = size > 0 ? r >> 8 & 0xffffff : 0, length = 1 + (r >> 40 & (r >> 48 & 1 ? 7 : 63));
  at = size > 0 ? at % size : 0;
  if (length > size - at) length = size - at;
  switch (r % 6) {
  case 0:
    if (size > 0) bytes[at] ^= (uint8_t)(1u << (r >> 60 & 7));
    return size;
  case 1:
    if (size > 0) bytes[at] = (uint8_t)(r >> 52);
    return size;
  case 2: { /* a number that tends to be a limit, of 1, 2, 4 or 8 bytes */
    size_t width = (size_t)1 << (r >> 60 & 3);
    if (width <= size - at)
      memcpy(bytes + at, &numbers[r >> 50 & 1023 % (sizeof numbers / sizeof *numbers)], width);
    return size;
  }
  case 3: /* something taken out */
    memmove(bytes + at, bytes + at + length, size - at - length);
    return size - length;
  case 4: /* something twice */
    if (length > room - size) return size;
    memmove(bytes + at + length, bytes + at, size - at);
    return size + length;
  default: { /* a piece of another input */
    const input *other = &all->items[(r >> 44) % all->count];
    size_t from = other->size > 0 ? (r >> 20) % other->size : 0;
    if (length > other->size - from) length = other->size - from;
    if (length > 0) memcpy(bytes + at, other->bytes + from, length);
    return size;
  }
  }
}

static void run_changes(size_t target, const inputs *all, const input *from, unsigned long count) {
  uint64_t state = 0x9e3779b97f4a7c15u ^ fuzz_hash(from->bytes, from->size);
  uint8_t *scratch = malloc(from->size + 1024);
  if (scratch == NULL) exit(1);
  for (unsigned long n = 0; n < count; n++) {
    size_t size = from->size;
    memcpy(scratch, from->bytes, size);
    for (uint64_t changes = 1 + next_random(&state) % 4; changes > 0; changes--)
      size = change(scratch, size, from->size + 1024, all, &state);
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) exit(1);
    memcpy(exact, scratch, size);
    run(target, exact, size);
    free(exact);
  }
  free(scratch);
}

static size_t run_target(size_t target, char *const *folders, unsigned long mutate) {
  inputs all = {0};
  for (; *folders != NULL; folders++)
    add_folder(&all, *folders, targets[target].name);
  for (size_t i = 0; i < all.count; i++)
    run(target, all.items[i].bytes, all.items[i].size);
  for (size_t i = 0; i < all.count; i++)
    run_changes(target, &all, &all.items[i], mutate);
  alarm(0);
  printf("%-12s %4zu inputs, %8lu changes of them\n", targets[target].name, all.count, all.count * mutate);
  fflush(stdout);
  for (size_t i = 0; i < all.count; i++)
    free(all.items[i].bytes);
  free(all.items);
  return all.count;
}

int main(int argc, char **argv) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
  const char *only = NULL;
  unsigned long mutate = 0;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (strcmp(argv[at], "--mutate") == 0) mutate = strtoul(argv[at + 1], NULL, 10);
    if (strcmp(argv[at], "--only") == 0) only = argv[at + 1];
  }
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    signal(signals[i], on_signal);
  size_t without = 0, ran = 0;
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
    if (only != NULL && strcmp(only, targets[t].name) != 0) continue;
    without += run_target(t, argv + at, mutate) == 0;
    ran++;
  }
  printf("cases: %zu passed, %zu failed\n", ran - without, without);
  return without > 0 || ran == 0;
}
