/* Entries in memory: a hash map with chains. Newer ones come first, so a key stored again hides the older
 * entry, which stays valid for whoever holds it. */
#include "cache_parts.h"
#include <stdlib.h>
#include <string.h>

struct memory_entry {
  memory_entry *next_in_bucket, *next_of_all;
  char key[65];
  char *key_text;
  descriptor descriptor;
  void *code_object;
  size_t code_object_size;
};

bool memory_init(cache *c) {
  c->bucket_count = 64;
  c->buckets = calloc(c->bucket_count, sizeof *c->buckets);
  return c->buckets != NULL;
}

void memory_finish(cache *c) {
  for (memory_entry *e = c->all; e != NULL;) {
    memory_entry *next = e->next_of_all;
    memory_entry_destroy(e);
    e = next;
  }
  free(c->buckets);
}

void memory_entry_destroy(memory_entry *e) {
  if (e == NULL) return;
  free(e->key_text);
  free(e->code_object);
  free(e);
}

/* The key is a hash already: its first digits spread well. */
static size_t bucket_of(const char *key, size_t bucket_count) {
  size_t hash = 0;
  for (int i = 0; i < 12; i++)
    hash = hash * 31 + (unsigned char)key[i];
  return hash % bucket_count;
}

memory_entry *memory_find(const cache *c, const char *key, const char *key_text) {
  memory_entry *e = c->buckets[bucket_of(key, c->bucket_count)];
  while (e != NULL && (strcmp(e->key, key) != 0 || (key_text != NULL && strcmp(e->key_text, key_text) != 0)))
    e = e->next_in_bucket;
  return e;
}

memory_entry *memory_find_source(const cache *c, const char *source) {
  size_t length = strlen(source);
  for (size_t i = 0; i < c->bucket_count; i++) {
    for (memory_entry *e = c->buckets[i]; e != NULL; e = e->next_in_bucket)
      if (strncmp(e->key_text, source, length) == 0) return e;
  }
  return NULL;
}

/* The mutex is held. Growing may fail: chains then get longer, nothing else. */
static void memory_grow(cache *c) {
  size_t bucket_count = c->bucket_count * 4;
  memory_entry **buckets = calloc(bucket_count, sizeof *buckets);
  if (buckets == NULL) return;
  for (size_t i = 0; i < c->bucket_count; i++) {
    /* Reversed twice: the order within a chain says which entry is newer. */
    memory_entry *chain = NULL;
    for (memory_entry *e = c->buckets[i], *next; e != NULL; e = next) {
      next = e->next_in_bucket;
      e->next_in_bucket = chain;
      chain = e;
    }
    for (memory_entry *e = chain, *next; e != NULL; e = next) {
      memory_entry **bucket = &buckets[bucket_of(e->key, bucket_count)];
      next = e->next_in_bucket;
      e->next_in_bucket = *bucket;
      *bucket = e;
    }
  }
  free(c->buckets);
  c->buckets = buckets;
  c->bucket_count = bucket_count;
}

void memory_add(cache *c, memory_entry *e) {
  pthread_mutex_lock(&c->mutex);
  if (c->entry_count >= 2 * c->bucket_count) memory_grow(c);
  memory_entry **bucket = &c->buckets[bucket_of(e->key, c->bucket_count)];
  e->next_in_bucket = *bucket;
  *bucket = e;
  e->next_of_all = c->all;
  c->all = e;
  c->entry_count++;
  pthread_mutex_unlock(&c->mutex);
}

void cache_forget(cache *c) {
  pthread_mutex_lock(&c->mutex);
  memset(c->buckets, 0, c->bucket_count * sizeof *c->buckets);
  c->entry_count = 0;
  pthread_mutex_unlock(&c->mutex);
}

cache_entry memory_entry_view(const memory_entry *e) {
  return (cache_entry){
      .key_text = e->key_text,
      .descriptor = &e->descriptor,
      .code_object = e->code_object,
      .code_object_size = e->code_object_size,
  };
}

memory_entry *memory_entry_create(const char *key, const char *key_text, size_t key_text_size,
                                  const void *code_object, size_t code_object_size) {
  memory_entry *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  memcpy(e->key, key, sizeof e->key);
  e->key_text = strndup(key_text, key_text_size);
  e->code_object = malloc(code_object_size > 0 ? code_object_size : 1);
  e->code_object_size = code_object_size;
  if (e->key_text == NULL || e->code_object == NULL) {
    memory_entry_destroy(e);
    return NULL;
  }
  if (code_object_size > 0) memcpy(e->code_object, code_object, code_object_size);
  return e;
}

descriptor *memory_entry_descriptor(memory_entry *e) {
  return &e->descriptor;
}
