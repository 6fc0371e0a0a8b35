/* Claims about emitted source: deterministic bytes, plain, freestanding, and from the templates of the
 * folder. */
#include "emit_fixture.h"

/* ---- bytes ---- */

static void is_the_same_again(const contract *c, const emission *e, const char *what) {
  operation o;
  cr_assert(operation_parse(e->descriptor.operation, &o));
  emission again = emitted(c, o, &(variant){0}, target_find(e->descriptor.target));
  cr_expect(strcmp(again.source, e->source) == 0, "%s", what);
  text first, second;
  text_init(&first);
  text_init(&second);
  descriptor_write(&e->descriptor, &first);
  descriptor_write(&again.descriptor, &second);
  cr_expect_str_eq(text_string(&first), text_string(&second), "%s", what);
  text_finish(&first);
  text_finish(&second);
  emission_finish(&again);
}

Test(emit, the_same_call_gives_the_same_bytes) {
  for_each_shipped(is_the_same_again);
}

static sha256 everything;

static void add_to_sum(const contract *c, const emission *e, const char *what) {
  (void)what;
  text others;
  text_init(&others);
  contract_write(c, &others);
  descriptor_write(&e->descriptor, &others);
  sha256_update(&everything, e->source, strlen(e->source));
  sha256_update(&everything, others.data, others.length);
  text_finish(&others);
}

static void sum_of_everything(unsigned char out_digest[32]) {
  sha256_init(&everything);
  for_each_shipped(add_to_sum);
  sha256_digest(&everything, out_digest);
}

Test(emit, another_folder_environment_and_locale_give_the_same_bytes) {
  unsigned char here[32], there[32];
  use_comma_locale();
  setlocale(LC_ALL, "C");
  sum_of_everything(here);
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    const char *source = getenv("HEDDLE_SOURCE");
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", source ? source : ".");
    clearenv();
    setenv("HEDDLE_SOURCE", kept, 1);
    setenv("TZ", "Asia/Kathmandu", 1);
    setenv("HOME", "/nonexistent", 1);
    use_comma_locale();
    if (kept[0] == '/' && chdir("/") != 0) _exit(2);
    sum_of_everything(there);
    _exit(write(ends[1], there, sizeof there) == sizeof there ? 0 : 1);
  }
  cr_assert_eq(read(ends[0], there, sizeof there), sizeof there);
  int status;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  cr_expect_eq(memcmp(here, there, sizeof here), 0);
}

static void is_plain_text(const contract *c, const emission *e, const char *what) {
  (void)c;
  for (const char *at = e->source; *at; at++)
    if (!((unsigned char)*at >= 0x20 && (unsigned char)*at <= 0x7e) && *at != '\n')
      cr_assert(false, "%s: byte 0x%02x at %td", what, (unsigned)(unsigned char)*at, at - e->source);
  cr_expect_eq(e->source[strlen(e->source) - 1], '\n', "%s", what);
}

Test(emit, source_is_ascii) {
  for_each_shipped(is_plain_text);
}

static void is_freestanding(const contract *c, const emission *e, const char *what) {
  (void)c;
  const char *const banned[] = {"#include",
                                "__FILE__",
                                "__DATE__",
                                "__TIME__",
                                "/tmp",
                                "/home",
                                "/usr",
                                "/root",
                                "/opt",
                                ".yaml",
                                getenv("HEDDLE_SOURCE"),
                                getenv("HEDDLE_BUILD")};
  for (size_t i = 0; i < sizeof banned / sizeof *banned; i++)
    if (banned[i] && strlen(banned[i]) > 1)
      cr_expect_null(strstr(e->source, banned[i]), "%s has %s", what, banned[i]);
}

Test(emit, source_includes_nothing_and_names_no_path_or_time) {
  for_each_shipped(is_freestanding);
}

Test(emit, every_fence_is_filled) {
  for_each_shipped(has_no_fence);
}

static void opens_with_its_contract(const contract *c, const emission *e, const char *what) {
  text canonical;
  text_init(&canonical);
  contract resolved = contract_resolve(c, target_find(e->descriptor.target)->fp8);
  contract_write(&resolved, &canonical);
  const char *at = e->source;
  for (const char *line = text_string(&canonical); *line;) {
    char commented[256];
    int length = (int)strcspn(line, "\n");
    snprintf(commented, sizeof commented, "//   %.*s\n", length, line);
    at = strstr(at, commented);
    cr_assert_not_null(at, "%s lacks %s", what, commented);
    line += length + (line[length] == '\n');
  }
  cr_expect_lt(at - e->source, 2000, "%s: the contract is the first thing", what);
  text_finish(&canonical);
}

