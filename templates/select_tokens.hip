// A row's listed tokens, whose physical indices are the ids of pages of one token. Negative entries are dropped.
KERNEL(SELECT_THREADS) void heddle_select(
//@ arguments select
) {
  const int row = workgroup_x(), thread = thread_id();
//@ token_lists
  int count = 0;
  for (int first = 0; first < listed; first += SELECT_THREADS) {
    const page_id token = first + thread < listed ? tokens_listed[first + thread] : (page_id)-1;
    const int number = number_chosen(token >= 0, count);
    if (token >= 0) pages[number] = token;
  }
  for (int place = count + thread; place < list_width - 1; place += SELECT_THREADS) pages[place] = 0;
  if (thread == 0) list[0] = count;
}
