#include "cache_fixture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(cache, .init = make_folder, .fini = remove_folder);

Test(cache, an_entry_is_found_again_in_this_process_and_in_the_next) {
  sample s = make_sample("gfx950");
  cache *c = open_cache();
  cache_entry found;
  cr_expect_str_eq(cache_directory(c), folder);
  cr_expect_str_eq(cache_warning(c), "");
  cr_expect(cache_find(c, "key a", &found) == HD_DECLINED);
  store(c, "key a", &s);
  cr_assert(cache_find(c, "key a", &found) == HD_OK);
  cr_expect(cache_find(c, "key b", &found) == HD_DECLINED);
  cache_counts n = counts_of(c);
  cr_expect(n.memory_hits == 1 && n.disk_hits == 0 && n.misses == 2 && n.stores == 1 &&
            n.store_failures == 0);
  cache_close(c);

  c = open_cache();
  for (int i = 0; i < 2; i++) {
    cr_assert(cache_find(c, "key a", &found) == HD_OK);
    cr_expect_str_eq(found.key_text, "key a");
    cr_expect(found.code_object_size == s.size && memcmp(found.code_object, s.code, s.size) == 0);
    text expected, actual;
    text_init(&expected);
    text_init(&actual);
    descriptor_write(&s.descriptor, &expected);
    descriptor_write(found.descriptor, &actual);
    cr_expect_str_eq(text_string(&actual), text_string(&expected));
    text_finish(&expected);
    text_finish(&actual);
  }
  n = counts_of(c);
  cr_expect(n.disk_hits == 1 && n.memory_hits == 1 && n.misses == 0 && n.quarantined == 0);
  cache_close(c);
}

Test(cache, files_and_folders_belong_to_the_caller_alone) {
  sample s = make_sample("gfx950");
  struct stat facts;
  char path[256];
  umask(0);
  cache *c = open_cache();
  store(c, "key", &s);
  cache_close(c);
  entry_path("key", path);
  cr_expect(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0600);
  *strrchr(path, '/') = '\0';
  cr_expect(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0700);
  *strrchr(path, '/') = '\0';
  cr_expect(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0700);
}

Test(cache, a_flipped_bit_anywhere_is_a_miss_and_quarantined, .timeout = 120) {
  sample s = make_sample("gfx950");
  cache *c = open_cache();
  char path[256];
  size_t size;
  store(c, "some key text", &s);
  cache_close(c);
  entry_path("some key text", path);
  unsigned char *bytes = read_file(path, &size);
  cr_assert(size > CACHE_FILE_HEADER + s.size);
  /* Every byte of header, key text and descriptor, and a sample of the code object's. */
  for (size_t at = 0; at < size; at += at < size - s.size ? 1 : 13) {
    cache_counts n;
    bytes[at] ^= (unsigned char)(1u << at % 8);
    write_file(path, bytes, size);
    bytes[at] ^= (unsigned char)(1u << at % 8);
    cr_expect(find_fresh("some key text", &n) == HD_DECLINED && n.misses == 1 && n.quarantined == 1,
              "byte %zu", at);
    cr_expect(access(path, F_OK) != 0, "byte %zu: the bad file is out of the way", at);
  }
  cr_expect(count_files("quarantine") == 1, "one bad file a key is kept");
  cache_counts n;
  write_file(path, bytes, size);
  cr_expect(find_fresh("some key text", &n) == HD_OK && n.quarantined == 0, "the undamaged file is good");
  free(bytes);
}

Test(cache, a_cut_or_lengthened_file_is_a_miss) {
  sample s = make_sample("gfx950");
  cache *c = open_cache();
  char path[256];
  size_t size;
  store(c, "key", &s);
  cache_close(c);
  entry_path("key", path);
  unsigned char *bytes = read_file(path, &size);
  bytes[size] = 0;
  const size_t lengths[] = {0,
                            1,
                            8,
                            39,
                            CACHE_FILE_HEADER - 1,
                            CACHE_FILE_HEADER,
                            CACHE_FILE_HEADER + 3,
                            size - s.size,
                            size / 2,
                            size - 1,
                            size + 1};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    cache_counts n;
    write_file(path, bytes, lengths[i]);
    cr_expect(find_fresh("key", &n) == HD_DECLINED && n.quarantined == 1, "%zu of %zu bytes", lengths[i],
              size);
  }
  free(bytes);
}

