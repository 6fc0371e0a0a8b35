/* A server's answer, through http.c and the cache: the first three bytes choose code, libcurl's error and the
 * size of the pieces that the body comes in; the body follows. */
#include "fuzz.h"
#include "fake_curl.h"
#include "../../runtime/cache/cache.h"
#include "../../runtime/cache/cache_file.h"
#include "../../runtime/object/little.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static fake_curl_answer_function answer_with;

static void load_fake(void) {
  void *library = dlopen(FUZZ_CURL, RTLD_NOW);
  FUZZ_HOLD(library != NULL);
  void *symbol = dlsym(library, "fake_curl_answer_set");
  memcpy(&answer_with, &symbol, sizeof symbol);
  FUZZ_HOLD(answer_with != NULL);
  setenv("HEDDLE_CURL_LIBRARY", FUZZ_CURL, 1);
  setenv("HEDDLE_CACHE_URL", "http://nowhere/heddle/", 1);
  unsetenv("HEDDLE_CACHE_HEADER");
  unsetenv("HEDDLE_CACHE_TIMEOUT");
  unsetenv("HEDDLE_PACKS");
}

/* What an honest caller would ask for to get this entry. */
static char *key_text_of(const uint8_t *entry, size_t size) {
  uint64_t length = entry != NULL ? get_little(entry + 16, 8) : 0;
  if (entry == NULL || length > size - CACHE_FILE_HEADER) return strdup("key");
  return strndup((const char *)entry + CACHE_FILE_HEADER, (size_t)length);
}

int fuzz_tier(const uint8_t *bytes, size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static const long codes[] = {200, 404, 410, 302, 500, 0, -1, 206, 403};
  static const int errors[] = {0, 18, 28, 7};
  if (size < 3) return 0;
  pthread_once(&once, load_fake);
  char key[65];
  uint8_t *sealed = fuzz_seal_entry(bytes + 3, size - 3, key);
  char *key_text = key_text_of(sealed, size - 3);
  fake_curl_answer answer = {.body = sealed != NULL ? sealed : bytes + 3,
                             .size = size - 3,
                             .piece = bytes[2] == 0 ? 1 << 20 : bytes[2],
                             .code = codes[bytes[0] % (sizeof codes / sizeof *codes)],
                             .error = errors[bytes[1] % (sizeof errors / sizeof *errors)]};
  cache *c = NULL;
  cache_entry found;
  diags problems;
  diags_init(&problems);
  answer_with(&answer);
  FUZZ_HOLD(cache_open("/dev/null/no-folder", &c, &problems) == HD_OK);
  hd_status status = cache_find(c, key_text, &found);
  FUZZ_HOLD(status == HD_OK || status == HD_DECLINED);
  FUZZ_HOLD(status != HD_OK || (answer.code == 200 && answer.error == 0));
  if (status == HD_OK) {
    FUZZ_HOLD(strcmp(found.key_text, key_text) == 0 && found.code_object_size < size);
    cache_share(c, key_text);
  }
  cache_close(c);
  diags_finish(&problems);
  free(key_text);
  free(sealed);
  return 0;
}
