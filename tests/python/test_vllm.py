"""examples/vllm without vLLM: its own code, with stand-ins for the names that it imports. Run by tools/test_torch.sh."""
import enum
import os
import pathlib
import sys
import types
import typing
import unittest

import fixture as f

os.environ["HEDDLE_DEVICE"] = f.DEVICE
sys.path.insert(0, str(pathlib.Path(os.environ["HEDDLE_SOURCE"]) / "examples" / "vllm"))


def stand_in(name, **names):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)


Metadata = typing.TypeVar("Metadata")


class Builder(typing.Generic[Metadata]):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.device = device


class Backends(enum.Enum):
    CUSTOM = None


registered = {}
for package in ("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends"):
    stand_in(package)
stand_in("vllm.v1.attention.backend", AttentionBackend=type("AttentionBackend", (), {}), AttentionImpl=type("AttentionImpl", (), {}),
         AttentionMetadata=type("AttentionMetadata", (), {}), AttentionMetadataBuilder=Builder,
         AttentionCGSupport=enum.Enum("AttentionCGSupport", ["NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS"]),
         AttentionType=types.SimpleNamespace(DECODER="decoder"), MultipleOf=type("MultipleOf", (), {"__init__": lambda self, base: None}))  # fmt: skip
stand_in("vllm.v1.attention.backends.registry", AttentionBackendEnum=Backends, register_backend=registered.__setitem__)

import heddle_vllm  # noqa: E402
import torch  # noqa: E402
from heddle_vllm.backend import HeddleBackend  # noqa: E402

WHERE = torch.device("cpu" if f.DEVICE.startswith("emu") else "cuda")
HEADS, KV_HEADS, DIM, PAGE, BLOCKS = 8, 2, 64, 16, 16
SCALE = DIM**-0.5


class Engine:
    """Sequences and their tokens, put through the backend in batches as vLLM describes them."""

    def __init__(self, cache_dtype, **settings):
        torch.manual_seed(1)
        self.settings = settings
        self.impl = HeddleBackend.get_impl_cls()(HEADS, DIM, SCALE, KV_HEADS, None, settings.get("window"), cache_dtype, sinks=settings.get("sinks"))
        self.builder = HeddleBackend.get_builder_cls()(None, [], None, WHERE)
        shape = HeddleBackend.get_kv_cache_shape(BLOCKS, PAGE, KV_HEADS, DIM, cache_dtype)
        self.cache = torch.zeros(shape, dtype=torch.bfloat16 if cache_dtype in ("auto", "bfloat16") else torch.uint8, device=WHERE)
        self.layer = types.SimpleNamespace(_k_scale=torch.tensor(0.01, device=WHERE), _v_scale=torch.tensor(0.008, device=WHERE))
        self.table = torch.randperm(BLOCKS, device=WHERE).to(torch.int32).reshape(4, 4)
        self.tokens = [[torch.empty(0, h, DIM, dtype=torch.bfloat16, device=WHERE) for h in (HEADS, KV_HEADS, KV_HEADS)] for _ in range(4)]

    def step(self, counts, padding=0):
        """So many new tokens for each of the first sequences. Gives what came out and what is right."""
        new = [[torch.randn(n, h, DIM, device=WHERE).bfloat16() for h in (HEADS, KV_HEADS, KV_HEADS)] for n in counts]
        self.tokens[: len(counts)] = [[torch.cat(pair) for pair in zip(old, add)] for old, add in zip(self.tokens, new)]
        lengths = [len(t[0]) for t in self.tokens[: len(counts)]]
        at = [(s, p) for s, (n, end) in enumerate(zip(counts, lengths)) for p in range(end - n, end)]
        slots = torch.tensor([int(self.table[s, p // PAGE]) * PAGE + p % PAGE for s, p in at], dtype=torch.int64, device=WHERE)
        starts = torch.tensor([0, *torch.tensor(counts).cumsum(0)], dtype=torch.int32, device=WHERE)
        common = types.SimpleNamespace(num_actual_tokens=len(at), num_reqs=len(counts), max_query_len=max(counts), query_start_loc=starts, causal=True,
                                       seq_lens=torch.tensor(lengths, dtype=torch.int32, device=WHERE), block_table_tensor=self.table[: len(counts)],
                                       slot_mapping=slots)  # fmt: skip
        q, k, v = (torch.nn.functional.pad(torch.cat([n[i] for n in new]), (0, 0, 0, 0, 0, padding)) for i in range(3))
        # As a model has them: views into the product of one matrix.
        fused = torch.cat([t.flatten(1) for t in (q, k, v)], 1)
        q, k, v = (t.view(-1, t.shape[1] // DIM, DIM) for t in fused.split([HEADS * DIM, KV_HEADS * DIM, KV_HEADS * DIM], 1))
        output = torch.full((len(at) + padding, HEADS * DIM), 7.0, dtype=torch.bfloat16, device=WHERE)
        self.impl.forward(self.layer, q, k, v, self.cache, self.builder.build(0, common), output)
        return output, torch.cat([self.attention(s, p) for s, p in at])

    def attention(self, s, p):
        """Of one token, with PyTorch."""
        q, k, v = (t.float() for t in self.tokens[s])
        first = max(p + 1 - (self.settings.get("window") or p + 1), 0)
        k, v = (t[first : p + 1].repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        logits = torch.einsum("hd,thd->ht", q[p], k) * SCALE
        if self.settings.get("sinks") is not None:
            logits = torch.cat([logits, self.settings["sinks"][:, None]], 1)
        weights = logits.softmax(-1)[:, : len(v)]
        return torch.einsum("ht,thd->hd", weights, v).reshape(1, -1)


class Vllm(unittest.TestCase):
    def serve(self, cache_dtype, tolerance, **settings):
        engine = Engine(cache_dtype, **settings)
        for counts, padding in (([5, 20], 3), ([1, 1], 0), ([1, 7, 33], 1), ([1, 1, 1, 2], 0), ([1, 1, 1, 1], 2)):
            found, expected = engine.step(counts, padding)
            n = sum(counts)
            self.assertLess((found[:n].float() - expected).abs().max().item(), tolerance, (cache_dtype, counts))
            self.assertTrue((found[n:] == 7).all(), "rows of padding are left alone")

    def test_formats(self):
        self.serve("auto", 0.03)
        self.serve("fp8", 0.3)
        self.serve("fp8_per_token_head", 0.3)

    def test_masks(self):
        self.serve("auto", 0.03, window=9)
        self.serve("auto", 0.03, sinks=torch.linspace(-1, 2, HEADS, device=WHERE))

    def test_a_run_without_metadata(self):
        impl, output = Engine("auto").impl, torch.ones(3, HEADS * DIM)
        self.assertEqual(impl.forward(None, None, None, None, None, None, output).abs().max().item(), 0)

    def test_registration(self):
        heddle_vllm.register()
        module, _, name = registered[Backends.CUSTOM].rpartition(".")
        self.assertIs(getattr(sys.modules[module], name), HeddleBackend)

    def test_declined(self):
        for settings in ({"alibi_slopes": [1.0]}, {"attn_type": "encoder"}, {"kv_cache_dtype": "nvfp4"}):
            with self.assertRaises(NotImplementedError):
                HeddleBackend.get_impl_cls()(HEADS, DIM, SCALE, KV_HEADS, **settings)


if __name__ == "__main__":
    unittest.main()
