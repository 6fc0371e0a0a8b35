// The lists of pages: a sequence's, or those that heddle_select has made, how many kv heads share one, and how many query rows.
struct page_lists {
  const int *lengths;
  const page_id *pages;
  i64 length_step, page_step;
  int count, heads, rows;
};

DEVICE int list_length(const page_lists &lists, int list) { return lists.lengths[(i64)list * lists.length_step]; }

