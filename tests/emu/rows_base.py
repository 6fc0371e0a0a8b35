"""Rows of rows.py: one instruction, what it reads, all that it changes."""

from vectors_base import M32, TARGETS

ROWS = []  # (name, {target: asm}, inputs, results)
ABSENT = []  # (name, asm to try): instructions that a row must prove absent
WAVE = {"gfx942": 64, "gfx950": 64, "gfx1201": 32, "gfx1250": 32}


def row(name, asm, inputs, results, targets=TARGETS):
    """The instruction named is the first of `asm`; lines after it are where a jump may land."""
    if isinstance(asm, str):
        asm = {t: asm for t in targets}
    if "buffer_" in name and "s6" in inputs and "gfx1250" in asm:
        ROWS.append((name, {"gfx1250": asm["gfx1250"]}, wide_buffer(inputs), results))
        asm = {t: line for t, line in asm.items() if t != "gfx1250"}
    ROWS.append((name, asm, inputs, results))


def wide_buffer(inputs):
    """The descriptor s[4:7] as gfx1250 has it: 57 bits of base, 45 of num_records, then the stride."""
    stride, base = divmod(int(inputs["s5"][2:], 16), 1 << 48)
    records = inputs["s6"]
    return {**inputs, "s5": f"H+{records % 128 << 57 | base:x}", "s6": records >> 7 & M32, "s7": records >> 39 | stride << 12}


def pair(register, values):
    """64-bit values as two scalar registers."""
    values = values if isinstance(values, list) else [values]
    return {f"s{register}": [v & M32 for v in values], f"s{register + 1}": [v >> 32 for v in values]}


def vreg(n, words):
    return f"v{n}" if words == 1 else f"v[{n}:{n + words - 1}]"


def sreg(n, words):
    return f"s{n}" if words == 1 else f"s[{n}:{n + words - 1}]"
