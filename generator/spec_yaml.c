#include "spec_yaml.h"
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct arena_block {
  struct arena_block *next;
  max_align_t bytes[];
} arena_block;

typedef struct anchor {
  struct anchor *next;
  const char *name;
  const spec_node *node;
  bool open; /* the anchored node is still being read: an alias to it would contain itself */
} anchor;

typedef struct builder {
  yaml_parser_t yaml;
  arena_block *arena;
  anchor *anchors;
  size_t nodes; /* so far, aliases written out */
  int depth;
  const unsigned char *bytes; /* the file */
  size_t length;
  diags *problems;
  hd_status status; /* of the first failure */
} builder;

typedef struct place {
  int line, column;
} place;

static void arena_release(arena_block *block) {
  while (block) {
    arena_block *next = block->next;
    free(block);
    block = next;
  }
}

/* Zeroed memory, or NULL with the builder's status set. */
static void *take(builder *b, size_t size) {
  arena_block *block = calloc(1, sizeof *block + size);
  if (!block) {
    b->status = HD_OUT_OF_MEMORY;
    return NULL;
  }
  block->next = b->arena;
  b->arena = block;
  return block->bytes;
}

static char *take_text(builder *b, const char *characters, size_t length) {
  char *copy = take(b, length + 1);
  if (copy) memcpy(copy, characters, length);
  return copy;
}

static place place_of(yaml_mark_t mark) {
  return (place){(int)mark.line + 1, (int)mark.column + 1};
}

/* Records an error; always false, so that a caller can return it. */
static bool refuse(builder *b, const char *code, place at, const char *message) {
  diags_addf(b->problems, DIAG_ERROR, code, NULL, at.line, at.column, "%s", message);
  b->status = HD_DECLINED;
  return false;
}

/* Bytes that are no text have an offset, not a line. */
static place place_of_offset(const builder *b, size_t offset) {
  place at = {1, 1};
  for (size_t i = 0; i < offset && i < b->length; i++) {
    bool line_ends = b->bytes[i] == '\n';
    at.line += line_ends;
    at.column = line_ends ? 1 : at.column + ((b->bytes[i] & 0xc0) != 0x80);
  }
  return at;
}

/* What libyaml has to say of a document it can't read. */
static bool refuse_syntax(builder *b) {
  const yaml_parser_t *y = &b->yaml;
  if (y->error == YAML_MEMORY_ERROR) {
    b->status = HD_OUT_OF_MEMORY;
    return false;
  }
  bool is_reader = y->error == YAML_READER_ERROR;
  place at = is_reader ? place_of_offset(b, y->problem_offset) : place_of(y->problem_mark);
  const char *context = is_reader ? NULL : y->context;
  diags_addf(b->problems, DIAG_ERROR, "spec.syntax", NULL, at.line, at.column, "not valid YAML: %s%s%s",
             y->problem ? y->problem : "unreadable", context ? ", " : "", context ? context : "");
  b->status = HD_DECLINED;
  return false;
}

static bool next_event(builder *b, yaml_event_t *event) {
  return yaml_parser_parse(&b->yaml, event) ? true : refuse_syntax(b);
}

/* Counts `weight` more nodes towards the limit that stops alias bombs. */
static bool count_nodes(builder *b, size_t weight, place at) {
  b->nodes += weight;
  if (b->nodes <= SPEC_MAX_NODES) return true;
  return refuse(b, "spec.size", at, "too many values for a spec: more than 10000 with aliases written out");
}

static bool build_node(builder *b, const yaml_event_t *event, spec_node **out_node);

typedef struct growing {
  void **items;
  int count, capacity;
} growing;

static bool grow(builder *b, growing *list, void *item) {
  if (list->count == list->capacity) {
    int capacity = list->capacity ? 2 * list->capacity : 8;
    void **items = take(b, (size_t)capacity * sizeof *items);
    if (!items) return false;
    if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof *items);
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
  return true;
}

/* Reads nodes up to the event that closes the collection. */
static bool build_items(builder *b, yaml_event_type_t end, growing *out_list) {
  for (;;) {
    yaml_event_t event;
    if (!next_event(b, &event)) return false;
    bool done = event.type == end, ok = true;
    spec_node *item = NULL;
    if (!done) ok = build_node(b, &event, &item) && grow(b, out_list, item);
    yaml_event_delete(&event);
    if (done || !ok) return ok;
  }
}

static bool is_merge_key(const spec_node *key) {
  return key->kind == NODE_SCALAR && !key->quoted && strcmp(key->text, "<<") == 0;
}

