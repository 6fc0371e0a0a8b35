#include "readings.h"
#include <string.h>

/* x: 16 bytes in elements. NULL for V: it lies in K. */
static const struct {
  const char *name, *k, *v;
} names[] = {
    {"nhd", "[b, s, h, d]", "[b, s, h, d]"},
    {"hnd", "[b, h, s, d]", "[b, h, s, d]"},
    {"shuffled", "[b, h, d/x, s, d%x]", "[b, h, s/x, d, s%x]"},
    {"classic", "[b, h, d/x, s, d%x]", "[b, h, d, s]"},
    {"latent", "[b, s, d]", "k"},
};

size_t layout_name_count(void) {
  return sizeof names / sizeof *names;
}

const char *layout_name_at(size_t index) {
  return names[index].name;
}

static void add_with_x(const char *from, int x, text *out) {
  for (; *from; from++) {
    if (*from == 'x')
      text_addf(out, "%d", x);
    else
      text_add_bytes(out, from, 1);
  }
}

bool layout_named(const char *name, int bytes, text *out_k, text *out_v) {
  for (size_t i = 0; i < layout_name_count(); i++) {
    if (strcmp(names[i].name, name) != 0) continue;
    add_with_x(names[i].k, 16 / bytes, out_k);
    add_with_x(names[i].v, 16 / bytes, out_v);
    return true;
  }
  return false;
}

bool layout_read(const char *from, int64_t page, int64_t head_dim, layout *out) {
  enum { LONGEST = 64 };
  char words[LAYOUT_MAX_FACTORS][LONGEST];
  const char *items[LAYOUT_MAX_FACTORS];
  unsigned axes = 0;
  int count = 0;
  for (from += strspn(from, "[ "); *from && *from != ']'; from += strspn(from, ", ")) {
    static const char letters[] = "bhsd";
    size_t length = strcspn(from, ",]");
    const char *letter = strchr(letters, *from);
    if (count == LAYOUT_MAX_FACTORS || length >= LONGEST || !letter) return false;
    memcpy(words[count], from, length);
    words[count][length] = 0;
    items[count] = words[count];
    count++;
    axes |= 1u << (letter - letters);
    from += length;
  }
  layout_error ignored;
  return layout_parse(items, count, axes, page, head_dim, out, &ignored);
}
