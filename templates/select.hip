// ---- select: what each query row attends to, as lists of pages ---------------------------------------------
//
// A workgroup makes one list. It has list_width entries in `lists`: how many tokens it holds, then their pages in the
// order in which decode counts them off; entries behind are 0. The width depends on shapes alone and every entry is
// written, so a captured launch holds for any lengths and lists.

//@ solved select
// Numbers the threads whose `chosen` is true, from `next` on, in their order; `next` becomes the number behind the last.
DEVICE int number_chosen(bool chosen, int &next) {
  SHARED int counted[SELECT_THREADS / WAVE];
  const u64 with = lanes_with<WAVE>(chosen);
  const int lane = lane_id(), wave = wave_id();
  barrier(); // the counts of the call before have been read
  if (lane == 0) counted[wave] = bits_set(with);
  barrier();
  int number = next + bits_set(with & (((u64)1 << lane) - 1));
  UNROLL for (int w = 0; w < SELECT_THREADS / WAVE; w++) {
    number += w < wave ? counted[w] : 0;
    next += counted[w];
  }
  return number;
}

//@ form
