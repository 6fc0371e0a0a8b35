/* The picture of a plan: what the generator solved, and how a launch's tiles lie over splits, waves and
 * stages. What `heddle plan` shows. */
#ifndef HEDDLE_PICTURES_PLAN_PICTURE_H
#define HEDDLE_PICTURES_PLAN_PICTURE_H

#include "../../generator/plan.h"
#include "schedule.h"

typedef struct plan_picture {
  const char *name;    /* the spec's */
  const char *variant; /* "default" */
  const target *target;
  const decode_solution *solution;
  const write_plan *write; /* NULL: the contract has no writer */
  /* The launch; schedule.lengths NULL: none is drawn. */
  schedule schedule;
  const char *split_choice;    /* who chose the split: "asked for", "by the policy", … */
  int64_t workgroups, longest; /* tokens of the longest sequence */
  int compute_units;           /* of the datasheet */
  int columns;                 /* of the terminal */
  bool colour;
} plan_picture;

/* Sentences on the plan, one a line: those of the emitted source's head, and one on the writer. */
void plan_sentences(const plan_picture *p, text *out);
/* One sentence on the launch: items, tiles, splits or parts, workgroups. */
void plan_launch_sentence(const plan_picture *p, text *out);
/* Waves that take a workgroup's tiles in turn, or consumer warpgroups that share them out; stages of a ring
 * (0: none) that each of them has. */
int plan_takers(const decode_solution *s);
int plan_stages(const decode_solution *s);
/* Which of them takes the n-th tile of the first workgroup, and in which stage of a ring: for warpgroups
 * counted over all of them. */
int plan_taker(const plan_picture *p, int64_t n);
int plan_stage(const plan_picture *p, int64_t n);
/* Channels of K that lane group `group` holds in fragment `u` begin here. */
int plan_fragment_channel(const decode_solution *s, int u, int group);
int plan_fragments(const decode_solution *s);

/* Failing is in the text (`failed`). */
void plan_svg(const plan_picture *p, text *out);
void plan_text(const plan_picture *p, text *out);

#endif
