#!/usr/bin/env python3
"""Times other decode attention on the shapes of `heddle bench`, by the same method.

    tools/bench_peers.py [--shape 64x8192x4x16]... [--preset decode|first] [--heddle build/heddle --spec SPEC [--page N]...] [--json FILE]

Peers: torch's scaled_dot_product_attention on contiguous BF16 caches, every backend that takes the shape, in two forms:
"gqa", query heads grouped by the library, and "rows", the query heads of a kv head as rows of one query, which lets a
library read K and V once. With vLLM installed, also its Triton decode kernel on pages of 16 tokens. The best of them
counts, all are listed. With --heddle, `heddle bench` runs first, on the same device.

Method: as docs/benchmarks.md has it. Copies of the caches of together more than 450 MB, a CUDA graph of 16 launches or
more that walks over them, warm-up, median of the replays, times between events with a replay ahead, so that the host is
not timed. Outputs are held against float64 first; a wrong one has no time.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import warnings

PRESETS = {
    "decode": "4x8192x1x16 4x8192x4x16 64x8192x1x16 64x8192x4x8 64x8192x4x16 128x16384x1x16 128x2048x8x8 8x32768x8x4 1x131072x1x16".split(),
    "first": "4x8192x1x16 64x8192x4x8 128x16384x1x16".split(),
}
DIM = 128
ROTATED_BYTES = 450_000_000
LEAST_LAUNCHES = 16
WARM_UP_MS = 20
RMS_ALLOWED = 1.5e-2  # BF16 weights in the second product cost up to 1e-2; a wrong kernel is off by 1


class Shape:
    def __init__(self, word):
        self.word = word
        self.seqs, self.length, self.kv_heads, self.group = map(int, word.split("x"))
        self.bytes = 2 * self.seqs * self.length * self.kv_heads * DIM * 2  # K and V, BF16


def copies_of(size):
    return min(256, max(2, ROTATED_BYTES // size + 1))


def launches_of(copies):
    return copies * math.ceil(LEAST_LAUNCHES / copies)


def caches_of(torch, shape):
    """Copies of K and V [seqs, kv_heads, tokens, DIM], and q [seqs, q_heads, 1, DIM]."""
    generator = torch.Generator("cuda").manual_seed(1)
    make = lambda *size: torch.randn(*size, device="cuda", generator=generator, dtype=torch.bfloat16)
    size = (shape.seqs, shape.kv_heads, shape.length, DIM)
    first = (make(*size), make(*size))
    rest = [(first[0].clone(), first[1].clone()) for _ in range(copies_of(shape.bytes) - 1)]
    return [first, *rest], make(shape.seqs, shape.kv_heads * shape.group, 1, DIM)


def reference(torch, shape, k, v, q):
    """The first sequence and kv head in float64: [group, DIM]."""
    scores = q[0, : shape.group, 0].double() @ k[0, 0].double().T / math.sqrt(DIM)
    return torch.softmax(scores, dim=-1) @ v[0, 0].double()


def time_graph(torch, launch, count, repeat):
    """Microseconds a launch, of each replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for i in range(2):
            launch(i)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            launch(i)

    def replay():
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)

    warm, done = 0.0, 0
    while done < 2 or (warm < WARM_UP_MS and done < 200):
        warm += replay()
        done += 1
    samples = [replay() * 1000 / count for _ in range(repeat)]
    del graph
    return samples