static bool has_key(const spec_node *map, const char *key) {
  for (int i = 0; i < map->count; i++)
    if (strcmp(map->pairs[i].key->text, key) == 0) return true;
  return false;
}

/* Adds the pairs of `from` whose keys `map` does not have yet. */
static bool merge_map(builder *b, spec_node *map, const spec_node *from, place at) {
  if (from->kind != NODE_MAP)
    return refuse(b, "spec.merge", at, "a merge key (<<) takes a mapping or a list of mappings");
  if (!count_nodes(b, from->weight, at)) return false;
  spec_pair *pairs = take(b, (size_t)(map->count + from->count) * sizeof *pairs);
  if (!pairs) return false;
  if (map->count) memcpy(pairs, map->pairs, (size_t)map->count * sizeof *pairs);
  map->pairs = pairs;
  for (int i = 0; i < from->count; i++) {
    if (has_key(map, from->pairs[i].key->text)) continue;
    map->pairs[map->count++] = from->pairs[i];
    map->weight += 1 + from->pairs[i].value->weight;
  }
  return true;
}

/* `flat`: key, value, key, value … as they stand. Keys written in the mapping win over merged ones, and of
 * several merged mappings the first wins (the YAML merge key). */
static bool build_pairs(builder *b, const growing *flat, spec_node *map) {
  const spec_node *merge = NULL;
  map->pairs = take(b, (size_t)(flat->count / 2 + 1) * sizeof *map->pairs);
  if (!map->pairs) return false;
  for (int i = 0; i + 1 < flat->count; i += 2) {
    const spec_node *key = flat->items[i];
    spec_node *value = flat->items[i + 1];
    place at = {key->line, key->column};
    if (key->kind != NODE_SCALAR) return refuse(b, "spec.syntax", at, "a key must be a plain name");
    bool is_merge = is_merge_key(key);
    if (is_merge ? merge != NULL : has_key(map, key->text)) {
      diags_addf(b->problems, DIAG_ERROR, "spec.duplicate-key", NULL, at.line, at.column,
                 "the key \"%.60s\" stands here a second time in the same mapping", key->text);
      continue; /* the rest of the file may have more to say */
    }
    if (is_merge) {
      merge = value;
      continue;
    }
    map->pairs[map->count++] = (spec_pair){key, value};
    map->weight += key->weight + value->weight;
  }
  if (!merge) return true;
  place at = {merge->line, merge->column};
  if (merge->kind != NODE_LIST) return merge_map(b, map, merge, at);
  for (int i = 0; i < merge->count; i++)
    if (!merge_map(b, map, merge->items[i], at)) return false;
  return true;
}

static bool build_collection(builder *b, const yaml_event_t *event, spec_node *node) {
  bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
  if (b->depth == SPEC_MAX_DEPTH)
    return refuse(b, "spec.depth", place_of(event->start_mark),
                  "nested deeper than a spec can be (16 levels)");
  growing children = {0};
  b->depth++;
  bool ok = build_items(b, is_list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT, &children);
  b->depth--;
  if (!ok) return false;
  if (!is_list) {
    node->kind = NODE_MAP;
    return build_pairs(b, &children, node);
  }
  node->kind = NODE_LIST;
  node->items = (spec_node **)children.items;
  node->count = children.count;
  for (int i = 0; i < node->count; i++)
    node->weight += node->items[i]->weight;
  return true;
}

static bool build_scalar(builder *b, const yaml_event_t *event, spec_node *node) {
  const char *value = (const char *)event->data.scalar.value;
  size_t length = event->data.scalar.length;
  if (memchr(value, '\0', length))
    return refuse(b, "spec.syntax", place_of(event->start_mark), "a NUL character in a text");
  node->kind = NODE_SCALAR;
  node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  node->text = take_text(b, value, length);
  return node->text != NULL;
}

/* A copy of the anchored node's head at the alias's place; what it contains is shared. */
static bool build_alias(builder *b, const yaml_event_t *event, spec_node *node) {
  const char *name = (const char *)event->data.alias.anchor;
  place at = place_of(event->start_mark);
  const anchor *a = b->anchors;
  while (a && strcmp(a->name, name) != 0)
    a = a->next;
  if (!a) return refuse(b, "spec.alias", at, "an alias to an anchor that does not stand before it");
  if (a->open) return refuse(b, "spec.alias", at, "an alias to a value that contains it (recursion)");
  *node = *a->node;
  node->line = at.line;
  node->column = at.column;
  return count_nodes(b, node->weight, at);
}

