// A row's listed tokens, whose physical indices are the ids of pages of one token. Negative entries are dropped.
KERNEL(SELECT_THREADS) void heddle_select(
//@ arguments select
) {
  const int row = workgroup_x(), thread = thread_id();
//@ token_lists
  const auto token_at = [&](int place) { return place < listed ? tokens_listed[place] : (page_id)-1; };
  int count = 0;
  page_id token = token_at(thread);
  for (int first = 0; first < listed; first += SELECT_THREADS) {
    const page_id next = token_at(first + SELECT_THREADS + thread); // on its way while these are counted
    const int number = number_chosen(token >= 0, count);
    if (token >= 0) pages[number] = token;
    token = next;
  }
  for (int place = count + thread; place < list_width - 1; place += SELECT_THREADS) pages[place] = 0;
  if (thread == 0) list[0] = count;
}
