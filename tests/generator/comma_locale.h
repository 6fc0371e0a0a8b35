/* A locale that writes 0,5: one that is installed, else one that is made for the test. */
#ifndef HEDDLE_TESTS_COMMA_LOCALE_H
#define HEDDLE_TESTS_COMMA_LOCALE_H

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool is_comma_locale(const char *name) {
  return setlocale(LC_ALL, name) && localeconv()->decimal_point[0] == ',';
}

/* Skips the test where there is no such locale, nor a way to make one. */
static inline void use_comma_locale(void) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "tr_TR.UTF-8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is_comma_locale(names[i])) return;
  char folder[] = "/tmp/heddle-locale-XXXXXX", command[160];
  cr_assert(mkdtemp(folder) != NULL);
  /* It may find fault with the system's sources and make the locale all the same. */
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder,
           folder);
  int made = system(command);
  setenv("LOCPATH", folder, 1);
  bool used = is_comma_locale("de_DE.UTF-8");
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) cr_log_warn("%s is left behind", folder);
  unsetenv("LOCPATH");
  if (!used) cr_skip_test("no locale with a decimal comma, and localedef makes none (%d)", made);
}

#endif