static bool build_node(builder *b, const yaml_event_t *event, spec_node **out_node) {
  place at = place_of(event->start_mark);
  spec_node *node = take(b, sizeof *node);
  if (!node) return false;
  *out_node = node;
  if (event->type == YAML_ALIAS_EVENT) return build_alias(b, event, node);

  bool is_scalar = event->type == YAML_SCALAR_EVENT, is_list = event->type == YAML_SEQUENCE_START_EVENT;
  const yaml_char_t *anchor_name = is_scalar ? event->data.scalar.anchor
                                   : is_list ? event->data.sequence_start.anchor
                                             : event->data.mapping_start.anchor;
  const yaml_char_t *tag = is_scalar ? event->data.scalar.tag
                           : is_list ? event->data.sequence_start.tag
                                     : event->data.mapping_start.tag;
  if (tag) return refuse(b, "spec.syntax", at, "a YAML tag: a spec has none");
  node->line = at.line;
  node->column = at.column;
  node->weight = 1;
  if (!count_nodes(b, 1, at)) return false;

  anchor *mine = NULL;
  if (anchor_name) {
    mine = take(b, sizeof *mine);
    if (!mine) return false;
    const char *name = (const char *)anchor_name;
    *mine = (anchor){b->anchors, take_text(b, name, strlen(name)), node, true};
    if (!mine->name) return false;
    b->anchors = mine; /* in front: a later anchor of the same name hides this one */
  }
  bool ok = is_scalar ? build_scalar(b, event, node) : build_collection(b, event, node);
  if (mine) mine->open = false;
  return ok;
}

/* stream start, document start, node, document end, stream end */
static bool build_document(builder *b, spec_node **out_root) {
  yaml_event_t event;
  if (!next_event(b, &event)) return false;
  yaml_event_delete(&event);
  if (!next_event(b, &event)) return false;
  bool empty = event.type == YAML_STREAM_END_EVENT;
  yaml_event_delete(&event);
  if (empty)
    return refuse(b, "spec.type", (place){1, 1}, "the file is empty: a spec begins with \"heddle: 1\"");

  if (!next_event(b, &event)) return false;
  bool ok = build_node(b, &event, out_root);
  yaml_event_delete(&event);
  if (!ok || !next_event(b, &event)) return false;
  yaml_event_delete(&event);

  if (!next_event(b, &event)) return false;
  bool ended = event.type == YAML_STREAM_END_EVENT;
  place second = place_of(event.start_mark);
  yaml_event_delete(&event);
  if (!ended) return refuse(b, "spec.documents", second, "a second YAML document: a spec is one document");
  if ((*out_root)->kind == NODE_MAP) return true;
  return refuse(b, "spec.type", (place){(*out_root)->line, (*out_root)->column},
                "a spec is a mapping of fields, beginning with \"heddle: 1\"");
}

hd_status spec_tree_parse(const char *yaml, size_t length, spec_tree *out_tree, diags *problems) {
  builder b = {.bytes = (const unsigned char *)yaml, .length = length, .problems = problems, .status = HD_OK};
  if (length > SPEC_MAX_BYTES) {
    diags_addf(problems, DIAG_ERROR, "spec.size", NULL, 1, 1,
               "the file has %zu bytes, allowed: at most %d (1 MiB)", length, SPEC_MAX_BYTES);
    return HD_DECLINED;
  }
  if (!yaml_parser_initialize(&b.yaml)) return HD_OUT_OF_MEMORY;
  /* Some editors begin UTF-8 with a byte order mark. libyaml skips it only where it finds out the encoding by
   * itself, and then it would take UTF-16 too. */
  static const unsigned char mark[3] = {0xef, 0xbb, 0xbf};
  if (length >= sizeof mark && memcmp(b.bytes, mark, sizeof mark) == 0) {
    b.bytes += sizeof mark;
    b.length = length -= sizeof mark;
  }
  yaml_parser_set_encoding(&b.yaml, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&b.yaml, b.bytes, length);
  spec_node *root = NULL;
  build_document(&b, &root);
  yaml_parser_delete(&b.yaml);
  if (b.status != HD_OK) {
    arena_release(b.arena);
    return b.status;
  }
  *out_tree = (spec_tree){root, b.arena};
  return HD_OK;
}

void spec_tree_finish(spec_tree *t) {
  arena_release(t->arena);
  *t = (spec_tree){0};
}
