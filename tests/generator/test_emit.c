/* Claims about emission: the same bytes for the same contract anywhere, every fence filled, source and
 * descriptor in step, and one answer from emit_check and emit_operation. */
#include "comma_locale.h"
#include "../../generator/emit.h"
#include "../../generator/sha256.h"
#include "../random_contract.h"
#include "../spec_fixture.h"

#include <ctype.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static const operation operations[] = {OPERATION_WRITE, OPERATION_DECODE};

static emission emitted(const contract *c, operation o, const variant *v, const target *t) {
  emission e = {0};
  diags problems;
  diags_init(&problems);
  hd_status status = emit_operation(c, o, v, t, templates_embedded(), &e, &problems);
  cr_assert_eq(status, HD_OK, "%s for %s: %s", operation_name(o), t->name,
               problems.count ? problems.items[0].message : "no diagnostic");
  cr_expect_eq(problems.count, 0);
  diags_finish(&problems);
  return e;
}

static contract shipped(const char *name) {
  char *yaml = read_shipped(name);
  spec s = parse_good(yaml);
  contract c = s.contract;
  spec_finish(&s);
  free(yaml);
  return c;
}

static void for_each_shipped(void (*check)(const contract *c, const emission *e, const char *what)) {
  for (size_t i = 0; i < SHIPPED_COUNT; i++) {
    contract c = shipped(shipped_specs[i]);
    for (size_t n = 0; n < target_count(); n++)
      for (int o = 0; o < 2; o++) {
        emission e = emitted(&c, operations[o], &(variant){0}, target_at(n));
        char what[128];
        snprintf(what, sizeof what, "%s of %s for %s", operation_name(operations[o]), shipped_specs[i],
                 target_at(n)->name);
        check(&c, &e, what);
        emission_finish(&e);
      }
  }
}

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

