#include "compile_log.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_ERRORS = 5 };

/* A command-line error, in the words of clang's driver and of nvrtc. */
static const char *const option_words[] = {
    "unknown argument",  "unrecognized option", "cannot specify -o", "unsupported HIP gpu architecture",
    "invalid value",     "unsupported option",  "argument to",       "invalid target ID",
    "invalid arch name",
};

static const char *const memory_words[] = {
    "out of memory",          "std::bad_alloc",        "Cannot allocate memory",
    "cannot allocate memory", "failed to map segment", /* the dynamic loader's */
};

/* "error:" also in "fatal error:", "catastrophic error:" and "lld: error:". */
static const char *const error_words[] = {"error:", "LLVM ERROR:"};

static bool line_has(const char *line, size_t length, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (memmem(line, length, words[i], strlen(words[i]))) return true;
  return false;
}

#define HAS(line, length, words) line_has(line, length, words, sizeof words / sizeof *words)

/* The next line from *at on, without its newline; NULL at the end. */
static const char *next_line(const char **at, size_t *out_length) {
  const char *line = *at;
  if (!*line) return NULL;
  *out_length = strcspn(line, "\n");
  *at = line + *out_length + (line[*out_length] == '\n');
  return line;
}

void compile_log_clean(char *log, const char *folder) {
  static const char input[] = "/input/";
  size_t folder_length = strlen(folder);
  char *from = log, *to = log;
  if (folder_length == 0) return;
  while (*from) {
    if (strncmp(from, folder, folder_length) == 0 && from[folder_length] == '/') {
      char *name = from + folder_length + 1;
      size_t length = strcspn(name, " \n:'\"");
      char *below = memmem(name - 1, length + 1, input, sizeof input - 1);
      from = below ? below + sizeof input - 1 : name;
    } else {
      *to++ = *from++;
    }
  }
  *to = '\0';
}

bool compile_log_blames_options(const char *log) {
  size_t length;
  for (const char *at = log, *line; (line = next_line(&at, &length));) {
    if (!HAS(line, length, error_words)) continue;
    /* An error in the source begins with its place: "kernel.hip:3:5: error:", nvrtc "kernel.hip(3): error:".
     */
    static const char *const places[] = {"kernel.hip:", "kernel.hip("};
    return !HAS(line, length, places) && HAS(line, length, option_words);
  }
  return false;
}

bool compile_log_blames_memory(const char *log) {
  return HAS(log, strlen(log), memory_words);
}

size_t compile_log_errors(const char *log, const char *code, const char *who, diags *errors) {
  size_t count = 0, length;
  for (const char *at = log, *line; (line = next_line(&at, &length));) {
    if (!HAS(line, length, error_words)) continue;
    if (count++ < SHOWN_ERRORS)
      diags_errorf(errors, code, NULL, "%s: %.*s", who, length > 1000 ? 1000 : (int)length, line);
  }
  if (count > SHOWN_ERRORS)
    diags_addf(errors, DIAG_NOTE, code, NULL, 0, 0, "%s: %zu more errors, see the compiler's log", who,
               count - SHOWN_ERRORS);
  return count;
}

void compile_log_gist(const char *log, char *out, size_t size) {
  size_t length;
  bool found = false;
  out[0] = '\0';
  for (const char *at = log, *line; (line = next_line(&at, &length));) {
    bool error = HAS(line, length, error_words) || HAS(line, length, memory_words);
    if (length == 0 || (found && !error)) continue;
    snprintf(out, size, "%.*s", (int)(length > size ? size : length), line);
    found = true;
    if (error) return;
  }
}
