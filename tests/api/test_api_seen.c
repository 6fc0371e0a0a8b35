/* What a kernel remembers of shapes: what makes two lists of tensors the same, and that threads which keep
 * and find at once never get facts of another list. */
#include "../../runtime/api/parts.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

static const int64_t extents[] = {3, 8, 64}, others[] = {3, 8, 65}, steps[] = {512, 64, 1};

static hd_tensor a_tensor(void) {
  return (hd_tensor){
      .name = HD_TENSOR_Q, .dtype = HD_DTYPE_BF16, .address = 4096, .shape = extents, .rank = 3};
}

static bool same_key(const seen_key *a, const seen_key *b) {
  return a->count == b->count && a->hash == b->hash &&
         memcmp(a->words, b->words, (size_t)a->count * sizeof a->words[0]) == 0;
}

static seen_key key_of(const hd_tensor *list, size_t count) {
  seen_key key;
  cr_assert(seen_key_of(list, count, &key));
  return key;
}

/* Facts that tell which key they belong to. */
static seen_facts facts_of(const seen_key *key) {
  seen_facts f = {.capacity = (int64_t)key->words[0]};
  for (int i = 0; i < DIM_COUNT; i++)
    f.dims[i] = (int64_t)key->words[0];
  return f;
}

Test(api_seen, an_address_alone_makes_no_other_list) {
  hd_tensor t = a_tensor();
  const seen_key before = key_of(&t, 1);
  t.address += 4096;
  const seen_key after = key_of(&t, 1);
  cr_assert(same_key(&before, &after));
}

Test(api_seen, all_that_binding_looks_at_makes_another_list) {
  struct hd_axes axes = {.number = 1}, later = {.number = 2};
  hd_tensor changed[] = {a_tensor(), a_tensor(), a_tensor(), a_tensor(), a_tensor(),
                         a_tensor(), a_tensor(), a_tensor(), a_tensor()};
  changed[1].name = HD_TENSOR_OUT;
  changed[2].dtype = HD_DTYPE_FP16;
  changed[3].rank = 2;
  changed[4].shape = others;
  changed[5].strides = steps;
  changed[6].address += 4; /* less aligned */
  changed[7].axes = &axes;
  changed[8].axes = &later;
  enum { COUNT = sizeof changed / sizeof changed[0] };
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < i; j++) {
      const seen_key a = key_of(&changed[i], 1), b = key_of(&changed[j], 1);
      cr_assert_not(same_key(&a, &b), "%d and %d", i, j);
    }
}

Test(api_seen, lists_that_make_no_sense_or_are_long_are_not_kept) {
  seen_key key;
  hd_tensor t[SEEN_WORDS / 4 + 1] = {{0}};
  for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
    t[i] = a_tensor();
  cr_assert(seen_key_of(t, SEEN_WORDS / 4, &key));
  cr_assert_not(seen_key_of(t, SEEN_WORDS / 4 + 1, &key));
  cr_assert_not(seen_key_of(NULL, 1, &key));
  cr_assert_not(seen_key_of(t, 0, &key));
  t[0].rank = HD_MAX_RANK + 1;
  cr_assert_not(seen_key_of(t, 1, &key));
  t[0].rank = -1;
  cr_assert_not(seen_key_of(t, 1, &key));
  t[0] = a_tensor();
  t[0].shape = NULL;
  cr_assert_not(seen_key_of(t, 1, &key));
  t[0] = a_tensor();
  t[0].name = (hd_tensor_name)(HD_TENSOR_Q + 256);
  cr_assert_not(seen_key_of(t, 1, &key), "a name that is none is taken for another");
}

Test(api_seen, what_was_kept_is_found) {
  static seen_shapes s;
  seen_facts found;
  hd_tensor t = a_tensor();
  const seen_key key = key_of(&t, 1);
  const seen_facts facts = facts_of(&key);
  cr_assert_not(seen_find(&s, &key, &found));
  seen_keep(&s, &key, &facts);
  cr_assert(seen_find(&s, &key, &found));
  cr_assert_eq(memcmp(&found, &facts, sizeof facts), 0);
  t.shape = others;
  const seen_key other = key_of(&t, 1);
  cr_assert_not(seen_find(&s, &other, &found));
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 400000, KEYS = 3 };

static seen_shapes shared;
static atomic_int hits, wrong;

/* Keys of one place: they differ in words, not in hash. */
static seen_key numbered(uint64_t number) {
  seen_key key = {.count = 40};
  for (int i = 0; i < key.count; i++)
    key.words[i] = number;
  return key;
}

static void *keep_and_find(void *user) {
  const uint64_t own = (uint64_t)(uintptr_t)user;
  int found_here = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    const seen_key key = numbered((own + round) % KEYS + 1);
    const seen_facts facts = facts_of(&key);
    seen_facts found;
    if (!seen_find(&shared, &key, &found)) {
      seen_keep(&shared, &key, &facts);
      continue;
    }
    found_here++;
    if (memcmp(&found, &facts, sizeof facts) != 0) atomic_fetch_add(&wrong, 1);
  }
  atomic_fetch_add(&hits, found_here);
  return NULL;
}

Test(api_seen, threads_never_get_facts_of_another_list) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    cr_assert_eq(pthread_create(&threads[i], NULL, keep_and_find, (void *)(uintptr_t)i), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  cr_assert_eq(atomic_load(&wrong), 0, "%d wrong of %d", atomic_load(&wrong), atomic_load(&hits));
  cr_assert_gt(atomic_load(&hits), 0);
}