static void has_no_fence(const contract *c, const emission *e, const char *what) {
  (void)c;
  cr_expect_null(strstr(e->source, "//@"), "%s", what);
  int braces = 0, parentheses = 0;
  for (const char *at = e->source; *at; at++) {
    if (at[0] == '/' && at[1] == '/') at += strcspn(at, "\n");
    if (*at == '"') at += 1 + strcspn(at + 1, "\""); /* assembly has braces of its own */
    braces += (*at == '{') - (*at == '}');
    parentheses += (*at == '(') - (*at == ')');
    cr_assert(braces >= 0 && parentheses >= 0, "%s", what);
  }
  cr_expect(braces == 0 && parentheses == 0, "%s: %d braces, %d parentheses open", what, braces, parentheses);
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

/* ---- descriptor and source ---- */

/* Checks one parameter, "    const u8 *__restrict__ k_cache", against the argument it should be. */
static void is_argument(const char *parameter, size_t length, argument a, const char *what) {
  size_t end = length;
  while (end > 0 && isspace((unsigned char)parameter[end - 1]))
    end--;
  size_t start = end;
  while (start > 0 && (isalnum((unsigned char)parameter[start - 1]) || parameter[start - 1] == '_'))
    start--;
  cr_assert(strlen(argument_name(a)) == end - start &&
                memcmp(parameter + start, argument_name(a), end - start) == 0,
            "%s: parameter '%.*s' is not %s", what, (int)length, parameter, argument_name(a));
  bool pointer = memchr(parameter, '*', start) != NULL;
  cr_expect_eq(pointer, a.kind == ARGUMENT_TENSOR, "%s: %s", what, argument_name(a));
  if (pointer) return;
  while (isspace((unsigned char)*parameter))
    parameter++;
  const char *type = a.kind == ARGUMENT_NUMBER ? "float " : argument_bytes(a) == 8 ? "i64 " : "int ";
  cr_expect_eq(strncmp(parameter, type, strlen(type)), 0, "%s: %s is %s", what, argument_name(a), type);
}

static void parameters_match(const char *source, const kernel_descriptor *k, const char *what) {
  char head[96];
  snprintf(head, sizeof head, "void %s(", k->symbol);
  const char *at = strstr(source, head);
  cr_assert_not_null(at, "%s: no kernel %s", what, k->symbol);
  at += strlen(head);
  const char *close = strchr(at, ')');
  for (int i = 0; i < k->argument_count; i++) {
    const char *end = memchr(at, ',', (size_t)(close - at));
    cr_assert_eq(end == NULL, i + 1 == k->argument_count, "%s: %s has another number of parameters", what,
                 k->symbol);
    is_argument(at, (size_t)((end ? end : close) - at), k->arguments[i], what);
    at = end ? end + 1 : close;
  }
}

static void descriptor_fits(const contract *c, const emission *e, const char *what) {
  const descriptor *d = &e->descriptor;
  const target *t = target_find(d->target);
  char key[65];
  cr_assert_eq(contract_key(c, key), HD_OK);
  cr_expect_str_eq(d->contract_key, key, "%s", what);
  cr_expect_str_eq(d->variant, "default", "%s", what);
  cr_assert(d->kernel_count >= 1 && d->kernel_count <= DESCRIPTOR_MAX_KERNELS, "%s", what);
  cr_expect_gt(d->tile_tokens, 0, "%s", what);
  for (int i = 0; i < d->kernel_count; i++) {
    const kernel_descriptor *k = &d->kernels[i];
    parameters_match(e->source, k, what);
    cr_expect(k->block > 0 && k->block <= 1024 && k->block % t->wave == 0, "%s: %s has %d threads", what,
              k->symbol, k->block);
    cr_expect_leq(k->lds_bytes, t->lds_bytes, "%s", what);
    unsigned tensors = 0;
    for (int n = 0; n < k->argument_count; n++)
      if (k->arguments[n].kind == ARGUMENT_TENSOR) {
        cr_expect_not(tensors & 1u << k->arguments[n].index, "%s: %s twice", what,
                      argument_name(k->arguments[n]));
        tensors |= 1u << k->arguments[n].index;
      }
    cr_expect_eq((tensors & 1u << TENSOR_LSE) != 0, c->output.lse && strcmp(d->operation, "decode") == 0,
                 "%s", what);
  }
  text json;
  text_init(&json);
  descriptor_write(d, &json);
  descriptor back;
  cr_expect_eq(descriptor_parse(text_string(&json), json.length, &back), HD_OK, "%s", what);
  text_finish(&json);
}

Test(emit, descriptor_and_source_agree_on_every_parameter) {
  for_each_shipped(descriptor_fits);
}

static int64_t sample_dims[DIM_COUNT] = {
    [DIM_SEQS] = 5,   [DIM_ROWS] = 1,     [DIM_KV_HEADS] = 3,    [DIM_PAGES] = 1000,
    [DIM_SPLITS] = 7, [DIM_TOKENS] = 101, [DIM_TABLE_PAGES] = 64};

Test(emit, grids_and_workspace_are_these_numbers) {
  contract c = shipped("minimax-m3-dense-fp8");
  emission e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx950"));
  cr_assert_eq(e.descriptor.kernel_count, 2);
  const kernel_descriptor *decode = &e.descriptor.kernels[0], *merge = &e.descriptor.kernels[1];
  cr_expect_str_eq(decode->symbol, "heddle_decode");
  cr_expect_str_eq(merge->symbol, "heddle_merge");
  cr_expect_eq(extent_value(&decode->grid[0], sample_dims), 5);
  cr_expect_eq(extent_value(&decode->grid[1], sample_dims), 3);
  cr_expect_eq(extent_value(&decode->grid[2], sample_dims), 7);
  cr_expect_not(decode->only_when_split);
  cr_expect(merge->only_when_split);
  /* 16 heads of 128 values, a maximum of each kind, a sum and a blank, 4 bytes each */
  cr_expect_eq(extent_value(&e.descriptor.workspace, sample_dims), 5 * 3 * 7 * 16 * (128 + 4) * 4);
  emission_finish(&e);

  e = emitted(&c, OPERATION_WRITE, &(variant){0}, target_find("gfx950"));
  cr_assert_eq(e.descriptor.kernel_count, 1);
  const kernel_descriptor *writer = &e.descriptor.kernels[0];
  /* 303 rows of 16 lanes, 256 lanes a workgroup: 18.9 */
  cr_expect_eq(extent_value(&writer->grid[0], sample_dims), 19);
  cr_expect_eq(extent_value(&writer->grid[1], sample_dims), 1);
  cr_expect_eq(extent_value(&writer->grid[2], sample_dims), 1);
  cr_expect_eq(writer->block, 256);
  cr_expect_eq(extent_value(&e.descriptor.workspace, sample_dims), 0);
  emission_finish(&e);
}

Test(emit, arguments_follow_the_contract) {
  contract c = shipped("nhd-fp16"); /* no scales, rsqrt_d */
  emission e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx942"));
  cr_expect_null(strstr(e.source, "logits_scale,"));
  cr_expect_null(strstr(e.source, "k_scale_stride_b"));
  int plain = e.descriptor.kernels[0].argument_count;
  emission_finish(&e);
  c.output.lse = true;
  c.logits.scale = LOGITS_ARGUMENT;
  e = emitted(&c, OPERATION_DECODE, &(variant){0}, target_find("gfx942"));
  cr_expect_eq(e.descriptor.kernels[0].argument_count, plain + 2);
  descriptor_fits(&c, &e, "nhd-fp16 with lse");
  emission_finish(&e);
}

static bool takes(const kernel_descriptor *k, argument_kind kind, int index) {
  for (int i = 0; i < k->argument_count; i++)
    if (k->arguments[i].kind == kind && k->arguments[i].index == index) return true;
  return false;
}

/* Of every kernel of an emission: which of K's and V's scale it takes, and that it takes it as it should. */
static void scales_come(const emission *e, bool as_numbers, int kernel, bool k_scale, bool v_scale,
                        const char *what) {
  const kernel_descriptor *k = &e->descriptor.kernels[kernel];
  const argument_kind kind = as_numbers ? ARGUMENT_NUMBER : ARGUMENT_TENSOR,
                      other = as_numbers ? ARGUMENT_TENSOR : ARGUMENT_NUMBER;
  const int own[] = {as_numbers ? (int)NUMBER_K_SCALE : (int)TENSOR_K_SCALE,
                     as_numbers ? (int)NUMBER_V_SCALE : (int)TENSOR_V_SCALE};
  const int others[] = {as_numbers ? (int)TENSOR_K_SCALE : (int)NUMBER_K_SCALE,
                        as_numbers ? (int)TENSOR_V_SCALE : (int)NUMBER_V_SCALE};
  const bool wanted[] = {k_scale, v_scale};
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(takes(k, kind, own[i]), wanted[i], "%s: %s, scale %d", what, k->symbol, i);
    cr_expect_not(takes(k, other, others[i]), "%s: %s, scale %d", what, k->symbol, i);
  }
}

