"""Turns template files into one C source: embed.py OUTPUT TEMPLATE... -- GENERATOR_SOURCE...

The generator sources are not embedded; they only count towards the generator sum.
"""
import hashlib
import pathlib
import sys

output, *rest = sys.argv[1:]
split = rest.index("--")
paths = sorted(map(pathlib.Path, rest[:split]), key=lambda p: p.name)
sources = sorted(map(pathlib.Path, rest[split + 1 :]), key=lambda p: p.name)
total = hashlib.sha256()
for path in paths + sources:
    total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
lines = ["/* Made from templates/ by embed.py. */", '#include "emit.h"', "#include <string.h>", ""]
for i, path in enumerate(paths):
    data = path.read_bytes()
    data.decode("ascii")  # the emitted source stays plain ASCII
    lines.append(f"static const char text_{i}[] = {{")
    for at in range(0, len(data), 24):
        lines.append("  " + " ".join(f"{b}," for b in data[at : at + 24]))
    lines.append("  0};")
lines.append("static const struct { const char *name, *text; size_t length; } embedded[] = {")
for i, path in enumerate(paths):
    lines.append(f'  {{"{path.name}", text_{i}, sizeof text_{i} - 1}},')
lines += [
    "};",
    "",
    "static const char *find(void *user, const char *name, size_t *out_length) {",
    "  (void)user;",
    "  for (size_t i = 0; i < sizeof embedded / sizeof *embedded; i++)",
    "    if (strcmp(embedded[i].name, name) == 0) {",
    "      *out_length = embedded[i].length;",
    "      return embedded[i].text;",
    "    }",
    "  return NULL;",
    "}",
    "",
    "const template_source *templates_embedded(void) {",
    "  static const template_source source = {find, NULL};",
    "  return &source;",
    "}",
    "",
    f'const char *emit_generator_sum(void) {{ return "{total.hexdigest()}"; }}',
]
pathlib.Path(output).write_text("\n".join(lines) + "\n")
