#include "lines.h"

#include <string.h>

void lines_wrap(text *out, int columns, const char *words) {
  size_t indent = strspn(words, " "), column = 0;
  while (*words) {
    size_t space = strspn(words, " "), length = strcspn(words + space, " ");
    if (column > indent && column + space + length > (size_t)columns) {
      text_add(out, "\n");
      for (column = 0; column < indent; column++)
        text_add(out, " ");
    } else {
      text_add_bytes(out, words, space);
      column += space;
    }
    text_add_bytes(out, words + space, length);
    column += length;
    words += space + length;
  }
  lines_end(out);
}

void lines_end(text *out) {
  while (out->length > 0 && out->data[out->length - 1] == ' ')
    out->data[--out->length] = '\0';
  text_add(out, "\n");
}

void lines_add(text *out, bool colour, const char *sgr, const char *words, int width) {
  bool colours = colour && *sgr && *words;
  if (colours) text_addf(out, "\x1b[%sm", sgr);
  text_addf(out, "%.*s", width, words);
  if (colours) text_add(out, "\x1b[0m");
  for (int i = (int)strlen(words); i < width; i++)
    text_add(out, " ");
}