/* In every structure of every target, whatever lists the pages; where V lies in K its scale is K's. */
Test(emit, scales_of_a_tensor_are_pointers_or_numbers) {
  static const struct {
    const char *spec, *target, *variant;
    bool shared;
  } cases[] = {{"vllm-rocm-classic-fp8", "gfx942", "default", false},
               {"vllm-rocm-classic-fp8", "gfx950", "direct", false},
               {"vllm-rocm-classic-fp8", "gfx950", "ring", false},
               {"vllm-rocm-classic-fp8", "gfx1201", "default", false},
               {"vllm-rocm-classic-fp8", "gfx1250", "ring", false},
               {"vllm-rocm-classic-fp8", "sm_90", "direct", false},
               {"minimax-m3-dense-fp8", "sm_90", "ring", false},
               {"deepseek-mla-fp8", "gfx950", "default", true},
               {"minimax-m3-sparse-blocks-fp8", "gfx942", "default", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int numbers = 0; numbers < 2; numbers++) {
      const target *t = target_find(cases[i].target);
      contract c = shipped(cases[i].spec);
      variant v;
      char what[96];
      cr_assert(variant_parse(cases[i].variant, &v));
      snprintf(what, sizeof what, "%s on %s, %s", cases[i].spec, cases[i].target,
               numbers ? "argument" : "memory");
      c.scale.granularity = SCALE_TENSOR;
      c.scale.k.count = c.scale.v.count = 0;
      c.scale.argument = numbers;
      emission e = emitted(&c, OPERATION_WRITE, &(variant){0}, t);
      scales_come(&e, numbers, 0, true, !cases[i].shared, what);
      descriptor_fits(&c, &e, what);
      emission_finish(&e);
      e = emitted(&c, OPERATION_DECODE, &v, t);
      const int first = contract_makes_lists(&c); /* behind heddle_select */
      scales_come(&e, numbers, first, true, !cases[i].shared, what);
      scales_come(&e, numbers, first + 1, cases[i].shared, !cases[i].shared, what);
      for (int k = 0; k < e.descriptor.kernel_count; k++)
        parameters_match(e.source, &e.descriptor.kernels[k], what);
      emission_finish(&e);
    }
}

/* ---- operations and variants ---- */

Test(emit, operations_a_spec_can_ask_for_have_names) {
  for (int o = 0; o < 2; o++) {
    operation found;
    cr_assert(operation_parse(operation_name(operations[o]), &found));
    cr_expect_eq(found, operations[o]);
  }
  operation untouched = OPERATION_DECODE;
  static const char *const strangers[] = {"", "merge", "Decode", "decode ", "read"};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
    cr_expect_not(operation_parse(strangers[i], &untouched), "%s", strangers[i]);
  cr_expect_eq(untouched, OPERATION_DECODE);
}

Test(emit, a_variants_text_is_read_back_and_has_one_spelling) {
  static const int numbers[] = {0, 1, 2, 9, 10, 16};
  for (int i = 0; i < 3 * 6 * 6 * 6 * 2; i++) {
    variant v = {.structure = (structure)(i % 3),
                 .waves = numbers[i / 3 % 6],
                 .stages = numbers[i / 18 % 6],
                 .resident = numbers[i / 108 % 6],
                 .tile = i % 7 * 64,
                 .line = i >= 648};
    variant back;
    text t;
    text_init(&t);
    variant_write(&v, &t);
    cr_assert(variant_parse(text_string(&t), &back), "%s", text_string(&t));
    cr_expect(back.structure == v.structure && back.waves == v.waves && back.stages == v.stages &&
                  back.resident == v.resident && back.tile == v.tile && back.line == v.line,
              "%s", text_string(&t));
    text_finish(&t);
  }
  static const char *const refused[] = {"",
                                        "w",
                                        "w0",
                                        "w17",
                                        "w-1",
                                        "w 4",
                                        "w+4",
                                        "w04",
                                        "W4",
                                        "4",
                                        "x4",
                                        "w4x",
                                        "w4 ",
                                        " w4",
                                        "w4-",
                                        "-w4",
                                        "w4--w4",
                                        "w4-w4",
                                        "w4,",
                                        "def",
                                        "default-w4",
                                        "w4-default",
                                        "w99999999999999999999",
                                        "s4-w4",
                                        "w4-ring",
                                        "w4-line",
                                        "line-ring",
                                        "line-line",
                                        "lines",
                                        "ring-direct",
                                        "auto",
                                        "ringw4",
                                        "o2-s2"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    variant v = {.waves = 77};
    cr_expect_not(variant_parse(refused[i], &v), "'%s'", refused[i]);
    cr_expect_eq(v.waves, 77, "'%s': the result is left alone", refused[i]);
  }
}

Test(emit, the_variant_reaches_descriptor_and_source) {
  contract c = shipped("minimax-m3-dense-fp8");
  const target *t = target_find("gfx950");
  emission two = emitted(&c, OPERATION_DECODE, &(variant){.waves = 2}, t);
  emission eight = emitted(&c, OPERATION_DECODE, &(variant){.waves = 8}, t);
  cr_expect_str_eq(two.descriptor.variant, "w2");
  cr_expect_eq(two.descriptor.kernels[0].block, 128);
  cr_expect_eq(eight.descriptor.kernels[0].block, 512);
  cr_expect_not_null(strstr(eight.source, "constexpr int WAVES = 8;"));
  cr_expect_str_eq(two.descriptor.contract_key, eight.descriptor.contract_key);
  emission_finish(&two);
  emission_finish(&eight);
}

/* 304 compute units; a batch of three lists by rows, one sequence and 17 kv heads has no other workspace than
 * one of a single list. */
Test(emit, parts_of_a_line_have_a_grid_and_workspace_whatever_the_batch) {
  int64_t dims[DIM_COUNT] = {
      [DIM_SEQS] = 1, [DIM_ROWS] = 1, [DIM_KV_HEADS] = 1, [DIM_SPLITS] = 608, [DIM_LIST_WIDTH] = 9};
  contract mla = shipped("deepseek-mla-bf16"), blocks = shipped("minimax-m3-sparse-blocks-fp8");
  const contract *contracts[] = {&mla, &blocks};
  for (int i = 0; i < 2; i++)
    for (size_t n = 0; n < target_count(); n++) {
      const contract *c = contracts[i];
      emission e = emitted(c, OPERATION_DECODE, &(variant){.line = true}, target_at(n));
      const descriptor *d = &e.descriptor;
      const kernel_descriptor *decode = &d->kernels[d->kernel_count - 2],
                              *merge = &d->kernels[d->kernel_count - 1];
      cr_expect_gt(d->line_parts, 0);
      cr_expect_str_eq(decode->symbol, "heddle_decode");
      cr_expect_eq(extent_value(&decode->grid[0], dims), 608);
      cr_expect_eq(extent_value(&merge->grid[0], dims), 608);
      cr_expect_eq(extent_value(&decode->grid[2], dims), 1);
      cr_expect_eq(decode->waits_itself, target_at(n)->family == FAMILY_CUDA);
      int64_t bytes = extent_value(&d->workspace, dims);
      cr_expect_eq(bytes, 608 * 2 * (int64_t)c->query.heads_per_kv * (c->head_dim.v + 4) * 4, "%s",
                   target_at(n)->name);
      dims[DIM_SEQS] = 3, dims[DIM_KV_HEADS] = 17;
      cr_expect_eq(extent_value(&d->workspace, dims), bytes);
      cr_expect_eq(extent_value(&decode->grid[1], dims), decode->grid[1].multiplier);
      dims[DIM_SEQS] = dims[DIM_KV_HEADS] = 1;
      emission_finish(&e);
    }
}

/* 65535 parts of 128 heads with 512 channels are more than 2^31 words. */
Test(emit, partial_results_lie_at_64_bit_places) {
  contract mla = shipped("deepseek-mla-bf16");
  for (int line = 0; line < 2; line++)
    for (size_t n = 0; n < target_count(); n++) {
      emission e = emitted(&mla, OPERATION_DECODE, &(variant){.line = line}, target_at(n));
      cr_expect_not_null(strstr(e.source, "(i64)(partial_number * (ROWS * HEADS) + column) * PARTIAL_WORDS"),
                         "%s, line %d", target_at(n)->name, line);
      emission_finish(&e);
    }
}

/* ---- the contract decides the source ---- */

/* Behind the comment that quotes the contract. */
static const char *code_of(const emission *e) {
  const char *code = strstr(e->source, "\nconstexpr ");
  cr_assert_not_null(code);
  return code;
}

static void edit_page(contract *c) {
  c->kv.page = 64;
  c->kv.k = parsed("[b,h,d/16,s,d%16]", 64, 128);
  c->kv.v = parsed("[b,h,s/16,d,s%16]", 64, 128);
}
static void edit_k(contract *c) {
  c->kv.k = parsed("[b,h,s,d]", 128, 128);
}
static void edit_v(contract *c) {
  c->kv.v = parsed("[b,h,d,s]", 128, 128);
}
static void edit_heads(contract *c) {
  c->query.heads_per_kv = 7;
}
static void edit_query(contract *c) {
  c->query.dtype = DTYPE_FP16;
}
static void edit_cache(contract *c) {
  c->kv.k_dtype = c->kv.v_dtype = DTYPE_BF16;
}
static void edit_scale(contract *c) {
  c->scale.dtype = DTYPE_FP16;
}
static void edit_scale_k(contract *c) {
  c->scale.k = parsed("[b,s,h]", 128, 0);
}
static void edit_scale_v(contract *c) {
  c->scale.v = parsed("[b,s,h]", 128, 0);
}
static void edit_granularity(contract *c) {
  c->scale.granularity = SCALE_TENSOR;
}
static void edit_source(contract *c) {
  c->scale.granularity = SCALE_TENSOR;
  c->scale.argument = true;
}
static void edit_output(contract *c) {
  c->output.dtype = DTYPE_FP32;
}
static void edit_lse(contract *c) {
  c->output.lse = true;
}
static void edit_rsqrt(contract *c) {
  c->logits.scale = LOGITS_RSQRT_D;
}
static void edit_floor(contract *c) {
  c->scale.writer.amax_floor = (double)1e-8f;
}

static void edit_scale_floor(contract *c) {
  c->scale.writer.scale_floor = (double)1e-6f;
}
static void edit_zero(contract *c) {
  c->scale.writer.zero_value = 0;
}
static void edit_qmax(contract *c) {
  c->scale.writer.qmax = 127;
}

Test(emit, what_a_contract_says_reaches_the_code_of_whom_it_concerns) {
  enum { WRITER = 1, READER = 2, BOTH = 3 };
  static const struct {
    const char *what;
    void (*edit)(contract *c);
    int who;
  } edits[] = {
      {"page", edit_page, BOTH},
      {"k", edit_k, BOTH},
      {"v", edit_v, BOTH},
      {"heads_per_kv", edit_heads, READER},
      {"query dtype", edit_query, BOTH},
      {"kv dtype", edit_cache, BOTH},
      {"scale dtype", edit_scale, BOTH},
      {"scale.k", edit_scale_k, BOTH},
      {"scale.v", edit_scale_v, BOTH},
      {"granularity", edit_granularity, BOTH},
      {"source", edit_source, BOTH},
      {"output dtype", edit_output, READER},
      {"lse", edit_lse, READER},
      {"logits", edit_rsqrt, READER},
      {"amax_floor", edit_floor, WRITER},
      {"scale_floor", edit_scale_floor, WRITER},
      {"zero_row", edit_zero, WRITER},
      {"qmax", edit_qmax, WRITER},
  };
  contract base = shipped("minimax-m3-dense-fp8");
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      emission before = emitted(&base, operations[o], &(variant){0}, target_at(n));
      for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        contract c = base;
        edits[i].edit(&c);
        emission after = emitted(&c, operations[o], &(variant){0}, target_at(n));
        cr_expect_eq(strcmp(code_of(&before), code_of(&after)) != 0,
                     (edits[i].who & (o ? READER : WRITER)) != 0, "%s in %s for %s", edits[i].what,
                     operation_name(operations[o]), target_at(n)->name);
        cr_expect_str_neq(before.descriptor.contract_key, after.descriptor.contract_key, "%s", edits[i].what);
        emission_finish(&after);
      }
      emission_finish(&before);
    }
}

