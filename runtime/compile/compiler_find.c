/* Where compilers are looked for. The order is the table's; an installed ROCm wins over a fetched one. */
#include "compile.h"

#include "compiler_identity.h"

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OLDEST_CLANG = 22 }; /* the first release that knows gfx1250 whole */

#define FETCHED_FOLDER "usr/lib/x86_64-linux-gnu"
#define FETCHED_LOADER "ld-linux-x86-64.so.2"

typedef enum place_form {
  PLACE_PREFIX,   /* an installation prefix: `name` */
  PLACE_VARIABLE, /* the environment variable `name` holds one */
  PLACE_FORCED,   /* as PLACE_VARIABLE, and when it is set nothing after it counts */
  PLACE_FOLDERS,  /* the variable holds a colon-separated list of folders */
  PLACE_SYSTEM,   /* the system's library folders */
  PLACE_FETCHED,  /* where tools/fetch-rocm.sh puts ROCm */
  PLACE_PATH,     /* programs on PATH */
  PLACE_PROGRAM,  /* the variable names a program, by path or on PATH; when it is set nothing after it counts
                   */
} place_form;

typedef struct place {
  compiler_kind kind;
  place_form form;
  const char *name;
} place;

static const place places[] = {
    {COMPILER_HIPRTC, PLACE_FORCED, "HEDDLE_ROCM"},
    {COMPILER_HIPRTC, PLACE_VARIABLE, "ROCM_PATH"},
    {COMPILER_HIPRTC, PLACE_PREFIX, "/opt/rocm"},
    {COMPILER_HIPRTC, PLACE_SYSTEM, "the system's libraries"},
    {COMPILER_HIPRTC, PLACE_FETCHED, "the folder of tools/fetch-rocm.sh"},
    {COMPILER_LLVM, PLACE_PROGRAM, "HEDDLE_CLANG"},
    {COMPILER_LLVM, PLACE_PATH, "PATH"},
    {COMPILER_NVRTC, PLACE_VARIABLE, "CUDA_PATH"},
    {COMPILER_NVRTC, PLACE_VARIABLE, "CUDA_HOME"},
    {COMPILER_NVRTC, PLACE_PREFIX, "/usr/local/cuda"},
    {COMPILER_NVRTC, PLACE_FOLDERS, "LD_LIBRARY_PATH"},
    {COMPILER_NVRTC, PLACE_SYSTEM, "the system's libraries"},
};

/* Everything in the environment that a search depends on: remembered results hold while it stays the same. */
static const char *const watched[] = {"HEDDLE_ROCM", "ROCM_PATH",       "HEDDLE_CLANG",    "PATH",
                                      "CUDA_PATH",   "CUDA_HOME",       "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
                                      "HOME",        "HEDDLE_CACHE_DIR"};

static const struct {
  compiler_kind kind;
  const char *library; /* the name's beginning, "" for a program */
  const char *what, *how_to_get;
} sought[] = {
    {COMPILER_HIPRTC, "libhiprtc.so", "hiprtc",
     "install ROCm, or run fetch-rocm.sh (on Debian; in tools/ or share/heddle/), or force the compiler llvm"},
    {COMPILER_LLVM, "", "clang with lld, release 22 or newer",
     "apt install clang-22 lld-22, or set HEDDLE_CLANG"},
    {COMPILER_NVRTC, "libnvrtc.so", "nvrtc", "install the CUDA toolkit, or set CUDA_PATH"},
};

/* ---- libraries ---- */

/* The newest file of `folder` whose name is "STEM" or "STEM.N…". */
static bool newest_library(const char *folder, const char *stem, char *out_path, size_t size) {
  DIR *d = opendir(folder);
  if (!d) return false;
  size_t length = strlen(stem);
  char best[256] = "";
  for (struct dirent *e; (e = readdir(d));) {
    const char *end = e->d_name + length;
    if (strncmp(e->d_name, stem, length) != 0) continue;
    if (*end && !(end[0] == '.' && isdigit((unsigned char)end[1]))) continue;
    if (!best[0] || strverscmp(e->d_name, best) > 0) snprintf(best, sizeof best, "%s", e->d_name);
  }
  closedir(d);
  int n = best[0] ? snprintf(out_path, size, "%s/%s", folder, best) : -1;
  return n > 0 && (size_t)n < size && access(out_path, R_OK) == 0;
}

/* A folder that others may write is not run code from. */
static bool trusted(const char *folder) {
  struct stat f;
  return stat(folder, &f) == 0 && (f.st_uid == geteuid() || f.st_uid == 0) && !(f.st_mode & 022);
}

static bool library_in_folder(const char *folder, const char *stem, compiler *c) {
  return newest_library(folder, stem, c->path, sizeof c->path);
}