/* Files that are whole and hash well, but hold what their descriptor does not say. */
Test(cache, a_code_object_that_belies_its_descriptor_is_a_miss) {
  cache_counts n;
  sample wrong[5];
  for (size_t i = 0; i < 5; i++)
    wrong[i] = make_sample(i == 0 ? "gfx942" : "gfx950");
  strcpy(wrong[0].descriptor.target, "gfx950");
  strcpy(wrong[1].descriptor.kernels[1].symbol, "sample_missing");
  wrong[2].descriptor.kernels[1].arguments[2].index = DIM_V_STRIDE_B; /* 8 bytes where the kernel takes 4 */
  strcpy(wrong[3].descriptor.target, "sm_90");
  wrong[4].size = 0;
  for (size_t i = 0; i < 5; i++) {
    cache *c = open_cache();
    store(c, "key", &wrong[i]);
    cache_close(c);
    cr_expect(find_fresh("key", &n) == HD_DECLINED && n.quarantined == 1, "case %zu", i);
  }
}

Test(cache, every_amd_target_passes_the_check_and_only_its_own) {
  static const char *const names[] = {EMULATED_TARGETS};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 4; k++) {
      diags errors;
      diags_init(&errors);
      sample s = make_sample(names[i]);
      strcpy(s.descriptor.target, names[k]);
      hd_status expected = i == k ? HD_OK : HD_INVALID;
      cr_expect(cache_check_code(&s.descriptor, s.code, s.size, &errors) == expected, "%s as %s", names[i],
                names[k]);
      diags_finish(&errors);
    }
  }
}

Test(cache, cuda_binaries_of_both_file_formats_are_checked) {
  static const char *const files[] = {"sample_sm90_cuda12.cubin", "sample_sm90_cuda13.cubin"};
  sample s = make_sample("gfx950");
  strcpy(s.descriptor.target, "sm_90");
  s.descriptor.kernels[0] = s.descriptor.kernels[1];
  s.descriptor.kernel_count = 1;
  for (int i = 0; i < 2; i++) {
    char path[512];
    size_t size;
    diags errors;
    diags_init(&errors);
    snprintf(path, sizeof path, "%s/tests/data/%s", getenv("HEDDLE_SOURCE"), files[i]);
    unsigned char *bytes = read_file(path, &size);
    cr_expect(cache_check_code(&s.descriptor, bytes, size, &errors) == HD_OK, "%s", files[i]);
    strcpy(s.descriptor.kernels[0].symbol, "sample_missing");
    cr_expect(cache_check_code(&s.descriptor, bytes, size, &errors) == HD_INVALID);
    strcpy(s.descriptor.kernels[0].symbol, "sample_scale");
    bytes[i == 0 ? 48 : 49] ^= 1; /* the SM number in e_flags */
    cr_expect(cache_check_code(&s.descriptor, bytes, size, &errors) == HD_INVALID);
    diags_finish(&errors);
    free(bytes);
  }
}

Test(cache, an_entry_under_another_keys_name_is_a_miss) {
  sample s = make_sample("gfx950");
  char from[256], to[256], parent[256];
  cache_counts n;
  cache *c = open_cache();
  store(c, "key a", &s);
  cache_close(c);
  entry_path("key a", from);
  entry_path("key b", to);
  strcpy(parent, to);
  *strrchr(parent, '/') = '\0';
  mkdir(parent, 0700);
  cr_assert(rename(from, to) == 0);
  cr_expect(find_fresh("key b", &n) == HD_DECLINED && n.quarantined == 1);
}

Test(cache, an_entry_that_others_could_have_written_is_not_used) {
  sample s = make_sample("gfx950");
  char path[256], elsewhere[256];
  cache_counts n;
  cache *c = open_cache();
  store(c, "key", &s);
  cache_close(c);
  entry_path("key", path);
  snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
  cr_assert(rename(path, elsewhere) == 0 && symlink(elsewhere, path) == 0);
  cr_expect(find_fresh("key", &n) == HD_DECLINED, "a symbolic link is not followed");
  cr_assert(link(elsewhere, path) == 0);
  cr_expect(find_fresh("key", &n) == HD_OK, "the file itself is good");
  cr_assert(chmod(path, 0620) == 0);
  cr_expect(find_fresh("key", &n) == HD_DECLINED, "its group can write it");
  unlink(path);
  cr_assert(mkfifo(path, 0600) == 0);
  cr_expect(find_fresh("key", &n) == HD_DECLINED, "a pipe neither hangs nor hits");
}

