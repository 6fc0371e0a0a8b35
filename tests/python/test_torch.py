"""The Python package with PyTorch: tensors, current streams, operators under torch.compile, graphs. Not part of tools/test.sh, since
PyTorch is some gigabytes: tools/test_torch.sh brings it and runs this, on an emulated device, or with HEDDLE_TEST_DEVICE=cuda:0 on a GPU.
"""
import unittest

import fixture as f
import heddle
import heddle.torch
import torch

ON_GPU = not f.DEVICE.startswith("emu")
WHERE = "cuda" if ON_GPU else "cpu"
FP8_DTYPE = torch.float8_e4m3fn


def bf16(view):
    return torch.tensor(view.tolist(), dtype=torch.int32).to(torch.uint16).view(torch.bfloat16).to(WHERE)


class Cache:
    """The fixture's tokens as torch tensors, and an empty cache for them."""

    def __init__(self, spec):
        self.write, self.decode = f.kernels(spec)
        fp8 = spec != f.BF16
        self.cache = [torch.zeros(f.CACHE_SHAPE, dtype=torch.uint8 if fp8 else torch.bfloat16, device=WHERE) for _ in range(2)]
        if fp8:
            self.cache = [c.view(FP8_DTYPE) for c in self.cache]
        self.scales = [torch.zeros(f.PAGES, f.KV_HEADS, f.PAGE, device=WHERE) for _ in range(2 if fp8 else 0)]
        self.k, self.v, self.q = bf16(f.INPUTS["k"]), bf16(f.INPUTS["v"]), bf16(f.QUERY["q"])
        self.slots = torch.tensor(list(f.SLOTS), dtype=torch.int64, device=WHERE)
        self.table = torch.tensor(f.QUERY["page_table"].tolist(), dtype=torch.int32, device=WHERE)
        self.lengths = torch.tensor(f.LENGTHS, dtype=torch.int32, device=WHERE)
        self.settings = {"logits_scale": f.DIM**-0.5} if fp8 else {}

    def attend(self, k, v, slots, q, **settings):
        heddle.torch.write(self.write, k, v, slots, *self.cache, *self.scales)
        named = dict(zip(("k_scale", "v_scale"), self.scales))
        return heddle.torch.decode(self.decode, q, *self.cache, page_table=self.table, lengths=self.lengths, **named, **self.settings, **settings)

    def all(self, **settings):
        return self.attend(self.k, self.v, self.slots, self.q, **settings)


