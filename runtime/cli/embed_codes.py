"""Turns the tables of diagnostic codes in the documents into one C source: embed_codes.py OUTPUT DEPFILE FOLDER

A row belongs to such a table when the head's first cell begins with "code". Of a code that several documents have, docs/declines.md
has the last word.
"""
import pathlib
import re
import sys

output, depfile, folder = sys.argv[1:]
paths = sorted(pathlib.Path(folder).glob("*.md"), key=lambda p: (p.stem != "declines", p.stem))
COLUMNS = {"field": "field", "cause": "cause", "says": "cause", "meaning": "cause", "what happened": "cause", "cure": "cure"}


def plain(cell):
    """Without what only Markdown means."""
    cell = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell.replace("\\|", "|"))
    return cell.replace("**", "").replace("`", "'").strip()


found = {}
for path in paths:
    head = None
    for line in path.read_text().splitlines():
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
        if head is None:
            head = cells if cells[0].startswith("code") else []
        if not head or len(cells) != len(head):
            continue
        for code in re.findall(r"`([a-z]+\.[a-z]+(?:-[a-z]+)*)`", cells[0]):
            row = {COLUMNS[name]: plain(cell) for name, cell in zip(head, cells) if name in COLUMNS}
            for name, cell in row.items():
                found.setdefault(code, {}).setdefault(name, cell)
            found[code].setdefault("document", path.name)


def literal(words):
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


lines = ["/* Made from docs/ by embed_codes.py. */", '#include "codes.h"', "", "const code_row code_rows[] = {"]
for code, row in sorted(found.items()):
    lines.append("  {%s}," % ", ".join(literal(words) for words in [code] + [row.get(name, "") for name in ("field", "cause", "cure", "document")]))
lines += ["};", "const size_t code_row_count = sizeof code_rows / sizeof *code_rows;"]
pathlib.Path(output).write_text("\n".join(lines) + "\n")
pathlib.Path(depfile).write_text(f"{output}: {folder} {' '.join(map(str, paths))}\n")
