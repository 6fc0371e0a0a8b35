/* Tensors of a command: from NAME=FILE.npy options into host memory and back. */
#ifndef HEDDLE_CLI_TENSOR_FILES_H
#define HEDDLE_CLI_TENSOR_FILES_H

#include "../launch/launch.h"
#include "cli.h"

typedef struct tensor_set {
  tensors host;
  void *memory[TENSOR_COUNT]; /* owned */
} tensor_set;

/* The --in and --out options are well-formed and name tensors that exist, each once: EXIT_FINE or EXIT_USAGE.
 */
int tensor_options_check(const cli *c);
/* Reads every --in file. HD_DECLINED: not an array, a wrong type, a tensor the operation doesn't take. */
hd_status tensor_set_read(const cli *c, const contract *terms, operation o, tensor_set *out_set,
                          diags *errors);
/* Refuses --out tensors that are no result of the operation. */
hd_status tensor_outputs_check(const cli *c, const contract *terms, operation o, diags *errors);
/* Makes room for the operation's outputs, once dims are known. */
hd_status tensor_set_add_outputs(tensor_set *set, const contract *terms, operation o,
                                 const int64_t dims[DIM_COUNT], diags *errors);
/* Writes every --out file. */
hd_status tensor_set_write(const cli *c, const tensor_set *set, diags *errors);
void tensor_set_finish(tensor_set *set);

/* Visits the --out options: name and path of the index-th, false at the end. */
bool tensor_output_at(const cli *c, int index, tensor_name *out_name, const char **out_path);

/* Options of the verbs that work on tensors, as table rows. */
#define OPTION_ROW_ONE_KERNEL                                                                                \
  { "kernel", 0, OPTION_TEXT, "KERNEL", "write or decode (not needed when the spec has one)", 0, 0 }
#define OPTION_ROW_IN                                                                                        \
  { "in", 'i', OPTION_LIST, "NAME=FILE", "read this tensor from a .npy file; may be repeated", 0, 0 }
#define OPTION_ROW_OUT                                                                                       \
  { "out", 'o', OPTION_LIST, "NAME=FILE", "write this result to a .npy file; may be repeated", 0, 0 }

#endif
