#include "../cache/cache.h"
#include "../compile/compile.h"
#include "../device/device.h"
#include "../cache/http.h"
#include "console.h"
#include "verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One thing that was looked for. */
typedef struct finding {
  char what[64];
  bool found;
  text text;   /* what was found, or what was tried */
  diags diags; /* why not, and how to get it */
} finding;

enum { MAX_FINDINGS = 32 };

typedef struct examination {
  int count;
  finding items[MAX_FINDINGS];
  bool compiles_amd, compiles_cuda;
  char amd_device[24], cuda_device[24]; /* the first that was found; "": none */
} examination;

static finding *add(examination *e, const char *kind, const char *name) {
  finding *f = &e->items[e->count < MAX_FINDINGS - 1 ? e->count++ : e->count - 1];
  text what;
  text_init(&what);
  text_addf(&what, "%s %s", kind, name);
  strncpy(f->what, text_string(&what), sizeof f->what - 1);
  text_finish(&what);
  text_init(&f->text);
  diags_init(&f->diags);
  return f;
}

/* A compiler is asked for on behalf of the first target it compiles for. */
static const struct {
  compiler_kind kind;
  target_family family;
  bool cuda;
} compilers[] = {
    {COMPILER_HIPRTC, FAMILY_CDNA, false},
    {COMPILER_LLVM, FAMILY_CDNA, false},
    {COMPILER_NVRTC, FAMILY_CUDA, true},
};

static void examine_compilers(examination *e) {
  for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
    finding *f = add(e, "compiler", compiler_name(compilers[i].kind));
    for (size_t t = 0; t < target_count(); t++) {
      if (target_at(t)->family != compilers[i].family) continue;
      compiler found;
      f->found = compiler_find(compilers[i].kind, target_at(t), &found, &f->diags) == HD_OK;
      *(compilers[i].cuda ? &e->compiles_cuda : &e->compiles_amd) |= f->found;
      if (f->found) text_addf(&f->text, "%s, %s", found.version, found.path);
      break;
    }
  }
}

static void examine_device(examination *e, const char *name) {
  finding *f = add(e, "device", name);
  device *d = NULL;
  f->found = device_open(name, &d, &f->diags) == HD_OK;
  if (!f->found) return;
  device_facts facts = {0};
  d->vtable->facts(d, &facts);
  text_addf(&f->text, "%s (%s), %d compute units, %.1f GB", facts.name, facts.target, facts.compute_units,
            (double)facts.memory_bytes / 1e9);
  if (facts.peak_bytes_per_s > 0) text_addf(&f->text, ", %.2f TB/s", facts.peak_bytes_per_s / 1e12);
  char *first = strncmp(name, "cuda", 4) == 0 ? e->cuda_device : e->amd_device;
  if (!first[0]) snprintf(first, sizeof e->amd_device, "%s", name);
  device_close(d);
}

static void examine_devices(examination *e) {
  examine_device(e, "cuda:0");
  examine_device(e, "hip:0");
  for (size_t t = 0; t < target_count(); t++) {
    if (target_at(t)->family == FAMILY_CUDA) continue;
    text name;
    text_init(&name);
    text_addf(&name, "emu:%s", target_at(t)->name);
    examine_device(e, text_string(&name));
    text_finish(&name);
  }
}

static void examine_cache(examination *e) {
  finding *f = add(e, "cache", "");
  f->what[5] = 0;
  cache *store = NULL;
  diags d;
  diags_init(&d);
  hd_status status = cache_open(NULL, &store, &d);
  f->found = status == HD_OK && cache_directory(store)[0];
  if (status == HD_OK) cache_write_places(store, &f->text);
  for (size_t i = 0; i < d.count; i++)
    diags_errorf(&f->diags, d.items[i].code, NULL, "%s", d.items[i].message);
  diags_finish(&d);
  cache_close(store);
}

/* What a shared cache is reached through; without one it isn't needed. */
static void examine_curl(examination *e) {
  finding *f = add(e, "http", "(for HEDDLE_CACHE_URL)");
  f->found = http_version(&f->text, &f->diags) == HD_OK;
}

static void write_finding(const finding *f, text *out) {
  text_addf(out, "%-18s %s%s%s", f->what, console_paint_of(stdout, f->found ? PAINT_GOOD : PAINT_BAD),
            f->found ? "found" : "missing", console_paint_of(stdout, PAINT_PLAIN));
  if (f->text.length) text_addf(out, ": %s", text_string(&f->text));
  text_add(out, "\n");
  for (size_t i = 0; i < f->diags.count; i++)
    text_addf(out, "    %s\n", f->diags.items[i].message);
}

