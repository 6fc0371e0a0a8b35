#include "verify_lists.h"

#include <stdint.h>

/* How one list is made. */
typedef enum list_style {
  LIST_WHOLE,    /* everything there is, as far as the list reaches, in order */
  LIST_SHUFFLED, /* the same in another order, padding in between */
  LIST_ANY,      /* drawn at random: some of it twice, padding, what isn't there */
  LIST_LAST,     /* nothing but the last block or token */
  LIST_FIRST,    /* nothing but the first */
  LIST_EMPTY,
  LIST_STYLES
} list_style;

static bool is_blocks(const verify_data *d) {
  return d->contract->select.form == SELECT_BLOCKS;
}

static int64_t blocks_of(const verify_data *d, int64_t tokens) {
  int64_t block = d->contract->select.block;
  return tokens > 0 ? (tokens - 1) / block + 1 : 0;
}

void verify_lists_size(verify_data *d, random_state *r) {
  if (!contract_makes_lists(d->contract)) return;
  int64_t most = is_blocks(d) ? blocks_of(d, d->longest) : d->longest;
  bool clean = d->from->traits & TRAIT_CLEAN;
  int64_t listed = clean ? most : 1 + random_below(r, most + most / 4 + 3);
  d->sizes[DIM_LISTED] = listed < CASE_MAX_LISTED ? listed : CASE_MAX_LISTED;
}

int64_t verify_lists_sequence(const verify_data *d, int64_t seq) {
  const int32_t *map = d->memory[TENSOR_ROW_SEQUENCES];
  return map ? map[seq] : seq;
}

/* Every second row looks into the sequence before it, as far as that reaches. */
static void share_table_rows(verify_data *d) {
  int32_t *map = d->memory[TENSOR_ROW_SEQUENCES];
  const int32_t *lengths = d->memory[TENSOR_LENGTHS];
  for (int64_t s = 0; map && s < d->sizes[DIM_SEQS]; s++)
    map[s] = (int32_t)(s % 2 == 1 && lengths[s] <= lengths[s - 1] ? s - 1 : s);
}

/* What stands for nothing: -1, and in lists of blocks also any that the row does not see. */
static int64_t padding(const verify_data *d, int64_t count, random_state *r) {
  const int64_t beyond[] = {-1, -1, count, count + 1, INT32_MAX, INT32_MIN};
  return beyond[random_below(r, is_blocks(d) ? 6 : 2)];
}

/* Numbers below `count` (blocks, or tokens of the sequence) and padding: `listed` entries. */
static void draw_list(const verify_data *d, list_style style, int64_t count, int64_t listed, int64_t *out,
                      random_state *r) {
  for (int64_t i = 0; i < listed; i++)
    out[i] = style <= LIST_SHUFFLED && i < count ? i : -1;
  if (style == LIST_SHUFFLED)
    for (int64_t i = listed - 1; i > 0; i--) {
      int64_t j = random_below(r, i + 1), kept = out[i];
      out[i] = out[j];
      out[j] = kept;
    }
  for (int64_t i = 0; style == LIST_ANY && i < listed; i++)
    out[i] = count == 0 || random_below(r, 4) == 0 ? padding(d, count, r) : random_below(r, count);
  if (count > 0 && (style == LIST_LAST || style == LIST_FIRST))
    out[random_below(r, listed)] = style == LIST_LAST ? count - 1 : 0;
}

/* The list of one query row and kv head, into entries from `first` on. */
static void fill_list(verify_data *d, int64_t seq, int64_t row, int64_t first, int64_t *drawn,
                      random_state *r) {
  const contract *c = d->contract;
  int64_t listed = d->sizes[DIM_LISTED], rows = d->sizes[DIM_ROWS];
  int64_t length = d->first_token[seq + 1] - d->first_token[seq];
  int64_t visible = c->mask.causal ? length - rows + row + 1 : length;
  int64_t count = is_blocks(d) ? blocks_of(d, visible) : length;
  bool clean = d->from->traits & TRAIT_CLEAN;
  list_style style = clean ? LIST_WHOLE : (list_style)random_below(r, LIST_STYLES);
  draw_list(d, style, count, listed, drawn, r);
  for (int64_t i = 0; i < listed; i++)
    if (is_blocks(d))
      ((int32_t *)d->memory[TENSOR_BLOCK_LIST])[first + i] = (int32_t)drawn[i];
    else
      dtype_encode(c->select.index, drawn[i] < 0 ? -1.0 : (double)d->slot[d->first_token[seq] + drawn[i]],
                   (unsigned char *)d->memory[TENSOR_TOKEN_LIST] +
                       (first + i) * dtype_bytes(c->select.index));
}

void verify_lists_fill(verify_data *d, random_state *r) {
  share_table_rows(d);
  int64_t listed = d->sizes[DIM_LISTED], rows = d->sizes[DIM_ROWS], seqs = d->sizes[DIM_SEQS];
  int64_t drawn[CASE_MAX_LISTED];
  if (!contract_makes_lists(d->contract)) return;
  bool by_head = is_blocks(d) || d->contract->select.per == PER_KV_HEAD;
  int64_t heads = by_head ? d->sizes[DIM_KV_HEADS] : 1;
  for (int64_t head = 0; head < heads; head++)
    for (int64_t seq = 0; seq < seqs; seq++)
      for (int64_t row = 0; row < rows; row++)
        fill_list(d, seq, row, ((head * seqs + seq) * rows + row) * listed, drawn, r);
}