/* A fetched folder brings a C library newer than the host's may be, and its own loader for it. */
static void use_own_loader(const char *prefix, compiler *c) {
  char loader[1024];
  int n = snprintf(loader, sizeof loader, "%s/" FETCHED_FOLDER "/" FETCHED_LOADER, prefix);
  if (n < 0 || (size_t)n >= sizeof loader || access(loader, X_OK) != 0) return;
  memcpy(c->loader, loader, (size_t)n + 1);
  snprintf(c->library_path, sizeof c->library_path, "%s/" FETCHED_FOLDER, prefix);
}

static bool library_in_prefix(const char *prefix, const char *stem, compiler *c) {
  static const char *const below[] = {"lib", "lib64", "lib/x86_64-linux-gnu", FETCHED_FOLDER};
  if (!prefix || !*prefix) return false;
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    char folder[1024];
    int n = snprintf(folder, sizeof folder, "%s/%s", prefix, below[i]);
    if (n < 0 || (size_t)n >= sizeof folder || !library_in_folder(folder, stem, c)) continue;
    if (strcmp(below[i], FETCHED_FOLDER) == 0 && strcmp(prefix, "/") != 0) use_own_loader(prefix, c);
    return true;
  }
  return false;
}

static bool library_in_list(const char *list, const char *stem, compiler *c) {
  for (const char *at = list; at && *at;) {
    size_t length = strcspn(at, ":");
    char folder[1024];
    if (length > 0 && length < sizeof folder) {
      snprintf(folder, sizeof folder, "%.*s", (int)length, at);
      if (library_in_folder(folder, stem, c)) return true;
    }
    at += length + (at[length] == ':');
  }
  return false;
}

static bool fetched_folder(char *out, size_t size) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (xdg && *xdg)
    n = snprintf(out, size, "%s/heddle/rocm", xdg);
  else if (home && *home)
    n = snprintf(out, size, "%s/.cache/heddle/rocm", home);
  return n > 0 && (size_t)n < size;
}

static bool fetched_library(const char *stem, compiler *c) {
  char folder[900], stamp[1000];
  if (!fetched_folder(folder, sizeof folder)) return false;
  snprintf(stamp, sizeof stamp, "%s/stamp", folder); /* written last: without it the fetch was not finished */
  return access(stamp, R_OK) == 0 && trusted(folder) && library_in_prefix(folder, stem, c);
}

/* ---- clang ---- */

/* Fills the real path of a clang that has its lld beside it; clang calls that one. */
static bool take_clang(const char *path, compiler *c) {
  char *real = realpath(path, NULL);
  bool fits = real && access(real, X_OK) == 0 &&
              (size_t)snprintf(c->path, sizeof c->path, "%s", real) < sizeof c->path;
  free(real);
  if (!fits) return false;
  char lld[1100];
  snprintf(lld, sizeof lld, "%.*s/lld", (int)(strrchr(c->path, '/') - c->path), c->path);
  return access(lld, X_OK) == 0;
}

/* "clang-22" gives 22, anything else 0. */
static int clang_release(const char *name) {
  static const char stem[] = "clang-";
  if (strncmp(name, stem, sizeof stem - 1) != 0) return 0;
  char *end;
  long release = strtol(name + sizeof stem - 1, &end, 10);
  return *end || release > 1000 || release < 0 ? 0 : (int)release;
}

static bool newest_clang(compiler *c) {
  int newest = 0;
  for (const char *at = getenv("PATH"); at && *at;) {
    size_t length = strcspn(at, ":");
    char folder[1024];
    snprintf(folder, sizeof folder, "%.*s", length < sizeof folder ? (int)length : 0, at);
    at += length + (at[length] == ':');
    DIR *d = folder[0] == '/' ? opendir(folder) : NULL;
    if (!d) continue;
    for (struct dirent *e; (e = readdir(d));) {
      int release = clang_release(e->d_name);
      if (release < OLDEST_CLANG || release <= newest) continue;
      char path[1400];
      compiler candidate = *c;
      snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
      if (!take_clang(path, &candidate)) continue;
      *c = candidate;
      newest = release;
    }
    closedir(d);
  }
  return newest > 0;
}

static bool named_clang(const char *name, compiler *c) {
  if (strchr(name, '/')) return take_clang(name, c);
  for (const char *at = getenv("PATH"); at && *at;) {
    size_t length = strcspn(at, ":");
    char path[1400];
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
    at += length + (at[length] == ':');
    if (n > 0 && (size_t)n < sizeof path && take_clang(path, c)) return true;
  }
  return false;
}

/* ---- the search ---- */

static bool look(const place *p, const char *stem, compiler *c) {
  static const char system_folders[] = "/usr/local/lib:/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib";
  const char *value = getenv(p->name);
  switch (p->form) {
  case PLACE_PREFIX:
    return library_in_prefix(p->name, stem, c);
  case PLACE_VARIABLE:
  case PLACE_FORCED:
    return library_in_prefix(value, stem, c);
  case PLACE_FOLDERS:
    return library_in_list(value, stem, c);
  case PLACE_SYSTEM:
    return library_in_list(system_folders, stem, c);
  case PLACE_FETCHED:
    return fetched_library(stem, c);
  case PLACE_PATH:
    return newest_clang(c);
  case PLACE_PROGRAM:
    return value && *value && named_clang(value, c);
  }
  return false;
}

