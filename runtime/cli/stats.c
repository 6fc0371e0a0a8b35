#include "stats.h"
#include "../estimate.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int segment_bytes[COUNT_SEGMENT_SIZES] = {32, 64, 128};

int stats_check(const cli *c, const session *s) {
  if (device_counts_launches(s->device)) return EXIT_FINE;
  return cli_usage(c, "%s can't count what it executes; emulated devices can: --device emu:gfx950",
                   s->facts.name);
}

void stats_names_of(const tensors *on_device, const session_kernel *k, stats_names *out_names) {
  stats_names n = {0};
  for (int i = 0; i < TENSOR_COUNT; i++) {
    if (!on_device->present[i]) continue;
    n.items[n.count].start = on_device->by_name[i].data;
    n.items[n.count++].name = (tensor_name)i;
  }
  if (k->workspace && n.count < TENSOR_COUNT) {
    n.items[n.count].start = k->workspace;
    n.items[n.count++].name = TENSOR_WORKSPACE;
  }
  *out_names = n;
}

static bool tensor_of(const stats_names *names, uint64_t start, tensor_name *out_name) {
  for (int i = 0; i < names->count; i++)
    if (names->items[i].start == start) {
      *out_name = names->items[i].name;
      return true;
    }
  return false;
}

static const char *buffer_name(const stats_names *names, uint64_t start) {
  tensor_name name;
  return tensor_of(names, start, &name) ? tensor_name_text(name) : start ? "arguments" : "";
}

count_traffic stats_kv_loads(const counts *c, const stats_names *names) {
  count_traffic sum = {0};
  for (size_t n = 0; n < c->count; n++)
    for (size_t b = 0; b < c->launches[n].buffer_count; b++) {
      tensor_name name;
      const count_buffer *buffer = &c->launches[n].buffers[b];
      if (tensor_of(names, buffer->start, &name) && (name == TENSOR_K_CACHE || name == TENSOR_V_CACHE))
        count_traffic_add(&sum, &buffer->loads);
    }
  return sum;
}

void json_efficiency(text *out, bool *first, const char *name, const count_traffic *t) {
  bool inner = true;
  json_key(out, first, name);
  text_add(out, "{");
  for (int n = 0; n < COUNT_SEGMENT_SIZES; n++) {
    char bytes[8];
    snprintf(bytes, sizeof bytes, "%d", segment_bytes[n]);
    json_number(out, &inner, bytes, count_efficiency(t, n));
  }
  text_add(out, "}");
}

/* The sites of memory that touch most cache lines, and those of LDS that cost most cycles. */
static uint64_t weight(const count_site *s) {
  return s->traffic.segments[COUNT_LINE] + s->lds_cycles;
}

static int compare_sites(const void *a, const void *b) {
  const count_site *x = a, *y = b;
  if (weight(x) != weight(y)) return weight(x) < weight(y) ? 1 : -1;
  return x->address < y->address ? -1 : x->address > y->address;
}

/* Hottest first; scalar loads are left out. Owned by the caller; NULL without memory. */
static count_site *hottest(const launch_counts *l, size_t *out_count) {
  count_site *sites = calloc(l->site_count + 1, sizeof *sites);
  size_t count = 0;
  for (size_t n = 0; sites && n < l->site_count; n++)
    if (l->sites[n].class != COUNT_SCALAR_MEMORY) sites[count++] = l->sites[n];
  if (sites) qsort(sites, count, sizeof *sites, compare_sites);
  *out_count = count;
  return sites;
}

static double conflict_cycles(const launch_counts *l) {
  return (double)(l->lds_cycles - l->lds_least);
}

/* ---- Tables ---- */

