"""Rows of LDS, global, flat, buffer and scratch memory: every access in every space, of eight lanes of which two are inactive."""

import struct

from rows_base import *
from vectors_base import BF16, F16, GFX12, GFX9, M32, M64, TARGETS, bits32, s32, s64

LANES, EXEC = 8, 0xB7
ACTIVE = [n for n in range(LANES) if EXEC >> n & 1]
AT = [n * 5 % LANES * 48 for n in range(LANES)]  # addresses out of order
OFFSET = 24
LETTER = "glp"
SCRATCH_BYTES = 256  # a lane


def noise(space, k):
    """Bytes that test_emu_rows.c fills memory with: 0 global, 1 LDS, 2 scratch."""
    return (k * 37 + k // 8 * 5 + 11 * space) & 255


def word(space, at):
    return sum(noise(space, at + n) << 8 * n for n in range(4))


class Image:
    """Memory of a row: bytes that differ from the noise."""

    def __init__(self):
        self.bytes = {}

    def read(self, space, at, count):
        return sum(self.bytes.get((space, at + n), noise(space, at + n)) << 8 * n for n in range(count))

    def write(self, space, at, value, count):
        for n in range(count):
            self.bytes[space, at + n] = value >> 8 * n & 255

    def words(self):
        return {f"{LETTER[space]}{at:x}": self.read(space, at, 4) for space, at in sorted({(s, k & ~3) for s, k in self.bytes})}


def old(register):
    return [0xE0000000 | register << 8 | lane for lane in range(LANES)]


def data(register):
    return [(0x9D2C5680 * (lane + 1) + 0x61C88647 * register) & M32 for lane in range(LANES)]


# ---- where: {target: operands}, inputs, (space, byte) of each lane -------------------------------------------------------------


def places():
    """(prefix, how the operands read around data `d`, inputs, location of a lane)."""
    far = {"v0": [f"G+{0x100 + a:x}" for a in AT], "v1": [f"H+{0x100 + a:x}" for a in AT]}
    near = {"v0": AT, "s2": "G+100", "s3": "H+100"}
    base = lambda n: (0, 0x100 + AT[n] + OFFSET)
    yield "global_", ("v[0:1]", "off", f"offset:{OFFSET}"), far, base
    yield "global_", ("v0", "s[2:3]", f"offset:{OFFSET}"), near, base
    yield "global_", ("v[0:1]", "off", "offset:-16"), far, lambda n: (0, 0xF0 + AT[n])
    # gfx1250: a signed offset beside a scalar base, also counted in elements.
    yield "global_", ("v0", "s[2:3]", f"offset:{OFFSET}"), {"v0": [a - 64 & M32 for a in AT], "s2": "G+140", "s3": "H+140"}, base, ["gfx1250"]
    yield "flat_", ("v[0:1]", None, f"offset:{OFFSET}"), far, base
    yield "flat_", ("v0", "s[2:3]", f"offset:{OFFSET}"), near, base, ["gfx1250"]
    yield "flat_", ("v[0:1]", None, f"offset:{OFFSET}"), {"v0": AT, "v1": 0x10000}, lambda n: (1, AT[n] + OFFSET)
    yield "flat_", ("v[0:1]", None, ""), {"v0": [a // 4 for a in AT], "v1": 0x20000}, lambda n: (2, n * SCRATCH_BYTES + AT[n] // 4)
    yield "scratch_", ("v0", "off", f"offset:{OFFSET}"), {"v0": [a // 4 for a in AT]}, lambda n: (2, n * SCRATCH_BYTES + AT[n] // 4 + OFFSET)
    yield "scratch_", ("off", "s2", f"offset:{OFFSET}"), {"s2": 0x40}, lambda n: (2, n * SCRATCH_BYTES + 0x40 + OFFSET)
    raw = {"s4": "G+100", "s5": "H+100", "s6": 0xE00}
    yield "buffer_", ("v0", "s[4:7], ZERO", f"offen offset:{OFFSET}"), {"v0": AT, **raw}, base
    yield "buffer_", ("v0", "s[4:7], s8", f"offen offset:{OFFSET}"), {"v0": AT, "s8": 0x20, **raw}, lambda n: (0, 0x120 + AT[n] + OFFSET)
    yield ("buffer_", ("v0", "s[4:7], ZERO", f"idxen offset:{OFFSET}"),
           {"v0": [a // 48 for a in AT], "s4": "G+100", "s5": f"H+{48 << 48 | 0x100:x}", "s6": 8}, base)
    yield ("buffer_", ("v[0:1]", "s[4:7], ZERO", "idxen offen"),
           {"v0": [a // 48 for a in AT], "v1": OFFSET, "s4": "G+100", "s5": f"H+{48 << 48 | 0x100:x}", "s6": 8}, base)
    # Lanes past num_records read 0 and write nothing.
    yield ("buffer_", ("v0", "s[4:7], ZERO", f"offen offset:{OFFSET}"), {"v0": AT, **raw, "s6": 0xC0},
           lambda n: (0, 0x100 + AT[n] + OFFSET) if AT[n] + OFFSET < 0xC0 else None)
    # The last element just fits.
    yield ("buffer_", ("v0", "s[4:7], ZERO", f"offen offset:{OFFSET}"), {"v0": [0x400 - 16 * n for n in range(LANES)], **raw, "s6": 0x410 + OFFSET},
           lambda n: (0, 0x500 - 16 * n + OFFSET))
    yield "ds_", ("v0", None, f"offset:{OFFSET}"), {"v0": AT}, lambda n: (1, AT[n] + OFFSET)


def text(name, prefix, where, to, value, extra="", only=()):
    """`to`: registers of the result; `value`: registers written to memory."""
    address, scalar, offset = where
    if prefix == "buffer_":
        parts = [to or value, address, scalar]
    elif scalar:
        parts = [to, address, value, scalar]
    else:
        parts = [to, address, value]
    line = f"{prefix}{name} " + ", ".join(p for p in parts if p) + f" {offset}{extra}"
    return {t: line.replace("ZERO", "0" if t in GFX9 else "null") for t in (only[0] if only else TARGETS)}


def lanes_of(inputs):
    return {**inputs, "exec": EXEC, "exec_hi": 0}


def extend(value, size, signed):
    return (value ^ 1 << 8 * size - 1) - (1 << 8 * size - 1) & M32 if signed else value


# ---- loads and stores --------------------------------------------------------------------------------------------------------------
LOADS, STORES = {}, {}  # name: bytes, sign, half of the register or None
for words, gfx9, gfx12 in ((1, "dword", "b32"), (2, "dwordx2", "b64"), (3, "dwordx3", "b96"), (4, "dwordx4", "b128")):
    LOADS[f"load_{gfx9}"] = LOADS[f"load_{gfx12}"] = (4 * words, False, None)
    STORES[f"store_{gfx9}"] = STORES[f"store_{gfx12}"] = (4 * words, None)
for size, signed, gfx9, gfx12 in ((1, False, "ubyte", "u8"), (1, True, "sbyte", "i8"), (2, False, "ushort", "u16"), (2, True, "sshort", "i16")):
    LOADS[f"load_{gfx9}"] = LOADS[f"load_{gfx12}"] = (size, signed, None)
for size, signed, gfx9, gfx12 in ((1, False, "ubyte", "u8"), (1, True, "sbyte", "i8"), (2, False, "short", "b16")):
    LOADS[f"load_{gfx9}_d16"] = LOADS[f"load_d16_{gfx12}"] = (size, signed, 0)
    LOADS[f"load_{gfx9}_d16_hi"] = LOADS[f"load_d16_hi_{gfx12}"] = (size, signed, 1)
for size, gfx9, gfx12 in ((1, "byte", "b8"), (2, "short", "b16")):
    STORES[f"store_{gfx9}"] = STORES[f"store_{gfx12}"] = (size, None)
    STORES[f"store_{gfx9}_d16_hi"] = STORES[f"store_d16_hi_{gfx12}"] = (size, 1)
for bits in (32, 64, 128):
    LOADS[f"load_monitor_b{bits}"] = (bits // 8, False, None)
LDS_LOADS = {f"{verb}_b{bits}": (bits // 8, False, None) for verb in ("read", "load") for bits in (32, 64, 96, 128)}
LDS_STORES = {f"{verb}_b{bits}": (bits // 8, None) for verb in ("write", "store") for bits in (8, 16, 32, 64, 96, 128)}
for verb in ("read", "load"):
    for kind, size, signed in (("u8", 1, False), ("i8", 1, True), ("u16", 2, False), ("i16", 2, True)):
        LDS_LOADS[f"{verb}_{kind}"] = (size, signed, None)
        if kind != "i16":
            LDS_LOADS[f"{verb}_{kind}_d16"], LDS_LOADS[f"{verb}_{kind}_d16_hi"] = (size, signed, 0), (size, signed, 1)
for verb in ("write", "store"):
    LDS_STORES[f"{verb}_b8_d16_hi"], LDS_STORES[f"{verb}_b16_d16_hi"] = (1, 1), (2, 1)


def arrive(columns, n, value, size, signed, half):
    """`value` from memory into lane n of registers."""
    if half is None:
        value = extend(value, size, signed)
        for k, column in enumerate(columns):
            column[n] = value >> 32 * k & M32
    else:
        value = extend(value, size, signed) & 0xFFFF
        columns[0][n] = columns[0][n] & 0xFFFF0000 | value if half == 0 else columns[0][n] & 0xFFFF | value << 16


for prefix, where, inputs, location, *only in places():
    for name, (size, signed, half) in (LDS_LOADS if prefix == "ds_" else LOADS).items():
        words = max(1, size // 4)
        columns, image = [old(10 + k) for k in range(words)], Image()
        for n in ACTIVE:
            at = location(n)
            arrive(columns, n, image.read(*at, size) if at else 0, size, signed, half)
        row(prefix + name, text(name, prefix, where, vreg(10, words), None, only=only), lanes_of(inputs), {f"v{10 + k}": c for k, c in enumerate(columns)})
    for name, (size, half) in (LDS_STORES if prefix == "ds_" else STORES).items():
        words = max(1, size // 4)
        columns, image = [data(20 + k) for k in range(words)], Image()
        for n in ACTIVE:
            value = sum(c[n] << 32 * k for k, c in enumerate(columns)) >> (16 if half else 0)
            if location(n):
                image.write(*location(n), value, size)
        row(prefix + name, text(name, prefix, where, None, vreg(20, words), only=only), lanes_of({**inputs, **{f"v{20 + k}": c for k, c in enumerate(columns)}}),
            image.words())

# Two addresses, in elements or in 64 elements.
for load, store in (("read2", "write2"), ("load_2addr", "store_2addr")):
    for size in (4, 8):
        for stride, tag in ((1, ""), (64, "st64" if load == "read2" else "_stride64")):
            words, steps = size // 4, [size * stride, 3 * size * stride]
            columns = [old(10 + k) for k in range(2 * words)]
            stored, image = [data(20 + k) for k in range(2 * words)], Image()
            for n in ACTIVE:
                for half, step in enumerate(steps):
                    value = sum(noise(1, AT[n] + step + k) << 8 * k for k in range(size))
                    arrive(columns[half * words:(half + 1) * words], n, value, size, False, None)
                    image.write(1, AT[n] + step, sum(c[n] << 32 * k for k, c in enumerate(stored[half * words:(half + 1) * words])), size)
            name = f"ds_{load}{tag}_b{8 * size}"
            row(name, f"{name} {vreg(10, 2 * words)}, v0 offset0:1 offset1:3", lanes_of({"v0": AT}), {f"v{10 + k}": c for k, c in enumerate(columns)})
            name = f"ds_{store}{tag}_b{8 * size}"
            row(name, f"{name} v0, {vreg(20, words)}, {vreg(20 + words, words)} offset0:1 offset1:3",
                lanes_of({"v0": AT, **{f"v{20 + k}": c for k, c in enumerate(stored)}}), image.words())

# ---- memory to LDS and back -----------------------------------------------------------------------------------------------------------
FAR = {"v0": [f"G+{0x100 + a:x}" for a in AT], "v1": [f"H+{0x100 + a:x}" for a in AT]}
M0 = 0x200
# Lanes lie side by side; a narrow element fills its word.
for name, size, signed in (("dword", 4, False), ("dwordx3", 12, False), ("dwordx4", 16, False), ("ubyte", 1, False), ("sbyte", 1, True),
                           ("ushort", 2, False), ("sshort", 2, True)):
    image, image_buffer = Image(), Image()
    slot = max(4, size)
    for n in ACTIVE:
        value = extend(image.read(0, 0x100 + AT[n] + OFFSET, size), size, signed and size < 4)
        image.write(1, M0 + OFFSET + n * slot, value, slot)
        image_buffer.write(1, M0 + OFFSET + n * slot, value, slot)
    for prefix in ("global_", "flat_", "buffer_"):
        row(f"{prefix}load_lds_{name}", f"{prefix}load_lds_{name} v[0:1], off offset:{OFFSET}", lanes_of({**FAR, "m0": M0}), image.words())
    image = Image()
    for n in ACTIVE:
        value = extend(image.read(2, n * SCRATCH_BYTES + AT[n] // 4 + OFFSET, size), size, signed and size < 4)
        image.write(1, M0 + OFFSET + n * slot, value, slot)
    row(f"scratch_load_lds_{name}", f"scratch_load_lds_{name} v0, off offset:{OFFSET}", lanes_of({"v0": [a // 4 for a in AT], "m0": M0}), image.words())
    row(f"buffer_load_{name}", f"buffer_load_{name} v0, s[4:7], 0 offen offset:{OFFSET} lds",
        lanes_of({"v0": AT, "s4": "G+100", "s5": "H+100", "s6": 0xE00, "m0": M0}), image_buffer.words())
LDS_AT = [n * 3 % LANES * 32 for n in range(LANES)]
for size in (1, 4, 8, 16):
    to, back = Image(), Image()
    for n in ACTIVE:
        to.write(1, LDS_AT[n] + OFFSET, to.read(0, 0x100 + AT[n] + OFFSET, size), size)
        back.write(0, 0x100 + AT[n] + OFFSET, back.read(1, LDS_AT[n] + OFFSET, size), size)
    for prefix in ("global_", "flat_", "buffer_", "scratch_"):
        name = f"{prefix}load_async_to_lds_b{8 * size}"
        row(name, f"{name} v4, v[0:1], off offset:{OFFSET}", lanes_of({**FAR, "v4": LDS_AT}), to.words())
        name = f"{prefix}store_async_from_lds_b{8 * size}"
        row(name, f"{name} v[0:1], v4, off offset:{OFFSET}", lanes_of({**FAR, "v4": LDS_AT}), back.words())
row("global_prefetch_b8", "global_prefetch_b8 v[0:1], off", lanes_of(FAR), {})
row("flat_prefetch_b8", "flat_prefetch_b8 v[0:1]", lanes_of(FAR), {})
for prefix in ("buffer_", "scratch_"):
    row(prefix + "prefetch_b8", prefix + "prefetch_b8 v[0:1], off", {}, {})

# ---- transposed: 16 lanes hold rows of 16 elements, a lane gets a column ------------------------------------------------------------------
for bits in (16, 8, 4):
    per = 64 // bits
    wave = 64
    at = [(n * 5 % wave) * 8 for n in range(wave)]
    held = [sum(noise(1, a + k) << 8 * k for k in range(8)) for a in at]
    out = []
    for n in range(wave):
        block = n & ~15
        matrix = [[held[block + r * (16 // per) + c // per] >> c % per * bits & (1 << bits) - 1 for c in range(16)] for r in range(per)]
        out.append(sum(matrix[r][n % 16] << r * bits for r in range(per)))
    row(f"ds_read_b64_tr_b{bits}", f"ds_read_b64_tr_b{bits} v[10:11], v0", {"v0": at, "exec": M32, "exec_hi": M32},
        {"v10": [v & M32 for v in out], "v11": [v >> 32 for v in out]}, GFX9)


def transposed(name, asm, bits, size, space, base, source, targets, wave, inputs, exec_mask):
    """Lane n's element e is element `source(n, e)[1]` of what lane `source(n, e)[0]` fetches from base(lane)."""
    held = [sum(noise(space, base(n) + k) << 8 * k for k in range(size)) for n in range(wave)]
    out = []
    for n in range(wave):
        value = 0
        for e in range(8 * size // bits):
            lane, index = source(n, e)
            value |= (held[lane] >> index * bits & (1 << bits) - 1) << e * bits
        out.append(value)
    row(name, asm, {**inputs, **exec_mask}, {f"v{10 + k}": [v >> 32 * k & M32 for v in out] for k in range(size // 4)}, targets)


def eight_by_eight(n, e):
    """16 bits, 8 from memory: lane l + 8 g holds column l of the 8 x 8 that lanes 8 g to 8 g + 7 fetched row by row."""
    return n // 8 * 8 + e, n % 8


def wmma_8(n, e):
    """8 bits from LDS: rows 0-3 and 4-7 of such an 8 x 8 are fetched eight lanes apart, and columns 8-15 by the four lanes between."""
    return n // 16 * 16 + e // 4 * 8 + n // 8 % 2 * 4 + e % 4, n % 8


def wmma_6(n, e):
    """6 bits: lane m + 16 h holds k = 16 h + e of row m; column k comes from lane 8 (k / 4 % 4) + 4 (k / 16) + k % 4."""
    k = n // 16 * 16 + e
    return 8 * (k // 4 % 4) + 4 * (k // 16) + k % 4, n % 16


def wmma_4(n, e):
    """4 bits: lane m + 16 h holds k = 8 h to 8 h + 7 of row m, then 16 more of each; column k comes from lane k."""
    return e % 8 + 8 * (n // 16) + 16 * (e // 8), n % 16


ALL32, ALL64 = {"exec": M32, "exec_hi": 0}, {"exec": M32, "exec_hi": M32}
SPREAD = [n * 5 % 32 * 16 for n in range(32)]
for name, bits, words, source, targets in (("load_tr_b64", 8, 2, eight_by_eight, GFX12), ("load_tr_b128", 16, 4, eight_by_eight, GFX12),
                                           ("load_tr8_b64", 8, 2, eight_by_eight, ["gfx1250"]), ("load_tr16_b128", 16, 4, eight_by_eight, ["gfx1250"]),
                                           ("load_tr6_b96", 6, 3, wmma_6, ["gfx1250"]), ("load_tr4_b64", 4, 2, wmma_4, ["gfx1250"])):
    near = {"v0": SPREAD, "s2": "G+100", "s3": "H+100"}
    transposed("global_" + name, f"global_{name} {vreg(10, words)}, v0, s[2:3] offset:{OFFSET}", bits, 4 * words, 0, lambda n: 0x100 + SPREAD[n] + OFFSET, source,
               targets, 32, near, ALL32)
    for prefix, where in (("flat_", "v[0:1]"), ("buffer_", "v0, s[4:7], null offen"), ("scratch_", "v0, off")):
        row(prefix + name, f"{prefix}{name} {vreg(10, words)}, {where}", {}, {})
    if targets == ["gfx1250"]:
        transposed("ds_" + name, f"ds_{name} {vreg(10, words)}, v0 offset:{OFFSET}", bits, 4 * words, 1, lambda n: SPREAD[n] + OFFSET,
                   wmma_8 if bits == 8 else source, targets, 32, {"v0": SPREAD}, ALL32)
AT12 = [n * 5 % 64 * 12 for n in range(64)]
transposed("ds_read_b96_tr_b6", "ds_read_b96_tr_b6 v[10:12], v0", 6, 12, 1, lambda n: AT12[n], lambda n, e: (n // 16 * 16 + e, n % 16), ["gfx950"], 64,
           {"v0": AT12}, ALL64)

# ---- gfx1250, clusters: a workgroup is its own ------------------------------------------------------------------------------------
for name, words in (("b32", 1), ("b64", 2), ("b128", 4)):
    columns = [old(10 + k) for k in range(words)]
    for n in ACTIVE:
        for k in range(words):
            columns[k][n] = word(0, 0x100 + AT[n] + OFFSET + 4 * k)
    row("cluster_load_" + name, f"cluster_load_{name} {vreg(10, words)}, v0, s[2:3] offset:{OFFSET}",
        lanes_of({"v0": AT, "s2": "G+100", "s3": "H+100", "m0": 1}), {f"v{10 + k}": c for k, c in enumerate(columns)}, ["gfx1250"])
for size in (1, 4, 8, 16):
    image = Image()
    for n in ACTIVE:
        image.write(1, LDS_AT[n] + OFFSET, image.read(0, 0x100 + AT[n] + OFFSET, size), size)
    name = f"cluster_load_async_to_lds_b{8 * size}"
    row(name, f"{name} v4, v[0:1], off offset:{OFFSET}", lanes_of({**FAR, "v4": LDS_AT, "m0": 1}), image.words(), ["gfx1250"])

# ---- atomics: memory := f(memory, data, expected) -----------------------------------------------------------------------------------------
OPERATIONS = {
    "swap": lambda m, d, size: d,
    "add": lambda m, d, size: m + d,
    "sub": lambda m, d, size: m - d,
    "rsub": lambda m, d, size: d - m,
    "smin": lambda m, d, size: min(signed_of(m, size), signed_of(d, size)),
    "smax": lambda m, d, size: max(signed_of(m, size), signed_of(d, size)),
    "umin": lambda m, d, size: min(m, d),
    "umax": lambda m, d, size: max(m, d),
    "and": lambda m, d, size: m & d,
    "or": lambda m, d, size: m | d,
    "xor": lambda m, d, size: m ^ d,
    "inc": lambda m, d, size: 0 if m >= d else m + 1,
    "dec": lambda m, d, size: d if m == 0 or m > d else m - 1,
    "sub_clamp": lambda m, d, size: max(m - d, 0),
    "cond_sub": lambda m, d, size: m - d if m >= d else m,
    "fadd": lambda m, d, size: of_float(to_float(m, size) + to_float(d, size), size),
    "fmin": lambda m, d, size: of_float(min(to_float(m, size), to_float(d, size)), size),
    "fmax": lambda m, d, size: of_float(max(to_float(m, size), to_float(d, size)), size),
    "pk_f16": lambda m, d, size: packed(F16, m, d),
    "pk_bf16": lambda m, d, size: packed(BF16, m, d),
}


def signed_of(v, size):
    return s32(v) if size == 4 else s64(v)


def to_float(v, size):
    return struct.unpack("<f", struct.pack("<I", v))[0] if size == 4 else struct.unpack("<d", struct.pack("<Q", v))[0]


def of_float(v, size):
    """A sum of two f32 that a double holds exactly is rounded once."""
    return bits32(v) if size == 4 else struct.unpack("<Q", struct.pack("<d", v))[0]


def packed(fmt, m, d):
    return sum(fmt.encode(fmt.value(m >> s & 0xFFFF) + fmt.value(d >> s & 0xFFFF)) << s for s in (0, 16))


HELD = {4: [0, M32, 7, 0x80000000, 100, 0x12345678, 0x7FFFFFFF, 5], 8: [0, M64, 7 << 32, 1 << 63, 100, 0x123456789ABCDEF0, M64 >> 1, 5]}
GIVEN = {4: [3, 1, 7, 0x7FFFFFFF, 0xFFFFFFF0, 0x87654321, 1, 9], 8: [3, 1, 7 << 32, M64 >> 1, M64 - 15, 0x8765432112345678, 1, 9]}
FLOATS = [1.5, -2.25, 0.1, 1e10, -3.75, 1e-10, 1234.5, 7.0], [2.5, -1.125, 0.2, -1e3, 8.0, 1.0, -1234.5, -0.5]
HALVES = {F16: [(0x3C00, 0xC100), (0x7BFF, 0x3555), (0x0001, 0x8003), (0x4248, 0xB800)] * 2, BF16: [(0x3F80, 0xC020), (0x7F7F, 0x3EAB), (0x0001, 0x8003), (0x4049, 0xBF00)] * 2}


def operands_of(operation, size):
    if operation[0] == "f":
        return [[of_float(v, size) for v in column] for column in FLOATS]
    if operation.startswith("pk"):
        pairs = HALVES[F16 if operation == "pk_f16" else BF16]
        held = [a | b << 16 for a, b in pairs]
        # Sums stay finite: the largest value meets a small one.
        return held, [b | a << 16 if a not in (0x7BFF, 0x7F7F) else 0x3C00 for a, b in pairs]
    return HELD[size], GIVEN[size]


ATOMICS = {"cmpswap": ("cmp", 4), "cmpswap_x2": ("cmp", 8), "cmpswap_b32": ("cmp", 4), "cmpswap_b64": ("cmp", 8),
           "add_f32": ("fadd", 4), "add_f64": ("fadd", 8), "min_f64": ("fmin", 8), "max_f64": ("fmax", 8), "pk_add_f16": ("pk_f16", 4),
           "pk_add_bf16": ("pk_bf16", 4), "min_num_f32": ("fmin", 4), "max_num_f32": ("fmax", 4), "min_num_f64": ("fmin", 8), "max_num_f64": ("fmax", 8),
           "sub_clamp_u32": ("sub_clamp", 4), "cond_sub_u32": ("cond_sub", 4)}
for op in "swap add sub smin umin smax umax and or xor inc dec".split():
    ATOMICS[op], ATOMICS[op + "_x2"] = (op, 4), (op, 8)
NUMBERED = {"swap_b": "swap", "add_u": "add", "sub_u": "sub", "min_i": "smin", "min_u": "umin", "max_i": "smax", "max_u": "umax", "and_b": "and", "or_b": "or",
            "xor_b": "xor", "inc_u": "inc", "dec_u": "dec"}
for name, op in NUMBERED.items():
    ATOMICS[name + "32"], ATOMICS[name + "64"] = (op, 4), (op, 8)


def columns_of(register, values, size):
    return {f"v{register + k}": [v >> 32 * k & M32 for v in values] for k in range(size // 4)}


def atomic(full, lines, operation, size, inputs, location, returned, extra):
    """`returned`: register that gets the old value, or None; `extra(held, given)`: data registers."""
    held, given = operands_of("swap" if operation == "cmp" else operation, size)
    expected = [h if n % 2 == 0 else h ^ 1 for n, h in enumerate(held)]
    before, after = {}, Image()
    image = Image()
    olds = [sum(c << 32 * k for k, c in enumerate([old(returned + k)[n] for k in range(size // 4)])) if returned else 0 for n in range(LANES)]
    given_in = extra(given, expected)
    for n in range(LANES):
        if returned and f"v{returned}" in given_in:
            olds[n] = sum(given_in[f"v{returned + k}"][n] << 32 * k for k in range(size // 4))
    for n in ACTIVE:
        at = location(n)
        if at is None:
            olds[n] = 0
            continue
        image.write(*at, held[n], size)
        new = (given[n] if held[n] == expected[n] else held[n]) if operation == "cmp" else OPERATIONS[operation](held[n], given[n], size)
        after.write(*at, new & (1 << 8 * size) - 1, size)
        olds[n] = held[n]
    before = image.words()
    results = after.words()
    if returned:
        results.update(columns_of(returned, olds, size))
    row(full, lines, lanes_of({**inputs, **given_in, **before}), results)


SEEN = set()
for prefix, where, inputs, location, *only in places():
    if prefix == "ds_" or only:
        continue
    for name, (operation, size) in ATOMICS.items():
        # One way of addressing for each; the others with an add.
        if (prefix, name) in SEEN and name not in ("add", "add_u32"):
            continue
        SEEN.add((prefix, name))
        words = size // 4
        full = f"{prefix}atomic_{name}"
        source = lambda given, expected: {**columns_of(20, given, size), **(columns_of(20 + words, expected, size) if operation == "cmp" else {})}
        value = vreg(20, words * (2 if operation == "cmp" else 1))
        if prefix == "buffer_":
            atomic(full, text("atomic_" + name, prefix, where, None, value), operation, size, inputs, location, None, source)
            lines = {t: line + (" sc0" if t in GFX9 else " th:TH_ATOMIC_RETURN") for t, line in text("atomic_" + name, prefix, where, None, value).items()}
            atomic(full, lines, operation, size, inputs, location, 20, source)
        else:
            atomic(full, text("atomic_" + name, prefix, where, None, value), operation, size, inputs, location, None, source)
            lines = {t: line + (" sc0" if t in GFX9 else " th:TH_ATOMIC_RETURN")
                     for t, line in text("atomic_" + name, prefix, where, vreg(10, words), value).items()}
            atomic(full, lines, operation, size, inputs, location, 10, source)

LDS_ATOMICS = {f"{op}_{kind}{8 * size}": (python, size) for size in (4, 8) for op, kind, python in
               (("add", "u", "add"), ("sub", "u", "sub"), ("rsub", "u", "rsub"), ("inc", "u", "inc"), ("dec", "u", "dec"), ("min", "i", "smin"), ("max", "i", "smax"),
                ("min", "u", "umin"), ("max", "u", "umax"), ("and", "b", "and"), ("or", "b", "or"), ("xor", "b", "xor"), ("min", "f", "fmin"), ("max", "f", "fmax"),
                ("min_num", "f", "fmin"), ("max_num", "f", "fmax"), ("add", "f", "fadd"))}
LDS_ATOMICS.update({"pk_add_f16": ("pk_f16", 4), "pk_add_bf16": ("pk_bf16", 4), "sub_clamp_u32": ("sub_clamp", 4), "cond_sub_u32": ("cond_sub", 4)})
WHERE = (f"offset:{OFFSET}", {"v0": AT}, lambda n: (1, AT[n] + OFFSET))
for name, (operation, size) in LDS_ATOMICS.items():
    offset, inputs, location = WHERE
    words = size // 4
    stem, kind = name.rsplit("_", 1)
    source = lambda given, expected: columns_of(20, given, size)
    atomic(f"ds_{name}", f"ds_{name} v0, {vreg(20, words)} {offset}", operation, size, inputs, location, None, source)
    returning = f"ds_{stem}_rtn_{kind}"
    atomic(returning, f"{returning} {vreg(10, words)}, v0, {vreg(20, words)} {offset}", operation, size, inputs, location, 10, source)
for size in (4, 8):
    offset, inputs, location = WHERE
    words, bits = size // 4, 8 * size
    for name in (f"ds_wrxchg_rtn_b{bits}", f"ds_storexchg_rtn_b{bits}"):
        atomic(name, f"{name} {vreg(10, words)}, v0, {vreg(20, words)} {offset}", "swap", size, inputs, location, 10,
               lambda given, expected: columns_of(20, given, size))
    # cmpst: the expected value comes first; cmpstore: the new one.
    for name, new_first in (("cmpst", False), ("cmpstore", True)):
        source = lambda given, expected: {**columns_of(20, given if new_first else expected, size), **columns_of(22, expected if new_first else given, size)}
        values = f"{vreg(20, words)}, {vreg(22, words)} {offset}"
        atomic(f"ds_{name}_b{bits}", f"ds_{name}_b{bits} v0, {values}", "cmp", size, inputs, location, None, source)
        atomic(f"ds_{name}_rtn_b{bits}", f"ds_{name}_rtn_b{bits} {vreg(10, words)}, v0, {values}", "cmp", size, inputs, location, 10, source)

# Lanes that meet at one address: each counts.
GIVEN_SUM = [3, 100, 0xFFFFFFF0, 7, 1, 9, 0x80000000, 20]
for name, line, where, inputs in (("ds_add_u32", "ds_add_u32 v0, v20", (1, 0x40), {"v0": [0x40] * LANES}),
                                  ("global_atomic_add", "global_atomic_add v0, v20, s[2:3]", (0, 0x100), {"v0": [0] * LANES, "s2": "G+100", "s3": "H+100"}),
                                  ("global_atomic_add_u32", "global_atomic_add_u32 v0, v20, s[2:3]", (0, 0x100), {"v0": [0] * LANES, "s2": "G+100", "s3": "H+100"})):
    total = word(*where) + sum(GIVEN_SUM[n] for n in ACTIVE)
    row(name, line, lanes_of({**inputs, "v20": GIVEN_SUM}), {f"{LETTER[where[0]]}{where[1]:x}": total & M32})

# gfx1250: offsets that count elements.
for name, words in (("load_b32", 1), ("load_b64", 2), ("load_b128", 4)):
    index = [n * 3 % LANES for n in range(LANES)]
    columns = [old(10 + k) for k in range(words)]
    for n in ACTIVE:
        for k in range(words):
            columns[k][n] = word(0, 0x100 + index[n] * 4 * words + OFFSET + 4 * k)
    row("global_" + name, f"global_{name} {vreg(10, words)}, v0, s[2:3] offset:{OFFSET} scale_offset", lanes_of({"v0": index, "s2": "G+100", "s3": "H+100"}),
        {f"v{10 + k}": c for k, c in enumerate(columns)}, ["gfx1250"])

# ---- gfx1250's tensor copies: elements outside the tensor read 0 and are not written ------------------------------------------------


def put(words, at, width, value):
    """`value` into bits at … of a group's words; addresses are texts and are not touched."""
    for n in range(at // 32, (at + width - 1) // 32 + 1):
        low = max(at, 32 * n)
        part = value >> low - at & (1 << min(32 * n + 32, at + width) - low) - 1
        words[n] |= part << low - 32 * n


def tensor_groups(element, tensor, tile, stride, lds, padded, predicate=1):
    """Descriptors of 1 to 5 dimensions, innermost first; stride[0] is 1."""
    one, two, three = [0] * 8, [0] * 4, [0] * 4
    put(one, 16, 2, element.bit_length() - 1)
    put(one, 20, 1, padded)
    extents = [(one, 48, one, 112), (one, 80, one, 128), (two, 0, one, 144), (two, 32, two, 112), (three, 48, three, 80)]
    strides = [None, (one, 160), (one, 208), (two, 64), (three, 0)]
    for n, (whole, at, part, part_at) in enumerate(extents[:len(tensor)]):
        put(whole, at, 32, tensor[n])
        put(part, part_at, 16, tile[n])
        if strides[n]:
            put(*strides[n], 48, stride[n])
    return [predicate, lds, "G+100", f"H+{2 << 62 | 0x100:x}"], one, two, three


TILE_LDS = 0x200
for element, tensor, tile, stride in ((2, (4, 2), (6, 3), (1, 20)), (4, (5,), (7,), (1,)), (2, (4, 3, 2), (4, 2, 3), (1, 6, 40)),
                                      (1, (8, 2, 2, 3), (5, 3, 2, 2), (1, 16, 64, 150)), (2, (3, 2, 2, 2, 2), (2, 2, 2, 1, 3), (1, 5, 20, 60, 130))):
    for padded in (False, True):
        to, back = Image(), Image()
        count = 1
        for extent in tile:
            count *= extent
        for n in range(count):
            at, rest = [], n
            for extent in tile:
                at.append(rest % extent)
                rest //= extent
            lds = TILE_LDS + n * element + (n * element // 8 * 4 if padded else 0)  # a word after every two
            memory = 0x100 + sum(a * s for a, s in zip(at, stride)) * element
            inside = all(a < extent for a, extent in zip(at, tensor))
            to.write(1, lds, to.read(0, memory, element) if inside else 0, element)
            if inside:
                back.write(0, memory, back.read(1, lds, element), element)
        for predicate in (1, 0):
            groups = tensor_groups(element, tensor, tile, stride, TILE_LDS, padded, predicate)
            inputs = {f"s{n}": v for n, v in enumerate(sum(groups, []))}
            for operands in ["s[0:3], s[4:11], s[12:15], s[16:19]"] + ["s[0:3], s[4:11]"] * (len(tensor) < 3):
                row("tensor_load_to_lds", f"tensor_load_to_lds {operands}", inputs, to.words() if predicate else {}, ["gfx1250"])
                row("tensor_store_from_lds", f"tensor_store_from_lds {operands}", inputs, back.words() if predicate else {}, ["gfx1250"])

# Several words across num_records are checked one by one: those beyond it read 0 and are not written.
for names in (("dwordx2", "dwordx3", "dwordx4"), ("b64", "b96", "b128")):
    for words, name in enumerate(names, 2):
        for room in range(1, words):
            inputs = {"v0": [0, 0x400] * (LANES // 2), "s4": "G+100", "s5": "H+100", "s6": 0x400 + 4 * room}
            columns, image = [old(10 + k) for k in range(words)], Image()
            stored = [data(20 + k) for k in range(words)]
            for n in ACTIVE:
                at = 0x100 + n % 2 * 0x400
                for k in range(words):
                    fits = n % 2 == 0 or k < room
                    columns[k][n] = word(0, at + 4 * k) if fits else 0
                    if fits and n in (0, 7):  # one lane of each address
                        image.write(0, at + 4 * k, stored[k][n], 4)
            where = ("v0", "s[4:7], ZERO", "offen")
            row("buffer_load_" + name, text("load_" + name, "buffer_", where, vreg(10, words), None), lanes_of(inputs),
                {f"v{10 + k}": c for k, c in enumerate(columns)})
            row("buffer_store_" + name, text("store_" + name, "buffer_", where, None, vreg(20, words)),
                {**inputs, **{f"v{20 + k}": c for k, c in enumerate(stored)}, "exec": 0x81}, image.words())
