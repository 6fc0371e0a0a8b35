/* The shared tier: a server that keeps entries by key, URL/KEY. Asked when nothing here has an entry, and
 * offered what was compiled. Whatever is wrong with it costs one line and is no failure; it is then left
 * alone for a while. */
#include "../../generator/sha256.h"
#include "cache_file.h"
#include "cache_parts.h"
#include "../file.h"
#include "http.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_SECONDS = 5, FIRST_PAUSE = 30, LONGEST_PAUSE = 960, MOST_HEADER = 4096 };

struct cache_tier {
  char *address; /* with no slash at its end */
  http *http;
  pthread_mutex_t mutex; /* one request at a time; guards all of it */
  double pause, quiet_until;
  bool only_read; /* it takes nothing from us */
};

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- What the environment says ---- */

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* NULL, or why not. */
static const char *address_problem(const char *address) {
  size_t scheme = strncmp(address, "https://", 8) == 0 ? 8 : strncmp(address, "http://", 7) == 0 ? 7 : 0;
  if (scheme == 0) return "it begins with neither http:// nor https://";
  if (address[scheme] == '\0') return "it names no host";
  for (const char *at = address; *at != '\0'; at++)
    if ((unsigned char)*at <= 0x20 || *at == 0x7f) return "it has a blank or a control character in it";
  if (memchr(address + scheme, '@', strcspn(address + scheme, "/")) != NULL)
    return "it has a user's name in it: that belongs into the file that HEDDLE_CACHE_HEADER names";
  if (strpbrk(address, "?#") != NULL) return "it has a query or a fragment: keys go behind its path";
  return NULL;
}

/* The line of the file that HEDDLE_CACHE_HEADER names. HD_INVALID: `problem` says what is wrong with it. */
static hd_status read_header(const char *path, char **out_line, char *problem, size_t size) {
  char *bytes = NULL;
  size_t length = 0;
  hd_status status = file_read(AT_FDCWD, path, MOST_HEADER, &bytes, &length);
  if (status == HD_IO) {
    snprintf(problem, size, "the header file %.200s can't be read: %s", path, strerror(errno));
    return HD_INVALID;
  }
  if (status != HD_OK) return status;
  length = strcspn(bytes, "\r\n");
  bool alone = bytes[length + strspn(bytes + length, "\r\n")] == '\0', good = strchr(bytes, ':') != NULL;
  bytes[length] = '\0';
  for (size_t i = 0; i < length; i++)
    good = good && (unsigned char)bytes[i] >= 0x20 && bytes[i] != 0x7f;
  if (good && alone) {
    *out_line = bytes;
    return HD_OK;
  }
  snprintf(problem, size, "the header file %.200s is not one line such as \"Authorization: Bearer TOKEN\"",
           path);
  free(bytes);
  return HD_INVALID;
}

static hd_status read_seconds(double *out_seconds, char *problem, size_t size) {
  const char *value = environment("HEDDLE_CACHE_TIMEOUT");
  double seconds = DEFAULT_SECONDS;
  if (value != NULL &&
      (!text_read_double(value, strlen(value), &seconds) || !(seconds > 0) || seconds > 3600)) {
    snprintf(problem, size, "HEDDLE_CACHE_TIMEOUT is \"%.40s\", which is no number of seconds", value);
    return HD_INVALID;
  }
  *out_seconds = seconds;
  return HD_OK;
}

static hd_status tier_create(const char *address, const char *header, double seconds, cache_tier **out_tier,
                             diags *errors) {
  cache_tier *t = calloc(1, sizeof *t);
  if (t == NULL) return HD_OUT_OF_MEMORY;
  t->pause = FIRST_PAUSE;
  t->address = strdup(address);
  pthread_mutex_init(&t->mutex, NULL);
  hd_status status = t->address != NULL ? http_create(header, seconds, &t->http, errors) : HD_OUT_OF_MEMORY;
  if (status != HD_OK) {
    tier_close(t);
    return status;
  }
  size_t length = strlen(t->address);
  while (t->address[length - 1] == '/')
    t->address[--length] = '\0';
  *out_tier = t;
  return HD_OK;
}

hd_status tier_open(cache *c) {
  const char *address = environment("HEDDLE_CACHE_URL"), *header_path = environment("HEDDLE_CACHE_HEADER");
  char problem[400] = "", *header = NULL;
  double seconds = 0;
  diags errors;
  if (address == NULL) return HD_OK;
  diags_init(&errors);
  const char *wrong = address_problem(address);
  if (wrong != NULL) snprintf(problem, sizeof problem, "HEDDLE_CACHE_URL: %s", wrong);
  hd_status status = wrong != NULL ? HD_INVALID : read_seconds(&seconds, problem, sizeof problem);
  if (status == HD_OK && header_path != NULL)
    status = read_header(header_path, &header, problem, sizeof problem);
  if (status == HD_OK) status = tier_create(address, header, seconds, &c->tier, &errors);
  if (status == HD_UNAVAILABLE && errors.count > 0)
    snprintf(problem, sizeof problem, "%s", errors.items[0].message);
  if (status == HD_INVALID || status == HD_UNAVAILABLE)
    cache_say(c, "cache.tier", "the shared cache is not used: %s", problem);
  free(header);
  diags_finish(&errors);
  return status == HD_OUT_OF_MEMORY ? status : HD_OK;
}