static void describe_place(const place *p, text *out) {
  const char *value = getenv(p->name);
  char folder[900];
  text_add(out, out->length ? ", " : "");
  if (p->form == PLACE_PREFIX || p->form == PLACE_SYSTEM)
    text_add(out, p->name);
  else if (p->form == PLACE_FETCHED)
    text_addf(out, "%s (%s)", p->name, fetched_folder(folder, sizeof folder) ? folder : "no home");
  else
    text_addf(out, "%s (%s%s)", p->name, value && *value ? value : "not set",
              p->form == PLACE_PROGRAM && value && *value ? ": no program, or no lld in its folder" : "");
}

static hd_status search(compiler_kind kind, compiler *out_compiler, diags *errors) {
  size_t row = 0;
  while (sought[row].kind != kind)
    row++;
  compiler c = {.kind = kind};
  text tried;
  text_init(&tried);
  bool found = false;
  for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++) {
    const place *p = &places[i];
    if (p->kind != kind) continue;
    found = look(p, sought[row].library, &c);
    describe_place(p, &tried);
    bool forced = p->form == PLACE_FORCED || p->form == PLACE_PROGRAM;
    const char *value = forced ? getenv(p->name) : NULL;
    if (value && *value) break;
  }
  if (!found)
    diags_errorf(errors, "compile.unavailable", NULL, "%s was not found; tried %s; %s", sought[row].what,
                 text_string(&tried), sought[row].how_to_get);
  text_finish(&tried);
  if (!found) return HD_UNAVAILABLE;
  hd_status status = compiler_identify(&c, errors);
  if (status == HD_OK) *out_compiler = c;
  return status;
}

/* ---- what this process remembers ---- */

typedef struct memory {
  bool known;
  char *environment; /* the watched variables at the time, owned for the process's life */
  hd_status status;
  compiler compiler;
  diags errors;
} memory;

static memory memories[sizeof sought / sizeof *sought];
static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;

static char *watched_environment(void) {
  text t;
  text_init(&t);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
    const char *value = getenv(watched[i]);
    text_addf(&t, "%s\n", value ? value : "\t");
  }
  return text_take(&t);
}

static void memory_copy_errors(const memory *m, diags *errors) {
  for (size_t i = 0; i < m->errors.count; i++)
    diags_errorf(errors, m->errors.items[i].code, m->errors.items[i].field, "%s", m->errors.items[i].message);
}

static hd_status find_remembered(compiler_kind kind, compiler *out_compiler, diags *errors) {
  memory *m = NULL;
  for (size_t i = 0; i < sizeof sought / sizeof *sought; i++)
    if (sought[i].kind == kind) m = &memories[i];
  pthread_mutex_lock(&memories_lock);
  char *environment = watched_environment();
  if (!m->known || !environment || strcmp(m->environment, environment) != 0) {
    if (m->known) diags_finish(&m->errors);
    diags_init(&m->errors);
    free(m->environment);
    m->environment = environment;
    m->status = search(kind, &m->compiler, &m->errors);
    m->known = environment != NULL;
  } else {
    free(environment);
  }
  hd_status status = m->status;
  if (status == HD_OK) *out_compiler = m->compiler;
  memory_copy_errors(m, errors);
  pthread_mutex_unlock(&memories_lock);
  return status;
}

hd_status compiler_find(compiler_kind kind, const target *t, compiler *out_compiler, diags *errors) {
  static const struct {
    bool nvidia;
    compiler_kind kind;
  } serves[] = {
      {false, COMPILER_HIPRTC}, {false, COMPILER_LLVM}, {true, COMPILER_NVRTC}}; /* in order of preference */
  bool nvidia = t->family == FAMILY_CUDA, suits = false;
  diags tried;
  diags_init(&tried);
  hd_status status = HD_UNAVAILABLE;
  for (size_t i = 0; status != HD_OK && i < sizeof serves / sizeof *serves; i++) {
    if (serves[i].nvidia != nvidia || (kind != COMPILER_AUTO && kind != serves[i].kind)) continue;
    suits = true;
    status = find_remembered(serves[i].kind, out_compiler, &tried);
  }
  if (!suits)
    diags_errorf(errors, "compile.unavailable", NULL, "%s does not compile for %s: allowed are %s",
                 compiler_name(kind), t->name, nvidia ? "nvrtc" : "hiprtc, llvm");
  for (size_t i = 0; status != HD_OK && i < tried.count; i++)
    diags_errorf(errors, tried.items[i].code, NULL, "%s", tried.items[i].message);
  diags_finish(&tried);
  return status;
}
