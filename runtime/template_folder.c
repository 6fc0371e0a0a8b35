#include "template_folder.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_MAX_BYTES = 4 << 20 };

static const char *find(void *user, const char *name, size_t *out_length) {
  const template_folder *folder = user;
  for (int i = 0; i < folder->count; i++)
    if (strcmp(folder->files[i].name, name) == 0) {
      *out_length = folder->files[i].length;
      return folder->files[i].contents;
    }
  const template_source *embedded = templates_embedded();
  return embedded->find(embedded->user, name, out_length);
}

static bool is_template(const char *name) {
  size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, ".hip") == 0;
}

static hd_status add_file(template_folder *folder, int at, const char *name) {
  if (folder->count == TEMPLATE_FOLDER_MAX_FILES) return HD_INVALID;
  char *contents;
  size_t length;
  hd_status status = file_read(at, name, TEMPLATE_MAX_BYTES, &contents, &length);
  if (status != HD_OK) return status;
  char *copy = strdup(name);
  if (!copy) {
    free(contents);
    return HD_OUT_OF_MEMORY;
  }
  folder->files[folder->count].name = copy;
  folder->files[folder->count].contents = contents;
  folder->files[folder->count++].length = length;
  return HD_OK;
}

hd_status template_folder_init(template_folder *folder, const char *path, diags *errors) {
  *folder = (template_folder){.source = {find, folder}};
  if (!path || !*path) return HD_OK;
  DIR *entries = opendir(path);
  if (!entries) {
    diags_errorf(errors, "emit.templates", NULL, "can't read the templates in %s: %s", path, strerror(errno));
    return HD_IO;
  }
  hd_status status = HD_OK;
  for (struct dirent *e; status == HD_OK && (e = readdir(entries));)
    if (is_template(e->d_name)) {
      status = add_file(folder, dirfd(entries), e->d_name);
      if (status != HD_OK) diags_errorf(errors, "emit.templates", NULL, "can't read %s/%s", path, e->d_name);
    }
  closedir(entries);
  if (status != HD_OK) template_folder_finish(folder);
  return status;
}

void template_folder_finish(template_folder *folder) {
  for (int i = 0; i < folder->count; i++) {
    free(folder->files[i].name);
    free(folder->files[i].contents);
  }
  folder->count = 0;
}