static void same_source(const char *spec_a, const char *spec_b) {
  spec a = parse_good(spec_a), b = parse_good(spec_b);
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      emission x = emitted(&a.contract, operations[o], &(variant){0}, target_at(n));
      emission y = emitted(&b.contract, operations[o], &(variant){0}, target_at(n));
      cr_expect_str_eq(x.descriptor.contract_key, y.descriptor.contract_key);
      cr_expect(strcmp(x.source, y.source) == 0, "%s for %s: one key, two sources",
                operation_name(operations[o]), target_at(n)->name);
      emission_finish(&x);
      emission_finish(&y);
    }
  spec_finish(&a);
  spec_finish(&b);
}

#define SPEC(heads_and_cache) "heddle: 1\nquery: {heads_per_kv: 8}\nhead_dim: 128\n" heads_and_cache

Test(emit, one_key_has_one_source_however_the_spec_spells_it) {
  same_source(SPEC("kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"),
              SPEC("kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/64, d/16%4, s, d%16], v: [b, h, d, s]}\n"));
  same_source(SPEC("kv: {dtype: bf16, page: 1, k: [b, h, d/8, s, d%8], v: [b, h, d, s]}\n"),
              SPEC("kv: {dtype: bf16, page: 1, k: [b, h, d], v: [b, h, s, d]}\n"));
  same_source(
      SPEC("kv: {dtype: fp8_e4m3, page: 32, k: [b, h, s, d], v: [b, h, s, d]}\n"
           "scale: {granularity: token_head, k: [b, h, s/4, s%4], writer: {qmax: dialect, zero_row: 0}}\n"),
      SPEC("kv: {dtype: fp8_e4m3, page: 32, k: [b, h, s, d], v: [b, h, s, d]}\n"
           "scale: {granularity: token_head, writer: {amax_floor: 0.0, zero_row: floor}}\n"));
}

