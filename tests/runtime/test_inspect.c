/* Claims about what is read from code objects: loops that are known by hand (tests/emu/inspect_*.s), room for
 * waves, hostile bytes. */
#include "../../runtime/object/inspect.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *read_sample(const char *target_name, size_t *out_size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/inspect_%s.co", getenv("HEDDLE_BUILD"), target_name);
  FILE *f = fopen(path, "rb");
  cr_assert_not_null(f, "%s", path);
  static unsigned char bytes[1 << 20];
  *out_size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  return bytes;
}

static const inspect_kernel *find(const inspection *all, const char *symbol) {
  for (int i = 0; i < all->count; i++)
    if (strcmp(all->kernels[i].resources.symbol, symbol) == 0) return &all->kernels[i];
  cr_assert_fail("no kernel %s", symbol);
  return NULL;
}

static const inspection *inspect_sample(const char *target_name) {
  static inspection found;
  size_t size;
  void *bytes = read_sample(target_name, &size);
  diags errors;
  diags_init(&errors);
  cr_assert_eq(inspect_code_object(bytes, size, &found, &errors), HD_OK, "%s",
               errors.count ? errors.items[0].message : "");
  diags_finish(&errors);
  cr_assert_str_eq(found.target, target_name);
  return &found;
}

Test(inspect, copies_past_the_registers_are_waited_for_by_counters_of_their_own) {
  const inspection *all = inspect_sample("gfx1250");
  const inspect_mix *m = &find(all, "ring")->loop;
  cr_expect(m->loads == 4 && m->loads_16 == 2 && m->load_bytes == 36, "%d, %d, %d", m->loads, m->loads_16,
            m->load_bytes);
  cr_expect_eq(m->waits, 4, "%d", m->waits);
  cr_expect_eq(m->draining, 1, "only behind the last is nothing on its way: %d", m->draining);
}

static const char *const samples[] = {"gfx950", "gfx1201"};
enum { SAMPLES = sizeof samples / sizeof *samples };

Test(inspect, a_loop_is_counted_once) {
  for (int i = 0; i < SAMPLES; i++) {
    cr_assert_eq(inspect_sample(samples[i])->count, 5);
    const inspect_kernel *k = find(inspect_sample(samples[i]), "pipelined");
    cr_assert(k->has_loop);
    const inspect_mix *m = &k->loop;
    cr_expect_eq(m->instructions, 10, "%s: %d", samples[i], m->instructions);
    cr_expect(m->matrix == 2 && m->conversions == 2 && m->fp8_conversions == 1 && m->lds == 1);
    cr_expect(m->loads == 3 && m->loads_16 == 1 && m->load_bytes == 22 && m->load_bytes_16 == 16);
    cr_expect_float_eq(inspect_share_16(m), 16.0 / 22, 1e-12);
    cr_expect_eq(k->all.loads, 6);
    cr_expect_eq(k->all.scratch, 0);
  }
}

Test(inspect, a_wait_drains_when_no_load_is_left_on_its_way) {
  for (int i = 0; i < SAMPLES; i++) {
    const inspection *all = inspect_sample(samples[i]);
    cr_expect(find(all, "pipelined")->loop.waits == 1 && find(all, "pipelined")->loop.draining == 0, "%s",
              samples[i]);
    cr_expect(find(all, "drained")->loop.waits == 2 && find(all, "drained")->loop.draining == 2, "%s",
              samples[i]);
  }
}

Test(inspect, a_loop_has_what_leads_back_to_it_wherever_that_lies) {
  for (int i = 0; i < SAMPLES; i++) {
    const inspect_kernel *k = find(inspect_sample(samples[i]), "rotated");
    cr_assert(k->has_loop);
    cr_expect_eq(k->loop.loads_16, 2, "%s: %d", samples[i], k->loop.loads_16);
    cr_expect_eq(k->loop.loads, 2, "what comes after the loop is not of it");
    cr_expect_eq(k->loop.waits, 0);
  }
}

Test(inspect, the_inner_loop_is_the_main_one) {
  for (int i = 0; i < SAMPLES; i++) {
    const inspection *all = inspect_sample(samples[i]);
    cr_expect_eq(find(all, "nested")->loop.lds, 0, "%s", samples[i]);
    cr_expect_eq(find(all, "nested")->loop.matrix, 1);
    cr_expect(!find(all, "straight")->has_loop);
    cr_expect_eq(find(all, "straight")->all.waits, 1);
  }
}

/* Registers by hand: gfx942 has 512 a lane and SIMD in eights, gfx1201 1536 in 24s for wave32. */
Test(inspect, waves_follow_from_registers_and_lds) {
  static const struct {
    const char *target;
    int vgprs, lds, threads, waves, workgroups;
    const char *limit;
  } rows[] = {
      {"gfx942", 32, 0, 256, 8, 8, "waves"},         {"gfx942", 65, 0, 256, 7, 7, "registers"},
      {"gfx942", 200, 0, 256, 2, 2, "registers"},    {"gfx942", 200, 33536, 256, 1, 1, "LDS"},
      {"gfx942", 512, 0, 64, 1, 4, "registers"},     {"gfx950", 200, 33536, 256, 2, 2, "registers"},
      {"gfx950", 64, 160 * 1024, 1024, 4, 1, "LDS"}, {"gfx1201", 48, 0, 128, 16, 16, "waves"},
      {"gfx1201", 207, 37632, 128, 3, 3, "LDS"},     {"gfx1201", 216, 0, 128, 7, 7, "registers"},
      {"gfx942", 64, 65537, 256, 0, 0, "LDS"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int waves = -1, workgroups = -1;
    const char *limit = "";
    cr_assert(inspect_occupancy(rows[i].target, rows[i].vgprs, rows[i].lds, rows[i].threads, &waves,
                                &workgroups, &limit));
    cr_expect_eq(waves, rows[i].waves, "row %zu: %d waves", i, waves);
    cr_expect_eq(workgroups, rows[i].workgroups, "row %zu: %d workgroups", i, workgroups);
    cr_expect_str_eq(limit, rows[i].limit, "row %zu: %s", i, limit);
  }
  int waves = -7, workgroups;
  const char *limit;
  cr_expect(!inspect_occupancy("gfx1250", 64, 0, 256, &waves, &workgroups, &limit) && waves == -7);
}

Test(inspect, hostile_bytes_are_refused_or_read_within_bounds) {
  size_t size;
  static unsigned char changed[1 << 20];
  static inspection found;
  unsigned char *bytes = read_sample("gfx950", &size);
  unsigned seed = 7;
  diags errors;
  for (int i = 0; i < 300; i++) {
    unsigned char *copy = malloc(size); /* exactly as long: a sanitizer sees what goes beyond */
    memcpy(copy, bytes, size);
    for (int n = 0; n < 6; n++)
      copy[(size_t)rand_r(&seed) % (n < 3 ? 2048 : size)] = (unsigned char)rand_r(&seed);
    diags_init(&errors);
    hd_status status = inspect_code_object(copy, i % 3 ? size : size / 2, &found, &errors);
    cr_expect(status == HD_OK || errors.count > 0);
    diags_finish(&errors);
    free(copy);
  }
  diags_init(&errors);
  cr_expect_eq(inspect_code_object(changed, sizeof changed, &found, &errors), HD_INVALID);
  diags_finish(&errors);
}
