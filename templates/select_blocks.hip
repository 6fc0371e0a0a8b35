// A row's listed blocks of BLOCK tokens, for one kv head: in the order of the list, the last visible block behind all
// others, since it may be filled in part. -1, blocks that the row does not see and blocks listed before are dropped.
KERNEL(SELECT_THREADS) void heddle_select(
//@ arguments select
) {
  const int row = workgroup_x(), kv_head = workgroup_y(), thread = thread_id();
//@ visible
  const int last = visible > 0 ? (visible - 1) / BLOCK : -1;
  const int last_tokens = visible > 0 ? (visible - 1) % BLOCK + 1 : 0;
  const int *blocks = block_list + kv_head * listed_stride_h + row * listed_stride_row;
  const auto block_at = [&](int place) { return place < listed ? blocks[place] : -1; };
  page_id *list = (page_id *)lists + ((i64)row * kv_heads + kv_head) * list_width, *pages = list + 1;
  SHARED int entry[SELECT_THREADS], chosen[SELECT_THREADS];

  int count = 0, last_listed = 0;
  for (int first = 0; first < listed; first += SELECT_THREADS) {
    const int block = block_at(first + thread);
    bool fresh = block >= 0 && block < last;
    for (int from = 0; from <= first; from += SELECT_THREADS) {
      barrier(); // what was there has been read
      entry[thread] = from == first ? block : block_at(from + thread);
      barrier();
      const int before = from == first ? thread : SELECT_THREADS;
      if (fresh)
        for (int i = 0; i < before; i++) fresh &= entry[i] != block;
    }
    number_chosen(block >= 0 && block == last, last_listed);
    const int done = count, number = number_chosen(fresh, count);
    if (fresh) chosen[number - done] = block;
    barrier();
    for (int place = done * BLOCK_PAGES + thread; place < count * BLOCK_PAGES; place += SELECT_THREADS)
      pages[place] = table[chosen[place / BLOCK_PAGES - done] * BLOCK_PAGES + place % BLOCK_PAGES];
  }

  const int full = count * BLOCK_PAGES, partial = last_listed > 0 ? (last_tokens - 1) / PAGE_TOKENS + 1 : 0;
  for (int place = full + thread; place < list_width - 1; place += SELECT_THREADS)
    pages[place] = place - full < partial ? table[last * BLOCK_PAGES + (place - full)] : (page_id)0;
  if (thread == 0) list[0] = count * BLOCK + (last_listed > 0 ? last_tokens : 0);
}
