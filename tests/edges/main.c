#include "edges.h"
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "edges [--device DEVICE] [--variant VARIANT] [--only NAME]   (default: emu:gfx950; --list: the names)\n";

int main(int argc, char **argv) {
  const edge_test *const all[] = {edges_of_values, edges_of_memory, edges_of_shapes, edges_of_launches,
                                  edges_of_numbers, edges_of_logits};
  const char *name = "emu:gfx950", *only = "";
  variant decode = {0};
  bool list = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--list") == 0)
      list = true;
    else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
      name = argv[++i];
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (strcmp(argv[i], "--variant") == 0 && i + 1 < argc && variant_parse(argv[i + 1], &decode))
      i++;
    else
      return fputs(usage, stderr), 2;
  }
  session s;
  diags d;
  int passed = 0, failed = 0;
  diags_init(&d);
  if (!list && session_open(name, COMPILER_AUTO, NULL, &s, &d) != HD_OK) {
    fprintf(stderr, "%s: %s\n", name, d.count ? d.items[0].message : "can't be opened");
    diags_finish(&d);
    return 3;
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (const edge_test *t = all[i]; t->name; t++) {
      edge e = {.session = &s, .variant = decode};
      if (!strstr(t->name, only)) continue;
      if (list) {
        puts(t->name);
        continue;
      }
      t->run(&e);
      printf("[%s] %s\n", e.failed ? "FAIL" : "PASS", t->name);
      if (e.failed) printf("[----]   %s\n", e.problem);
      fflush(stdout);
      *(e.failed ? &failed : &passed) += 1;
    }
  if (!list) {
    session_close(&s);
    printf("cases: %d passed, %d failed\n", passed, failed);
  }
  diags_finish(&d);
  return failed > 0 || (!list && passed == 0);
}
