/* Packs, the size cap, and what the cache says of what goes wrong with them. */
#include "../../runtime/cache/cache_explain.h"
#include "../../runtime/cache/pack_file.h"
#include "cache_fixture.h"
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(cache_layers, .init = make_folder, .fini = remove_folder);

#define KEY(name, compiler)                                                                                  \
  "code object: 1\ncontract: " name "\nsource: s-" name "\ncompiler: " compiler "\noptions: -O3\n"
#define SOURCE(name) "code object: 1\ncontract: " name "\nsource: s-" name "\n"

static text entry_file(const char *key_text, const sample *s) {
  text file;
  text_init(&file);
  cache_file_write(key_text, &s->descriptor, s->code, s->size, &file);
  cr_assert(!file.failed);
  return file;
}

/* Writes a pack of these keys, in this order, below the test's folder; returns its bytes. */
static text write_pack(const char *name, const char *const *keys, size_t count, const sample *s) {
  text files[8], pack;
  pack_item items[8];
  diags errors;
  char path[256];
  diags_init(&errors);
  text_init(&pack);
  for (size_t i = 0; i < count; i++) {
    files[i] = entry_file(keys[i], s);
    items[i] = (pack_item){files[i].data, files[i].length};
  }
  cr_assert(pack_write(items, count, &pack, &errors) == HD_OK);
  for (size_t i = 0; i < count; i++)
    text_finish(&files[i]);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  write_file(path, pack.data, pack.length);
  diags_finish(&errors);
  return pack;
}

/* A cache without a folder and this pack. */
static cache *open_pack(const char *name, hd_status expected, char problem[256]) {
  cache *c = NULL;
  diags errors;
  char path[256];
  diags_init(&errors);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  cr_assert(cache_open("", &c, &errors) == HD_OK && errors.count == 0);
  hd_status status = cache_add_pack(c, path, &errors);
  cr_expect(status == expected, "status %d", status);
  if (problem != NULL) snprintf(problem, 256, "%s", errors.count > 0 ? errors.items[0].message : "");
  diags_finish(&errors);
  return c;
}

static const char *const three[] = {KEY("a", "x 1"), KEY("b", "x 1"), KEY("b", "y 2")};

Test(cache_layers, a_pack_is_found_in_without_being_written_to) {
  sample s = make_sample("gfx950");
  cache_entry found;
  text pack = write_pack("p", three, 3, &s);
  cache *c = open_pack("p", HD_OK, NULL);
  cr_expect(cache_find(c, three[0], &found) == HD_OK && found.code_object_size == s.size &&
            memcmp(found.code_object, s.code, s.size) == 0);
  cr_expect_str_eq(found.key_text, three[0]);
  cr_expect(cache_find(c, three[0], &found) == HD_OK &&
            cache_find(c, KEY("c", "x 1"), &found) == HD_DECLINED);
  cr_expect(counts_of(c).pack_hits == 1 && counts_of(c).memory_hits == 1 && counts_of(c).misses == 1);
  cache_close(c);
  text_finish(&pack);
}

Test(cache_layers, a_pack_lies_in_front_of_the_folder_and_the_environment_names_several) {
  sample s = make_sample("gfx950");
  char list[512];
  cache_entry found;
  text a = write_pack("a", &three[0], 1, &s), b = write_pack("b", &three[1], 1, &s);
  snprintf(list, sizeof list, "%s/a::%s/none:%s/b", folder, folder, folder);
  setenv("HEDDLE_PACKS", list, 1);
  cache *c = NULL;
  diags errors;
  diags_init(&errors);
  cr_assert(cache_open(folder, &c, &errors) == HD_OK);
  cr_expect(errors.count == 1 && strstr(errors.items[0].message, "none can't be opened") != NULL,
            "what can't be used is said once, and the rest is used");
  cr_expect(cache_find(c, three[0], &found) == HD_OK && cache_find(c, three[1], &found) == HD_OK);
  store(c, three[2], &s);
  cr_expect(counts_of(c).pack_hits == 2 && counts_of(c).disk_hits == 0);
  text places;
  text_init(&places);
  cache_write_places(c, &places);
  cr_expect(strstr(text_string(&places), "/a, pack ") && strstr(text_string(&places), "folder "), "%s",
            text_string(&places));
  text_finish(&places);
  cache_close(c);
  diags_finish(&errors);
  text_finish(&a);
  text_finish(&b);
}

