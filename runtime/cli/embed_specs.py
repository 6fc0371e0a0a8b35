"""Turns the shipped specs into one C source: embed_specs.py OUTPUT DEPFILE FOLDER"""
import pathlib
import sys

output, depfile, folder = sys.argv[1:]
paths = sorted(pathlib.Path(folder).glob("*.yaml"), key=lambda p: p.stem)
lines = ["/* Made from specs/ by embed_specs.py. */", '#include "shipped.h"', ""]
for i, path in enumerate(paths):
    data = path.read_bytes()
    data.decode("ascii")
    lines.append(f"static const char text_{i}[] = {{")
    for at in range(0, len(data), 24):
        lines.append("  " + " ".join(f"{b}," for b in data[at : at + 24]))
    lines.append("  0};")
lines.append("static const struct { const char *name, *text; } shipped[] = {")
lines += [f'  {{"{path.stem}", text_{i}}},' for i, path in enumerate(paths)]
lines += [
    "};",
    "",
    "size_t shipped_count(void) { return sizeof shipped / sizeof *shipped; }",
    "const char *shipped_name_at(size_t index) { return shipped[index].name; }",
    "const char *shipped_text_at(size_t index) { return shipped[index].text; }",
]
pathlib.Path(output).write_text("\n".join(lines) + "\n")
# The folder too: its time changes when a spec comes or goes.
pathlib.Path(depfile).write_text(f"{output}: {folder} {' '.join(map(str, paths))}\n")
