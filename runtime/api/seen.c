#include "seen.h"
#include "../launch/strides.h"
#include "parts.h"

/* How a word of the key is made up, from its lowest bit on: name, dtype, rank, whether strides are given, the
 * address below the widest load. Views have their axes' number in a word of its own. */
enum { FIELD_BITS = 8, STRIDED_BIT = 1 << 3 * FIELD_BITS, AXES_BIT = STRIDED_BIT << 1, ADDRESS_SHIFT = 32 };

static bool fields_fit(const hd_tensor *t) {
  const unsigned most = 1u << FIELD_BITS;
  return (unsigned)t->name < most && (unsigned)t->dtype < most && t->rank >= 0 && t->rank <= HD_MAX_RANK &&
         (t->rank == 0 || t->shape != NULL);
}

bool seen_key_of(const hd_tensor *list, size_t count, seen_key *out_key) {
  int n = 0;
  if (list == NULL || count == 0) return false;
  for (size_t i = 0; i < count; i++) {
    const hd_tensor *t = &list[i];
    if (!fields_fit(t)) return false;
    const bool strided = t->strides != NULL, viewed = t->axes != NULL;
    if (n + 1 + (viewed ? 1 : 0) + (strided ? 2 : 1) * t->rank > SEEN_WORDS) return false;
    out_key->words[n++] = (uint64_t)t->name | (uint64_t)t->dtype << FIELD_BITS |
                          (uint64_t)t->rank << 2 * FIELD_BITS | (strided ? STRIDED_BIT : 0) |
                          (viewed ? AXES_BIT : 0) | t->address % LOAD_BYTES << ADDRESS_SHIFT;
    if (viewed) out_key->words[n++] = t->axes->number;
    for (int d = 0; d < t->rank; d++)
      out_key->words[n++] = (uint64_t)t->shape[d];
    for (int d = 0; strided && d < t->rank; d++)
      out_key->words[n++] = (uint64_t)t->strides[d];
  }
  uint64_t hash = 0;
  for (int i = 0; i < n; i++)
    hash = (hash << 5 | hash >> 59) + out_key->words[i];
  out_key->count = n;
  out_key->hash = hash * UINT64_C(0x9e3779b97f4a7c15);
  return true;
}

static seen_entry *entry_of(seen_shapes *s, const seen_key *key) {
  return &s->entries[(key->hash >> 32) % SEEN_ENTRIES];
}

/* Every load acquires what a writer released with the word. So whoever reads a word of a newer version sees
 * that version at the end, too. */
bool seen_find(seen_shapes *s, const seen_key *key, seen_facts *out_facts) {
  seen_entry *e = entry_of(s, key);
  const uint64_t version = atomic_load_explicit(&e->version, memory_order_acquire);
  if (version % 2 != 0 || atomic_load_explicit(&e->count, memory_order_acquire) != (uint64_t)key->count)
    return false;
  for (int i = 0; i < key->count; i++)
    if (atomic_load_explicit(&e->words[i], memory_order_acquire) != key->words[i]) return false;
  for (int i = 0; i < DIM_COUNT; i++)
    out_facts->dims[i] = atomic_load_explicit(&e->facts[i], memory_order_acquire);
  out_facts->capacity = atomic_load_explicit(&e->facts[DIM_COUNT], memory_order_acquire);
  return atomic_load_explicit(&e->version, memory_order_relaxed) == version;
}

void seen_keep(seen_shapes *s, const seen_key *key, const seen_facts *facts) {
  seen_entry *e = entry_of(s, key);
  uint64_t version = atomic_load_explicit(&e->version, memory_order_relaxed);
  if (version % 2 != 0 || !atomic_compare_exchange_strong_explicit(
                              &e->version, &version, version + 1, memory_order_acq_rel, memory_order_relaxed))
    return;
  atomic_store_explicit(&e->count, (uint64_t)key->count, memory_order_release);
  for (int i = 0; i < key->count; i++)
    atomic_store_explicit(&e->words[i], key->words[i], memory_order_release);
  for (int i = 0; i < DIM_COUNT; i++)
    atomic_store_explicit(&e->facts[i], facts->dims[i], memory_order_release);
  atomic_store_explicit(&e->facts[DIM_COUNT], facts->capacity, memory_order_release);
  atomic_store_explicit(&e->version, version + 2, memory_order_release);
}
