/* What the tests of the cache share: a folder of its own for each test, and entries over the sample kernels.
 */
#ifndef HEDDLE_TESTS_CACHE_FIXTURE_H
#define HEDDLE_TESTS_CACHE_FIXTURE_H

#include "../../generator/sha256.h"
#include "../../runtime/cache/cache.h"
#include "../../runtime/cache/cache_file.h"
#include "../samples.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64]; /* a fresh one for each test */

static inline void make_folder(void) {
  strcpy(folder, "/tmp/heddle-test-cache-XXXXXX");
  cr_assert(mkdtemp(folder) != NULL);
}

static inline void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  cr_expect(system(command) == 0);
}

/* An entry over the sample kernels. */
typedef struct sample {
  descriptor descriptor;
  unsigned char code[16384];
  size_t size;
} sample;

static inline sample make_sample(const char *target_name) {
  sample s = {
      .descriptor = {.operation = "decode", .variant = "w4", .contract_key = "c0ffee", .kernel_count = 2}};
  const extent one = {.multiplier = 1, .divisor = 1};
  unsigned char *code = sample_read(target_name, &s.size);
  cr_assert(s.size <= sizeof s.code);
  memcpy(s.code, code, s.size);
  free(code);
  strcpy(s.descriptor.target, target_name);
  s.descriptor.workspace = one;
  s.descriptor.tile_tokens = 16;
  kernel_descriptor *rotate = &s.descriptor.kernels[0], *scale = &s.descriptor.kernels[1];
  *rotate = (kernel_descriptor){
      .symbol = "sample_rotate", .grid = {one, one, one}, .block = 64, .argument_count = 3};
  *scale = (kernel_descriptor){
      .symbol = "sample_scale", .grid = {one, one, one}, .block = 64, .argument_count = 4};
  rotate->arguments[0] = scale->arguments[0] = (argument){ARGUMENT_TENSOR, TENSOR_OUT};
  rotate->arguments[1] = (argument){ARGUMENT_TENSOR, TENSOR_Q};
  scale->arguments[1] = (argument){ARGUMENT_DIM, DIM_K_STRIDE_B};
  rotate->arguments[2] = scale->arguments[2] = (argument){ARGUMENT_DIM, DIM_TOKENS};
  scale->arguments[3] = (argument){.kind = ARGUMENT_NUMBER, .index = NUMBER_LOGITS_SCALE};
  return s;
}

static inline cache *open_cache(void) {
  cache *c = NULL;
  diags errors;
  diags_init(&errors);
  cr_assert(cache_open(folder, &c, &errors) == HD_OK);
  diags_finish(&errors);
  return c;
}

static inline void store(cache *c, const char *key_text, const sample *s) {
  cache_entry entry = {key_text, &s->descriptor, s->code, s->size}, stored;
  cr_assert(cache_store(c, &entry, &stored) == HD_OK);
  cr_assert(stored.code_object_size == s->size && stored.code_object != s->code);
}

static inline cache_counts counts_of(cache *c) {
  cache_counts n;
  cache_counts_get(c, &n);
  return n;
}

static inline void entry_path(const char *key_text, char out_path[256]) {
  char key[65];
  sha256_hex(key_text, strlen(key_text), key);
  snprintf(out_path, 256, "%s/objects/%.2s/%s", folder, key, key);
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  cr_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  close(fd);
}

static inline unsigned char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  cr_assert(file != NULL, "%s", path);
  unsigned char *bytes = malloc(1 << 20);
  *out_size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

/* What a new process would find of the key. */
static inline hd_status find_fresh(const char *key_text, cache_counts *out_counts) {
  cache *c = open_cache();
  cache_entry found;
  hd_status status = cache_find(c, key_text, &found);
  *out_counts = counts_of(c);
  cache_close(c);
  return status;
}

static inline int count_files(const char *below) {
  char path[256];
  int count = 0;
  snprintf(path, sizeof path, "%s/%s", folder, below);
  DIR *d = opendir(path);
  if (d == NULL) return 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    count += e->d_name[0] != '.' || strncmp(e->d_name, ".new-", 5) == 0;
  closedir(d);
  return count;
}

/* Collects the lines of a cache's log. */
typedef struct lines {
  int count;
  char last[512];
} lines;

static inline void take_line(void *user, const char *line) {
  lines *l = user;
  l->count++;
  snprintf(l->last, sizeof l->last, "%s", line);
}

/* A child that takes locks and keeps them; returns once it holds them. */
static inline pid_t fork_holder_of(void (*take)(cache *c, const void *user), const void *user) {
  int ready[2];
  char byte;
  cr_assert(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    take(open_cache(), user);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;)
      pause();
  }
  close(ready[1]);
  cr_assert(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  return child;
}

static inline void lock_key(cache *c, const void *key_text) {
  cache_lock *lock = NULL;
  if (cache_lock_key(c, key_text, 5, &lock) != HD_OK || lock == NULL) _exit(1);
}

static inline pid_t fork_holder(void) {
  return fork_holder_of(lock_key, "key");
}

#endif
