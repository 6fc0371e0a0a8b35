"""A paged cache on an emulated device, and plain Python to hold the kernels against."""
import array
import math
import os
import struct

import heddle

DEVICE = os.environ.get("HEDDLE_TEST_DEVICE", "emu:gfx950")
EMULATED = DEVICE.startswith("emu")
KV_HEADS, GROUP, DIM, PAGE, TABLE = 2, 4, 64, 16, 3
LENGTHS = (43, 20)
SEQS, Q_HEADS, PAGES = len(LENGTHS), KV_HEADS * GROUP, len(LENGTHS) * TABLE

BF16 = """heddle: 1
name: python-bf16
kernels: [write, decode]
query: {dtype: bf16, heads_per_kv: 4}
head_dim: 64
kv: {dtype: bf16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}
logits: {scale: rsqrt_d}
output: {dtype: fp32}
"""
FP8 = """heddle: 1
name: python-fp8
kernels: [write, decode]
query: {dtype: bf16, heads_per_kv: 4}
head_dim: 64
kv: {dtype: fp8_e4m3, page: 16, k: [b, s, h, d], v: [b, s, h, d]}
scale: {granularity: token_head}
logits: {scale: argument}
output: {dtype: fp32, lse: true}
"""
TENSOR = FP8.replace("granularity: token_head", "granularity: tensor").replace("python-fp8", "python-tensor")
NUMBERS = TENSOR.replace("tensor}", "tensor, source: argument}").replace("python-tensor", "python-numbers")
CACHE_SHAPE = (PAGES, PAGE, KV_HEADS, DIM)


def to_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def from_bf16(x):
    return struct.unpack("<f", struct.pack("<I", x << 16))[0]


def shaped(values, shape):
    """An array as a memory view of that shape, which shares its memory."""
    return memoryview(values).cast("B").cast(values.typecode, shape=list(shape))


def random_bf16(count, seed):
    out, state = array.array("H"), seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(to_bf16((state >> 8) / 2**23 - 1))
    return out


TABLE_ROWS = array.array("i", [(i * 5 + 2) % PAGES for i in range(PAGES)])
SLOTS = array.array("q", [TABLE_ROWS[s * TABLE + t // PAGE] * PAGE + t % PAGE for s in range(SEQS) for t in range(LENGTHS[s])])
Q = random_bf16(SEQS * Q_HEADS * DIM, 1)
K, V = (random_bf16(sum(LENGTHS) * KV_HEADS * DIM, seed) for seed in (2, 3))

INPUTS = {"k": shaped(K, (sum(LENGTHS), KV_HEADS, DIM)), "v": shaped(V, (sum(LENGTHS), KV_HEADS, DIM)), "slot_mapping": SLOTS}
QUERY = {"q": shaped(Q, (SEQS, Q_HEADS, DIM)), "page_table": shaped(TABLE_ROWS, (SEQS, TABLE)), "lengths": array.array("i", LENGTHS)}


def attention():
    """softmax(q k / sqrt(d)) v, as one list of floats in the order of `out`; and the log-sum-exp."""
    out, lse = [], []
    for s in range(SEQS):
        first = sum(LENGTHS[:s])
        for head in range(Q_HEADS):
            rows = [((first + t) * KV_HEADS + head // GROUP) * DIM for t in range(LENGTHS[s])]
            q = [from_bf16(x) for x in Q[(s * Q_HEADS + head) * DIM : (s * Q_HEADS + head + 1) * DIM]]
            logits = [sum(a * from_bf16(b) for a, b in zip(q, K[r : r + DIM])) / math.sqrt(DIM) for r in rows]
            most = max(logits)
            weights = [math.exp(x - most) for x in logits]
            total = sum(weights)
            lse.append(most + math.log(total))
            out += [sum(w * from_bf16(V[r + d]) for w, r in zip(weights, rows)) / total for d in range(DIM)]
    return out, lse


def worst(found, expected):
    assert len(found) == len(expected)
    return max(abs(a - b) if a == a else math.inf for a, b in zip(found, expected))


_context = None


def context():
    global _context
    _context = _context or heddle.Context(DEVICE)
    return _context


_kernels = {}


def kernels(spec):
    """Its writer and its decode."""
    if spec not in _kernels:
        _kernels[spec] = context().prepare(spec, "write"), context().prepare(spec, "decode")
    return _kernels[spec]


def placed(kernel, tensors):
    """Where a launch can reach them: an emulated device takes tensors of the host, a GPU has them in its own memory."""
    if EMULATED:
        return dict(tensors)
    return {name: context().array(t, dtype=kernel.tensors[name].dtype) for name, t in tensors.items()}


def empty(shape):
    """fp32, for an output; `values` reads it."""
    return shaped(floats(math.prod(shape)), shape) if EMULATED else context().array(shaped(floats(math.prod(shape)), shape))


def values(tensor):
    return array.array("f", tensor.tobytes())


def floats(count):
    return array.array("f", [math.nan] * count)