Test(emit, source_opens_with_the_contract_it_serves) {
  for_each_shipped(opens_with_its_contract);
}

/* ---- templates ---- */

static char *read_whole(const char *path, size_t *out_length) {
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  char *content = calloc(1, 1 << 18);
  *out_length = fread(content, 1, (1 << 18) - 1, file);
  fclose(file);
  return content;
}

static int for_each_template(void (*check)(const char *name, const char *content, size_t length)) {
  const char *source = getenv("HEDDLE_SOURCE");
  char folder[1024], path[2048];
  snprintf(folder, sizeof folder, "%s/templates", source ? source : ".");
  DIR *opened = opendir(folder);
  cr_assert_not_null(opened, "%s", folder);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(opened)) != NULL;) {
    size_t name_length = strlen(entry->d_name), length;
    if (name_length < 5 || strcmp(entry->d_name + name_length - 4, ".hip") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    char *content = read_whole(path, &length);
    check(entry->d_name, content, length);
    free(content);
    count++;
  }
  closedir(opened);
  return count;
}

static void names_no_layout(const char *name, const char *content, size_t length) {
  static const char *const words[] = {"shuffle", "Shuffle", "NHD",  "HND",   "classic", "vLLM",
                                      "d/16",    "s/16",    "d%16", "AITER", "MiniMax", "llama"};
  (void)length;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    cr_expect_null(strstr(content, words[i]), "%s speaks of %s", name, words[i]);
}

Test(emit, no_template_knows_a_layout_or_a_model_by_name) {
  cr_expect_gt(for_each_template(names_no_layout), 3);
}

static void is_embedded(const char *name, const char *content, size_t length) {
  size_t found_length;
  const template_source *embedded = templates_embedded();
  const char *found = embedded->find(embedded->user, name, &found_length);
  cr_assert_not_null(found, "%s is not embedded", name);
  cr_expect(found_length == length && memcmp(found, content, length) == 0, "%s is embedded as it is", name);
}

Test(emit, the_templates_of_the_folder_are_those_embedded) {
  for_each_template(is_embedded);
  size_t length;
  cr_expect_null(templates_embedded()->find(templates_embedded()->user, "nothing.hip", &length));
}

/* Replaces one template; the others are the embedded ones. */
typedef struct override {
  const char *name, *content; /* content NULL: missing */
} override;

static const char *find_override(void *user, const char *name, size_t *out_length) {
  const override *o = user;
  const template_source *embedded = templates_embedded();
  if (strcmp(name, o->name) != 0) return embedded->find(embedded->user, name, out_length);
  *out_length = o->content ? strlen(o->content) : 0;
  return o->content;
}

static void fails_inside(override o, const char *expected) {
  contract c = shipped("minimax-m3-dense-fp8");
  template_source source = {find_override, &o};
  emission e, untouched;
  memset(&e, 0x5a, sizeof e);
  untouched = e;
  diags problems;
  diags_init(&problems);
  cr_expect_eq(
      emit_operation(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx950"), &source, &e, &problems),
      HD_INTERNAL);
  cr_assert_geq(problems.count, 1);
  cr_expect_str_eq(problems.items[0].code, "emit.template");
  cr_expect_not_null(strstr(problems.items[0].message, expected), "%s", problems.items[0].message);
  cr_expect_eq(memcmp(&e, &untouched, sizeof e), 0);
  diags_finish(&problems);
}

Test(emit, a_missing_template_or_an_unknown_fence_is_named) {
  fails_inside((override){"decode.hip", NULL}, "decode.hip is missing");
  fails_inside((override){"prelude_amdgcn.hip", NULL}, "prelude_amdgcn.hip is missing");
  fails_inside((override){"decode.hip", "// fine\n//@ nobody fills this\n"}, "'nobody fills this'");
}

Test(emit, what_is_no_fence_is_copied) {
  contract c = shipped("nhd-fp16");
  override o = {"decode.hip",
                "a line\n  //@ indented is text\n//@missing its blank\n//@ \nno newline at the end"};
  template_source source = {find_override, &o};
  emission e;
  diags problems;
  diags_init(&problems);
  cr_assert_eq(
      emit_operation(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx950"), &source, &e, &problems),
      HD_OK);
  cr_expect_str_eq(e.source, o.content);
  emission_finish(&e);
  diags_finish(&problems);
}

Test(emit, the_generator_sum_is_a_sha256) {
  cr_assert_eq(strlen(emit_generator_sum()), 64);
  cr_expect_eq(strspn(emit_generator_sum(), "0123456789abcdef"), 64);
}
