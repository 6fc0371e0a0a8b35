/* Templates from a folder, for people who work on them: what is not there is taken from those built in. */
#ifndef HEDDLE_TEMPLATE_FOLDER_H
#define HEDDLE_TEMPLATE_FOLDER_H

#include "../generator/emit.h"

enum { TEMPLATE_FOLDER_MAX_FILES = 64 };

typedef struct template_folder {
  int count;
  struct {
    char *name, *contents;
    size_t length;
  } files[TEMPLATE_FOLDER_MAX_FILES];
  template_source source; /* finds in the folder first; valid while this struct stays where it is */
} template_folder;

/* Reads every *.hip of `path`; NULL or "": the folder is empty, and `source` gives what is built in. HD_IO
 * with a diagnostic (emit.templates) when the folder can't be read. Not changed afterwards: any thread may
 * use `source`. */
hd_status template_folder_init(template_folder *folder, const char *path, diags *errors);
void template_folder_finish(template_folder *folder);

#endif