def sdpa_peers(torch, shape, caches, q):
    """Name and launch(i) -> out [seqs, q_heads, DIM] of every form and backend."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
    rows = q.view(shape.seqs, shape.kv_heads, shape.group, DIM)
    attention = torch.nn.functional.scaled_dot_product_attention

    def make(backend, form):
        def launch(i):
            k, v = caches[i % len(caches)]
            with sdpa_kernel(backend):
                if form == "rows":
                    out = attention(rows, k, v)
                else:
                    out = attention(q, k, v, enable_gqa=True)
            return out.reshape(shape.seqs, shape.kv_heads * shape.group, DIM)

        return launch

    return {f"torch sdpa {name}, {form}": make(backend, form) for name, backend in backends.items() for form in ("gqa", "rows")}


def vllm_peers(torch, shape, caches, q):
    """vLLM's Triton decode kernel over the same BF16 caches, in pages of 16 tokens [page, slot, head, DIM]."""
    try:
        from vllm.attention.ops.triton_decode_attention import decode_attention_fwd
    except ImportError:
        try:
            from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd
        except ImportError:
            return {}
    page, splits = 16, max(1, min(32, 132 // (shape.seqs * shape.kv_heads) or 1))
    pages = shape.seqs * shape.length // page
    order = torch.randperm(pages, device="cuda", generator=torch.Generator("cuda").manual_seed(2))
    table = order.view(shape.seqs, -1).to(torch.int32).contiguous()

    def paged(x):
        by_token = x.transpose(1, 2).reshape(pages, page, shape.kv_heads, DIM)
        out = torch.empty_like(by_token)
        out[order] = by_token
        return out

    paged_caches = [(paged(k), paged(v)) for k, v in caches]
    heads = shape.kv_heads * shape.group
    query = q.view(shape.seqs, heads, DIM)
    out = torch.empty_like(query)
    lse = torch.empty(shape.seqs, heads, device="cuda")
    logits = torch.empty(shape.seqs, heads, splits, DIM + 1, device="cuda")
    lengths = torch.full((shape.seqs,), shape.length, device="cuda", dtype=torch.int32)

    def launch(i):
        k, v = paged_caches[i % len(paged_caches)]
        decode_attention_fwd(query, k, v, out, lse, table, lengths, logits, splits, 1 / math.sqrt(DIM), page)
        return out

    return {"vllm triton bf16, page 16": launch}


def measure(torch, shape, launch, caches, expected, repeat):
    try:
        out = launch(0)[0, : shape.group].double()
        torch.cuda.synchronize()
        rms = float(((out - expected).norm() / expected.norm()))
        if not rms <= RMS_ALLOWED:
            return {"error": f"wrong: relative RMS {rms:.1e}"}
        samples = time_graph(torch, launch, launches_of(len(caches)), repeat)
    except Exception as error:  # a backend that doesn't take the shape says so by raising
        return {"error": (str(error).strip() or type(error).__name__).splitlines()[0][:160]}
    median = statistics.median(samples)
    return {"us": median, "spread": (max(samples) - min(samples)) / median, "gb_per_s": shape.bytes / median * 1e-3, "rms": rms, "samples": samples}


def run_peers(torch, shape, repeat):
    caches, q = caches_of(torch, shape)
    expected = reference(torch, shape, *caches[0], q)
    results = {}
    for make in (sdpa_peers, vllm_peers):
        try:
            peers = make(torch, shape, caches, q)
        except Exception as error:
            results[make.__name__] = {"error": str(error).splitlines()[0][:160] if str(error) else type(error).__name__}
            continue
        for name, launch in peers.items():
            results[name] = measure(torch, shape, launch, caches, expected, repeat)
            torch.cuda.empty_cache()
    return results


def run_heddle(arguments, shapes, page):
    command = [arguments.heddle, "bench", arguments.spec, "--device", "cuda:0", "--json", "--repeat", str(arguments.repeat)]
    command += ["--page", str(page)] if page else []
    command += ["--split", arguments.split] if arguments.split else []
    command += [word for shape in shapes for word in ("--shape", shape.word)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"ok": False, "results": []}


def heddle_rows(value, shape):
    for result in value.get("results", []):
        word = "x".join(str(result[key]) for key in ("seqs", "length", "kv_heads", "heads_per_kv"))
        if word == shape.word and (result["best"] or not result["timed"]):
            yield result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", default=[], help="SEQSxLENGTHxKV_HEADSxG; may be repeated")
    parser.add_argument("--preset", choices=sorted(PRESETS), help="decode: nine shapes (the default); first: three of them")
    parser.add_argument("--heddle", help="path of heddle: its bench runs first")
    parser.add_argument("--spec", default="specs/minimax-m3-dense-fp8.yaml")
    parser.add_argument("--page", action="append", type=int, default=[], help="page sizes for heddle; may be repeated (default: the spec's)")
    parser.add_argument("--split", help="splits for heddle, such as 8,16,auto")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--json", help="write everything there, all samples included")
    arguments = parser.parse_args()
    words = arguments.shape + (PRESETS[arguments.preset] if arguments.preset else [])
    shapes = [Shape(word) for word in words or PRESETS["decode"]]

    heddle = {}
    if arguments.heddle:
        for page in arguments.page or [0]:
            heddle[page] = run_heddle(arguments, shapes, page)

    warnings.filterwarnings("ignore")  # torch says why a backend doesn't take a shape; the table does, too
    import torch  # after heddle ran: no second context on the device meanwhile

    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, {arguments.repeat} replays, median")
    print(f"{'shape':<18} {'what':<42} {'us':>9} {'spread':>7} {'GB/s':>8} {'rms':>9}")
    peers = {}
    for shape in shapes:
        for value in heddle.values():
            for result in heddle_rows(value, shape):
                name = f"heddle {value['spec']}, page {result['page']}"
                if not result["timed"]:
                    print(f"{shape.word:<18} {name:<42} {result['problem'] or 'no time'}")
                    continue
                for what, series, speed in ((name, result["decode_us"], result["gb_per_s"]), ("  read of the same bytes", result["read_us"], result["bytes"] / result["read_us"]["median"] * 1e-3)):
                    rms = f"{result['rms']:9.2e}" if what == name else ""
                    print(f"{shape.word:<18} {what:<42} {series['median']:9.2f} {100 * series['spread']:6.1f}% {speed:8.1f} {rms}")
        results = peers[shape.word] = run_peers(torch, shape, arguments.repeat)
        timed = {name: value for name, value in results.items() if "us" in value}
        best = min(timed, key=lambda name: timed[name]["us"], default=None)
        for name, value in results.items():
            if "us" in value:
                mark = " *" if name == best else ""
                print(f"{shape.word:<18} {name:<42} {value['us']:9.2f} {100 * value['spread']:6.1f}% {value['gb_per_s']:8.1f} {value['rms']:9.2e}{mark}")
            else:
                print(f"{shape.word:<18} {name:<42} {value['error']}")
        sys.stdout.flush()
        torch.cuda.empty_cache()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": device, "torch": torch.__version__, "repeat": arguments.repeat, "heddle": heddle, "peers": peers}, file, indent=1)


if __name__ == "__main__":
    main()
