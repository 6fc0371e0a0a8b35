#!/usr/bin/env python3
"""Prints how large the code is: files, lines, median and largest files, and how much of it is comments (of its characters).

    tools/sizes.py [--largest N]    N: so many of the largest files of each kind, 3 by default; tracked files only
"""
import argparse
import collections
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = [  # name, folders, endings; a file counts where it fits first
    ("generator", ["generator"], ["c", "h"]),
    ("templates", ["templates"], ["hip"]),
    ("runtime, the emulator apart", ["runtime"], ["c", "h"]),
    ("emulator", ["runtime/emu", "runtime/emu_hip"], ["c", "h"]),
    ("Python package", ["runtime/python"], ["py"]),
    ("tests", ["tests"], ["c", "h", "py", "hip", "s"]),
    ("tools, examples, packaging", ["tools", "examples", "packaging", ".ci"], ["c", "h", "py", "sh", "hip"]),
]
C_LIKE = {"c", "h", "hip", "s"}


def comment_characters(text, ending):
    """Characters in comments: of C's two kinds, or after # and in docstrings. Strings that hold such signs aren't comments."""
    found, at, end = 0, 0, len(text)
    marks = [("/*", "*/"), ("//", "\n")] if ending in C_LIKE else [('"""', '"""'), ("#", "\n")]
    while at < end:
        for opening, closing in marks:
            if text.startswith(opening, at):
                stop = text.find(closing, at + len(opening))
                stop = end if stop < 0 else stop + (len(closing) if closing != "\n" else 0)
                found += stop - at
                at = stop
                break
        else:
            if text[at] in "\"'":
                quote = text[at]
                at += 1
                while at < end and text[at] not in (quote, "\n"):
                    at += 2 if text[at] == "\\" else 1
            at += 1
    return found


def kind_of(path):
    fits = [(max(len(f) for f in folders if path.startswith(f + "/")), name) for name, folders, endings in KINDS
            if any(path.startswith(f + "/") for f in folders) and path.rsplit(".", 1)[-1] in endings]
    return max(fits)[1] if fits else None  # the deepest folder


def median(rows, headers):
    lines = [row[0] for row in rows if row[1].endswith(".h") == headers]
    return "%.0f" % statistics.median(lines) if lines else ""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--largest", type=int, default=3)
    largest = arguments.parse_args().largest
    files = collections.defaultdict(list)
    for path in subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        if kind_of(path) and not (ROOT / path).is_symlink():
            text = (ROOT / path).read_text()
            files[kind_of(path)].append((text.count("\n"), path, comment_characters(text, path.rsplit(".", 1)[-1]), len(text)))
    print("| part | files | lines | median, sources | median, headers | comments | largest |\n|---|---|---|---|---|---|---|")
    everything = [row for rows in files.values() for row in rows]
    for name, rows in [*((kind[0], files[kind[0]]) for kind in KINDS), ("all", everything)]:
        top = ", ".join("`%s` %d" % (path, lines) for lines, path, _, _ in sorted(rows, reverse=True)[:largest])
        comments = 100 * sum(row[2] for row in rows) / sum(row[3] for row in rows)
        print("| %s | %d | %d | %s | %s | %.0f %% | %s |" % (name, len(rows), sum(row[0] for row in rows), median(rows, False),
                                                          median(rows, True), comments, top))


if __name__ == "__main__":
    main()
