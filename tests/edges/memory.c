/* Where things lie: pages anywhere, tables longer than sequences, slots that are skipped, caches beyond 32
 * bits. */
#include "edges.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Entries of the page table behind the last live page are never dereferenced. */
static void entries_behind_the_last_page(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .length_count = 4,
                            .lengths = {{0, 0, 0}, {1, 0, 0}, {1, 0, 1}, {5, 0, 3}}};
  const int32_t values[] = {-1, INT32_MIN, INT32_MAX, 1 << 30, 0};
  const char *const specs[] = {edge_shuffled, edge_plain};
  for (int n = 0; n < 4; n++) {
    const int splits = n % 2 + 1;
    scene s;
    if (scene_init(&s, e, specs[n / 2], &from) && scene_write(&s) && scene_decode(&s, splits) &&
        scene_is_right(&s, "decode")) {
      const verify_data *d = &s.data;
      void *kept = scene_keep(&s);
      int32_t *table = d->memory[TENSOR_PAGE_TABLE];
      int64_t width = d->sizes[DIM_TABLE_PAGES];
      for (int j = 0; j < 5 && !e->failed; j++) {
        for (int64_t seq = 0; seq < 4; seq++)
          for (int64_t p = (d->first_token[seq + 1] - d->first_token[seq] + d->page - 1) / d->page; p < width;
               p++)
            table[seq * width + p] = values[j];
        if (scene_decode(&s, splits)) scene_same(&s, kept, "other entries behind the last page");
      }
      free(kept);
    }
    scene_finish(&s);
  }
}

static const tensor_name written[] = {TENSOR_K_CACHE, TENSOR_V_CACHE, TENSOR_K_SCALE, TENSOR_V_SCALE};

/* Writes on the device and expects every byte of caches and scales to be as before. */
static bool writes_nothing(scene *s, const char *what) {
  void *before[4] = {NULL};
  for (int n = 0; n < 4; n++) {
    if (!s->data.write.present[written[n]]) continue;
    size_t bytes = tensor_bytes(&s->data.write.by_name[written[n]]);
    before[n] = malloc(bytes);
    memcpy(before[n], s->data.memory[written[n]], bytes);
  }
  bool good = scene_launch_write(s);
  for (int n = 0; n < 4; n++) {
    if (good && before[n])
      good = EXPECT(s->edge,
                    memcmp(before[n], s->data.memory[written[n]],
                           tensor_bytes(&s->data.write.by_name[written[n]])) == 0,
                    "%s: %s was touched", what, tensor_name_text(written[n]));
    free(before[n]);
  }
  return good;
}

/* Tokens with a negative slot, or one beyond the cache: neither cache nor scale is touched; all of them, and
 * some among others. */
static void skipped_slots(edge *e) {
  const verify_case from = {.name = "edge",
                            .kv_heads = 2,
                            .traits = TRAIT_SKIPPED,
                            .length_count = 2,
                            .lengths = {{1, 0, 5}, {0, 0, 33}}};
  const int64_t negative[] = {-1, -2, INT32_MIN, INT64_MIN};
  const char *const specs[] = {edge_shuffled, edge_plain};
  for (int i = 0; i < 2; i++) {
    scene s;
    if (scene_init(&s, e, specs[i], &from)) {
      int64_t *slots = s.data.memory[TENSOR_SLOT_MAPPING], tokens = s.data.sizes[DIM_TOKENS];
      int64_t end = s.data.sizes[DIM_PAGES] * s.data.page;
      const int64_t beyond[] = {end, end + 1, INT32_MAX, INT64_MAX};
      int64_t *own = malloc((size_t)tokens * sizeof *own);
      memcpy(own, slots, (size_t)tokens * sizeof *own);
      for (int64_t t = 0; t < tokens; t++)
        slots[t] = negative[t % 4];
      bool good = writes_nothing(&s, "negative slots");
      for (int64_t t = 0; t < tokens; t++)
        slots[t] = beyond[t % 4];
      good = good && writes_nothing(&s, "slots beyond the cache");
      memcpy(slots, own, (size_t)tokens * sizeof *own);
      if (good) scene_write(&s);
      free(own);
    }
    scene_finish(&s);
  }
}

/* Moves page p of an array to page order[p]. */
static void move_pages(scene *s, tensor_name name, const int64_t *order, int64_t channels) {
  const tensor *t = &s->data.decode.by_name[name];
  size_t element = (size_t)dtype_bytes(t->dtype), bytes = tensor_bytes(t);
  unsigned char *memory = s->data.memory[name], *old = malloc(bytes);
  memcpy(old, memory, bytes);
  for (int64_t p = 0; p < s->data.sizes[DIM_PAGES]; p++)
    for (int64_t h = 0; h < s->data.sizes[DIM_KV_HEADS]; h++)
      for (int64_t slot = 0; slot < s->data.page; slot++)
        for (int64_t c = 0; c < channels; c++)
          memcpy(scene_at(s, name, order[p], h, slot, c), old + (scene_at(s, name, p, h, slot, c) - memory),
                 element);
  free(old);
}

