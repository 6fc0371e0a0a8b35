/* What a wrong word was meant to be: the nearest of the words there are, and those that are as near. */
#ifndef HEDDLE_GUESS_H
#define HEDDLE_GUESS_H

#include "text.h"

enum { GUESS_MOST = 3 };

typedef struct guess {
  const char *found;
  const char *words[GUESS_MOST]; /* in the order offered */
  int rows[GUESS_MOST];          /* as offered with them */
  int count;                     /* 0: nothing is near */
  size_t distance;               /* that of all of them */
  size_t beginning;              /* letters that they begin with as `found` does */
} guess;

/* Offers a word that is near enough to be meant. Of equally distant ones those win that begin alike for
 * longer: gfx940 is gfx942 rather than gfx950. */
void guess_offer(guess *g, const char *word, int row, size_t distance);
/* Offers `word` if it is near by what both are alone: few letters differ for their number, or one is part of
 * the other. */
void guess_offer_near(guess *g, const char *word, int row);
/* The words, each between the two: "a", "b" or "c". */
void guess_write(const guess *g, const char *before, const char *behind, text *out);

#endif