static void add_bytes(text *out, double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    unit++;
  }
  text_addf(out, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void table_traffic(const char *name, const char *what, const count_traffic *t, uint64_t lines,
                          text *out) {
  text bytes;
  if (!t->instructions) return;
  text_init(&bytes);
  add_bytes(&bytes, (double)t->bytes);
  text_addf(out, "    %-12s %-6s %10" PRIu64 " %12s", name, what, t->instructions, text_string(&bytes));
  text_clear(&bytes);
  add_bytes(&bytes, (double)lines * COUNT_LINE_BYTES);
  text_addf(out, " %12s", lines ? text_string(&bytes) : "-");
  for (int n = 0; n < COUNT_SEGMENT_SIZES; n++)
    text_addf(out, " %10" PRIu64 " %5.3f", t->segments[n], count_efficiency(t, n));
  text_add(out, "\n");
  text_finish(&bytes);
}

static void table_memory(const launch_counts *l, const stats_names *names, text *out) {
  text_addf(out, "  memory, by tensor\n    %-12s %-6s %10s %12s %12s", "tensor", "", "executed", "bytes",
            "lines");
  for (int n = 0; n < COUNT_SEGMENT_SIZES; n++)
    text_addf(out, " %7d-B %5s", segment_bytes[n], "eff.");
  text_add(out, "\n");
  for (size_t n = 0; n < l->buffer_count; n++) {
    const count_buffer *b = &l->buffers[n];
    table_traffic(buffer_name(names, b->start), "load", &b->loads, b->lines_read, out);
    table_traffic(buffer_name(names, b->start), "store", &b->stores, b->lines_written, out);
  }
}

static void table_estimate(const launch_counts *l, const session *s, text *out) {
  estimate e;
  if (!estimate_launch(s->target, s->facts.compute_units, l, &e)) return;
  text_addf(
      out,
      "  estimate, from datasheet figures, not measured: bound by %s, %.2f us; %.0f %% of the bandwidth\n   ",
      estimate_bound_name(e.bound), 1e6 * e.total, 100 * e.efficiency);
  for (int n = 0; n < BOUND_COUNT; n++)
    text_addf(out, " %s %.2f us%s", estimate_bound_name((estimate_bound)n), 1e6 * e.seconds[n],
              n + 1 < BOUND_COUNT ? "," : "\n");
}

static void table_sites(const launch_counts *l, const stats_names *names, int top, text *out) {
  size_t count;
  count_site *sites = hottest(l, &count);
  if (!sites || !count || !top) {
    free(sites);
    return;
  }
  text_addf(out, "  instructions by cache lines or LDS cycles\n    %8s %10s %12s %6s  %-12s %s\n", "address",
            "executed", "lines|cycles", "eff.", "tensor", "instruction");
  for (size_t n = 0; n < count && n < (size_t)top; n++) {
    const count_site *s = &sites[n];
    bool memory = s->traffic.segments[COUNT_LINE] > 0;
    double efficiency = memory          ? count_efficiency(&s->traffic, COUNT_LINE)
                        : s->lds_cycles ? (double)s->lds_least / (double)s->lds_cycles
                                        : 1;
    text_addf(out, "    %8" PRIx64 " %10" PRIu64 " %12" PRIu64 " %6.3f  %-12s %s\n", s->address, s->executed,
              memory ? s->traffic.segments[COUNT_LINE] : s->lds_cycles, efficiency,
              memory ? s->several ? "several" : buffer_name(names, s->buffer) : "LDS", s->text);
  }
  free(sites);
}

static void table_launch(const launch_counts *l, const session *s, const stats_names *names, int top,
                         text *out) {
  text_addf(out,
            "kernel %s: %" PRIu64 " workgroups, %" PRIu64 " waves of %d lanes, the longest of %" PRIu64
            " instructions\n",
            l->kernel, l->workgroups, l->waves, l->lanes, l->longest_wave);
  text_addf(out, "  instructions %" PRIu64 ":", launch_counts_total(l));
  for (int n = 0; n < COUNT_CLASS_COUNT; n++)
    if (l->instructions[n])
      text_addf(out, " %s %" PRIu64, count_class_name((count_class)n), l->instructions[n]);
  text_add(out, "\n");
  for (size_t n = 0; n < l->matrix_count; n++)
    text_addf(out, "  matrix: %" PRIu64 " %s, %.4g multiply-adds\n", l->matrix[n].executed, l->matrix[n].name,
              (double)l->matrix[n].multiply_adds);
  if (l->lds_cycles)
    text_addf(out, "  LDS: %" PRIu64 " bytes in %" PRIu64 " cycles, %.0f of them (%.1f %%) bank conflicts\n",
              l->lds_bytes, l->lds_cycles, conflict_cycles(l),
              100 * conflict_cycles(l) / (double)l->lds_cycles);
  table_memory(l, names, out);
  table_sites(l, names, top, out);
  table_estimate(l, s, out);
}

void stats_table(const counts *c, const session *s, const stats_names *names, int top, text *out) {
  for (size_t n = 0; n < c->count; n++)
    table_launch(&c->launches[n], s, names, top, out);
}

/* ---- JSON ---- */

static void json_traffic(text *out, bool *first, const char *name, const count_traffic *t) {
  bool inner = true;
  json_key(out, first, name);
  text_add(out, "{");
  json_int(out, &inner, "executed", (int64_t)t->instructions);
  json_int(out, &inner, "bytes", (int64_t)t->bytes);
  json_int(out, &inner, "distinct_bytes", (int64_t)t->distinct);
  json_key(out, &inner, "segments");
  text_add(out, "[");
  for (int n = 0; n < COUNT_SEGMENT_SIZES; n++)
    text_addf(out, "%s{\"bytes\": %d, \"touched\": %" PRIu64 ", \"least\": %" PRIu64 "}", n ? ", " : "",
              segment_bytes[n], t->segments[n], t->least[n]);
  text_add(out, "]");
  json_efficiency(out, &inner, "efficiency", t);
  text_add(out, "}");
}

static void json_tensors(const launch_counts *l, const stats_names *names, text *out) {
  for (size_t n = 0; n < l->buffer_count; n++) {
    const count_buffer *b = &l->buffers[n];
    bool first = true;
    text_add(out, n ? ", {" : "{");
    json_text(out, &first, "tensor", buffer_name(names, b->start));
    json_int(out, &first, "size", (int64_t)b->size);
    json_traffic(out, &first, "loads", &b->loads);
    json_traffic(out, &first, "stores", &b->stores);
    json_int(out, &first, "lines_read", (int64_t)b->lines_read);
    json_int(out, &first, "lines_written", (int64_t)b->lines_written);
    text_add(out, "}");
  }
}

static void json_sites(const launch_counts *l, const stats_names *names, int top, text *out) {
  size_t count;
  count_site *sites = hottest(l, &count);
  for (size_t n = 0; sites && n < count && n < (size_t)top; n++) {
    const count_site *s = &sites[n];
    bool first = true;
    text_add(out, n ? ", {" : "{");
    json_int(out, &first, "address", (int64_t)s->address);
    json_text(out, &first, "instruction", s->text);
    json_text(out, &first, "class", count_class_name(s->class));
    json_int(out, &first, "executed", (int64_t)s->executed);
    json_bool(out, &first, "writes", s->writes);
    json_text(out, &first, "tensor", s->several ? "several" : buffer_name(names, s->buffer));
    json_traffic(out, &first, "traffic", &s->traffic);
    json_int(out, &first, "lds_cycles", (int64_t)s->lds_cycles);
    json_int(out, &first, "lds_least", (int64_t)s->lds_least);
    text_add(out, "}");
  }
  free(sites);
}

static void json_estimate(const launch_counts *l, const session *s, bool *first, text *out) {
  estimate e;
  bool inner = true;
  if (!estimate_launch(s->target, s->facts.compute_units, l, &e)) return;
  json_key(out, first, "estimate");
  text_add(out, "{");
  json_bool(out, &inner, "measured", false);
  json_text(out, &inner, "bound", estimate_bound_name(e.bound));
  json_number(out, &inner, "us", 1e6 * e.total);
  json_number(out, &inner, "bandwidth_share", e.efficiency);
  json_number(out, &inner, "bytes", e.bytes);
  json_key(out, &inner, "us_by_bound");
  text_add(out, "{");
  bool member = true;
  for (int n = 0; n < BOUND_COUNT; n++)
    json_number(out, &member, estimate_bound_name((estimate_bound)n), 1e6 * e.seconds[n]);
  text_add(out, "}}");
}

static void json_launch(const launch_counts *l, const session *s, const stats_names *names, int top,
                        text *out) {
  bool first = true, inner = true;
  text_add(out, "{");
  json_text(out, &first, "kernel", l->kernel);
  json_int(out, &first, "lanes", l->lanes);
  json_int(out, &first, "workgroups", (int64_t)l->workgroups);
  json_int(out, &first, "waves", (int64_t)l->waves);
  json_int(out, &first, "longest_wave", (int64_t)l->longest_wave);
  json_key(out, &first, "instructions");
  text_add(out, "{");
  json_int(out, &inner, "total", (int64_t)launch_counts_total(l));
  for (int n = 0; n < COUNT_CLASS_COUNT; n++)
    json_int(out, &inner, count_class_name((count_class)n), (int64_t)l->instructions[n]);
  text_add(out, "}");
  json_key(out, &first, "matrix");
  text_add(out, "[");
  for (size_t n = 0; n < l->matrix_count; n++) {
    inner = true;
    text_add(out, n ? ", {" : "{");
    json_text(out, &inner, "instruction", l->matrix[n].name);
    json_int(out, &inner, "bits", l->matrix[n].bits);
    json_int(out, &inner, "executed", (int64_t)l->matrix[n].executed);
    json_int(out, &inner, "multiply_adds", (int64_t)l->matrix[n].multiply_adds);
    text_add(out, "}");
  }
  text_add(out, "]");
  json_key(out, &first, "lds");
  inner = true;
  text_add(out, "{");
  json_int(out, &inner, "bytes", (int64_t)l->lds_bytes);
  json_int(out, &inner, "cycles", (int64_t)l->lds_cycles);
  json_int(out, &inner, "least_cycles", (int64_t)l->lds_least);
  json_int(out, &inner, "conflict_cycles", (int64_t)(l->lds_cycles - l->lds_least));
  text_add(out, "}");
  json_traffic(out, &first, "loads", &l->loads);
  json_traffic(out, &first, "stores", &l->stores);
  json_key(out, &first, "tensors");
  text_add(out, "[");
  json_tensors(l, names, out);
  text_add(out, "]");
  json_key(out, &first, "sites");
  text_add(out, "[");
  json_sites(l, names, top, out);
  text_add(out, "]");
  json_estimate(l, s, &first, out);
  text_add(out, "}");
}

void stats_json(const counts *c, const session *s, const stats_names *names, int top, text *out) {
  text_add(out, "[");
  for (size_t n = 0; n < c->count; n++) {
    if (n) text_add(out, ", ");
    json_launch(&c->launches[n], s, names, top, out);
  }
  text_add(out, "]");
}
