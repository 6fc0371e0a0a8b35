/* Codes, their names and texts, and the log of diagnostics. */
#include "runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local hipError_t last_error = hipSuccess;

typedef struct error_row {
  hipError_t code;
  const char *name, *text;
} error_row;

static const error_row errors[] = {
#define X(name, number, text) {name, #name, text},
    HIP_ERRORS(X)
#undef X
};

static const error_row *find(hipError_t code) {
  const error_row *unknown = NULL;
  for (size_t n = 0; n < sizeof errors / sizeof *errors; ++n) {
    if (errors[n].code == code) return &errors[n];
    if (errors[n].code == hipErrorUnknown) unknown = &errors[n];
  }
  return unknown;
}

/* What the emulator's diagnostics are called in HIP: the first row whose code and words are those of the
 * first error.
 */
static const struct {
  const char *code, *words; /* words: part of the message, NULL: any */
  hipError_t error;
} meanings[] = {
    {"emu.fault", "out of bounds", hipErrorIllegalAddress},
    {"emu.fault", "into the", hipErrorIllegalAddress}, /* a write into code or arguments */
    {"emu.fault", "still running after", hipErrorLaunchTimeOut},
    {"emu.fault", NULL, hipErrorLaunchFailure},
    {"emu.bounds", NULL, hipErrorInvalidValue},
    {"emu.release", NULL, hipErrorInvalidValue},
    {"emu.memory", NULL, hipErrorOutOfMemory},
    {"emu.function", NULL, hipErrorNotFound},
    {"emu.launch", "a workgroup of", hipErrorInvalidConfiguration},
    {"emu.launch", NULL, hipErrorInvalidValue},
    {"emu.lds", NULL, hipErrorLaunchOutOfResources},
    {"emu.target", NULL, hipErrorNoBinaryForGpu},
    {"emu.load", NULL, hipErrorInvalidImage},
    {"emu.capture", NULL, hipErrorIllegalState},
    {"codeobject.", NULL, hipErrorInvalidImage},
};

static const hipError_t statuses[] = {
    [HD_OK] = hipSuccess,
    [HD_DECLINED] = hipErrorNotSupported,
    [HD_INVALID] = hipErrorInvalidValue,
    [HD_OUT_OF_MEMORY] = hipErrorOutOfMemory,
    [HD_IO] = hipErrorOperatingSystem,
    [HD_UNAVAILABLE] = hipErrorNoDevice,
    [HD_DEVICE] = hipErrorLaunchFailure,
    [HD_INTERNAL] = hipErrorUnknown,
};

static hipError_t meaning(hd_status status, const diags *messages) {
  const diag *first = NULL;
  for (size_t n = 0; n < messages->count && !first; ++n)
    if (messages->items[n].severity == DIAG_ERROR) first = &messages->items[n];
  for (size_t n = 0; first && n < sizeof meanings / sizeof *meanings; ++n)
    if (strncmp(first->code, meanings[n].code, strlen(meanings[n].code)) == 0 &&
        (!meanings[n].words || strstr(first->message, meanings[n].words)))
      return meanings[n].error;
  return statuses[status];
}

/* One write a diagnostic: threads and processes that share the file don't mix their lines. */
static void append(const diags *messages) {
  const char *path = getenv("HEDDLE_EMU_LOG");
  text lines;
  if (!path || !*path || messages->count == 0) return;
  text_init(&lines);
  diags_render(messages, "heddle-hip", NULL, &lines);
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const char *at = text_string(&lines);
  size_t left = lines.length;
  while (file >= 0 && left > 0) {
    ssize_t written = write(file, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break; /* there is nowhere to say so */
    at += written;
    left -= (size_t)written;
  }
  if (file >= 0) close(file);
  text_finish(&lines);
}

void hipemu_log(const char *code, const char *format, ...) {
  diags messages;
  text line;
  va_list args;
  diags_init(&messages);
  text_init(&line);
  va_start(args, format);
  text_vaddf(&line, format, args);
  va_end(args);
  diags_errorf(&messages, code, NULL, "%s", text_string(&line));
  append(&messages);
  text_finish(&line);
  diags_finish(&messages);
}

hipError_t hipemu_answer(hipemu_device *d, hd_status status, diags *messages) {
  hipError_t code = status == HD_OK ? hipSuccess : meaning(status, messages);
  append(messages);
  diags_finish(messages);
  int none = hipSuccess;
  if (status == HD_DEVICE) atomic_compare_exchange_strong(&d->fault, &none, (int)code);
  return code;
}

hipError_t hipemu_report(hipError_t code) {
  if (code != hipSuccess && code != hipErrorNotReady) last_error = code;
  return code;
}

hipError_t hipGetLastError(void) {
  hipError_t code = last_error;
  last_error = hipSuccess;
  return code;
}

hipError_t hipPeekAtLastError(void) {
  return last_error;
}

const char *hipGetErrorName(hipError_t code) {
  return find(code)->name;
}

const char *hipGetErrorString(hipError_t code) {
  return find(code)->text;
}

hipError_t hipDrvGetErrorName(hipError_t code, const char **out_name) {
  if (!out_name || find(code)->code != code) return hipErrorInvalidValue;
  *out_name = find(code)->name;
  return hipSuccess;
}

hipError_t hipDrvGetErrorString(hipError_t code, const char **out_text) {
  if (!out_text || find(code)->code != code) return hipErrorInvalidValue;
  *out_text = find(code)->text;
  return hipSuccess;
}
