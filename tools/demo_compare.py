"""Compares tensors of the demo.

  demo_compare.py same A.npy B.npy [NAME]                     every byte equal?
  demo_compare.py close A.npy B.npy LIMIT                     relative RMS error of A against B; LIMIT is the largest that passes
  demo_compare.py attention FOLDER OUT.npy SCALE COSINE       OUT against attention over the bf16 k and v that were never quantised

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


def attention(folder, out_path, scale, limit):
    folder = pathlib.Path(folder)
    q, (_, q_heads, dim) = npy.floats(folder / "q.npy")
    k, (_, kv_heads, _) = npy.floats(folder / "k.npy")
    v, _ = npy.floats(folder / "v.npy")
    lengths, _, _ = npy.load(folder / "lengths.npy")
    out, _ = npy.floats(out_path)
    expected, first = [], 0  # the rows of k and v are the sequences' tokens one after another
    for sequence, length in enumerate(lengths):
        for head in range(q_heads):
            kv_head = head // (q_heads // kv_heads)
            query = q[(sequence * q_heads + head) * dim :][:dim]
            rows = [((first + token) * kv_heads + kv_head) * dim for token in range(length)]
            logits = [float(scale) * sum(map(float.__mul__, query, k[row : row + dim])) for row in rows]
            top = max(logits)
            weights = [math.exp(logit - top) for logit in logits]
            total = sum(weights)
            sums = [0.0] * dim
            for weight, row in zip(weights, rows):
                if weight > 1e-12 * total:
                    sums = [have + weight * value for have, value in zip(sums, v[row : row + dim])]
            expected += [value / total for value in sums]
        first += length
    error, cosine, _ = errors(out, expected)
    print(f"cosine {cosine:.6f} (at least {limit}), relative RMS error {error:.3e}")
    return cosine >= float(limit)


if __name__ == "__main__":
    modes = {"same": same, "close": close, "attention": attention}
    if len(sys.argv) < 4 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    sys.exit(0 if modes[sys.argv[1]](*sys.argv[2:]) else 1)