void tier_close(cache_tier *t) {
  if (t == NULL) return;
  http_destroy(t->http);
  pthread_mutex_destroy(&t->mutex);
  free(t->address);
  free(t);
}

void tier_write(const cache_tier *t, text *out) {
  text_addf(out, "%sshared cache %s", out->length > 0 ? ", " : "", t->address);
}

/* ---- Requests ---- */

/* After a failure the tier is left alone, twice as long each time. The mutex is held. Returns the pause. */
static double back_off(cache_tier *t) {
  double pause = t->pause;
  t->quiet_until = seconds_now() + pause;
  t->pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
  return pause;
}

/* One request, if the tier may be asked now; false: it may not. `bytes` NULL: GET. */
static bool request(cache *c, const char *key, const void *bytes, size_t size, char **out_bytes,
                    size_t *out_size, hd_status *out_status) {
  cache_tier *t = c->tier;
  char problem[HTTP_PROBLEM] = "";
  double pause = 0;
  bool refused = false;
  text url;
  text_init(&url);
  text_addf(&url, "%s/%s", t->address, key);
  pthread_mutex_lock(&t->mutex);
  bool asked = !url.failed && seconds_now() >= t->quiet_until && !(bytes != NULL && t->only_read);
  if (asked) {
    *out_status = bytes == NULL
                      ? http_get(t->http, text_string(&url), CACHE_FILE_MOST, out_bytes, out_size, problem)
                      : http_put(t->http, text_string(&url), bytes, size, problem);
    if (*out_status == HD_UNAVAILABLE)
      pause = back_off(t);
    else
      t->pause = FIRST_PAUSE;
    refused = bytes != NULL && *out_status == HD_DECLINED;
    if (refused) t->only_read = true;
  }
  pthread_mutex_unlock(&t->mutex);
  text_finish(&url);
  if (refused)
    cache_say(c, "cache.tier", "the shared cache %s is offered nothing more: %s", t->address, problem);
  if (pause > 0) {
    cache_count(c, &c->counts.tier_failures);
    cache_say(c, "cache.tier", "the shared cache %s is left alone for %.0f s: %s", t->address, pause,
              problem);
  }
  return asked;
}

hd_status tier_find(cache *c, const char *key, memory_entry **out_entry, char **out_bytes, size_t *out_size) {
  hd_status status = HD_DECLINED;
  char *bytes = NULL;
  size_t size = 0;
  if (c->tier == NULL || !request(c, key, NULL, 0, &bytes, &size, &status)) return HD_DECLINED;
  if (status == HD_UNAVAILABLE) return HD_DECLINED;
  if (status != HD_OK) return status;
  diags problems;
  diags_init(&problems);
  status = cache_entry_read(key, bytes, size, out_entry, &problems);
  if (status == HD_OK) {
    *out_bytes = bytes;
    *out_size = size;
  } else {
    free(bytes);
  }
  /* What is compiled in its place is offered to the tier, and mends it. */
  if (status != HD_OK && status != HD_OUT_OF_MEMORY) {
    cache_count(c, &c->counts.tier_failures);
    cache_say(c, "cache.tier", "entry %.12s of the shared cache %s is not used: %s", key, c->tier->address,
              problems.count > 0 ? problems.items[0].message : hd_status_text(status));
    status = HD_DECLINED;
  }
  diags_finish(&problems);
  return status;
}

void cache_share(cache *c, const char *key_text) {
  char key[65];
  if (c->tier == NULL) return;
  sha256_hex(key_text, strlen(key_text), key);
  pthread_mutex_lock(&c->mutex);
  const memory_entry *e = memory_find(c, key, key_text);
  pthread_mutex_unlock(&c->mutex);
  if (e == NULL) return;
  cache_entry entry = memory_entry_view(e);
  text file;
  hd_status status = HD_DECLINED;
  text_init(&file);
  cache_file_write(entry.key_text, entry.descriptor, entry.code_object, entry.code_object_size, &file);
  if (!file.failed && request(c, key, file.data, file.length, NULL, NULL, &status) && status == HD_OK)
    cache_count(c, &c->counts.tier_puts);
  text_finish(&file);
}

void cache_write_places(const cache *c, text *out) {
  text places;
  text_init(&places);
  text_add(&places, "memory");
  packs_write(c, &places);
  if (c->directory[0] != '\0') text_addf(&places, ", folder %s", c->directory);
  if (c->tier != NULL) tier_write(c->tier, &places);
  text_add(out, text_string(&places));
  text_finish(&places);
}