/* Scales go with the physical slot, and V's have strides of their own ([h, b, s] beside [b, h, s]): moving
 * pages, with their scales, changes nothing. */
static void scales_by_physical_slot(edge *e) {
  const verify_case from = {
      .name = "edge", .kv_heads = 3, .length_count = 3, .lengths = {{2, 0, 1}, {0, 0, 15}, {4, 0, -3}}};
  for (int splits = 1; splits <= 2; splits++) {
    scene s;
    if (scene_init(&s, e, edge_shuffled, &from) && scene_write(&s) && scene_decode(&s, splits) &&
        scene_is_right(&s, "decode")) {
      int64_t pages = s.data.sizes[DIM_PAGES], order[64];
      int32_t *table = s.data.memory[TENSOR_PAGE_TABLE];
      void *kept = scene_keep(&s);
      for (int64_t p = 0; p < pages; p++)
        order[p] = pages - 1 - p;
      move_pages(&s, TENSOR_K_CACHE, order, 64);
      move_pages(&s, TENSOR_V_CACHE, order, 64);
      move_pages(&s, TENSOR_K_SCALE, order, 1);
      move_pages(&s, TENSOR_V_SCALE, order, 1);
      for (int64_t i = 0; i < 3 * s.data.sizes[DIM_TABLE_PAGES]; i++)
        if (table[i] >= 0 && table[i] < pages) table[i] = (int32_t)order[table[i]];
      if (scene_decode(&s, splits)) scene_same(&s, kept, "pages in another order");
      free(kept);
    }
    scene_finish(&s);
  }
}

/* Page ids beyond 16 bits: 70,000 pages of one token, the live ones at the end. */
static void block_ids_beyond_65535(edge *e) {
  static const char spec_text[] = "heddle: 1\nname: many-pages\nkernels: [write, decode]\n"
                                  "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 32\n"
                                  "kv: {dtype: bf16, page: 1, k: [b, h, d], v: [b, h, d]}\n";
  const verify_case from = {.name = "edge",
                            .kv_heads = 1,
                            .traits = TRAIT_CLEAN,
                            .length_count = 3,
                            .lengths = {{0, 0, 33}, {0, 0, 1}, {0, 1, 2}},
                            .spare_pages = 70000};
  scene s;
  if (scene_init(&s, e, spec_text, &from)) {
    int64_t least = INT64_MAX;
    for (int64_t t = 0; t < s.data.live_tokens; t++)
      least = s.data.slot[t] < least ? s.data.slot[t] : least;
    if (EXPECT(e, least >= 65536, "page %d is in use", (int)least) && scene_write(&s) && scene_decode(&s, 2))
      scene_is_right(&s, "decode");
  }
  scene_finish(&s);
}

/* ---- caches beyond 2 GiB and 2^31 elements: pages far apart, in memory that takes room only where it is
 * used ---- */

/* A cache on the device whose pages lie `stride` elements apart, from dense pages in host memory. */
typedef struct far_cache {
  tensor tensor; /* strided; data: on the device */
  int64_t stride;
  size_t page_bytes;
} far_cache;

static bool far_init(edge *e, scene *s, tensor_name name, int64_t stride, far_cache *f) {
  const device_vtable *v = e->session->device->vtable;
  int64_t pages = s->data.sizes[DIM_PAGES];
  diags d;
  diags_init(&d);
  f->tensor = s->data.write.by_name[name];
  f->stride = stride;
  f->page_bytes = tensor_bytes(&f->tensor) / (size_t)pages;
  f->tensor.strided = true;
  for (int i = f->tensor.rank - 1, dense = 1; i > 0; i--) {
    f->tensor.strides[i] = dense;
    dense *= (int)f->tensor.shape[i];
  }
  f->tensor.strides[0] = stride;
  bool good = v->allocate(e->session->device, tensor_bytes(&f->tensor), &f->tensor.data, &d) == HD_OK;
  for (int64_t p = 0; good && p < pages; p++)
    good = v->copy_in(e->session->device, NULL,
                      f->tensor.data + (uint64_t)(p * stride) * (uint64_t)dtype_bytes(f->tensor.dtype),
                      (const char *)s->data.memory[name] + (size_t)p * f->page_bytes, f->page_bytes,
                      &d) == HD_OK;
  EXPECT(e, good, "a cache of %zu bytes: %s", tensor_bytes(&f->tensor), d.count ? d.items[0].message : "");
  diags_finish(&d);
  return good;
}

