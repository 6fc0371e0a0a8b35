#include "http.h"
#include "../device/device_driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of libcurl's interface. Its numbers are part of its ABI, which has been stable since
 * libcurl.so.4 (curl/curl.h: CURLOPTTYPE_LONG 0, OBJECTPOINT 10000, FUNCTIONPOINT 20000, OFF_T 30000). */
enum {
  OPTION_WRITE_DATA = 10001,
  OPTION_URL = 10002,
  OPTION_READ_DATA = 10009,
  OPTION_ERROR_BUFFER = 10010,
  OPTION_USER_AGENT = 10018,
  OPTION_HEADERS = 10023,
  OPTION_NO_PROGRESS = 43,
  OPTION_UPLOAD = 46,
  OPTION_FOLLOW_LOCATION = 52,
  OPTION_NO_SIGNAL = 99,
  OPTION_TIMEOUT_MS = 155,
  OPTION_CONNECT_TIMEOUT_MS = 156,
  OPTION_PROTOCOLS = 181,
  OPTION_WRITE_FUNCTION = 20011,
  OPTION_READ_FUNCTION = 20012,
  OPTION_SIZE = 30115,
  INFO_RESPONSE_CODE = 0x200000 + 2,
  PROTOCOL_HTTP = 1,
  PROTOCOL_HTTPS = 2,
  GLOBAL_DEFAULT = 3,
  ERROR_BUFFER = 256
};

typedef struct curl {
  void *library;
  int (*global_init)(long flags);
  const char *(*version)(void);
  void *(*easy_init)(void);
  void (*easy_cleanup)(void *handle);
  int (*easy_setopt)(void *handle, int option, ...);
  int (*easy_perform)(void *handle);
  int (*easy_getinfo)(void *handle, int info, ...);
  const char *(*easy_strerror)(int code);
  void *(*slist_append)(void *list, const char *line);
  void (*slist_free_all)(void *list);
} curl;