Test(cache_layers, the_same_entries_give_the_same_bytes_in_whatever_order_they_come) {
  sample s = make_sample("gfx950");
  const char *const mixed[] = {three[2], three[0], three[1], three[0]};
  text a = write_pack("a", three, 3, &s), b = write_pack("b", mixed, 4, &s);
  cr_expect(a.length == b.length && memcmp(a.data, b.data, a.length) == 0);
  text_finish(&a);
  text_finish(&b);
}

Test(cache_layers, a_flipped_bit_in_a_packs_head_refuses_it_and_one_in_an_entry_costs_that_entry,
     .timeout = 60) {
  sample s = make_sample("gfx950");
  text pack = write_pack("p", three, 3, &s);
  char path[256], problem[256];
  size_t head = PACK_HEADER + 3 * PACK_ROW, entry = (pack.length - head) / 3;
  snprintf(path, sizeof path, "%s/p", folder);
  for (size_t at = 0; at < pack.length; at += at < head ? 1 : 211) {
    cache_entry found;
    lines log = {0};
    pack.data[at] ^= (char)(1u << at % 8);
    write_file(path, pack.data, pack.length);
    pack.data[at] ^= (char)(1u << at % 8);
    cache *c = open_pack("p", at < head ? HD_INVALID : HD_OK, problem);
    cache_set_log(c, take_line, &log);
    int good = 0;
    for (int k = 0; k < 3; k++)
      good += cache_find(c, three[k], &found) == HD_OK;
    cr_expect(good == (at < head ? 0 : 2), "byte %zu: %d are found", at, good);
    cr_expect(log.count == (at < head ? 0 : 1) && (at >= head || problem[0] != '\0'), "byte %zu: %d lines",
              at, log.count);
    cache_close(c);
  }
  cr_expect(entry > 1000, "entries were looked into");
  text_finish(&pack);
}

Test(cache_layers, a_cut_or_lengthened_pack_is_refused) {
  sample s = make_sample("gfx950");
  text pack = write_pack("p", three, 3, &s);
  char path[256], problem[256];
  snprintf(path, sizeof path, "%s/p", folder);
  text_add(&pack, "more");
  const size_t lengths[] = {
      0, 7, PACK_HEADER - 1, PACK_HEADER, PACK_HEADER + PACK_ROW, pack.length - 5, pack.length};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    write_file(path, pack.data, lengths[i]);
    cache_close(open_pack("p", HD_INVALID, problem));
    cr_expect(problem[0] != '\0', "%zu bytes", lengths[i]);
  }
  text_finish(&pack);
}

Test(cache_layers, a_pack_that_is_cut_while_it_is_open_is_a_miss) {
  sample s = make_sample("gfx950");
  text pack = write_pack("p", three, 3, &s);
  char path[256];
  cache_entry found;
  lines log = {0};
  snprintf(path, sizeof path, "%s/p", folder);
  cache *c = open_pack("p", HD_OK, NULL);
  cache_set_log(c, take_line, &log);
  cr_assert(truncate(path, PACK_HEADER + 3 * PACK_ROW + 10) == 0);
  cr_expect(cache_find(c, three[0], &found) == HD_DECLINED && log.count == 1, "%s", log.last);
  cache_close(c);
  text_finish(&pack);
}

Test(cache_layers, a_pack_that_others_could_have_written_is_refused) {
  sample s = make_sample("gfx950");
  text pack = write_pack("p", three, 3, &s);
  char path[256], problem[256];
  snprintf(path, sizeof path, "%s/p", folder);
  cr_assert(chmod(path, 0664) == 0);
  cache_close(open_pack("p", HD_INVALID, problem));
  cr_expect(strstr(problem, "written by others") != NULL, "%s", problem);
  cr_assert(chmod(path, 0444) == 0);
  cache_close(open_pack("p", HD_OK, NULL));
  if (geteuid() == 0) {
    cr_assert(chown(path, 65534, 65534) == 0);
    cache_close(open_pack("p", HD_INVALID, problem));
    cr_expect(strstr(problem, "belongs to user") != NULL, "%s", problem);
  }
  cr_assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
  cache_close(open_pack("p", HD_INVALID, problem));
  cr_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
  cache_close(open_pack("p", HD_INVALID, problem));
  text_finish(&pack);
}

