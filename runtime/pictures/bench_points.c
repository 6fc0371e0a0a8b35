#include "../../generator/json.h"
#include "bench_picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

hd_status bench_points_add(bench_points *p, const bench_point *point) {
  if (p->count == BENCH_MOST_POINTS) return HD_DECLINED;
  if (p->count == p->room) {
    int room = p->room ? 2 * p->room : 64;
    bench_point *grown = realloc(p->items, (size_t)room * sizeof *grown);
    if (!grown) return HD_OUT_OF_MEMORY;
    p->items = grown;
    p->room = room;
  }
  p->items[p->count++] = *point;
  return HD_OK;
}

void bench_points_finish(bench_points *p) {
  free(p->items);
  *p = (bench_points){0};
}

void bench_point_write(const bench_point *p, text *out) {
  text_addf(out, "%" PRId64 "x%" PRId64 "x%" PRId64, p->seqs, p->length, p->kv_heads);
  if (p->heads_per_kv) text_addf(out, "x%d", p->heads_per_kv);
  if (p->rows > 1) text_addf(out, " %d rows", p->rows);
  if (p->ragged) text_add(out, " ragged");
}

/* ---- Reading ---- */

/* What counts of a result beside the point. */
typedef struct result {
  bench_point point;
  bool best, timed;
} result;

static double read_median(json_reader *r) {
  double median = 0;
  char key[64];
  json_expect(r, '{');
  for (int n = 0; json_next(r, n, '}'); n++) {
    json_read_key(r, key, sizeof key);
    if (strcmp(key, "median") == 0)
      median = json_read_number(r);
    else
      json_skip(r);
  }
  return median;
}

enum { MOST_SIZE = 1 << 28 };

static void read_field(json_reader *r, const char *key, result *out) {
  bench_point *p = &out->point;
  const struct {
    const char *key;
    int64_t *value;
    int64_t most;
  } numbers[] = {{"seqs", &p->seqs, MOST_SIZE},
                 {"length", &p->length, MOST_SIZE},
                 {"kv_heads", &p->kv_heads, MOST_SIZE},
                 {"split", &p->splits, MOST_SIZE},
                 {"bytes", &p->bytes, INT64_MAX / 2}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(key, numbers[i].key) == 0) {
      *numbers[i].value = json_read_integer(r, 0, numbers[i].most);
      return;
    }
  if (strcmp(key, "heads_per_kv") == 0)
    p->heads_per_kv = (int)json_read_integer(r, 0, 1 << 16);
  else if (strcmp(key, "rows") == 0)
    p->rows = (int)json_read_integer(r, 0, 1 << 16);
  else if (strcmp(key, "ragged") == 0)
    p->ragged = json_read_bool(r);
  else if (strcmp(key, "best") == 0)
    out->best = json_read_bool(r);
  else if (strcmp(key, "timed") == 0)
    out->timed = json_read_bool(r);
  else if (strcmp(key, "variant") == 0)
    json_read_string(r, p->variant, sizeof p->variant);
  else if (strcmp(key, "decode_us") == 0)
    p->us = read_median(r);
  else if (strcmp(key, "read_us") == 0)
    p->read_us = read_median(r);
  else
    json_skip(r);
}

static hd_status read_results(json_reader *r, bench_points *out) {
  hd_status status = HD_OK;
  char key[64];
  json_expect(r, '[');
  for (int n = 0; status == HD_OK && json_next(r, n, ']'); n++) {
    result one = {0};
    json_expect(r, '{');
    for (int i = 0; json_next(r, i, '}'); i++) {
      json_read_key(r, key, sizeof key);
      read_field(r, key, &one);
    }
    const bench_point *p = &one.point;
    if (json_failed(r)) break;
    if (one.timed && one.best) {
      if (p->seqs < 1 || p->length < 1 || p->kv_heads < 1 || p->bytes < 1 || !(p->us > 0) ||
          !(p->read_us > 0))
        json_fail(r, "a timed result with seqs, length, kv_heads, bytes, decode_us and read_us");
      else
        status = bench_points_add(out, p);
    }
    out->untimed += !one.timed;
  }
  return status;
}

static void read_device(json_reader *r, bench_points *out) {
  char key[64];
  json_expect(r, '{');
  for (int n = 0; json_next(r, n, '}'); n++) {
    json_read_key(r, key, sizeof key);
    if (strcmp(key, "name") == 0)
      json_read_string(r, out->device, sizeof out->device);
    else if (strcmp(key, "target") == 0)
      json_read_string(r, out->target, sizeof out->target);
    else
      json_skip(r);
  }
}

hd_status bench_points_read(const char *json, size_t length, bench_points *out, diags *errors) {
  json_reader r = json_reader_of(json, length);
  hd_status status = HD_OK;
  bool results = false;
  char key[64];
  *out = (bench_points){0};
  json_expect(&r, '{');
  for (int n = 0; status == HD_OK && json_next(&r, n, '}'); n++) {
    json_read_key(&r, key, sizeof key);
    if (strcmp(key, "spec") == 0) {
      json_read_string(&r, out->spec, sizeof out->spec);
    } else if (strcmp(key, "device") == 0) {
      read_device(&r, out);
    } else if (strcmp(key, "results") == 0) {
      status = read_results(&r, out);
      results = true;
    } else {
      json_skip(&r);
    }
  }
  if (status == HD_OK) json_expect_end(&r);
  if (status == HD_OK && !json_failed(&r) && !results) json_fail(&r, "a member \"results\"");
  if (status == HD_DECLINED)
    diags_errorf(errors, "bench.from", NULL, "more than %d results", BENCH_MOST_POINTS);
  if (status != HD_OK || !json_failed(&r)) return status;
  int line, column;
  json_place(&r, &line, &column);
  diags_errorf(errors, "bench.from", NULL,
               "line %d, column %d: expected %s, as heddle bench --json prints it", line, column, r.expected);
  return HD_DECLINED;
}
