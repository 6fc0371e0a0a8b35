"""Rows of rows.py: one instruction, what it reads, all that it changes."""

from vectors_base import M32, TARGETS

ROWS = []  # (name, {target: asm}, inputs, results)
ABSENT = []  # (name, asm to try): instructions that a row must prove absent
WAVE = {"gfx942": 64, "gfx950": 64, "gfx1201": 32, "gfx1250": 32}


def row(name, asm, inputs, results, targets=TARGETS):
    """The instruction named is the first of `asm`; lines after it are where a jump may land."""
    if isinstance(asm, str):
        asm = {t: asm for t in targets}
    ROWS.append((name, asm, inputs, results))


def pair(register, values):
    """64-bit values as two scalar registers."""
    values = values if isinstance(values, list) else [values]
    return {f"s{register}": [v & M32 for v in values], f"s{register + 1}": [v >> 32 for v in values]}


def vreg(n, words):
    return f"v{n}" if words == 1 else f"v[{n}:{n + words - 1}]"


def sreg(n, words):
    return f"s{n}" if words == 1 else f"s[{n}:{n + words - 1}]"
