/* A libcurl that reaches nothing: every request gets the answer that was set. */
#ifndef HEDDLE_TESTS_FAKE_CURL_H
#define HEDDLE_TESTS_FAKE_CURL_H

#include <stddef.h>

typedef struct fake_curl_answer {
  const void *body;
  size_t size, piece; /* bytes of the body; at a time */
  long code;          /* HTTP's */
  int error;          /* libcurl's, after the body */
} fake_curl_answer;

typedef void (*fake_curl_answer_function)(const fake_curl_answer *answer);

#endif
