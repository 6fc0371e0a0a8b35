#include "guess.h"

#include <string.h>

static size_t shared_beginning(const char *a, const char *b) {
  size_t length = 0;
  while (a[length] && a[length] == b[length])
    length++;
  return length;
}

void guess_offer(guess *g, const char *word, int row, size_t distance) {
  size_t beginning = shared_beginning(g->found, word);
  bool further = distance > g->distance || (distance == g->distance && beginning < g->beginning);
  if (g->count > 0 && further) return;
  if (g->count > 0 && (distance < g->distance || beginning > g->beginning)) g->count = 0;
  g->distance = distance;
  g->beginning = beginning;
  for (int i = 0; i < g->count; i++)
    if (strcmp(g->words[i], word) == 0) return;
  if (g->count == GUESS_MOST) return;
  g->words[g->count] = word;
  g->rows[g->count++] = row;
}

void guess_offer_near(guess *g, const char *word, int row) {
  size_t length = strlen(g->found), distance = text_distance(g->found, word);
  bool near = distance <= 1 + length / 4 && distance < length;
  bool part = length >= 2 && (strstr(word, g->found) || (strlen(word) > 2 && strstr(g->found, word)));
  if (near || part) guess_offer(g, word, row, distance);
}

void guess_write(const guess *g, const char *before, const char *behind, text *out) {
  for (int i = 0; i < g->count; i++)
    text_addf(out, "%s%s%s%s", i == 0 ? "" : i + 1 < g->count ? ", " : " or ", before, g->words[i], behind);
}