static bool far_fetch(edge *e, const far_cache *f, int64_t pages, unsigned char *to) {
  const device_vtable *v = e->session->device->vtable;
  diags d;
  diags_init(&d);
  bool good = true;
  for (int64_t p = 0; good && p < pages; p++)
    good = v->copy_out(e->session->device, NULL, to + (size_t)p * f->page_bytes,
                       f->tensor.data + (uint64_t)(p * f->stride) * (uint64_t)dtype_bytes(f->tensor.dtype),
                       f->page_bytes, &d) == HD_OK;
  diags_finish(&d);
  return EXPECT(e, good, "copying pages back failed");
}

/* One operation with the far caches in the place of the dense ones. */
static bool far_launch(edge *e, scene *s, session_kernel *k, operation o, const far_cache caches[2],
                       int64_t splits) {
  const tensors *host = o == OPERATION_WRITE ? &s->data.write : &s->data.decode;
  tensors others = *host, t;
  int64_t dims[DIM_COUNT];
  diags d;
  diags_init(&d);
  others.present[TENSOR_K_CACHE] = others.present[TENSOR_V_CACHE] = false;
  hd_status status = session_upload(e->session, &s->contract, o, &others, &t, &d);
  bool good = EXPECT(e, status == HD_OK, "%s: uploading failed", operation_name(o));
  if (!good) {
    diags_finish(&d);
    return false;
  }
  tensors all = t;
  for (int i = 0; i < 2; i++) {
    tensor_name name_there = i ? TENSOR_V_CACHE : TENSOR_K_CACHE;
    all.by_name[name_there] = caches[i].tensor;
    all.present[name_there] = true;
  }
  status = bind_dims(&s->contract, o, &all, dims, &d);
  dims[DIM_SPLITS] = splits;
  if (status == HD_OK) status = session_launch(e->session, k, &all, dims, (float)s->scale, &d);
  if (status == HD_OK && o == OPERATION_DECODE)
    status = session_download(e->session, &t, host, TENSOR_OUT, &d);
  good = EXPECT(e, status == HD_OK, "%s: %s", operation_name(o), d.count ? d.items[0].message : "failed");
  session_release(e->session, &t);
  diags_finish(&d);
  return good;
}

/* The dense pages go through the same kernels first; far apart they have to give the same bytes. The last
 * page lies beyond what 32 bits count, with a sign or without. */
static void beyond_2_gib(edge *e) {
  static const char spec_text[] =
      "heddle: 1\nname: far\nkernels: [write, decode]\n"
      "query: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
      "kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}\n"
      "scale: {granularity: tensor}\n";
  const verify_case from = {
      .name = "edge", .kv_heads = 1, .length_count = 3, .lengths = {{12, 0, 3}, {0, 0, 1}, {7, 0, 0}}};
  far_cache caches[2] = {{.page_bytes = 0}};
  scene s;
  if (scene_init(&s, e, spec_text, &from)) {
    int64_t pages = s.data.sizes[DIM_PAGES], stride = (((int64_t)9 << 29) / pages + 4096) & ~(int64_t)1023;
    EXPECT(e, (pages - 1) * stride > UINT32_MAX, "the cache is too small: %d pages", (int)pages);
    bool good = !e->failed && far_init(e, &s, TENSOR_K_CACHE, stride, &caches[0]) &&
                far_init(e, &s, TENSOR_V_CACHE, stride + 16, &caches[1]) && scene_write(&s) &&
                far_launch(e, &s, &s.write, OPERATION_WRITE, caches, 1);
    for (int i = 0; good && i < 2; i++) {
      tensor_name name = i ? TENSOR_V_CACHE : TENSOR_K_CACHE;
      unsigned char *got = malloc((size_t)pages * caches[i].page_bytes);
      good = far_fetch(e, &caches[i], pages, got) &&
             EXPECT(e, memcmp(got, s.data.memory[name], (size_t)pages * caches[i].page_bytes) == 0,
                    "%s: other bytes far apart", tensor_name_text(name));
      free(got);
    }
    for (int splits = 1; good && splits <= 3; splits += 2) {
      good = scene_decode(&s, splits) && scene_is_right(&s, "dense");
      void *kept = good ? scene_keep(&s) : NULL;
      good = good && far_launch(e, &s, &s.decode, OPERATION_DECODE, caches, splits) &&
             scene_same(&s, kept, "pages far apart");
      free(kept);
    }
  }
  diags d;
  diags_init(&d);
  for (int i = 0; i < 2; i++)
    if (caches[i].tensor.data && caches[i].tensor.strided)
      e->session->device->vtable->release(e->session->device, caches[i].tensor.data, &d);
  diags_finish(&d);
  scene_finish(&s);
}

const edge_test edges_of_memory[] = {
    {"entries-behind-the-last-page", entries_behind_the_last_page},
    {"skipped-slots", skipped_slots},
    {"scales-by-physical-slot", scales_by_physical_slot},
    {"block-ids-beyond-65535", block_ids_beyond_65535},
    {"beyond-2-gib", beyond_2_gib},
    {NULL, NULL},
};
