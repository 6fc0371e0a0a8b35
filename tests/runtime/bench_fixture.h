/* Contracts that benches are run of. */
#ifndef HEDDLE_TESTS_BENCH_FIXTURE_H
#define HEDDLE_TESTS_BENCH_FIXTURE_H

#include "../../generator/emit_read.h"
#include "../../runtime/bench/bench_lists.h"
#include "../../runtime/verify/oracle.h"
#include "../../runtime/bench/bench_rig.h"
#include "../example_contract.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static inline contract fp8_contract(int page, int width) {
  contract c = example_contract(page, width, width);
  c.query.heads_per_kv = 2;
  c.kv.k_dtype = c.kv.v_dtype = DTYPE_FP8_E4M3FN;
  c.kv.k = example_layout("b h d/16 s d%16", page, width);
  c.kv.v = example_layout("b h s/16 d s%16", page, width);
  c.scale.granularity = SCALE_TOKEN_HEAD;
  c.scale.k = c.scale.v = example_layout("b h s", page, width);
  return c;
}

static inline contract blocks_contract(void) {
  contract c = fp8_contract(16, 64);
  c.select.form = SELECT_BLOCKS;
  c.select.block = 128;
  return c;
}

static inline contract listed_contract(select_form form, select_per per, int rows) {
  contract c = example_contract(16, 64, 64);
  c.query.heads_per_kv = 2;
  c.query.rows = rows;
  c.select.form = form;
  c.select.per = per;
  return c;
}

static const char *const per_words[] = {"sequence", "kv_head", "row"};
static const select_per pers[] = {PER_SEQUENCE, PER_KV_HEAD, PER_ROW};

#endif
