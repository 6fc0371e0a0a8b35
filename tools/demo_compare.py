"""Compares tensors of the demo.

  demo_compare.py same A.npy B.npy [NAME]          every byte equal?
  demo_compare.py close A.npy B.npy LIMIT          relative RMS error of A against B; LIMIT is the largest that passes
  demo_compare.py stored FOLDER CACHE OUT SCALE LIMIT   OUT against float64 attention over the stored bytes: caches and scales in
                                                   the folder CACHE, read here without heddle; LIMIT as above
  demo_compare.py unquantised FOLDER OUT SCALE COSINE   OUT against float64 attention over the bf16 k and v of FOLDER

Prints one line; exits 1 when the tensors differ more than they may.
"""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import npy


def same(a, b, name=""):
    left, _, _ = npy.load(a)
    right, _, _ = npy.load(b)
    left, right = left.tobytes(), right.tobytes()
    if len(left) != len(right):
        print(f"{name:<8} {len(left)} against {len(right)} bytes")
        return False
    differing = sum(x != y for x, y in zip(left, right))
    print(f"{name:<8} {len(left):7} bytes, {differing} differ")
    return differing == 0


def errors(out, expected):
    """(relative RMS error, cosine, largest difference)"""
    squares = sum(y * y for y in expected)
    difference = sum((x - y) ** 2 for x, y in zip(out, expected))
    product = sum(x * y for x, y in zip(out, expected))
    norm = math.sqrt(sum(x * x for x in out) * squares)
    worst = max(abs(x - y) for x, y in zip(out, expected))
    return math.sqrt(difference / squares), product / norm if norm else 0.0, worst


def close(a, b, limit):
    out, _ = npy.floats(a)
    expected, _ = npy.floats(b)
    if len(out) != len(expected):
        print(f"{len(out)} against {len(expected)} values")
        return False
    error, cosine, worst = errors(out, expected)
    print(f"relative RMS error {error:.3e} (limit {float(limit):.1e}), cosine {cosine:.7f}, largest difference {worst:.3e}")
    return error <= float(limit)  # a NaN fails


def attention(folder, k, v, scale):
    """Float64 attention; k and v are lists of rows (lists of dim floats), the sequences' tokens one after another, 1 kv head."""
    q, (seqs, q_heads, dim) = npy.floats(folder / "q.npy")
    lengths, _, _ = npy.load(folder / "lengths.npy")
    expected, first = [], 0
    for sequence, length in enumerate(lengths):
        keys, values = k[first : first + length], v[first : first + length]
        for head in range(q_heads):
            query = q[(sequence * q_heads + head) * dim :][:dim]
            logits = [scale * sum(map(float.__mul__, query, key)) for key in keys]
            top = max(logits)
            weights = [math.exp(logit - top) for logit in logits]
            total = sum(weights)
            sums = [0.0] * dim
            for weight, value in zip(weights, values):
                sums = [have + weight * channel for have, channel in zip(sums, value)]
            expected += [channel / total for channel in sums]
        first += length
    return expected


def rows(flat, dim):
    return [flat[at : at + dim] for at in range(0, len(flat), dim)]


def e4m3fn(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    size = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0**-9
    return -size if code & 0x80 else size


def stored(folder, cache, out_path, scale, limit):
    folder, cache = pathlib.Path(folder), pathlib.Path(cache)
    values_of = [e4m3fn(code) for code in range(256)]
    k_cache, (_, _, chunks, page, chunk), _ = npy.load(cache / "k_cache.npy")  # [page, head, d/16, s, d%16]
    v_cache, _, _ = npy.load(cache / "v_cache.npy")  # [page, head, s/16, d, s%16]
    k_scale, _, _ = npy.load(cache / "k_scale.npy")
    v_scale, _, _ = npy.load(cache / "v_scale.npy")
    slots, _, _ = npy.load(folder / "slot_mapping.npy")
    dim = chunks * chunk
    k, v = [], []
    for slot in slots:
        if slot < 0:
            continue
        start, token = slot // page * page * dim, slot % page
        k.append([values_of[k_cache[start + (d // chunk * page + token) * chunk + d % chunk]] * k_scale[slot] for d in range(dim)])
        at = start + token // chunk * dim * chunk + token % chunk
        v.append([values_of[v_cache[at + d * chunk]] * v_scale[slot] for d in range(dim)])
    out, _ = npy.floats(out_path)
    error, cosine, worst = errors(out, attention(folder, k, v, float(scale)))
    print(f"relative RMS error {error:.3e} (limit {float(limit):.1e}), cosine {cosine:.7f}, largest difference {worst:.3e}")
    return error <= float(limit)


def unquantised(folder, out_path, scale, limit):
    folder = pathlib.Path(folder)
    k, (_, _, dim) = npy.floats(folder / "k.npy")
    v, _ = npy.floats(folder / "v.npy")
    out, _ = npy.floats(out_path)
    error, cosine, _ = errors(out, attention(folder, rows(k, dim), rows(v, dim), float(scale)))
    print(f"relative RMS error {error:.3e}, cosine {cosine:.6f} (at least {limit})")
    return cosine >= float(limit)


if __name__ == "__main__":
    modes = {"same": same, "close": close, "stored": stored, "unquantised": unquantised}
    if len(sys.argv) < 4 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    sys.exit(0 if modes[sys.argv[1]](*sys.argv[2:]) else 1)
