#include "tuned_launch.h"
#include <inttypes.h>

hd_status tuned_launch_of(const tuned_question *q, tune_files *files, tuned_launch *out, diags *d) {
  const target *t = q->target;
  emission made;
  *out = (tuned_launch){.shape = q->shape};
  tune_files_validate(files, q->contract, t, NULL);
  tune_choose(files, &q->shape, t->compute_units, &out->choice);
  hd_status status =
      emit_operation(q->contract, OPERATION_DECODE, &out->choice.variant, t, templates_embedded(), &made, d);
  if (status != HD_OK) return status;
  const split_facts facts = split_facts_of(&made.descriptor);
  emission_finish(&made);
  const int64_t items = split_items(facts, q->shape.seqs, q->shape.rows, q->shape.kv_heads);
  out->policy = splits_among(q->factors, launch_splits(facts, items, q->shape.length, t->compute_units));
  out->splits =
      q->splits > 0 ? q->splits
      : out->choice.found
          ? splits_among(q->factors, tune_choice_splits(&out->choice, facts, &q->shape, t->compute_units))
          : out->policy;
  return HD_OK;
}

void tuned_launch_write(const tuned_launch *l, const tune_files *files, text *out) {
  text shape, name;
  text_init(&shape);
  text_init(&name);
  tune_shape_write(&l->shape, &shape);
  variant_write(&l->choice.variant, &name);
  text_addf(out, "%s: %s, split %" PRId64 "\n  %s\n", text_string(&shape), text_string(&name), l->splits,
            l->choice.reason);
  if (l->choice.found) {
    const tune_entry *b = l->choice.entry;
    text_addf(out, "  there %.2f us, the fastest by name of %d candidates within %.1f %%", b->us,
              b->candidates, 100 * l->choice.file->record->margin);
    if (b->policy_us > 0) text_addf(out, "; the policy's choice %.2f us", b->policy_us);
    text_add(out, "\n");
  }
  text_addf(out, "  the policy would split by %" PRId64 "\n", l->policy);
  for (int i = 0; i < files->count; i++)
    if (!files->items[i].valid)
      text_addf(out, "  ignored: %s: %s\n", files->items[i].path, files->items[i].why);
  text_finish(&name);
  text_finish(&shape);
}

static void json_ignored(const tune_files *files, bool *first, text *out) {
  bool some = false;
  json_key(out, first, "ignored");
  text_add(out, "[");
  for (int i = 0; i < files->count; i++) {
    if (files->items[i].valid) continue;
    bool inner = true;
    text_add(out, some ? ", {" : "{");
    json_text(out, &inner, "file", files->items[i].path);
    json_text(out, &inner, "why", files->items[i].why);
    text_add(out, "}");
    some = true;
  }
  text_add(out, "]");
}

static void json_shape(text *out, bool *first, const char *name, const tune_shape *s) {
  text words;
  text_init(&words);
  tune_shape_write(s, &words);
  json_text(out, first, name, text_string(&words));
  text_finish(&words);
}

void tuned_launch_json(const tuned_launch *l, const tune_files *files, bool *first, text *out) {
  text name;
  text_init(&name);
  variant_write(&l->choice.variant, &name);
  json_bool(out, first, "ok", true);
  json_shape(out, first, "shape", &l->shape);
  json_text(out, first, "variant", text_string(&name));
  json_int(out, first, "split", l->splits);
  json_bool(out, first, "tuned", l->choice.found);
  json_text(out, first, "reason", l->choice.reason);
  json_int(out, first, "policy_split", l->policy);
  if (l->choice.found) {
    json_text(out, first, "file", l->choice.file->path);
    json_text(out, first, "evidence", tune_evidence_name(l->choice.file->record->evidence));
    json_shape(out, first, "bucket", &l->choice.entry->shape);
    json_number(out, first, "distance", l->choice.distance);
    json_number(out, first, "bucket_us", l->choice.entry->us);
    json_number(out, first, "bucket_policy_us", l->choice.entry->policy_us);
  }
  json_ignored(files, first, out);
  text_finish(&name);
}
