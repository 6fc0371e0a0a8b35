// The ragged lists of pages, how many kv heads share one, and how many query rows.
struct page_lists {
  const int *ends, *last_page_tokens;
  int count, heads, rows;
};

DEVICE int list_length(const page_lists &lists, int list) {
  const int listed = lists.ends[list + 1] - lists.ends[list];
  return listed > 0 ? (listed - 1) * (int)PAGE + lists.last_page_tokens[list] : 0;
}