Test(cache_layers, a_source_is_found_whatever_compiled_it) {
  sample s = make_sample("gfx950");
  cache_entry found;
  text pack = write_pack("p", &three[2], 1, &s);
  cache *c = open_pack("p", HD_OK, NULL);
  cr_expect(cache_find(c, three[1], &found) == HD_DECLINED, "by its key it is another one");
  cr_assert(cache_find_source(c, SOURCE("b"), &found) == HD_OK);
  cr_expect_str_eq(found.key_text, three[2]);
  cr_expect(cache_find_source(c, SOURCE("b"), &found) == HD_OK && counts_of(c).memory_hits == 1);
  cr_expect(cache_find_source(c, SOURCE("a"), &found) == HD_DECLINED);
  cache_close(c);
  text_finish(&pack);
  c = open_cache();
  store(c, three[0], &s);
  cache_close(c);
  c = open_cache();
  cr_expect(cache_find_source(c, SOURCE("a"), &found) == HD_OK && counts_of(c).disk_hits == 1);
  cr_expect(cache_find_source(c, SOURCE("b"), &found) == HD_DECLINED);
  cache_close(c);
}

Test(cache_layers, entries_are_imported_only_when_they_are_good) {
  sample s = make_sample("gfx950");
  cache_entry found;
  diags errors;
  char key[65];
  diags_init(&errors);
  text file = entry_file("key", &s);
  sha256_hex("key", 3, key);
  cache *c = open_cache();
  file.data[file.length - 9] ^= 1;
  cr_expect(cache_import(c, key, file.data, file.length, &errors) == HD_INVALID && errors.count == 1);
  cr_expect(cache_find(c, "key", &found) == HD_DECLINED);
  file.data[file.length - 9] ^= 1;
  cr_expect(cache_import(c, key, file.data, file.length, &errors) == HD_OK);
  cr_expect(cache_find(c, "key", &found) == HD_OK && counts_of(c).disk_hits == 1);
  cache_close(c);
  text_finish(&file);
  diags_finish(&errors);
}

/* ---- The size cap ---- */

static void set_stamp(const char *key_text, time_t seconds_ago) {
  char path[256];
  const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds_ago}};
  entry_path(key_text, path);
  cr_assert(utimensat(AT_FDCWD, path, t, 0) == 0, "%s", key_text);
}

static bool is_there(const char *key_text) {
  char path[256];
  entry_path(key_text, path);
  return access(path, F_OK) == 0;
}

static size_t entry_size(const char *key_text) {
  struct stat facts;
  char path[256];
  entry_path(key_text, path);
  cr_assert(stat(path, &facts) == 0);
  return (size_t)facts.st_size;
}

Test(cache_layers, what_was_of_use_longest_ago_goes_first) {
  sample s = make_sample("gfx950");
  cache_entry found;
  diags errors;
  cache_pruned done;
  diags_init(&errors);
  cache *c = open_cache();
  static const char *const keys[] = {"1", "2", "3", "4"};
  for (int i = 0; i < 4; i++) {
    store(c, keys[i], &s);
    set_stamp(keys[i], 40000 - 1000 * i);
  }
  size_t one = entry_size("1");
  cache_close(c);
  c = open_cache();
  cr_expect(cache_find(c, "1", &found) == HD_OK, "use renews the stamp");
  cr_assert(cache_prune(c, 4 * one, &done, &errors) == HD_OK && done.removed == 0 && done.left == 4 * one);
  cr_assert(cache_prune(c, 2 * one + 1, &done, &errors) == HD_OK);
  cr_expect(done.removed == 2 && done.bytes == 2 * one && done.left == 2 * one);
  cr_expect(is_there("1") && !is_there("2") && !is_there("3") && is_there("4"));
  cr_expect(cache_prune(c, 0, &done, &errors) == HD_OK && done.left == 0 && !is_there("1"));
  cr_expect(cache_find(c, "1", &found) == HD_OK && memcmp(found.code_object, s.code, s.size) == 0,
            "what was handed out is still there");
  cache_close(c);
  cr_expect(errors.count == 0);
}