#define SYMBOL(member)                                                                                       \
  { "curl_" #member, offsetof(curl, member) }
static const driver_symbol symbols[] = {
    SYMBOL(global_init),  SYMBOL(version),        SYMBOL(easy_init),    SYMBOL(easy_cleanup),
    SYMBOL(easy_setopt),  SYMBOL(easy_perform),   SYMBOL(easy_getinfo), SYMBOL(easy_strerror),
    SYMBOL(slist_append), SYMBOL(slist_free_all),
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static curl api; /* library NULL: it could not be had */
static char why_not[1024];

static void load(void) {
  const char *named = driver_environment("HEDDLE_CURL_LIBRARY");
  const char *const usual[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  const char *path = NULL;
  text tried;
  diags problems;
  text_init(&tried);
  diags_init(&problems);
  void *library = named != NULL ? driver_library_open(&named, 1, &path, &tried)
                                : driver_library_open(usual, 2, &path, &tried);
  if (library == NULL) {
    snprintf(why_not, sizeof why_not, "libcurl is not there (Debian: libcurl4): %s", text_string(&tried));
  } else if (driver_symbols_load(library, path, symbols, sizeof symbols / sizeof *symbols, &api, &problems) !=
                 HD_OK ||
             api.global_init(GLOBAL_DEFAULT) != 0) {
    snprintf(why_not, sizeof why_not, "%s",
             problems.count > 0 ? problems.items[0].message : "libcurl can't be initialised");
    dlclose(library);
  } else {
    api.library = library; /* stays: others in the process may use it too */
  }
  text_finish(&tried);
  diags_finish(&problems);
}

static hd_status have_curl(diags *errors) {
  pthread_once(&once, load);
  if (api.library != NULL) return HD_OK;
  diags_errorf(errors, "cache.tier", NULL, "%s", why_not);
  return HD_UNAVAILABLE;
}

hd_status http_version(text *out, diags *errors) {
  hd_status status = have_curl(errors);
  if (status == HD_OK) text_add(out, api.version());
  return status;
}

struct http {
  void *handle, *headers;
  char error[ERROR_BUFFER];
};

typedef struct transfer {
  text in;
  size_t most;
  bool too_large;
  const char *out;
  size_t left;
} transfer;

static size_t take_bytes(char *bytes, size_t size, size_t count, void *user) {
  transfer *t = user;
  size_t length = size * count;
  if (length > t->most - t->in.length) {
    t->too_large = true;
    return 0; /* ends the transfer */
  }
  text_add_bytes(&t->in, bytes, length);
  return t->in.failed ? 0 : length;
}

static size_t give_bytes(char *bytes, size_t size, size_t count, void *user) {
  transfer *t = user;
  size_t length = size * count < t->left ? size * count : t->left;
  memcpy(bytes, t->out, length);
  t->out += length;
  t->left -= length;
  return length;
}

/* An empty "Expect:" keeps libcurl from waiting for the server's leave to send. */
static bool add_header(http *h, const char *line) {
  void *grown = api.slist_append(h->headers, line);
  if (grown != NULL) h->headers = grown;
  return grown != NULL;
}

hd_status http_create(const char *header, double seconds, http **out_http, diags *errors) {
  hd_status status = have_curl(errors);
  if (status != HD_OK) return status;
  http *h = calloc(1, sizeof *h);
  if (h == NULL) return HD_OUT_OF_MEMORY;
  h->handle = api.easy_init();
  if (h->handle == NULL || !add_header(h, "Expect:") || (header != NULL && !add_header(h, header))) {
    http_destroy(h);
    return HD_OUT_OF_MEMORY;
  }
  long milliseconds = seconds * 1e3 < 1 ? 1 : (long)(seconds * 1e3);
  const struct {
    int option;
    long value;
  } settings[] = {
      {OPTION_NO_SIGNAL, 1},
      {OPTION_NO_PROGRESS, 1},
      {OPTION_FOLLOW_LOCATION, 0},
      {OPTION_PROTOCOLS, PROTOCOL_HTTP | PROTOCOL_HTTPS},
      {OPTION_TIMEOUT_MS, milliseconds},
      {OPTION_CONNECT_TIMEOUT_MS, milliseconds < 1000 ? milliseconds : 1000},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    api.easy_setopt(h->handle, settings[i].option, settings[i].value);
  api.easy_setopt(h->handle, OPTION_ERROR_BUFFER, h->error);
  api.easy_setopt(h->handle, OPTION_HEADERS, h->headers);
  api.easy_setopt(h->handle, OPTION_USER_AGENT, "heddle");
  api.easy_setopt(h->handle, OPTION_WRITE_FUNCTION, take_bytes);
  api.easy_setopt(h->handle, OPTION_READ_FUNCTION, give_bytes);
  *out_http = h;
  return HD_OK;
}

void http_destroy(http *h) {
  if (h == NULL) return;
  if (h->handle != NULL) api.easy_cleanup(h->handle);
  if (h->headers != NULL) api.slist_free_all(h->headers);
  free(h);
}

static hd_status perform(http *h, const char *url, transfer *t, bool upload, char problem[HTTP_PROBLEM]) {
  long code = 0;
  h->error[0] = '\0';
  api.easy_setopt(h->handle, OPTION_URL, url);
  api.easy_setopt(h->handle, OPTION_WRITE_DATA, t);
  api.easy_setopt(h->handle, OPTION_READ_DATA, t);
  api.easy_setopt(h->handle, OPTION_UPLOAD, upload ? 1L : 0L);
  api.easy_setopt(h->handle, OPTION_SIZE, (int64_t)t->left);
  int error = api.easy_perform(h->handle);
  api.easy_getinfo(h->handle, INFO_RESPONSE_CODE, &code);
  if (t->in.failed) return HD_OUT_OF_MEMORY;
  if (t->too_large)
    snprintf(problem, HTTP_PROBLEM, "its answer is longer than %zu bytes", t->most);
  else if (error != 0)
    snprintf(problem, HTTP_PROBLEM, "%s", h->error[0] != '\0' ? h->error : api.easy_strerror(error));
  else if (code >= 300 && code < 400)
    snprintf(problem, HTTP_PROBLEM, "it answers with a redirect (%ld), which is not followed", code);
  else if (code == 200 || (upload && code > 200 && code < 300))
    return HD_OK;
  else if (!upload && (code == 404 || code == 410))
    return HD_DECLINED;
  else
    snprintf(problem, HTTP_PROBLEM, "it answers with code %ld", code);
  bool refused = error == 0 && upload && (code == 401 || code == 403 || code == 405);
  return refused ? HD_DECLINED : HD_UNAVAILABLE;
}

hd_status http_get(http *h, const char *url, size_t most, char **out_bytes, size_t *out_size,
                   char problem[HTTP_PROBLEM]) {
  transfer t = {.most = most};
  text_init(&t.in);
  hd_status status = perform(h, url, &t, false, problem);
  size_t size = t.in.length;
  char *bytes = status == HD_OK ? text_take(&t.in) : NULL;
  text_finish(&t.in);
  if (status != HD_OK) return status;
  if (bytes == NULL) return HD_OUT_OF_MEMORY;
  *out_bytes = bytes;
  *out_size = size;
  return HD_OK;
}

hd_status http_put(http *h, const char *url, const void *bytes, size_t size, char problem[HTTP_PROBLEM]) {
  enum { MOST_WORDS = 64 << 10 }; /* of what the server has to say; not looked at */
  transfer t = {.most = MOST_WORDS, .out = bytes, .left = size};
  text_init(&t.in);
  hd_status status = perform(h, url, &t, true, problem);
  text_finish(&t.in);
  return status;
}
