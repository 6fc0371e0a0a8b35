/* The functions of libcurl that runtime/cache/http.c calls, over an answer in memory. */
#include "fake_curl.h"
#include <stdarg.h>
#include <string.h>

enum { WRITE_DATA = 10001, READ_DATA = 10009, UPLOAD = 46, WRITE_FUNCTION = 20011, READ_FUNCTION = 20012 };

typedef size_t (*data_function)(char *bytes, size_t size, size_t count, void *user);

static struct {
  fake_curl_answer answer;
  data_function take, give;
  void *take_user, *give_user;
  long upload;
} state;

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void fake_curl_answer_set(const fake_curl_answer *answer);
EXPORTED int curl_global_init(long flags);
EXPORTED const char *curl_version(void);
EXPORTED void *curl_easy_init(void);
EXPORTED void curl_easy_cleanup(void *handle);
EXPORTED int curl_easy_setopt(void *handle, int option, ...);
EXPORTED int curl_easy_perform(void *handle);
EXPORTED int curl_easy_getinfo(void *handle, int info, ...);
EXPORTED const char *curl_easy_strerror(int code);
EXPORTED void *curl_slist_append(void *list, const char *line);
EXPORTED void curl_slist_free_all(void *list);

void fake_curl_answer_set(const fake_curl_answer *answer) {
  state.answer = *answer;
}

int curl_global_init(long flags) {
  (void)flags;
  return 0;
}

const char *curl_version(void) {
  return "fake";
}

void *curl_easy_init(void) {
  return &state;
}

void curl_easy_cleanup(void *handle) {
  (void)handle;
}

int curl_easy_setopt(void *handle, int option, ...) {
  va_list args;
  (void)handle;
  va_start(args, option);
  if (option == WRITE_DATA) state.take_user = va_arg(args, void *);
  if (option == READ_DATA) state.give_user = va_arg(args, void *);
  if (option == UPLOAD) state.upload = va_arg(args, long);
  if (option == WRITE_FUNCTION) state.take = va_arg(args, data_function);
  if (option == READ_FUNCTION) state.give = va_arg(args, data_function);
  va_end(args);
  return 0;
}

int curl_easy_perform(void *handle) {
  enum { WRITE_ERROR = 23 };
  char bytes[512];
  (void)handle;
  while (state.upload && state.give(bytes, 1, sizeof bytes, state.give_user) > 0) {
  }
  for (size_t at = 0; at < state.answer.size;) {
    size_t left = state.answer.size - at, now = left < state.answer.piece ? left : state.answer.piece;
    /* libcurl hands out memory of its own */
    if (now > sizeof bytes) now = sizeof bytes;
    memcpy(bytes, (const char *)state.answer.body + at, now);
    if (state.take(bytes, 1, now, state.take_user) != now) return WRITE_ERROR;
    at += now;
  }
  return state.answer.error;
}

int curl_easy_getinfo(void *handle, int info, ...) {
  va_list args;
  (void)handle;
  va_start(args, info);
  *va_arg(args, long *) = state.answer.code;
  va_end(args);
  return 0;
}

const char *curl_easy_strerror(int code) {
  return code == 0 ? "no error" : "an error";
}

void *curl_slist_append(void *list, const char *line) {
  (void)line;
  return list != NULL ? list : &state;
}

void curl_slist_free_all(void *list) {
  (void)list;
}
