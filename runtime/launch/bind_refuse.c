#include "bind_parts.h"

#include <inttypes.h>
#include <string.h>

static void write_shape(const tensor *t, text *out) {
  text_add(out, "[");
  for (int i = 0; i < t->rank; i++)
    text_addf(out, "%s%" PRId64, i > 0 ? ", " : "", t->shape[i]);
  text_add(out, "]");
}

void binding_refuse(binding *b, const char *code, const char *field, const char *found, const char *allowed,
                    const char *reason) {
  diags_refusef(b->errors, code, field, found, allowed, "%s is %s, expected %s%s%s", field, found, allowed,
                reason ? ": " : "", reason ? reason : "");
  b->good = false;
}

void binding_refuse_shape(binding *b, tensor_name name, bool known, const char *reason) {
  text found, expected, numbers;
  text_init(&found);
  text_init(&expected);
  text_init(&numbers);
  write_shape(binding_tensor(b, name), &found);
  bind_expected_shape(b->contract, name, &expected);
  tensor wanted;
  if (known && bind_tensor(b->contract, name, b->dims, &wanted)) {
    write_shape(&wanted, &numbers);
    if (strcmp(text_string(&numbers), text_string(&expected)) != 0)
      text_addf(&expected, " = %s", text_string(&numbers));
  }
  diags_refusef(b->errors, "bind.shape", tensor_name_text(name), text_string(&found), text_string(&expected),
                "%s has shape %s, expected %s%s%s", tensor_name_text(name), text_string(&found),
                text_string(&expected), reason ? ": " : "", reason ? reason : "");
  text_finish(&found);
  text_finish(&expected);
  text_finish(&numbers);
  b->good = false;
}

void bind_refuse_unneeded(const contract *c, operation o, tensor_name name, diags *errors) {
  bool number =
      (name == TENSOR_K_SCALE || name == TENSOR_V_SCALE) && bind_takes_number(c, name == TENSOR_K_SCALE);
  diags_refusef(errors, "bind.unneeded", tensor_name_text(name), "given", number ? "a number" : "none",
                "%s takes no tensor %s under this contract%s", operation_name(o), tensor_name_text(name),
                number ? ", whose scale.source is argument: it is given as a number" : "");
}
