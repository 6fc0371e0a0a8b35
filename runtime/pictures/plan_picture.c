#include "plan_picture.h"

void plan_sentences(const plan_picture *p, text *out) {
  const decode_solution *s = p->solution;
  if (s->on_line)
    plan_write_ring_summary(&s->contract, &s->ring, "", out);
  else
    plan_write_summary(&s->contract, &s->plan, "", out);
  if (s->on_line)
    text_addf(out, "Registers of a thread: %d to begin with, then %d to copy and %d to compute.\n",
              s->ring.thread_registers, s->ring.producer_registers, s->ring.consumer_registers);
  else
    text_addf(out, "LDS of a workgroup: %d of %d bytes.\n", s->plan.lds_bytes, p->target->lds_bytes);
  if (p->write)
    text_addf(
        out,
        "Writer: %d lanes for each row of a token and kv head, %d channels a lane at a time; %d threads.\n",
        p->write->row_lanes, p->write->load, p->write->threads);
}

/* "4 sequences x 1 kv head". */
static void write_items(const schedule *s, text *out) {
  text_addf(out, "%lld sequence%s x %lld kv head%s", (long long)s->seqs, s->seqs > 1 ? "s" : "",
            (long long)s->kv_heads, s->kv_heads > 1 ? "s" : "");
}

void plan_launch_sentence(const plan_picture *p, text *out) {
  const schedule *s = &p->schedule;
  write_items(s, out);
  text_addf(out, ", up to %lld tokens each, in tiles of %d: ", (long long)p->longest, s->tile_tokens);
  if (s->on_line)
    text_addf(out, "a line of %lld tiles cut into %lld part%s (%s)", (long long)s->line_tiles,
              (long long)s->parts, s->parts > 1 ? "s" : "", p->split_choice);
  else
    text_addf(out, "%lld split%s (%s)", (long long)s->splits, s->splits > 1 ? "s" : "", p->split_choice);
  text_addf(out, "; %lld workgroup%s on %d compute units.", (long long)p->workgroups,
            p->workgroups > 1 ? "s" : "", p->compute_units);
}

int plan_takers(const decode_solution *s) {
  return s->on_line ? s->ring.consumers : s->plan.waves;
}

int plan_stages(const decode_solution *s) {
  if (s->on_line) return s->ring.stages / s->ring.consumers;
  return s->plan.structure == STRUCTURE_RING ? s->plan.staged.stages : 0;
}

/* Tiles of the first part before its second warpgroup's. */
static int64_t first_half(const schedule *s) {
  return schedule_middle(s, 0) - schedule_part(s, 0).first;
}

int plan_taker(const plan_picture *p, int64_t n) {
  int takers = plan_takers(p->solution);
  if (!p->schedule.on_line) return (int)(n % takers);
  return takers > 1 && n >= first_half(&p->schedule) ? 1 : 0;
}

int plan_stage(const plan_picture *p, int64_t n) {
  int takers = plan_takers(p->solution), stages = plan_stages(p->solution), taker = plan_taker(p, n);
  if (!p->schedule.on_line) return (int)(n / takers % stages);
  return taker * stages + (int)((taker > 0 ? n - first_half(&p->schedule) : n) % stages);
}

int plan_fragments(const decode_solution *s) {
  return s->plan.k_list / s->plan.op->elements;
}

int plan_fragment_channel(const decode_solution *s, int u, int group) {
  const decode_plan *p = &s->plan;
  int i = u * p->op->elements;
  return (i / p->k_chunk * p->op->groups + group) * p->k_chunk + i % p->k_chunk;
}
