#include "tensor_files.h"
#include "../npy.h"
#include <stdlib.h>
#include <string.h>

/* "NAME=FILE" apart; false when it is not of that form or the name is unknown (the name is then in
 * `out_word`). */
static bool split_option(const char *option, char out_word[32], tensor_name *out_name,
                         const char **out_path) {
  const char *equals = strchr(option, '=');
  size_t length = equals ? (size_t)(equals - option) : 0;
  out_word[0] = 0;
  if (!equals || !length || !equals[1]) return false;
  if (length > 31) length = 31;
  memcpy(out_word, option, length);
  out_word[length] = 0;
  *out_path = equals + 1;
  return tensor_name_parse(out_word, out_name) && *out_name != TENSOR_WORKSPACE;
}

static const char *tensor_name_at(size_t index) {
  return tensor_name_text((tensor_name)index);
}

static int check_options(const cli *c, const char *option_name) {
  bool seen[TENSOR_COUNT] = {false};
  const char *option;
  for (int i = 0; (option = cli_list(c, option_name, i)); i++) {
    char word[32];
    tensor_name name;
    const char *path;
    if (!split_option(option, word, &name, &path)) {
      if (!word[0]) return cli_usage(c, "--%s takes NAME=FILE.npy, not '%s'", option_name, option);
      const char *near = cli_nearest(word, TENSOR_WORKSPACE, tensor_name_at);
      return near ? cli_usage(c, "--%s: unknown tensor '%s' (did you mean %s?)", option_name, word, near)
                  : cli_usage(c, "--%s: unknown tensor '%s'", option_name, word);
    }
    if (seen[name]) return cli_usage(c, "--%s: %s is given twice", option_name, word);
    seen[name] = true;
  }
  return EXIT_FINE;
}

int tensor_options_check(const cli *c) {
  int code = check_options(c, "in");
  return code ? code : check_options(c, "out");
}

bool tensor_output_at(const cli *c, int index, tensor_name *out_name, const char **out_path) {
  char word[32];
  const char *option = cli_list(c, "out", index);
  return option && split_option(option, word, out_name, out_path);
}

/* Files larger than this are not read; it only bounds what a wrong path (a device) can cost. */
#define TENSOR_FILE_MAX_BYTES ((size_t)1 << 40)

static hd_status read_one(const contract *terms, tensor_name name, const char *path, tensor_set *set,
                          diags *errors) {
  const int64_t no_dims[DIM_COUNT] = {0};
  tensor t = {0};
  npy array;
  char *bytes = NULL;
  size_t length = 0;
  diags why;
  diags_init(&why);
  hd_status status = cli_read_file(path, TENSOR_FILE_MAX_BYTES, &bytes, &length, &why);
  if (status == HD_OK) status = npy_parse(bytes, length, &array, &why);
  for (size_t i = 0; i < why.count; i++)
    diags_errorf(errors, why.items[i].code, tensor_name_text(name), "%s (%s): %s", tensor_name_text(name),
                 path, why.items[i].message);
  diags_finish(&why);
  if (status == HD_OK && bind_tensor(terms, name, no_dims, &t) && !npy_holds(&array, t.dtype)) {
    char found[16];
    npy_type_name(&array, found, sizeof found);
    const char *travels = npy_travels_as(t.dtype), *wanted = dtype_name(t.dtype);
    const bool same = strcmp(travels, wanted) == 0;
    diags_errorf(errors, "bind.dtype", tensor_name_text(name), "%s (%s) is an array of %s, expected %s%s%s",
                 tensor_name_text(name), path, found, travels, same ? "" : " for ", same ? "" : wanted);
    status = HD_DECLINED;
  }
  if (status != HD_OK) {
    free(bytes);
    return status;
  }
  /* Move the data to the start, where malloc's alignment is. */
  memmove(bytes, bytes + array.data_offset, array.data_size);
  set->memory[name] = bytes;
  t.rank = array.rank;
  memcpy(t.shape, array.shape, sizeof t.shape);
  t.data = (uint64_t)(uintptr_t)bytes;
  set->host.by_name[name] = t;
  set->host.present[name] = true;
  return HD_OK;
}