static void write_finding_json(const finding *f, text *out) {
  bool first = true;
  text_add(out, "{");
  json_text(out, &first, "what", f->what);
  json_bool(out, &first, "found", f->found);
  json_text(out, &first, "details", text_string(&f->text));
  json_key(out, &first, "diagnostics");
  diags_render_json(&f->diags, out);
  text_add(out, "}");
}

/* A device that kernels can be compiled for, a GPU before an emulated one; NULL: there is none. */
static const char *device_to_use(const examination *e) {
  if (e->compiles_cuda && e->cuda_device[0]) return e->cuda_device;
  return e->compiles_amd && e->amd_device[0] ? e->amd_device : NULL;
}

/* fetch-rocm.sh of the sources one stands in, else of the installation that this command is of. */
static bool fetch_script(char out_path[4096]) {
  char command[3584];
  strcpy(out_path, "tools/fetch-rocm.sh");
  if (access(out_path, X_OK) == 0) return true;
  ssize_t length = readlink("/proc/self/exe", command, sizeof command - 1);
  if (length <= 0) return false;
  command[length] = '\0';
  for (int up = 0; up < 2; up++) { /* the name, then bin/ */
    char *slash = strrchr(command, '/');
    if (!slash) return false;
    *slash = '\0';
  }
  snprintf(out_path, 4096, "%s/share/heddle/fetch-rocm.sh", command);
  return access(out_path, X_OK) == 0;
}

/* What to type next on this machine. */
static void write_next(const examination *e, text *out) {
  const char *found = device_to_use(e);
  char script[4096];
  if (found)
    text_addf(out, "heddle verify llama3-70b-tp8-bf16 --device %s", found);
  else if (e->compiles_amd || e->compiles_cuda)
    text_addf(out, "heddle build llama3-70b-tp8-bf16 --target %s", e->compiles_amd ? "gfx950" : "sm_90");
  else if (fetch_script(script))
    text_addf(out, "%s && heddle doctor", script);
  else
    text_add(out, "apt install clang-22 lld-22 && heddle doctor");
}

static int doctor(cli *c) {
  examination *e = calloc(1, sizeof *e);
  text out;
  text_init(&out);
  if (!e) return cli_output(&out, EXIT_FAILED);
  examine_compilers(e);
  examine_devices(e);
  examine_cache(e);
  examine_curl(e);
  bool compiles = e->compiles_amd || e->compiles_cuda, runs = device_to_use(e) != NULL;
  text next;
  text_init(&next);
  write_next(e, &next);
  if (c->json) {
    bool first = true;
    text_add(&out, "{");
    json_bool(&out, &first, "compiles", compiles);
    json_bool(&out, &first, "runs", runs);
    json_text(&out, &first, "next", text_string(&next));
    json_key(&out, &first, "findings");
    text_add(&out, "[");
  }
  for (int i = 0; i < e->count; i++) {
    if (c->json && i > 0) text_add(&out, ",\n ");
    (c->json ? write_finding_json : write_finding)(&e->items[i], &out);
    text_finish(&e->items[i].text);
    diags_finish(&e->items[i].diags);
  }
  if (c->json)
    text_add(&out, "]}\n");
  else
    text_addf(&out, "\n%s\nnext: %s%s%s\n",
              runs       ? "kernels can be compiled and run here"
              : compiles ? "kernels can be compiled here, but not run: no device for them was found"
                         : "no kernel can be compiled here: get one of the compilers above",
              console_paint_of(stdout, PAINT_STRONG), text_string(&next),
              console_paint_of(stdout, PAINT_PLAIN));
  text_finish(&next);
  free(e);
  return cli_output(&out, runs ? EXIT_FINE : EXIT_DECLINED);
}

static const cli_option doctor_options[] = {
    OPTION_ROW_JSON,
    OPTION_ROW_END,
};

const cli_verb verb_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "say what is installed, what is missing and how to get it",
    .details = "Looks for compilers (hiprtc, clang with lld, nvrtc), devices (CUDA, HIP, emulated) the "
               "cache, and libcurl.\n",
    .examples = "  heddle doctor\n  heddle doctor --json\n",
    .result = "0 kernels can be compiled and run, 1 something for that is missing, 2 usage, 3 failure",
    .options = doctor_options,
    .fewest = 0,
    .most = 0,
    .run = doctor,
    .environment = ENV_CACHE | ENV_COMPILERS | ENV_DEVICES,
    .group = GROUP_MACHINE,
};
