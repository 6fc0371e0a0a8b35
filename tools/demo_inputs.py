"""Writes the demo's tensors: demo_inputs.py FOLDER

Two sequences of one MiniMax-M3 dense layer on one rank of four (1 kv head, 16 query heads, head_dim 128, page 128), as .npy:

  k, v           bf16   [tokens, kv_heads, dim]          what the engine hands to the cache writer
  slot_mapping   int64  [tokens]                         page * 128 + slot of each token; -1 is a padding token
  k_cache        uint8  [pages, kv_heads, 8, 128, 16]    fp8 codes; factors d/16, s, d%16
  v_cache        uint8  [pages, kv_heads, 8, 128, 16]    factors s/16, d, s%16
  k_scale, v_scale  fp32 [pages, kv_heads, 128]
  q              bf16   [seqs, q_heads, dim]
  page_table     int32  [seqs, table_pages]              pages of each sequence, shuffled; unused entries are absurd on purpose
  lengths        int32  [seqs]

The caches start full of NaN, scales too: what was never written must not matter.
"""
import array
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import npy

LENGTHS = [300, 77]
KV_HEADS, GROUP, DIM, PAGE, CHUNK = 1, 16, 128, 128, 16
PAGES = 7
FP8_NAN = 0x7F


def bf16_normal(rng, count, size):
    """Normal values; every 32nd channel four times as large, as keys of real models have it."""
    return array.array("H", (npy.bf16_encode(rng.gauss(0, 4 * size if i % 32 == 5 else size)) for i in range(count)))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(20260801)

    table_pages = max(-(-length // PAGE) for length in LENGTHS)
    free = rng.sample(range(PAGES), PAGES)
    tables, slots = [], []
    for length in LENGTHS:
        row = [free.pop() for _ in range(-(-length // PAGE))]
        slots += [row[token // PAGE] * PAGE + token % PAGE for token in range(length)]
        tables += row + [-1234567] * (table_pages - len(row))
    slots.append(-1)  # a padding token, as a captured graph has them: to be skipped
    tokens = len(slots)

    save = lambda name, values, *shape: npy.save(folder / f"{name}.npy", values, shape)
    save("k", bf16_normal(rng, tokens * KV_HEADS * DIM, 0.5), tokens, KV_HEADS, DIM)
    save("v", bf16_normal(rng, tokens * KV_HEADS * DIM, 1.0), tokens, KV_HEADS, DIM)
    save("slot_mapping", array.array("q", slots), tokens)
    for name in ("k_cache", "v_cache"):
        cache = array.array("B", [FP8_NAN]) * (PAGES * KV_HEADS * DIM * PAGE)
        save(name, cache, PAGES, KV_HEADS, DIM * PAGE // (PAGE * CHUNK), PAGE, CHUNK)
    for name in ("k_scale", "v_scale"):
        save(name, array.array("f", [float("nan")]) * (PAGES * KV_HEADS * PAGE), PAGES, KV_HEADS, PAGE)
    save("q", bf16_normal(rng, len(LENGTHS) * KV_HEADS * GROUP * DIM, 0.5), len(LENGTHS), KV_HEADS * GROUP, DIM)
    save("page_table", array.array("i", tables), len(LENGTHS), table_pages)
    save("lengths", array.array("i", LENGTHS), len(LENGTHS))
    print(f"{len(LENGTHS)} sequences of {' and '.join(map(str, LENGTHS))} tokens, {tokens} rows of k and v, {PAGES} pages")


if __name__ == "__main__":
    main()
