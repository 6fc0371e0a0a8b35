/* Whole files: read, write so that a reader never sees half of one, make folders. On HD_IO errno says why. */
#ifndef HEDDLE_FILE_H
#define HEDDLE_FILE_H

#include "../generator/status.h"
#include <stdbool.h>
#include <stddef.h>

/* All paths are relative to the folder `at` (AT_FDCWD: the working directory). */

/* Reads a whole regular file through a descriptor, without mapping it. `*out_bytes` is owned by the caller
 * (free) and has a NUL after its `*out_size` bytes. A file of more than `most` bytes is refused with EFBIG.
 */
hd_status file_read_fd(int fd, size_t most, char **out_bytes, size_t *out_size);
hd_status file_read(int at, const char *path, size_t most, char **out_bytes, size_t *out_size);

/* Writes a new file of the given mode (minus umask) beside `path`, flushes it to the disk and renames it over
 * `path`: a reader sees the old content or the new, also after a crash. Nothing is left behind on failure. */
hd_status file_write_atomic(int at, const char *path, unsigned mode, const void *bytes, size_t size);
/* The names of unfinished files begin with this. */
#define FILE_TEMPORARY_PREFIX ".new-"

/* Whether a program of that file may run or load `path`, which was only looked for around it: a regular file
 * that belongs to root, to this process's user or to whom `file` belongs. Folders above may be everybody's,
 * as /tmp is. */
bool file_belongs_with(const char *path, const char *file);

/* mkdir -p; folders that are there already are fine and keep their mode. */
hd_status file_make_folders(const char *path, unsigned mode);

#endif
