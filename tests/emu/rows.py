"""Writes rows.txt: for every scalar, control, cross-lane and memory instruction, what it reads and all that it changes.

Written from the ISA documents and independent of the emulator's C, like vectors.py, whose form it takes; encodings by llvm-mc.
Run it after adding an instruction:  python3 tests/emu/rows.py [LLVM_MC]

Row: name | target=hex … | name=values … | name=values …    (inputs, then all changes). Names: v0 (values: lanes), s0, vcc, exec, m0, scc,
g40, l40, p40 (the word at byte 0x40 of global memory, LDS, scratch), next (instructions from this one) and other state of the wave that
test_emu_rows.c lists. Lists of scalar names are cases, run one after another. Values in hex, or G+40, H+40, P+4, Q+4: low and high word of
an address in global memory, or in the program. "l": bits 15:0 only; "nan": any quiet NaN.
A row whose codes are "none" says that no target has an instruction of the name (the assembler may take it for the present one's old name).
"""

import re
import subprocess
import sys
from pathlib import Path

import rows_control  # noqa: F401  each adds its rows
import rows_lane  # noqa: F401
import rows_memory  # noqa: F401
import rows_scalar  # noqa: F401
from rows_base import ABSENT, ROWS
from vectors import SUFFIX, token
from vectors_base import TARGETS


def registers_text(registers):
    """A list of lanes may be short: lanes after it are as they were."""
    return " ".join(f"{r}={','.join(token(v) for v in (values if isinstance(values, list) else [values]))}" for r, values in registers.items())


def assemble(mc, target, snippets):
    """{index: hex} of the snippets that the target has under the name written, and indices of those it calls otherwise."""
    text = "".join(f"L{n}:\n{s}\n" for n, s in enumerate(snippets) if s)
    run = subprocess.run([mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-show-encoding"], input=text, capture_output=True, text=True)
    found, at = {}, None
    for line in run.stdout.splitlines():
        if m := re.match(r"L(\d+):", line):
            at = int(m.group(1))
        if m := re.match(r"\s*(\w+).*encoding: \[([^\]]*)\]", line):
            found.setdefault(at, []).append((m.group(1), m.group(2)))
    out, renamed = {}, set()
    for n, parts in found.items():
        lines = snippets[n].split("\n")
        # The assembler takes names of older targets; the row belongs to the name that it prints.
        if len(parts) != len(lines) or re.sub(SUFFIX, "", parts[0][0]) != re.sub(SUFFIX, "", lines[0].split()[0]):
            renamed.add(n)
            continue
        out[n] = "".join(f"{int(b, 16):02x}" for _, code in parts for b in code.split(","))
    return out, renamed


def known(mc, target, names):
    """Of `names`, those that the assembler has for the target, whatever their operands."""
    run = subprocess.run([mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}"], input="".join(n + "\n" for n in names), capture_output=True, text=True)
    unknown = {int(m.group(1)) for m in re.finditer(r":(\d+):\d+: error: (?:invalid instruction|(?:instruction|operands are) not (?:supported|valid))", run.stderr)}
    return {n for line, n in enumerate(names, 1) if line not in unknown}


def main():
    mc = sys.argv[1] if len(sys.argv) > 1 else "llvm-mc-22"
    snippets = ROWS + [(name, {t: asm for t in TARGETS}, {}, {}) for name, asm in ABSENT]
    assembled = {t: assemble(mc, t, [asm.get(t, "") for _, asm, _, _ in snippets]) for t in TARGETS}
    encoded = {t: found for t, (found, _) in assembled.items()}
    lines, present, missing = [], set(), {}
    for n, (name, asm, inputs, results) in enumerate(snippets):
        codes = " ".join(f"{t}={encoded[t][n]}" for t in TARGETS if n in encoded[t])
        if codes and n >= len(ROWS):
            print("not absent:", name)
        elif codes:
            present.add(name)
            lines.append(f"{name} | {codes} | {registers_text(inputs)} | {registers_text(results)}")
        else:
            missing.setdefault(name, next(iter(asm.values())))
    absent = [name for name in missing if name not in present]
    for t in TARGETS:
        renamed = {snippets[n][0] for n in assembled[t][1]}
        here = {snippets[n][0] for n in encoded[t]}
        for name in sorted(known(mc, t, sorted({name for name, *_ in snippets} - here)) - renamed):
            print(f"{t} may have {name} with other operands than those tried")
    lines += [f"{name} | none | |" for name in absent]
    path = Path(__file__).parent / "rows.txt"
    path.write_text("# Written by rows.py; see there for the form.\n" + "\n".join(lines) + "\n")
    print("no target assembles:", " ".join(absent))
    print(len(lines) - len(absent), "rows,", len(present), "names;", {t: sum(f"{t}=" in line for line in lines) for t in TARGETS})


if __name__ == "__main__":
    main()