/* Opens the cache and uses it, expecting it to work from memory alone and to say why. */
static void expect_memory_only(const char *directory, const char *why) {
  sample s = make_sample("gfx950");
  cache *c = NULL;
  diags errors;
  cache_entry found;
  cache_lock *lock = NULL;
  diags_init(&errors);
  cr_assert(cache_open(directory, &c, &errors) == HD_OK);
  cr_expect_str_eq(cache_directory(c), "");
  cr_expect(strstr(cache_warning(c), why) != NULL, "\"%s\" in \"%s\"", why, cache_warning(c));
  cr_expect(errors.count == 1 && errors.items[0].severity == DIAG_WARNING);
  cr_expect(cache_lock_key(c, "key", 1, &lock) == HD_OK && lock == NULL);
  store(c, "key", &s);
  cr_expect(cache_find(c, "key", &found) == HD_OK);
  size_t removed = 7;
  cr_expect(cache_clear(c, &removed, &errors) == HD_OK && removed == 0);
  cache_close(c);
  diags_finish(&errors);
}

Test(cache, a_folder_that_others_can_write_is_not_used) {
  cr_assert(chmod(folder, 0770) == 0);
  expect_memory_only(folder, "written by others");
  cr_assert(chmod(folder, 0702) == 0);
  expect_memory_only(folder, "written by others");
  cr_expect(count_files("objects") == 0 && count_files(".") == 0, "nothing is put into it");
  cr_assert(chmod(folder, 0755) == 0);
  cache_close(open_cache());
  char below[256];
  snprintf(below, sizeof below, "%s/objects", folder);
  cr_assert(chmod(below, 0777) == 0);
  expect_memory_only(folder, "written by others");
}

Test(cache, a_folder_of_another_user_is_not_used) {
  if (geteuid() == 0) cr_assert(chown(folder, 65534, 65534) == 0);
  expect_memory_only(geteuid() == 0 ? folder : "/", "belongs to user");
}

