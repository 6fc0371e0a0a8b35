#include "cover.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN, COVERED, HOLE };
enum { CANDIDATES = 3, VALUES_TRIED = 3 };

typedef struct builder {
  cover *result;
  const target *on;
  random_state random;
  int fields, values[SPACE_MAX_FIELDS];
  unsigned char state[SPACE_MAX_FIELDS][SPACE_MAX_VALUES][SPACE_MAX_FIELDS][SPACE_MAX_VALUES];
  char single[SPACE_MAX_FIELDS][SPACE_MAX_VALUES][48]; /* why no point has this value; "" where one has */
  char last_code[48];
} builder;

static bool served(builder *b, const space_point *p) {
  text yaml;
  text_init(&yaml);
  space_write_spec(p, "campaign", &yaml);
  const variant v = space_variant(p);
  space_answer a = space_ask(text_string(&yaml), &v, b->on);
  text_finish(&yaml);
  if (!a.good) memcpy(b->last_code, a.code, sizeof b->last_code);
  return a.good;
}

/* A served point with the given values: a plain one, or one that differs from a plain one in one field more.
 */
static bool start_point(builder *b, const int *fields, const int *values, int count, space_point *out) {
  for (int base = 0; base < space_base_count(); base++) {
    space_point p = space_base(base);
    for (int i = 0; i < count; i++)
      p.at[fields[i]] = (unsigned char)values[i];
    *out = p;
    if (served(b, &p)) return true;
  }
  char code[48];
  memcpy(code, b->last_code, sizeof code);
  for (int base = 0; base < space_base_count(); base++)
    for (int f = 0; f < b->fields; f++)
      for (int v = 0; v < b->values[f]; v++) {
        space_point p = space_base(base);
        p.at[f] = (unsigned char)v;
        for (int i = 0; i < count; i++)
          p.at[fields[i]] = (unsigned char)values[i];
        *out = p;
        if (served(b, &p)) return true;
      }
  memcpy(b->last_code, code, sizeof code);
  return false;
}

/* Open pairs that field f at value v makes with the other fields of p. */
static int gain_of(const builder *b, const space_point *p, int f, int v) {
  int gain = 0;
  for (int g = 0; g < b->fields; g++)
    gain += g != f && b->state[f][v][g][p->at[g]] == OPEN;
  return gain;
}

static void shuffle(builder *b, int *order, int count) {
  for (int i = 0; i < count; i++)
    order[i] = i;
  for (int i = count - 1; i > 0; i--) {
    int j = (int)random_below(&b->random, i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

/* Moves the fields that aren't fixed, one after the other, to the value that covers most, where the target
 * still serves the point. */
static void improve(builder *b, space_point *p, const int fixed[2]) {
  int order[SPACE_MAX_FIELDS];
  shuffle(b, order, b->fields);
  for (int i = 0; i < b->fields; i++) {
    int f = order[i], values[SPACE_MAX_VALUES];
    bool tried[SPACE_MAX_VALUES] = {false};
    if (f == fixed[0] || f == fixed[1]) continue;
    shuffle(b, values, b->values[f]);
    int least = gain_of(b, p, f, p->at[f]);
    for (int attempt = 0; attempt < VALUES_TRIED; attempt++) {
      int best = -1, best_gain = least;
      for (int k = 0; k < b->values[f]; k++) {
        int v = values[k], gain = tried[v] || b->single[f][v][0] ? 0 : gain_of(b, p, f, v);
        if (gain > best_gain) {
          best = v;
          best_gain = gain;
        }
      }
      if (best < 0) break;
      tried[best] = true;
      space_point moved = *p;
      moved.at[f] = (unsigned char)best;
      if (!served(b, &moved)) continue;
      *p = moved;
      break;
    }
  }
}

static int open_pairs(const builder *b, const space_point *p) {
  int gain = 0;
  for (int f = 0; f < b->fields; f++)
    gain += gain_of(b, p, f, p->at[f]);
  return gain / 2;
}

static void mark(builder *b, int f, int v, int g, int w, unsigned char state) {
  b->state[f][v][g][w] = b->state[g][w][f][v] = state;
}

static bool add_point(builder *b, const space_point *p) {
  cover *c = b->result;
  space_point *grown = realloc(c->points, (size_t)(c->point_count + 1) * sizeof *grown);
  if (!grown) return false;
  c->points = grown;
  c->points[c->point_count++] = *p;
  for (int f = 0; f < b->fields; f++)
    for (int g = f + 1; g < b->fields; g++)
      mark(b, f, p->at[f], g, p->at[g], COVERED);
  return true;
}

static bool add_hole(builder *b, int f, int v, int g, int w, const char *code) {
  cover *c = b->result;
  cover_hole *grown = realloc(c->holes, (size_t)(c->hole_count + 1) * sizeof *grown);
  if (!grown) return false;
  c->holes = grown;
  cover_hole *hole = &c->holes[c->hole_count++];
  *hole = (cover_hole){.field = f, .value = v, .other_field = g, .other_value = w};
  snprintf(hole->code, sizeof hole->code, "%s", code);
  mark(b, f, v, g, w, HOLE);
  return true;
}

static bool cover_pair(builder *b, int f, int v, int g, int w) {
  const char *why = b->single[f][v][0] ? b->single[f][v] : b->single[g][w];
  if (why[0]) return add_hole(b, f, v, g, w, why);
  const int fields[2] = {f, g}, values[2] = {v, w};
  space_point start, best;
  if (!start_point(b, fields, values, 2, &start)) return add_hole(b, f, v, g, w, b->last_code);
  int best_gain = -1;
  for (int i = 0; i < CANDIDATES; i++) {
    space_point p = start;
    improve(b, &p, fields);
    int gain = open_pairs(b, &p);
    if (gain <= best_gain) continue;
    best = p;
    best_gain = gain;
  }
  return add_point(b, &best);
}

static bool cover_all(builder *b, int most) {
  for (int f = 0; f < b->fields; f++)
    for (int v = 0; v < b->values[f]; v++) {
      space_point ignored;
      if (!start_point(b, &f, &v, 1, &ignored)) memcpy(b->single[f][v], b->last_code, 48);
    }
  for (int f = 0; f < b->fields; f++)
    for (int g = f + 1; g < b->fields; g++)
      for (int v = 0; v < b->values[f]; v++)
        for (int w = 0; w < b->values[g]; w++) {
          if (most > 0 && b->result->point_count >= most) return true;
          b->result->pairs++;
          if (b->state[f][v][g][w] == OPEN && !cover_pair(b, f, v, g, w)) return false;
        }
  return true;
}

bool cover_init(cover *c, const target *on, uint64_t seed, int most) {
  *c = (cover){0};
  builder *b = calloc(1, sizeof *b);
  if (!b) return false;
  b->result = c;
  b->on = on;
  b->random.state = seed;
  b->fields = space_field_count();
  for (int f = 0; f < b->fields; f++)
    b->values[f] = space_value_count(f);
  bool good = cover_all(b, most);
  free(b);
  if (!good) cover_finish(c);
  return good;
}

void cover_finish(cover *c) {
  free(c->points);
  free(c->holes);
  *c = (cover){0};
}