/* ---- one selector ---- */

static void same_diagnostics(const diags *a, const diags *b, const char *what) {
  cr_assert_eq(a->count, b->count, "%s", what);
  for (size_t i = 0; i < a->count; i++) {
    cr_assert_str_eq(a->items[i].code, b->items[i].code, "%s", what);
    cr_assert_str_eq(a->items[i].message, b->items[i].message, "%s", what);
    cr_assert_eq(strncmp(a->items[i].code, "decline.", 8), 0, "%s: %s", what, a->items[i].code);
    cr_assert(a->items[i].field && a->items[i].severity == DIAG_ERROR, "%s: %s", what, a->items[i].code);
    cr_assert(a->items[i].message[0] && !strchr(a->items[i].message, '\n'), "%s", what);
  }
}

Test(emit, the_check_and_the_emission_give_one_answer) {
  uint64_t state = 0x853c49e6748fea9bu;
  int served = 0, declined = 0;
  for (int round = 0; round < 2500; round++) {
    contract c = random_contract(&state);
    variant v = {.structure = (structure)random_below(&state, 3)};
    if (random_below(&state, 2)) v.structure = STRUCTURE_AUTO;
    if (random_below(&state, 3) == 0) v.waves = random_below(&state, 18);
    if (random_below(&state, 8) == 0) v.stages = 1 + random_below(&state, 16);
    const target *t = target_at((size_t)round % target_count());
    for (int o = 0; o < 2; o++) {
      emission e, untouched;
      memset(&e, 0x5a, sizeof e);
      untouched = e;
      diags checked, emitting;
      diags_init(&checked);
      diags_init(&emitting);
      hd_status answer = emit_check(&c, operations[o], &v, t, &checked);
      hd_status outcome = emit_operation(&c, operations[o], &v, t, templates_embedded(), &e, &emitting);
      text what;
      text_init(&what);
      text_addf(&what, "round %d, %s for %s:\n", round, operation_name(operations[o]), t->name);
      contract_write(&c, &what);
      cr_assert_eq(answer, outcome, "%s", text_string(&what));
      same_diagnostics(&checked, &emitting, text_string(&what));
      if (outcome == HD_OK) {
        cr_assert_eq(checked.count, 0, "%s", text_string(&what));
        has_no_fence(&c, &e, text_string(&what));
        for (int k = 0; k < e.descriptor.kernel_count; k++)
          parameters_match(e.source, &e.descriptor.kernels[k], text_string(&what));
        emission_finish(&e);
        served++;
      } else {
        cr_assert_eq(outcome, HD_DECLINED, "%s", text_string(&what));
        cr_assert_geq(checked.count, 1, "%s: declined without a word", text_string(&what));
        cr_assert_eq(memcmp(&e, &untouched, sizeof e), 0, "%s: a decline leaves the result alone",
                     text_string(&what));
        declined++;
      }
      text_finish(&what);
      diags_finish(&checked);
      diags_finish(&emitting);
    }
  }
  cr_expect(served > 800 && declined > 1000, "%d served, %d declined", served, declined);
}

/* ---- whose words ---- */

/* Names and remarks are anybody's text; a contract has none of it, so no comment can be ended from a spec. */
Test(emit, no_word_of_a_specs_author_reaches_the_source) {
  char *yaml =
      spec_with(base_spec, "", "name: author-word\nabout: '*/ author-word\n\n  #error author-word'\n");
  spec s = parse_good(yaml), plain = parse_good(base_spec);
  cr_assert_not_null(strstr(s.about, "*/ author-word\n"));
  for (size_t n = 0; n < target_count(); n++)
    for (int o = 0; o < 2; o++) {
      if (target_at(n)->fp8 != DTYPE_FP8_E4M3FN) continue; /* base_spec's dialect */
      emission e = emitted(&s.contract, operations[o], &(variant){0}, target_at(n));
      emission same = emitted(&plain.contract, operations[o], &(variant){0}, target_at(n));
      cr_expect_null(strstr(e.source, "author-word"));
      cr_expect_str_eq(e.source, same.source);
      emission_finish(&e);
      emission_finish(&same);
    }
  spec_finish(&s);
  spec_finish(&plain);
  free(yaml);
}
