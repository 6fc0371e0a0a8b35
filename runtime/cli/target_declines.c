#include "target_declines.h"
#include <string.h>

void target_declines_init(target_declines *d) {
  *d = (target_declines){0};
  diags_init(&d->all);
}

void target_declines_finish(target_declines *d) {
  diags_finish(&d->all);
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static unsigned bit_of(const target *t) {
  unsigned bit = 1;
  for (size_t i = 0; i < target_count() && target_at(i) != t; i++)
    bit <<= 1;
  return bit;
}

void target_declines_add(target_declines *d, const target *t, const diags *why) {
  d->asked |= bit_of(t);
  for (size_t i = 0; i < why->count; i++) {
    const diag *item = &why->items[i];
    size_t at = 0;
    while (at < d->all.count && !(same_text(d->all.items[at].field, item->field) &&
                                  same_text(d->all.items[at].message, item->message)))
      at++;
    if (at == TARGET_DECLINES_MOST) return;
    if (at == d->all.count) diags_copy(&d->all, item);
    if (at < d->all.count) d->targets[at] |= bit_of(t);
  }
}

/* "gfx942, gfx950 and sm_90" between two words. */
static void write_targets(const char *before, unsigned targets, const char *behind, text *out) {
  text_add(out, before);
  for (size_t i = 0; targets >> i; i++) {
    if (!(targets >> i & 1)) continue;
    unsigned left = targets >> i >> 1;
    text_addf(out, "%s%s", target_at(i)->name, !left ? "" : (left & (left - 1)) == 0 ? " and " : ", ");
  }
  text_add(out, behind);
}

/* Whether its message says no more than found and allowed do (diags_decline). */
static bool is_plain(const diag *item) {
  if (!item->found) return false;
  text plain;
  text_init(&plain);
  text_addf(&plain, "%s is not served: allowed is %s", item->found, item->allowed);
  bool same = strcmp(item->message, text_string(&plain)) == 0;
  text_finish(&plain);
  return same;
}

/* Whether two targets decline one value, each with what it allows in its place. */
static bool is_one_fault(const diag *a, const diag *b) {
  return a == b || (strcmp(a->code, b->code) == 0 && same_text(a->field, b->field) &&
                    same_text(a->found, b->found) && is_plain(a) && is_plain(b));
}

/* The fault that entry `first` is the first to tell. */
static void write_fault(const target_declines *d, size_t first, text *out) {
  const diag *items = d->all.items;
  unsigned all = 0;
  for (size_t i = first; i < d->all.count; i++)
    if (is_one_fault(&items[first], &items[i])) all |= d->targets[i];
  if (!is_plain(&items[first])) {
    text_add(out, items[first].message);
    if (all != d->asked) write_targets(" (", all, ")", out);
    return;
  }
  text_addf(out, "%s is not served", items[first].found);
  if (all != d->asked) write_targets(" on ", all, "", out);
  const char *separator = ": allowed is ";
  for (size_t i = first; i < d->all.count; i++) {
    if (!is_one_fault(&items[first], &items[i])) continue;
    text_addf(out, "%s%s", separator, items[i].allowed);
    if (d->targets[i] != all) write_targets(" (", d->targets[i], ")", out);
    separator = "; or ";
  }
}

void target_declines_write(const target_declines *d, diag_severity severity, diags *to) {
  diags merged;
  diags_init(&merged);
  for (size_t i = 0; i < d->all.count; i++) {
    const diag *item = &d->all.items[i];
    size_t first = 0;
    while (!is_one_fault(&d->all.items[first], item))
      first++;
    if (first < i) continue;
    text message;
    text_init(&message);
    write_fault(d, i, &message);
    diags_addf(&merged, severity, item->code, item->field, item->line, item->column, "%s",
               text_string(&message));
    merged.failed |= message.failed;
    text_finish(&message);
  }
  diags_add_new(to, &merged, severity);
  to->failed |= merged.failed || d->all.failed;
  diags_finish(&merged);
}
