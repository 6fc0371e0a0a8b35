/* hiprtc and nvrtc: one interface under two prefixes, so one piece of code. The prototypes are declared here,
 * after the two libraries' documentation, so that neither's headers are needed to build. */
#include "worker.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Result codes that both libraries share. */
enum { RTC_SUCCESS = 0, RTC_OUT_OF_MEMORY = 1 };

typedef struct rtc_program rtc_program;

/* member, name in hiprtc, name in nvrtc, arguments after the program. nvrtc's "code" is PTX, the machine code
 * is called CUBIN. */
#define RTC_SYMBOLS(X)                                                                                       \
  X(create, "hiprtcCreateProgram", "nvrtcCreateProgram",                                                     \
    (rtc_program **, const char *source, const char *name, int headers, const char *const *,                 \
     const char *const *))                                                                                   \
  X(compile, "hiprtcCompileProgram", "nvrtcCompileProgram",                                                  \
    (rtc_program *, int options, const char *const *))                                                       \
  X(log_size, "hiprtcGetProgramLogSize", "nvrtcGetProgramLogSize", (rtc_program *, size_t *))                \
  X(log, "hiprtcGetProgramLog", "nvrtcGetProgramLog", (rtc_program *, char *))                               \
  X(code_size, "hiprtcGetCodeSize", "nvrtcGetCUBINSize", (rtc_program *, size_t *))                          \
  X(code, "hiprtcGetCode", "nvrtcGetCUBIN", (rtc_program *, char *))                                         \
  X(destroy, "hiprtcDestroyProgram", "nvrtcDestroyProgram", (rtc_program **))

static struct rtc {
  void *handle;
#define X(member, hip, nv, parameters) int(*member) parameters;
  RTC_SYMBOLS(X)
#undef X
} rtc;

static int load(int nvidia, const char *path, worker_answer *a) {
  if (rtc.handle) return 1;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    worker_answer_say(a, WORKER_NO_COMPILER, 0, "", why ? why : "dlopen failed");
    return 0;
  }
  /* POSIX lets a void * from dlsym hold a function; memcpy keeps that out of the C language's sight. */
#define X(member, hip, nv, parameters)                                                                       \
  {                                                                                                          \
    void *symbol = dlsym(handle, nvidia ? nv : hip);                                                         \
    if (!symbol) {                                                                                           \
      worker_answer_say(a, WORKER_NO_COMPILER, 0, "the library has no ", nvidia ? nv : hip);                 \
      return 0;                                                                                              \
    }                                                                                                        \
    memcpy(&rtc.member, &symbol, sizeof symbol);                                                             \
  }
  RTC_SYMBOLS(X)
#undef X
  rtc.handle = handle;
  return 1;
}

/* The log isn't NUL-terminated in hiprtc and is in nvrtc, whose size counts the NUL. */
static void take_log(rtc_program *program, worker_answer *a) {
  size_t size = 0;
  if (rtc.log_size(program, &size) != RTC_SUCCESS || size == 0) return;
  a->log = calloc(size + 1, 1);
  if (a->log && rtc.log(program, a->log) == RTC_SUCCESS) a->log_bytes = strlen(a->log);
}

/* hiprtc answers an unknown flag with success and "error:" in the log. */
static int log_has_error(const worker_answer *a) {
  return a->log && strstr(a->log, "error:") != NULL;
}

static void take_code(rtc_program *program, worker_answer *a) {
  size_t size = 0;
  int result = rtc.code_size(program, &size);
  if (result == RTC_SUCCESS && size > 0) {
    a->code_object = malloc(size);
    if (!a->code_object) {
      a->outcome = WORKER_NO_MEMORY;
      return;
    }
    result = rtc.code(program, a->code_object);
  }
  if (result == RTC_SUCCESS && size > 0) {
    a->code_object_bytes = size;
  } else {
    a->outcome = WORKER_REJECTED;
    a->code = result;
  }
}

void worker_rtc_compile(const char *compiler, const char *path, const worker_job *job,
                        worker_answer *out_answer) {
  if (!load(strcmp(compiler, "nvrtc") == 0, path, out_answer)) return;
  double start = worker_now();
  rtc_program *program = NULL;
  int result = rtc.create(&program, job->source, WORKER_SOURCE_NAME, 0, NULL, NULL);
  if (result == RTC_SUCCESS) {
    result = rtc.compile(program, job->option_count, job->options);
    take_log(program, out_answer);
  }
  out_answer->code = result;
  if (result == RTC_OUT_OF_MEMORY)
    out_answer->outcome = WORKER_NO_MEMORY;
  else if (result != RTC_SUCCESS || log_has_error(out_answer))
    out_answer->outcome = WORKER_REJECTED;
  else
    take_code(program, out_answer);
  out_answer->seconds = worker_now() - start;
  if (program) rtc.destroy(&program);
}