hd_status tensor_set_read(const cli *c, const contract *terms, operation o, tensor_set *out_set,
                          diags *errors) {
  tensor_set set = {0};
  hd_status worst = HD_OK;
  const char *option;
  for (int i = 0; (option = cli_list(c, "in", i)); i++) {
    char word[32];
    tensor_name name;
    const char *path;
    if (!split_option(option, word, &name, &path)) continue;
    tensor_role role = bind_role(terms, o, name);
    hd_status status = HD_DECLINED;
    if (role == ROLE_OUTPUT)
      diags_errorf(errors, "bind.unneeded", word, "%s is a result of %s: it goes with --out", word,
                   operation_name(o));
    else if (role == ROLE_NONE)
      bind_refuse_unneeded(terms, o, name, errors);
    else
      status = read_one(terms, name, path, &set, errors);
    if (status != HD_OK && (worst == HD_OK || worst == HD_DECLINED)) worst = status;
  }
  if (worst != HD_OK) {
    tensor_set_finish(&set);
    return worst;
  }
  *out_set = set;
  return HD_OK;
}

hd_status tensor_outputs_check(const cli *c, const contract *terms, operation o, diags *errors) {
  hd_status status = HD_OK;
  tensor_name name;
  const char *path;
  for (int i = 0; tensor_output_at(c, i, &name, &path); i++) {
    tensor_role role = bind_role(terms, o, name);
    if (role == ROLE_OUTPUT || role == ROLE_UPDATED) continue;
    text results;
    text_init(&results);
    for (int t = 0; t < TENSOR_COUNT; t++) {
      tensor_role other = bind_role(terms, o, (tensor_name)t);
      if (other == ROLE_OUTPUT || other == ROLE_UPDATED)
        text_addf(&results, "%s%s", results.length ? ", " : "", tensor_name_text((tensor_name)t));
    }
    diags_errorf(errors, "bind.unneeded", tensor_name_text(name),
                 "%s is no result of %s under this contract; results are %s", tensor_name_text(name),
                 operation_name(o), text_string(&results));
    text_finish(&results);
    status = HD_DECLINED;
  }
  return status;
}

hd_status tensor_set_add_outputs(tensor_set *set, const contract *terms, operation o,
                                 const int64_t dims[DIM_COUNT], diags *errors) {
  for (int i = 0; i < TENSOR_COUNT; i++) {
    tensor_name name = (tensor_name)i;
    tensor t;
    if (bind_role(terms, o, name) != ROLE_OUTPUT) continue;
    if (!bind_tensor(terms, name, dims, &t)) continue;
    void *memory = calloc(tensor_bytes(&t) + 1, 1);
    if (!memory) {
      diags_errorf(errors, "memory", tensor_name_text(name), "out of memory for %s (%zu bytes)",
                   tensor_name_text(name), tensor_bytes(&t));
      return HD_OUT_OF_MEMORY;
    }
    t.data = (uint64_t)(uintptr_t)memory;
    set->memory[name] = memory;
    set->host.by_name[name] = t;
    set->host.present[name] = true;
  }
  return HD_OK;
}

hd_status tensor_set_write(const cli *c, const tensor_set *set, diags *errors) {
  tensor_name name;
  const char *path;
  for (int i = 0; tensor_output_at(c, i, &name, &path); i++) {
    text file;
    text_init(&file);
    npy_write(&set->host.by_name[name], set->memory[name], &file);
    hd_status status = cli_write_text(path, &file, errors);
    text_finish(&file);
    if (status != HD_OK) return status;
  }
  return HD_OK;
}

void tensor_set_finish(tensor_set *set) {
  for (int i = 0; i < TENSOR_COUNT; i++)
    free(set->memory[i]);
  *set = (tensor_set){0};
}