Test(cache, without_a_folder_it_works_from_memory) {
  unsetenv("HEDDLE_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "relative/paths/are/ignored", 1);
  setenv("HOME", "", 1);
  expect_memory_only(NULL, "HOME");
  expect_memory_only("/proc/heddle/cache", "can't be made");
  expect_memory_only("/dev/null/cache", "can't be made");
}

Test(cache, the_environment_says_where) {
  char expected[256], value[256];
  cache *c = NULL;
  diags errors;
  diags_init(&errors);
  unsetenv("HEDDLE_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder, 1);
  cr_assert(cache_open(NULL, &c, &errors) == HD_OK);
  snprintf(expected, sizeof expected, "%s/.cache/heddle", folder);
  cr_expect_str_eq(cache_directory(c), expected);
  cache_close(c);
  snprintf(value, sizeof value, "%s/xdg", folder);
  setenv("XDG_CACHE_HOME", value, 1);
  cr_assert(cache_open(NULL, &c, &errors) == HD_OK);
  snprintf(expected, sizeof expected, "%s/xdg/heddle", folder);
  cr_expect_str_eq(cache_directory(c), expected);
  cache_close(c);
  snprintf(value, sizeof value, "%s/own", folder);
  setenv("HEDDLE_CACHE_DIR", value, 1);
  cr_assert(cache_open(NULL, &c, &errors) == HD_OK);
  cr_expect_str_eq(cache_directory(c), value);
  cache_close(c);
  cr_expect(errors.count == 0);
}

/* Not as root, whom no mode keeps out. */
static void become_nobody(void) {
  if (geteuid() == 0) cr_assert(chown(folder, 65534, 65534) == 0 && seteuid(65534) == 0);
}

Test(cache, a_read_only_folder_is_read_and_new_entries_stay_in_memory) {
  char path[256];
  cache_entry found;
  sample s = make_sample("gfx950");
  become_nobody();
  cache *c = open_cache();
  store(c, "old", &s);
  cache_close(c);
  snprintf(path, sizeof path, "%s/objects", folder);
  cr_assert(chmod(path, 0500) == 0);
  c = open_cache();
  cr_expect(strstr(cache_warning(c), "kept in memory") != NULL);
  cr_expect(cache_find(c, "old", &found) == HD_OK);
  store(c, "new", &s);
  cr_expect(cache_find(c, "new", &found) == HD_OK);
  cache_counts n = counts_of(c);
  cr_expect(n.disk_hits == 1 && n.memory_hits == 1 && n.stores == 0 && n.store_failures == 1);
  cache_close(c);
  chmod(path, 0700);
  cr_expect(seteuid(getuid()) == 0);
}

Test(cache, a_full_disk_costs_the_file_not_the_kernel) {
  sample s = make_sample("gfx950");
  const struct rlimit small = {1000,
                               RLIM_INFINITY}; /* bytes of any file: a write beyond fails as on a full disk */
  const struct rlimit large = {RLIM_INFINITY, RLIM_INFINITY};
  cache_entry found;
  char path[256];
  cache *c = open_cache();
  signal(SIGXFSZ, SIG_IGN);
  cr_assert(setrlimit(RLIMIT_FSIZE, &small) == 0);
  store(c, "key", &s);
  setrlimit(RLIMIT_FSIZE, &large);
  cr_expect(cache_find(c, "key", &found) == HD_OK);
  cr_expect(counts_of(c).store_failures == 1 && counts_of(c).stores == 0);
  cr_expect(strstr(cache_warning(c), "failed") != NULL);
  entry_path("key", path);
  cr_expect(access(path, F_OK) != 0);
  *strrchr(path, '/') = '\0';
  cr_expect(rmdir(path) == 0, "no unfinished file is left behind");
  cache_close(c);
}

Test(cache, a_reader_never_sees_half_a_file, .timeout = 120) {
  sample s[2] = {make_sample("gfx950"), make_sample("gfx950")};
  strcpy(s[1].descriptor.variant, "a longer variant name");
  cache *c = open_cache();
  store(c, "key", &s[0]);
  cache_close(c);
  pid_t writer = fork();
  if (writer == 0) {
    for (int i = 0; i < 400; i++) {
      cache *w = open_cache();
      store(w, "key", &s[i % 2]);
      cache_close(w);
    }
    _exit(0);
  }
  int seen[2] = {0, 0}, status = -1;
  for (int i = 0; i < 4000 && waitpid(writer, &status, WNOHANG) == 0; i++) {
    cache_entry found;
    c = open_cache();
    cr_expect(cache_find(c, "key", &found) == HD_OK, "read %d", i);
    seen[strcmp(found.descriptor->variant, "w4") != 0]++;
    cr_expect(counts_of(c).quarantined == 0);
    cache_close(c);
  }
  if (status == -1) waitpid(writer, &status, 0);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  cr_expect(seen[0] > 0 && seen[1] > 0, "both contents were seen: %d and %d times", seen[0], seen[1]);
}

Test(cache, eight_processes_store_at_once, .timeout = 120) {
  sample s = make_sample("gfx950");
  pid_t children[8];
  for (int p = 0; p < 8; p++) {
    children[p] = fork();
    if (children[p] != 0) continue;
    cache *c = open_cache();
    for (int i = 0; i < 12; i++) {
      char key[32];
      snprintf(key, sizeof key, "key %d", i % 2 == 0 ? i : 100 * p + i); /* half of them shared */
      store(c, key, &s);
    }
    int failures = (int)counts_of(c).store_failures;
    cache_close(c);
    _exit(failures);
  }
  for (int p = 0; p < 8; p++) {
    int status;
    waitpid(children[p], &status, 0);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  cache *c = open_cache();
  cache_entry found;
  for (int p = 0; p < 8; p++) {
    for (int i = 0; i < 12; i++) {
      char key[32];
      snprintf(key, sizeof key, "key %d", i % 2 == 0 ? i : 100 * p + i);
      cr_expect(cache_find(c, key, &found) == HD_OK, "%s", key);
    }
  }
  cr_expect(counts_of(c).quarantined == 0 && counts_of(c).disk_hits == 6 + 8 * 6);
  cache_close(c);
}

/* Every process does what build.c does; "compiling" adds a byte to a file. */
static void compile_once(const char *compiled, const sample *s) {
  cache *c = open_cache();
  cache_entry found;
  cache_lock *lock = NULL;
  if (cache_find(c, "key", &found) == HD_OK) _exit(0);
  hd_status status = cache_lock_key(c, "key", 30, &lock);
  if (status == HD_DECLINED) _exit(cache_find(c, "key", &found) == HD_OK ? 0 : 1);
  if (status != HD_OK || lock == NULL) _exit(2);
  int fd = open(compiled, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (write(fd, "x", 1) != 1) _exit(3);
  const struct timespec pause = {.tv_nsec = 50000000};
  nanosleep(&pause, NULL);
  store(c, "key", s);
  cache_unlock(lock);
  _exit(0);
}

Test(cache, one_process_compiles_a_key_and_the_others_wait_for_it, .timeout = 60) {
  sample s = make_sample("gfx950");
  char compiled[128];
  snprintf(compiled, sizeof compiled, "%s/compiled", folder);
  for (int p = 0; p < 8; p++) {
    if (fork() == 0) compile_once(compiled, &s);
  }
  for (int p = 0; p < 8; p++) {
    int status;
    wait(&status);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "exit %d", WEXITSTATUS(status));
  }
  size_t compiles;
  free(read_file(compiled, &compiles));
  cr_expect(compiles == 1, "%zu compiles", compiles);
  cr_expect(count_files("locks") == 0, "no lock file is left");
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Test(cache, the_wait_for_a_lock_is_bounded, .timeout = 30) {
  pid_t holder = fork_holder();
  cache *c = open_cache();
  cache_lock *lock = NULL;
  cr_expect(cache_lock_key(c, "key", 0, &lock) == HD_UNAVAILABLE, "without a wait: busy");
  double start = now();
  cr_expect(cache_lock_key(c, "key", 0.3, &lock) == HD_OK && lock == NULL,
            "after the wait: compile without a lock");
  cr_expect(now() - start >= 0.3 && now() - start < 5);
  cr_expect(cache_lock_key(c, "another key", 0, &lock) == HD_OK && lock != NULL, "other keys are free");
  cache_unlock(lock);
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  cache_close(c);
}

Test(cache, a_killed_holder_blocks_nobody, .timeout = 30) {
  pid_t holder = fork_holder();
  cache *c = open_cache();
  cache_lock *lock = NULL;
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  cr_expect(count_files("locks") == 1, "it left its lock file");
  double start = now();
  cr_expect(cache_lock_key(c, "key", 20, &lock) == HD_OK && lock != NULL && now() - start < 1);
  cache_unlock(lock);
  cr_expect(count_files("locks") == 0);
  cache_close(c);
}

typedef struct listed {
  int count, good;
  cache_item last_bad;
} listed;

static void list_item(void *user, const cache_item *item) {
  listed *l = user;
  l->count++;
  l->good += item->good;
  if (!item->good) l->last_bad = *item;
}

Test(cache, list_verify_and_clear) {
  sample s = make_sample("gfx950");
  char path[256];
  size_t size, removed = 0;
  diags errors;
  cache_entry found;
  listed l = {0};
  diags_init(&errors);
  cache *c = open_cache();
  store(c, "a", &s);
  store(c, "b", &s);
  store(c, "c", &s);
  entry_path("b", path);
  unsigned char *bytes = read_file(path, &size);
  bytes[size - 100] ^= 4; /* in the code object */
  write_file(path, bytes, size);
  free(bytes);
  cr_expect(cache_list(c, false, list_item, &l, &errors) == HD_OK && l.count == 3 && l.good == 3,
            "a listing reads heads only");
  l = (listed){0};
  cr_expect(cache_list(c, true, list_item, &l, &errors) == HD_OK && l.count == 3 && l.good == 2);
  cr_expect_str_eq(l.last_bad.key, strrchr(path, '/') + 1);
  cr_expect_str_eq(l.last_bad.operation, "decode");
  cr_expect_str_eq(l.last_bad.target, "gfx950");
  cr_expect(strstr(l.last_bad.problem, "SHA-256") != NULL && l.last_bad.size == size);
  cr_expect(access(path, F_OK) == 0, "looking changes nothing");

  cr_assert(cache_find(c, "a", &found) == HD_OK);
  cr_expect(cache_clear(c, &removed, &errors) == HD_OK && removed == 3);
  cr_expect(memcmp(found.code_object, s.code, s.size) == 0, "what was handed out is still there");
  cr_expect(cache_find(c, "a", &found) == HD_DECLINED);
  cr_expect(count_files("objects") == 0 && count_files("quarantine") == 0 && count_files("locks") == 0);
  store(c, "a", &s);
  cr_expect(cache_find(c, "a", &found) == HD_OK);
  cache_close(c);
  cr_expect(errors.count == 0);
}

typedef struct worker {
  cache *cache;
  const sample *sample;
  int failures;
} worker;

static void *work(void *user) {
  worker *w = user;
  for (int i = 0; i < 300; i++) {
    char key[32];
    cache_entry found, entry = {key, &w->sample->descriptor, w->sample->code, w->sample->size};
    snprintf(key, sizeof key, "key %d", i);
    if (cache_find(w->cache, key, &found) != HD_OK)
      w->failures += cache_store(w->cache, &entry, &found) != HD_OK;
    w->failures += cache_find(w->cache, key, &found) != HD_OK || strcmp(found.key_text, key) != 0;
  }
  return NULL;
}

Test(cache, threads_share_it, .timeout = 120) {
  sample s = make_sample("gfx950");
  pthread_t threads[4];
  worker workers[4];
  cache *c = NULL;
  diags errors;
  diags_init(&errors);
  cr_assert(cache_open("", &c, &errors) == HD_OK); /* in memory: the map, not the disk, is under test */
  for (int i = 0; i < 4; i++) {
    workers[i] = (worker){.cache = c, .sample = &s};
    cr_assert(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    cr_expect(workers[i].failures == 0);
  }
  cache_close(c);
  diags_finish(&errors);
}
