"""Writes vectors.txt: for every vector instruction, inputs and the results that the ISA documents define.

The arithmetic here is exact (integers and fractions), written from the documents and independent of the emulator's C. A row is
one instruction over 16 lanes of inputs, with its encoding for every target that has it, assembled by llvm-mc. Run it after adding
an instruction:  python3 tests/emu/vectors.py [LLVM_MC]

Row: name | target=hex … | register=values … | register=values …    (inputs, then results; values in hex, one a lane;
"nan" is any quiet NaN of the register's format, "~" before a value allows one unit in the last place).
"""

import re
import subprocess
import sys
from pathlib import Path

import vectors_convert  # noqa: F401  each adds its rows
import vectors_float  # noqa: F401
import vectors_integer  # noqa: F401
import vectors_modifiers  # noqa: F401
from vectors_base import ROWS, TARGETS

# ---- assembling ------------------------------------------------------------------------------------------------------


def assemble(mc, target, lines):
    text = "".join(f"L{n}:\n{line}\n" for n, line in enumerate(lines) if line)
    run = subprocess.run([mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-show-encoding"], input=text,
                         capture_output=True, text=True)
    out, at = {}, None
    for line in run.stdout.splitlines():
        if m := re.match(r"L(\d+):", line):
            at = int(m.group(1))
        if m := re.match(r"\s*(v_\w+).*encoding: \[([^\]]*)\]", line):
            # The assembler takes names of older targets; the row belongs to the name that it prints.
            if "::" not in line and re.sub(SUFFIX, "", m.group(1)) != re.sub(SUFFIX, "", lines[at].split()[0]):
                continue
            out[at] = "".join(f"{int(b, 16):02x}" for b in m.group(2).split(","))
    return out


SUFFIX = r"(_e64_dpp|_e32|_e64|_dpp|_sdwa)$"
PREFIX = {"low": "l", "ulp": "~"}


def token(value):
    """"l": bits 15:0 only; "~": one unit in the last place allowed."""
    if isinstance(value, tuple):
        return PREFIX[value[0]] + token(value[1])
    return value if isinstance(value, str) else f"{value:x}"


def text_of(values):
    out = [token(v) for v in values]
    return out[0] if all(v == out[0] for v in out) else ",".join(out)


def registers_text(registers):
    return " ".join(f"{r}={text_of(v if isinstance(v, list) else [v])}" for r, v in registers.items())


def main():
    mc = sys.argv[1] if len(sys.argv) > 1 else "llvm-mc-22"
    encoded = {t: assemble(mc, t, [asm.get(t, "") for _, asm, _, _ in ROWS]) for t in TARGETS}
    lines, missing = [], []
    for n, (name, asm, inputs, results) in enumerate(ROWS):
        codes = " ".join(f"{t}={encoded[t][n]}" for t in TARGETS if n in encoded[t])
        if not codes:
            missing.append(f"{name}: {asm}")
            continue
        lines.append(f"{name} | {codes} | {registers_text(inputs)} | {registers_text(results)}")
    path = Path(__file__).parent / "vectors.txt"
    path.write_text("# Written by vectors.py; see there for the form.\n" + "\n".join(lines) + "\n")
    for m in missing:
        print("no target assembles", m)
    print(len(lines), "rows,", sum(line.split("|")[1].count("=") for line in lines), "encodings")


if __name__ == "__main__":
    main()
