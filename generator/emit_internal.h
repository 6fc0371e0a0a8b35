/* What the two emitters share. Not for others. */
#ifndef HEDDLE_EMIT_INTERNAL_H
#define HEDDLE_EMIT_INTERNAL_H

#include "emit.h"

/* Fills one fence of a template: `name` is what follows "//@ ". Unknown names return false. */
typedef bool (*fence_filler)(void *user, const char *name, text *out);

/* Copies the template, replacing every fence line by what `fill` writes. */
hd_status template_fill(const template_source *templates, const char *file, fence_filler fill, void *user,
                        text *out, diags *errors);
hd_status template_copy(const template_source *templates, const char *file, text *out, diags *errors);

/* "format_bf16" … the prelude's struct for a dtype. */
const char *format_of(dtype d);
/* The comment that opens every emitted source: the contract it serves, line by line. */
void write_contract_comment(const contract *c, const char *kernel, const target *t, text *out);
void write_int(text *out, const char *name, int64_t value);
void write_bool(text *out, const char *name, bool value);
/* A float literal that reads back exactly, with its suffix: infinities and NaN do not occur. */
void write_float(text *out, const char *name, double value);
/* "k_offset(slot, channel, heads_stride)": element offset inside one page and head. */
void write_offset_function(text *out, const char *name, const layout *l, int element_bytes);
void write_scale_offset_function(text *out, const char *name, const layout *l);
void write_scale_type(text *out, dtype d);
/* "k_scale", "v_scale": whose scales lie in a cache's pages has pointers to them made from the cache's. */
void write_scales_inside(const contract *c, bool writer, text *out);

void add_tensor(kernel_descriptor *k, tensor_name t);
void add_dim(kernel_descriptor *k, dim d);
void add_number(kernel_descriptor *k, number_name n);
/* K's or V's scale, as the contract has it: the array it lies in, a number, or nothing. */
void add_scale(const contract *c, kernel_descriptor *k, bool is_k);
/* The C parameter list of a kernel, one a line. */
void write_arguments(const kernel_descriptor *k, text *out);
/* The same as a struct of an AMD kernel's argument memory, and in the kernel as constants of the same names,
 * read once more from there, all but one (NULL: all). */
void write_arguments_struct(const kernel_descriptor *k, const char *name, text *out);
void write_arguments_again(const kernel_descriptor *k, const char *name, const char *but, text *out);

hd_status emit_decode(const contract *c, const variant *v, const target *t, const template_source *templates,
                      text *out_source, descriptor *out_descriptor, diags *errors);
hd_status emit_write(const contract *c, const variant *v, const target *t, const template_source *templates,
                     text *out_source, descriptor *out_descriptor, diags *errors);

#endif
