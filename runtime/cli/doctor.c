#include "verbs.h"
static int doctor(cli *c) {
  (void)c;
  return EXIT_FAILED;
}
const cli_verb verb_doctor = {.name = "doctor",
                              .arguments = "",
                              .summary = "say what is installed, what is missing and how to get it",
                              .examples = "  heddle doctor\n",
                              .run = doctor};