class Torch(unittest.TestCase):
    def close(self, found, expected, tolerance):
        self.assertLess((found.float().cpu().ravel() - torch.tensor(expected)).abs().max().item(), tolerance)

    def test_attention(self):
        out, lse = f.attention()
        self.close(Cache(f.BF16).all(), out, 0.01)
        found, found_lse = Cache(f.FP8).all()
        self.close(found, out, 0.06)
        self.close(found_lse, lse, 0.03)

    def test_scales_that_are_numbers(self):
        """The same operators, eager and compiled, with floats where the contract takes them."""
        numbers, tensors = Cache(f.NUMBERS), Cache(f.TENSOR)
        numbers.scales = [0.0078125, 0.01]
        tensors.scales = [torch.tensor([x], device=WHERE) for x in numbers.scales]
        (found, _), (expected, _) = numbers.all(), tensors.all()
        for a, b in zip(numbers.cache, tensors.cache):
            self.assertTrue(torch.equal(a.view(torch.uint8), b.view(torch.uint8)))
        self.assertTrue(torch.equal(found, expected))
        self.close(found, f.attention()[0], 0.06)
        torch._dynamo.reset()
        compiled = torch.compile(lambda q: numbers.attend(numbers.k, numbers.v, numbers.slots, q)[0], backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(numbers.q), expected))
        caches = [c.view(torch.uint8) for c in numbers.cache]
        named = {"v_cache": caches[1], "page_table": numbers.table, "lengths": numbers.lengths, "k_scale_value": 0.0078125, "v_scale_value": 0.01,
                 "logits_scale": 0.125}  # fmt: skip
        torch.library.opcheck(torch.ops.heddle.decode, (heddle.torch.kernel_name(numbers.decode), numbers.q, caches[0]), named,
                              test_utils=("test_schema", "test_faketensor"))  # fmt: skip

    def test_slices_of_a_fused_projection(self):
        """q, k and v as they come out of one product, with the others between their rows."""

        def between(t):
            return torch.cat([torch.full_like(t.flatten(1), 7), t.flatten(1), torch.full_like(t.flatten(1), -7)], 1)[:, t[0].numel() : -t[0].numel()].view(t.shape)

        cache, sliced = Cache(f.BF16), Cache(f.BF16)
        q, k, v = (between(t) for t in (sliced.q, sliced.k, sliced.v))
        self.assertFalse(any(t.is_contiguous() for t in (q, k, v)))
        self.assertTrue(torch.equal(sliced.attend(k, v, sliced.slots, q), cache.all()))
        out = torch.empty(f.SEQS, f.Q_HEADS, f.DIM, device=WHERE)
        sliced.attend(k, v, sliced.slots, q, out=out)
        self.assertTrue(torch.equal(out, cache.all()))

    def test_nothing_is_copied(self):
        t = torch.arange(24, dtype=torch.int32, device=WHERE).reshape(2, 3, 4)[:, :, ::2]
        seen = heddle.describe(t)
        self.assertEqual((seen.address, seen.shape, seen.strides), (t.data_ptr(), (2, 3, 2), (12, 4, 2)))
        if not ON_GPU:
            buffer = f.context().zeros((8,), "fp32")
            self.assertEqual(torch.from_dlpack(buffer).data_ptr(), buffer.address)

    def test_given_outputs_and_workspace(self):
        cache = Cache(f.BF16)
        whole, out = cache.all(splits=1), torch.empty(f.SEQS, f.Q_HEADS, f.DIM, device=WHERE)
        bytes_needed = cache.decode.workspace_bytes(heddle.Sizes(seqs=f.SEQS, kv_heads=f.KV_HEADS, longest=48, splits=3))
        workspace = torch.empty(bytes_needed, dtype=torch.uint8, device=WHERE)
        self.assertIsNone(cache.all(splits=3, out=out, workspace=workspace))
        self.assertLess((out - whole).abs().max().item(), 1e-5)

    def test_launches_again_and_again(self):
        """Of the same shapes with other tensors, of others in between, and of what doesn't fit after what did."""
        write, decode = f.kernels(f.BF16)
        lengths = [torch.tensor(n, dtype=torch.int32, device=WHERE) for n in (f.LENGTHS, (5, 17))]
        caches, whole = [Cache(f.BF16) for _ in range(2)], []
        for cache in caches:
            cache.all()
        caches[1].cache[1].mul_(2)
        halves = lambda t: torch.cat([t, t], -1)[..., : t.shape[-1]]  # the same values, other strides

        def out_of(cache, lengths, rows, table=lambda t: t):
            return heddle.torch.decode(decode, cache.q[:rows], *cache.cache, page_table=table(cache.table)[:rows], lengths=lengths[:rows])

        for _ in range(3):
            found = [out_of(c, n, rows, table) for c in caches for n in lengths for rows in (2, 1) for table in (lambda t: t, halves)]
            whole = whole or found
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(found, whole)))
            for one, two in zip(found[:8], found[8:]):
                self.assertTrue(torch.allclose(2 * one, two, atol=1e-5), "V is twice as large")
            for wrong in (lengths[0].long(), lengths[0].cpu().repeat(2)[::2] if ON_GPU else lengths[0].repeat(2)[::2]):
                with self.assertRaises((heddle.Declined, TypeError)):
                    out_of(caches[0], wrong, 2)

    def test_operators_hold_to_pytorchs_rules(self):
        cache = Cache(f.FP8)
        cache.all()
        named = {"v_cache": cache.cache[1], "k_scale": cache.scales[0], "v_scale": cache.scales[1], "page_table": cache.table, "lengths": cache.lengths,
                 "logits_scale": 0.125}  # fmt: skip
        tests = ("test_schema", "test_faketensor")
        # Codes of fp8 have no arithmetic that opcheck could compare with; bytes are storage to heddle.
        caches = [c.view(torch.uint8) for c in cache.cache]
        named["v_cache"] = caches[1]
        torch.library.opcheck(torch.ops.heddle.decode, (heddle.torch.kernel_name(cache.decode), cache.q, caches[0]), named, test_utils=tests)
        torch.library.opcheck(torch.ops.heddle.write, (heddle.torch.kernel_name(cache.write), cache.k, cache.v, cache.slots, *caches,
                              *cache.scales), test_utils=tests)  # fmt: skip

    def test_compile(self):
        """A step of a layer, in one graph: projections, the cache's writer, attention over it."""
        for backend in ("aot_eager", "inductor"):
            for spec in (f.BF16, f.FP8):
                with self.subTest(backend=backend, spec=spec[17:30]):
                    torch._dynamo.reset()
                    eager, compiled = Cache(spec), Cache(spec)

                    def step(cache, scale):
                        out = cache.attend(cache.k * scale, cache.v * scale, cache.slots, cache.q * scale)
                        out = out[0] if isinstance(out, tuple) else out
                        return out.to(torch.float32).sin()

                    scale = torch.tensor(0.5, dtype=torch.bfloat16, device=WHERE)
                    expected = step(eager, scale)
                    found = torch.compile(lambda s: step(compiled, s), backend=backend, fullgraph=True)(scale)
                    self.assertLess((found - expected).abs().max().item(), 1e-5)
                    for a, b in zip(eager.cache + eager.scales, compiled.cache + compiled.scales):
                        self.assertTrue(torch.equal(a.view(torch.uint8), b.view(torch.uint8)), "the cache was written in place")

    def test_errors_carry_code_and_field(self):
        cache = Cache(f.BF16)
        cache.table = cache.table.to(torch.int64)
        with self.assertRaises(heddle.Declined) as caught:
            cache.all()
        self.assertEqual((caught.exception.code, caught.exception.field), ("bind.dtype", "page_table"))

    @unittest.skipUnless(ON_GPU, "graphs of PyTorch and its streams are a GPU's: HEDDLE_TEST_DEVICE=cuda:0")
    def test_graph_and_streams(self):
        cache, (expected, _) = Cache(f.BF16), f.attention()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.close(cache.all(), expected, 0.01)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            out = cache.all(splits=2)
        cache.lengths.fill_(1)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.allclose(out[0, 0].float().cpu(), cache.v[0, 0].float().cpu()), "one token: its V")
        for lengths in ((2, 16), (17, 17), (33, 18), f.LENGTHS):  # within a page and over its end
            cache.lengths.copy_(torch.tensor(lengths, dtype=torch.int32))
            graph.replay()
            torch.cuda.synchronize()
            found = out.clone()
            self.assertLess((found - cache.all(splits=1)).abs().max().item(), 1e-4, lengths)
        self.close(found, expected, 0.01)

    @unittest.skipUnless(ON_GPU, "a tensor of the host can't be launched on: HEDDLE_TEST_DEVICE=cuda:0")
    def test_host_tensors_are_refused(self):
        cache = Cache(f.BF16)
        cache.lengths = cache.lengths.cpu()
        with self.assertRaisesRegex(TypeError, "lengths lies in the host's memory"):
            cache.all()


if __name__ == "__main__":
    unittest.main()