Test(cache_layers, a_cap_is_kept_by_whoever_stores) {
  sample s = make_sample("gfx950");
  char cap[32], key[16];
  cache *c = open_cache();
  store(c, "key 0", &s);
  size_t one = entry_size("key 0");
  set_stamp("key 0", 5000);
  cache_close(c);
  snprintf(cap, sizeof cap, "%zu", 8 * one + one / 2);
  setenv("HEDDLE_CACHE_MAX_BYTES", cap, 1);
  c = open_cache();
  for (int i = 1; i < 30; i++) {
    snprintf(key, sizeof key, "key %d", i);
    store(c, key, &s);
    set_stamp(key, 5000 - i);
    int there = 0;
    for (int k = 0; k <= i; k++) {
      snprintf(key, sizeof key, "key %d", k);
      there += is_there(key);
    }
    cr_expect(there <= 8, "%d entries after %d", there, i);
  }
  cr_expect(is_there("key 29") && is_there("key 27") && !is_there("key 0") && !is_there("key 10"));
  cr_expect(counts_of(c).pruned >= 22 && counts_of(c).stores == 29);
  cache_close(c);
  setenv("HEDDLE_CACHE_MAX_BYTES", "many", 1);
  diags errors;
  diags_init(&errors);
  cr_assert(cache_open(folder, &c, &errors) == HD_OK);
  cr_expect(errors.count == 1 && cache_most_bytes(c) == 1u << 30, "a word is the default, and is said");
  cache_close(c);
  diags_finish(&errors);
}

Test(cache_layers, files_that_killed_writers_left_go_when_they_are_old) {
  sample s = make_sample("gfx950");
  char path[256], young[300], old[300];
  cache_pruned done;
  diags errors;
  diags_init(&errors);
  cache *c = open_cache();
  store(c, "key", &s);
  entry_path("key", path);
  *strrchr(path, '/') = '\0';
  snprintf(young, sizeof young, "%s/.new-1", path);
  snprintf(old, sizeof old, "%s/.new-2", path);
  write_file(young, "x", 1);
  write_file(old, "x", 1);
  const struct timespec t[2] = {{.tv_sec = time(NULL) - 4000}, {.tv_sec = time(NULL) - 4000}};
  cr_assert(utimensat(AT_FDCWD, old, t, 0) == 0);
  cr_expect(cache_prune(c, UINT64_MAX, &done, &errors) == HD_OK && done.removed == 0);
  cr_expect(access(young, F_OK) == 0 && access(old, F_OK) != 0 && is_there("key"));
  cache_close(c);
}

Test(cache_layers, bad_files_are_kept_for_a_month) {
  char young[256], old[256];
  cache_pruned done;
  diags errors;
  diags_init(&errors);
  cache *c = open_cache();
  snprintf(young, sizeof young, "%s/quarantine/young", folder);
  snprintf(old, sizeof old, "%s/quarantine/old", folder);
  write_file(young, "x", 1);
  write_file(old, "x", 1);
  const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 31 * 86400}};
  cr_assert(utimensat(AT_FDCWD, old, t, 0) == 0);
  cr_expect(cache_prune(c, UINT64_MAX, &done, &errors) == HD_OK && done.removed == 0);
  cr_expect(access(young, F_OK) == 0 && access(old, F_OK) != 0);
  cache_close(c);
}

