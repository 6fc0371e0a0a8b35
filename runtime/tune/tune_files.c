#include "../file.h"
#include "../template_folder.h"
#include "tune.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 1024 };

static hd_status add_file(tune_files *files, const char *path, diags *errors) {
  char *bytes = NULL;
  size_t size = 0;
  diags problems;
  hd_status status = file_read(AT_FDCWD, path, 1 << 20, &bytes, &size);
  if (status != HD_OK) {
    diags_errorf(errors, "tune.file", NULL, "can't read %s: %s", path, strerror(errno));
    return status;
  }
  tune_file f = {.path = strdup(path), .record = malloc(sizeof *f.record)};
  tune_file *grown = realloc(files->items, (size_t)(files->count + 1) * sizeof *grown);
  if (grown) files->items = grown;
  status = grown && f.path && f.record ? HD_OK : HD_OUT_OF_MEMORY;
  diags_init(&problems);
  if (status == HD_OK) status = tune_record_parse(bytes, size, f.record, &problems);
  for (size_t i = 0; i < problems.count; i++)
    diags_errorf(errors, "tune.record", NULL, "%s:%d:%d: %s", path, problems.items[i].line,
                 problems.items[i].column, problems.items[i].message);
  diags_finish(&problems);
  free(bytes);
  if (status != HD_OK) {
    free(f.path);
    free(f.record);
    return status;
  }
  files->items[files->count++] = f;
  return HD_OK;
}

static int is_yaml(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static hd_status add_folder(tune_files *files, const char *path, diags *errors) {
  struct dirent **names = NULL;
  int count = scandir(path, &names, is_yaml, by_bytes);
  hd_status status = HD_OK;
  if (count < 0 || count > MOST_FILES) {
    diags_errorf(errors, "tune.file", NULL, "can't read %s: %s", path,
                 count < 0 ? strerror(errno) : "too many files");
    status = HD_IO;
  }
  for (int i = 0; i < count; i++) {
    text name;
    text_init(&name);
    text_addf(&name, "%s/%s", path, names[i]->d_name);
    if (status == HD_OK)
      status = name.failed ? HD_OUT_OF_MEMORY : add_file(files, text_string(&name), errors);
    text_finish(&name);
    free(names[i]);
  }
  free(names);
  return status;
}

hd_status tune_files_load(const char *path, tune_files *out, diags *errors) {
  tune_files files = {0};
  struct stat facts;
  bool there = stat(path, &facts) == 0;
  size_t length = strlen(path);
  /* What ends like a record was meant to be there. */
  if (!there && (length < 5 || strcmp(path + length - 5, ".yaml") != 0)) {
    *out = files;
    return HD_OK;
  }
  hd_status status =
      there && S_ISDIR(facts.st_mode) ? add_folder(&files, path, errors) : add_file(&files, path, errors);
  if (status == HD_OK)
    *out = files;
  else
    tune_files_finish(&files);
  return status;
}

void tune_files_finish(tune_files *f) {
  for (int i = 0; i < f->count; i++) {
    free(f->items[i].path);
    free(f->items[i].record);
  }
  free(f->items);
  *f = (tune_files){0};
}

/* ---- Whether a record holds ---- */

static bool no(tune_file *f, const char *format, ...) HD_PRINTF(2, 3);

/* Always false. */
static bool no(tune_file *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(f->why, sizeof f->why, format, args);
  va_end(args);
  return false;
}

static bool device_fits(tune_file *f, const device_facts *facts) {
  const tune_record *r = f->record;
  if (!facts) return true;
  /* An estimate is of the part, not of who ran it. */
  if (r->evidence == TUNE_MEASURED && strcmp(r->device, facts->name) != 0)
    return no(f, "it was measured on %.80s, this is %.80s", r->device, facts->name);
  if (r->compute_units != facts->compute_units)
    return no(f, "it is for %d compute units, this device has %d", r->compute_units, facts->compute_units);
  return true;
}

static bool holds(tune_file *f, const char *key, const contract *c, const target *t,
                  const device_facts *facts, const template_source *templates) {
  const tune_record *r = f->record;
  if (strcmp(r->contract, key) != 0)
    return no(f, "it is for contract %.12s, this is %.12s", r->contract, key);
  if (strcmp(r->target, t->name) != 0) return no(f, "it is for %s", r->target);
  if (!device_fits(f, facts)) return false;
  for (int i = 0; i < r->source_count; i++) {
    variant v;
    char sum[65];
    diags ignored;
    diags_init(&ignored);
    hd_status status =
        variant_parse(r->sources[i].variant, &v) ? tune_sum(c, &v, t, templates, sum, &ignored) : HD_INVALID;
    diags_finish(&ignored);
    if (status != HD_OK) return no(f, "the generator does not serve %s any more", r->sources[i].variant);
    if (strcmp(sum, r->sources[i].sum) != 0)
      return no(f, "the generator emits %s differently now: tune again", r->sources[i].variant);
  }
  f->why[0] = '\0';
  return true;
}

void tune_files_validate(tune_files *f, const contract *c, const target *t, const device_facts *facts) {
  char key[65] = "";
  template_folder templates;
  diags problems;
  if (f->count == 0) return;
  diags_init(&problems);
  hd_status status = template_folder_init(&templates, getenv("HEDDLE_TEMPLATES"), &problems);
  bool ready = status == HD_OK && contract_key(c, key) == HD_OK;
  for (int i = 0; i < f->count; i++) {
    f->items[i].valid = ready && holds(&f->items[i], key, c, t, facts, &templates.source);
    if (!ready) no(&f->items[i], "the generator's templates can't be read");
  }
  if (status == HD_OK) template_folder_finish(&templates);
  diags_finish(&problems);
}