/* Readers and writers of a cache that others prune to nothing all the time get right answers. */
Test(cache_layers, others_read_and_write_while_it_is_pruned, .timeout = 60) {
  sample s = make_sample("gfx950");
  pid_t children[4];
  cache_close(open_cache());
  for (int p = 0; p < 4; p++) {
    children[p] = fork();
    if (children[p] != 0) continue;
    int wrong = 0;
    for (int i = 0; i < 150; i++) {
      char key[16];
      cache_entry found;
      cache_pruned done;
      diags errors;
      diags_init(&errors);
      cache *c = open_cache();
      snprintf(key, sizeof key, "key %d", i % 5);
      if (p == 0) {
        wrong += cache_prune(c, (uint64_t)(i % 3) * s.size, &done, &errors) != HD_OK;
      } else if (cache_find(c, key, &found) == HD_OK) {
        wrong += strcmp(found.key_text, key) != 0 || memcmp(found.code_object, s.code, s.size) != 0;
      } else {
        store(c, key, &s);
      }
      wrong += counts_of(c).quarantined != 0 || counts_of(c).store_failures != 0;
      cache_close(c);
      diags_finish(&errors);
    }
    _exit(wrong > 100 ? 100 : wrong);
  }
  for (int p = 0; p < 4; p++) {
    int status;
    waitpid(children[p], &status, 0);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: %d wrong", p, WEXITSTATUS(status));
  }
}

typedef struct reader {
  cache *cache;
  const sample *sample;
  int wrong;
} reader;

static void *read_all(void *user) {
  reader *r = user;
  for (int i = 0; i < 60; i++) {
    cache_entry found;
    const char *key = three[i % 3];
    if (cache_find(r->cache, key, &found) != HD_OK || strcmp(found.key_text, key) != 0 ||
        memcmp(found.code_object, r->sample->code, r->sample->size) != 0)
      r->wrong++;
    char own[32];
    snprintf(own, sizeof own, "key %d", i);
    if (cache_find(r->cache, own, &found) != HD_OK) store(r->cache, own, r->sample);
    r->wrong += cache_find_source(r->cache, SOURCE("b"), &found) != HD_OK;
  }
  return NULL;
}

Test(cache_layers, threads_share_packs_and_a_folder_with_a_cap, .timeout = 60) {
  sample s = make_sample("gfx950");
  text pack = write_pack("p", three, 3, &s);
  char path[256], cap[32];
  pthread_t threads[4];
  reader readers[4];
  diags errors;
  diags_init(&errors);
  snprintf(path, sizeof path, "%s/p", folder);
  snprintf(cap, sizeof cap, "%zu", 10 * s.size);
  setenv("HEDDLE_CACHE_MAX_BYTES", cap, 1);
  cache *c = open_cache();
  cr_assert(cache_add_pack(c, path, &errors) == HD_OK);
  for (int i = 0; i < 4; i++) {
    readers[i] = (reader){c, &s, 0};
    cr_assert(pthread_create(&threads[i], NULL, read_all, &readers[i]) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    cr_expect(readers[i].wrong == 0);
  }
  cr_expect(counts_of(c).pack_hits >= 3 && counts_of(c).pruned > 0 && counts_of(c).store_failures == 0);
  cache_close(c);
  text_finish(&pack);
}

/* ---- Explaining ---- */

Test(cache_layers, the_nearest_entry_and_where_it_differs) {
  sample s = make_sample("gfx950");
  cache_neighbour near;
  key_difference differences[CACHE_MOST_FIELDS];
  diags errors;
  diags_init(&errors);
  cache *c = open_cache();
  cr_assert(cache_nearest(c, KEY("b", "z 3"), &near, &errors) == HD_OK && near.key_text == NULL);
  store(c, three[0], &s);
  store(c, three[2], &s);
  cr_assert(cache_nearest(c, KEY("b", "z 3"), &near, &errors) == HD_OK);
  cr_expect_str_eq(near.key_text, three[2]);
  cr_expect_str_eq(near.place, folder);
  cr_assert(key_text_compare(KEY("b", "z 3"), near.key_text, differences) == 1);
  cr_expect_str_eq(differences[0].field, "compiler");
  cr_expect(strncmp(differences[0].wanted, "z 3\n", 4) == 0 && differences[0].wanted_length == 3);
  cr_expect(strncmp(differences[0].found, "y 2\n", 4) == 0 && differences[0].found_length == 3);
  cache_neighbour_finish(&near);
  cr_assert(cache_nearest(c, three[0], &near, &errors) == HD_OK);
  cr_expect(key_text_compare(three[0], near.key_text, differences) == 0);
  cache_neighbour_finish(&near);
  cache_close(c);
  cr_expect(key_text_compare("a: 1\nb: 2\n", "b: 2\n", differences) == 1 && differences[0].found == NULL);
}
