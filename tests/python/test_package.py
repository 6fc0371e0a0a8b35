"""The Python package with nothing but the standard library: on an emulated device, or with HEDDLE_TEST_DEVICE=cuda:0 on a GPU."""
import array
import gc
import hashlib
import pathlib
import struct
import tempfile
import threading
import unittest

import fixture as f
import heddle
from heddle import _dlpack

of_the_host = unittest.skipUnless(f.EMULATED, "only an emulated device takes tensors of the host")
TOLERANCE = {f.BF16: 0.01, f.FP8: 0.06}


class Producer:
    """Somebody's tensor with DLPack: dense memory of the host, described by a capsule of its own."""

    def __init__(self, values, shape, code, bits):
        self.values, self.shape, self.code, self.bits, self.asked = values, shape, code, bits, 0

    def __dlpack__(self, **_):
        self.asked += 1
        return _dlpack.capsule_of(self.values.buffer_info()[0], self.code, self.bits, self.shape, self.values)

    def __dlpack_device__(self):
        return (1, 0)


class Interface:
    """Memory with an array interface, as cupy and numba have it."""

    def __init__(self, attribute, address, shape, typestr, **more):
        setattr(self, attribute, {"version": 3, "shape": shape, "typestr": typestr, "data": (address, False), **more})


class Packs(unittest.TestCase):
    def test_what_is_no_pack_is_refused_by_code(self):
        context = heddle.Context(f.DEVICE, cache_directory="")
        head = b"\x8bhdpack\n" + struct.pack("<IIQQ", 1, 0, 0, 64)  # a pack without entries: docs/cache.md
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "kernels.pack"
            with self.assertRaises(heddle.FileError) as raised:
                context.add_pack(path)
            self.assertEqual(raised.exception.code, "cache.pack")
            path.write_bytes(head + bytes(32))
            path.chmod(0o644)
            with self.assertRaises(heddle.Invalid) as raised:
                context.add_pack(path)
            self.assertEqual(raised.exception.code, "cache.pack")
            path.write_bytes(head + hashlib.sha256(head).digest())
            context.add_pack(path)


class Launches(unittest.TestCase):
    def attend(self, spec, make, **settings):
        """Tokens written, then attention; the cache is what `make` makes of a shape and a dtype. Gives out and lse."""
        write, decode = f.kernels(spec)
        cache = {n: make(f.CACHE_SHAPE, decode.tensors[n].dtype) for n in ("k_cache", "v_cache")}
        if spec == f.FP8:
            cache |= {n: make((f.PAGES, f.KV_HEADS, f.PAGE), "fp32") for n in ("k_scale", "v_scale")}
            settings.setdefault("logits_scale", f.DIM**-0.5)
        write.launch(f.placed(write, f.INPUTS) | cache)
        outputs = {"out": f.empty((f.SEQS, f.Q_HEADS, f.DIM)), "lse": f.empty((f.SEQS, f.Q_HEADS))}
        decode.launch(f.placed(decode, f.QUERY) | cache, **{n: t for n, t in outputs.items() if n in decode.tensors}, **settings)
        return f.values(outputs["out"]), f.values(outputs["lse"])

    def host(self, shape, dtype):
        code = {"bf16": "H", "fp32": "f"}.get(dtype, "B")
        count = 1
        for n in shape:
            count *= n
        return f.shaped(array.array(code, bytes(count * array.array(code).itemsize)), shape)

    @of_the_host
    def test_host_tensors(self):
        expected, lse = f.attention()
        for spec in (f.BF16, f.FP8):
            out, found = self.attend(spec, self.host)
            self.assertLess(f.worst(out, expected), TOLERANCE[spec])
            if spec == f.FP8:
                self.assertLess(f.worst(found, lse), 0.03)

    def test_scales_that_are_numbers(self):
        """Given by the name of the tensor that they stand for: launches, bindings and matches tell by what they are."""
        (write, decode), (write_memory, decode_memory) = f.kernels(f.NUMBERS), f.kernels(f.TENSOR)
        numbers, expected = {"k_scale": 0.0078125, "v_scale": 0.01}, f.attention()[0]
        tensors = {n: f.context().array(array.array("f", [x])) for n, x in numbers.items()}
        cache = {n: f.context().zeros(f.CACHE_SHAPE, decode.tensors[n].dtype) for n in ("k_cache", "v_cache")}
        self.assertNotIn("k_scale", decode.tensors)
        write_memory.launch(f.placed(write, f.INPUTS) | cache | tensors)
        stored = {n: t.tobytes() for n, t in cache.items()}
        for t in cache.values():
            t.copy_from(array.array("B", bytes(t.nbytes)))
        write.launch(f.placed(write, f.INPUTS) | cache | numbers)
        self.assertEqual({n: t.tobytes() for n, t in cache.items()}, stored)
        outputs = {"out": f.context().zeros((f.SEQS, f.Q_HEADS, f.DIM), "fp32"), "lse": f.context().zeros((f.SEQS, f.Q_HEADS), "fp32")}
        found = []
        for kernel, scales in ((decode, numbers), (decode_memory, tensors)):
            kernel.launch(f.placed(decode, f.QUERY) | cache | outputs | scales, logits_scale=f.DIM**-0.5)
            found.append(array.array("f", outputs["out"].tobytes()))
        self.assertEqual(found[0], found[1])
        self.assertLess(f.worst(found[0], expected), 0.06)
        query = {n: f.context().array(t) for n, t in f.QUERY.items()}
        bound = decode.bind(query | cache | outputs, **numbers, logits_scale=f.DIM**-0.5)
        bound.set_scales(v_scale=0.04)
        bound.launch()
        self.assertEqual(array.array("f", outputs["out"].tobytes()), array.array("f", [4 * x for x in found[0]]))
        with self.assertRaises(heddle.Declined) as raised:
            decode.launch(f.placed(decode, f.QUERY) | cache | outputs, k_scale=numbers["k_scale"])
        self.assertEqual((raised.exception.code, raised.exception.field), ("bind.missing", "v_scale"))
        with self.assertRaises(heddle.Invalid):
            decode_memory.bind(query | cache | outputs | tensors).set_scales(k_scale=1.0)
        for scales, index in ((numbers, 1), (tensors, 0)):
            tensors = query | cache | scales | {"q": heddle.describe(query["q"], dtype="bf16")}
            found = heddle.match([f.TENSOR, f.NUMBERS], "decode", tensors, f.context().target, heddle.Request(lse=True))
            self.assertEqual(found.index, index, found.answers)

    def test_own_memory_is_used_in_place(self):
        expected, lse = f.attention()
        for spec in (f.BF16, f.FP8):
            out, found = self.attend(spec, f.context().zeros)
            self.assertLess(f.worst(out, expected), TOLERANCE[spec])
        self.assertLess(f.worst(found, lse), 0.03)
        write, _ = f.kernels(f.BF16)
        cache = {n: f.context().zeros(f.CACHE_SHAPE, "bf16") for n in ("k_cache", "v_cache")}
        write.launch(f.placed(write, f.INPUTS) | cache)
        stored = array.array("H", cache["k_cache"].tobytes())
        at = f.SLOTS[0] * f.KV_HEADS * f.DIM
        self.assertEqual(stored[at : at + f.DIM], f.K[: f.DIM])

    def test_splits_change_nothing_beyond_rounding(self):
        make = self.host if f.EMULATED else f.context().zeros
        whole, _ = self.attend(f.BF16, make, splits=1)
        workspaces = [None, f.context().zeros((1 << 16,), "int8")]
        for workspace in workspaces + [array.array("B", bytes(1 << 16))] * f.EMULATED:
            out, _ = self.attend(f.BF16, make, splits=3, workspace=workspace)
            self.assertLess(f.worst(out, whole), 1e-5)

    @of_the_host
    def test_caches_that_overlap_are_copied_as_one(self):
        """K and V of a page behind each other in one buffer, as views with strides."""
        expected, _ = f.attention()
        page, made = f.PAGE * f.KV_HEADS * f.DIM, []
        both = array.array("H", bytes(2 * 2 * f.PAGES * page))

        def make(shape, dtype):
            at = both.buffer_info()[0] + len(made) * 2 * page
            made.append(Interface("__array_interface__", at, shape, "<u2", strides=(4 * page, 2 * f.KV_HEADS * f.DIM, 2 * f.DIM, 2)))
            return made[-1]

        out, _ = self.attend(f.BF16, make)
        self.assertLess(f.worst(out, expected), TOLERANCE[f.BF16])

    @of_the_host
    def test_dlpack(self):
        expected, _ = f.attention()
        producers = []

        def make(shape, dtype):
            code, bits = {"bf16": (4, 16)}[dtype]
            count = f.PAGES * f.PAGE * f.KV_HEADS * f.DIM
            producers.append(Producer(array.array("H", bytes(2 * count)), shape, code, bits))
            return producers[-1]

        out, _ = self.attend(f.BF16, make)
        self.assertLess(f.worst(out, expected), TOLERANCE[f.BF16])
        self.assertEqual([p.asked for p in producers], [2, 2])
        gc.collect()
        self.assertEqual(_dlpack._owners, {}, "capsules give back what they hold")

    @of_the_host
    def test_our_memory_as_dlpack(self):
        buffer = f.context().array(array.array("i", range(6)))
        seen = heddle.describe(Wrapped(buffer))
        self.assertEqual((seen.address, seen.dtype, seen.shape, seen.on_host), (buffer.address, "int32", (6,), True))

    @of_the_host
    def test_a_workspace_is_as_large_as_it_is(self):
        """An emulated device puts memory of its own in its place, which may be larger, and still says what hardware would."""
        self.attend(f.BF16, self.host, splits=3)
        with self.assertRaises(heddle.Declined) as caught:
            self.attend(f.BF16, self.host, splits=3, workspace=array.array("B", bytes(16)))
        self.assertEqual((caught.exception.field, caught.exception.found), ("workspace", "16 bytes"))

    def test_binding_and_graph(self):
        """Bound once, captured once; lengths grow between replays."""
        c, (write, decode) = f.context(), f.kernels(f.BF16)
        cache = {n: c.zeros(f.CACHE_SHAPE, "bf16") for n in ("k_cache", "v_cache")}
        write.launch(f.placed(write, f.INPUTS) | cache)
        query = {n: c.array(t, dtype=decode.tensors[n].dtype) for n, t in f.QUERY.items()}
        out = c.zeros((f.SEQS, f.Q_HEADS, f.DIM), "fp32")
        binding = decode.bind(query | cache, out=out, splits=2)
        stream = c.stream()
        with c.capture(stream) as graph:
            binding.launch(stream)
        query["lengths"].copy_from(array.array("i", [1, 1]))
        graph.launch()
        c.wait()
        short = f.values(out)
        self.assertLess(f.worst(short[: f.DIM], [f.from_bf16(x) for x in f.V[: f.DIM]]), 1e-6, "one token: its V")
        query["lengths"].copy_from(array.array("i", f.LENGTHS))
        graph.launch()
        c.wait()
        self.assertLess(f.worst(f.values(out), f.attention()[0]), TOLERANCE[f.BF16])
        other = c.zeros((f.SEQS, f.Q_HEADS, f.DIM), "fp32")
        binding.set("out", other)
        binding.launch()
        self.assertEqual(other.tobytes(), out.tobytes())

    @of_the_host
    def test_capture_refuses_what_would_be_copied(self):
        c, (write, _) = f.context(), f.kernels(f.BF16)
        stream, cache = c.stream(), {n: c.zeros(f.CACHE_SHAPE, "bf16") for n in ("k_cache", "v_cache")}
        with self.assertRaisesRegex(ValueError, "its own memory only"), c.capture(stream):
            write.launch(f.INPUTS | cache, stream=stream)


class Wrapped:
    """Another library's tensor over somebody's memory: DLPack is all it has."""

    def __init__(self, of):
        self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__


class Errors(unittest.TestCase):
    def test_a_spec_says_where(self):
        with self.assertRaises(heddle.Declined) as caught:
            heddle.Contract(f.BF16.replace("page: 16", "pages: 16"))
        e = caught.exception
        self.assertEqual((e.code, e.diagnostics[0].line, e.status), ("spec.unknown-key", 6, 1))

    def test_a_tensor_that_does_not_fit(self):
        _, decode = f.kernels(f.BF16)
        caches = {n: f.context().zeros((f.PAGES, 8, f.KV_HEADS, f.DIM), "bf16") for n in ("k_cache", "v_cache")}
        with self.assertRaises(heddle.Declined) as caught:
            decode.launch(f.placed(decode, f.QUERY) | caches, out=f.context().zeros((f.SEQS, f.Q_HEADS, f.DIM), "fp32"))
        self.assertTrue(caught.exception.code.startswith("bind."))
        self.assertEqual(caught.exception.field, "k_cache")
        self.assertIn("16", caught.exception.allowed)

    def test_kinds(self):
        with self.assertRaises(heddle.FileError):
            heddle.Contract.read("/nowhere.yaml")
        with self.assertRaises(heddle.HeddleError) as caught:
            heddle.Context("abacus:0")
        self.assertEqual(caught.exception.code, "device.name")
        write, _ = f.kernels(f.BF16)
        with self.assertRaisesRegex(TypeError, "there is no tensor"):
            write.launch(keys=f.INPUTS["k"])
        with self.assertRaisesRegex(TypeError, "^k: int is no tensor"):
            write.launch(k=3)
        with self.assertRaisesRegex(TypeError, "lies on device 3"):
            write.launch(k=heddle.TensorView(4096, "bf16", (1, 2, 64), index=3))

    def test_a_number_that_is_none_is_told_with_its_name_and_what_is_meant_without_it(self):
        _, decode = f.kernels(f.FP8)
        for settings, kind, words in (({"logits_scale": None}, TypeError, r"^logits_scale is None: it takes a number; left out, it is 1/sqrt\(head_dim"),
                                      ({"logits_scale": "0.1"}, TypeError, "^logits_scale is '0.1': it takes a number"),
                                      ({"splits": None}, TypeError, "^splits is None: it takes a whole number; left out, it is heddle's choice"),
                                      ({"longest": 1.5}, TypeError, "^longest is 1.5: it takes a whole number"),
                                      ({"splits": -1}, ValueError, "^splits is -1: it is 0 or more")):  # fmt: skip
            for call in (decode.launch, decode.bind):
                with self.assertRaisesRegex(kind, words):
                    call(f.placed(decode, f.QUERY), **settings)
        with self.assertRaisesRegex(TypeError, "^seqs is None"):
            decode.workspace_bytes(heddle.Sizes(seqs=None))
        with self.assertRaisesRegex(TypeError, "^a shape is heddle.Sizes"):
            f.context().prepare(f.BF16, "decode", shape=(2, 48))
        with self.assertRaisesRegex(TypeError, "^logits_scale is None"):
            heddle.match([f.BF16], "decode", {}, "gfx950", heddle.Request(logits_scale=None))
        with self.assertRaisesRegex(TypeError, "^device is None"):
            heddle.Context(None)
        with self.assertRaisesRegex(TypeError, "^a contract is"):
            f.context().prepare(None, "decode")

    def test_axes_are_those_of_a_tensor_that_is_given(self):
        _, decode = f.kernels(f.BF16)
        caches = {n: heddle.TensorView(4096, "bf16", f.CACHE_SHAPE) for n in ("k_cache", "v_cache")}
        tensors = f.QUERY | caches | {"out": heddle.TensorView(4096, "fp32", (f.SEQS, f.Q_HEADS, f.DIM))}
        for axes, words in (({"k_cache": "[b, s, h, d]"}, "^axes of k_cache: it takes heddle.Axes"),
                            ({"cache": heddle.Axes("[b, s, h, d]", page=16, head_dim=64)}, "^axes of cache: there is no such tensor among q, ")):
            with self.assertRaisesRegex(TypeError, words):
                heddle.match([f.BF16], "decode", tensors, "gfx950", axes=axes)

    def test_descriptions(self):
        halves = Interface("__cuda_array_interface__", 4096, (3, 2), "<f2", strides=(8, 2), stream=7)
        seen = heddle.describe(halves)
        self.assertEqual((seen.dtype, seen.strides, seen.stream, seen.on_host, seen.span), ("fp16", (4, 1), 7, False, 2 * 10))
        with self.assertRaisesRegex(ValueError, "no whole numbers"):
            heddle.describe(Interface("__array_interface__", 4096, (3,), "<f2", strides=(3,)))
        with self.assertRaisesRegex(TypeError, "<f8"):
            heddle.describe(Interface("__array_interface__", 4096, (3,), "<f8"))
        with self.assertRaisesRegex(TypeError, "can't be taken as bf16"):
            heddle.describe(array.array("f", [1]), dtype="bf16")


class Preparing(unittest.TestCase):
    def test_many_async_and_lazily(self):
        c, seen = heddle.Context(f.DEVICE), []
        jobs = [heddle.Job(f.BF16, "write"), heddle.Job(f.BF16, "decode")]
        kernels = c.prepare_many(jobs, lambda done, count, name: seen.append((done, count, name)))
        self.assertEqual([k.info.operation for k in kernels], ["write", "decode"])
        self.assertEqual(sorted(seen), [(1, 2, "python-bf16"), (2, 2, "python-bf16")])
        future = c.prepare_async(jobs)
        self.assertTrue(future.wait())
        self.assertTrue(future.done())
        self.assertEqual(future.take(1).info.operation, "decode")
        with self.assertRaises(heddle.Invalid):
            future.take(1)
        lazy = c.prepare(f.BF16, "decode", lazily=True)
        lazy.ready()
        self.assertEqual(lazy.info.parts, kernels[1].info.parts)

    def test_what_is_not_served_is_declined(self):
        with self.assertRaises(heddle.Declined) as caught:
            f.context().prepare(f.BF16.replace("kernels: [write, decode]", "kernels: [write]"), "decode")
        self.assertTrue(caught.exception.code)

    def test_ragged_lists_of_each_head_get_the_workspace_that_they_need(self):
        """By policy, whose splits follow from sequences and heads, rounded down: there is a list for each pair of them."""
        spec = f.BF16.replace("heads_per_kv: 4", "heads_per_kv: 4, rows: 2") + "select: {form: indptr, per: kv_head}\n"
        decode = f.context().prepare(spec, "decode")
        lists, rows = 5 * f.KV_HEADS, 5 * 2
        ints = lambda count: array.array("i", [0] * count)
        inputs = {"q": f.shaped(array.array("H", [0] * rows * f.Q_HEADS * f.DIM), (rows, f.Q_HEADS, f.DIM)),
                  "kv_indptr": ints(lists + 1), "kv_indices": ints(4000), "last_page_len": ints(lists)}  # fmt: skip
        cache = {n: f.context().zeros(f.CACHE_SHAPE, "bf16") for n in ("k_cache", "v_cache")}
        out = f.empty((rows, f.Q_HEADS, f.DIM))
        decode.launch({**f.placed(decode, inputs), **cache, "out": out})
        self.assertEqual(set(f.values(out)), {0.0}, "lists are empty")

    def test_queries(self):
        _, decode = f.kernels(f.BF16)
        sizes = heddle.Sizes(seqs=f.SEQS, kv_heads=f.KV_HEADS, longest=4096)
        self.assertGreaterEqual(decode.splits(sizes), 1)
        self.assertGreater(decode.workspace_bytes(heddle.Sizes(seqs=2, kv_heads=2, longest=4096, splits=4)), 0)
        part = decode.part(0, heddle.Sizes(seqs=f.SEQS, kv_heads=f.KV_HEADS, longest=64, splits=1))
        self.assertTrue(part.launched and all(part.grid), part)
        self.assertEqual(decode.tensors["out"], ("output", "fp32", "[seqs*rows, q_heads, 64]"))

    def test_threads(self):
        failures = []

        def work():
            try:
                c = heddle.Contract(f.BF16)
                kernel = f.context().prepare(c, "decode")
                with self.assertRaises(heddle.Declined):
                    heddle.Contract("heddle: 2\n")
                self.assertEqual(kernel.contract.key, c.key)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(failures, [])


class Matching(unittest.TestCase):
    def tensors(self, dtype):
        view = lambda shape, d: heddle.TensorView(4096, d, shape)
        return {"q": view((2, 8, 64), "bf16"), "k_cache": view(f.CACHE_SHAPE, dtype), "v_cache": view(f.CACHE_SHAPE, dtype),
                "page_table": view((2, 3), "int32"), "lengths": view((2,), "int32"), "out": view((2, 8, 64), "fp32")}  # fmt: skip

    def test_the_one_that_serves(self):
        found = heddle.match([f.FP8, f.BF16], "decode", self.tensors("bf16"), "gfx950")
        self.assertEqual(found.chosen(), 1)
        self.assertTrue(found.answers[0])

    def test_none_serves(self):
        found = heddle.match([f.FP8, f.BF16], "decode", self.tensors("int8"), "gfx950", heddle.Request(longest=48))
        self.assertIsNone(found.index)
        with self.assertRaises(heddle.Declined) as caught:
            found.chosen()
        self.assertTrue(caught.exception.code)

    def test_bytes_are_taken_for_records(self):
        """MLA caches come as uint8 [pages, slots, bytes of a token]: codes, scales and a tail."""
        specs = pathlib.Path(__file__).parents[2] / "specs"
        view = lambda shape, d: heddle.TensorView(4096, d, shape)
        tensors = {"q": view((2, 16, 512), "bf16"), "k_cache": view((5, 64, 584), "bits8"), "page_table": view((2, 3), "int32"),
                   "lengths": view((2,), "int32"), "out": view((2, 16, 512), "bf16")}  # fmt: skip
        names = [specs / "deepseek-mla-fp8-656.yaml", specs / "deepseek-mla-fp8-584.yaml"]
        self.assertEqual(heddle.match(names, "decode", tensors, "gfx950").index, 1)
        plain = heddle.match([f.FP8], "decode", self.tensors("bits8"), "gfx950")
        self.assertIn("bind.dtype", [d.code for d in plain.answers[0]])

    def test_attention_through_a_view(self):
        """Head by head: every (sequence, kv head) a sequence of one head."""
        spec, c = f.BF16.replace("[b, s, h, d]", "[b, h, s, d]"), f.context()
        caches = {n: c.zeros((f.PAGES, f.KV_HEADS, f.PAGE, f.DIM), "bf16") for n in ("k_cache", "v_cache")}
        write = c.prepare(spec, "write")
        write.launch(f.placed(write, f.INPUTS) | caches)
        own = {"q": c.array(f.QUERY["q"], dtype="bf16"), "out": c.zeros((f.SEQS, f.Q_HEADS, f.DIM), "fp32")}
        view = heddle.collapse_heads(c, spec, caches | own)
        heads = range(f.KV_HEADS)
        table = array.array("i", [p * view.heads + h for s in range(f.SEQS) for h in heads for p in f.TABLE_ROWS[s * f.TABLE : (s + 1) * f.TABLE]])
        lengths = array.array("i", [n for n in f.LENGTHS for _ in heads])
        decode = c.prepare(view.contract, "decode")
        lists = f.placed(decode, {"page_table": f.shaped(table, (f.SEQS * f.KV_HEADS, f.TABLE)), "lengths": lengths})
        decode.launch(view.tensors, **lists)
        self.assertLess(f.worst(f.values(own["out"]), f.attention()[0]), TOLERANCE[f.BF16])

    def test_views(self):
        spec = f.BF16.replace("[b, s, h, d]", "[b, h, s, d]")
        caches = {n: f.context().zeros((4, 2, 16, 64), "bf16") for n in ("k_cache", "v_cache")}
        view = heddle.collapse_heads(f.context(), spec, caches)
        self.assertEqual((view.meaning, view.parts, view.heads), ("bytes", 1, 2))
        self.assertEqual(view.tensors["k_cache"].address, caches["k_cache"].address)
        self.assertEqual(heddle.Contract(view.contract.text), view.contract)
        by_slot = {n: f.context().zeros((4, 16, 2, 64), "bf16") for n in ("k_cache", "v_cache")}
        split = heddle.page_split(f.context(), f.BF16, by_slot, 8)
        self.assertEqual((split.parts, split.tensors["v_cache"].address, split.tensors["v_cache"].shape), (2, by_slot["v_cache"].address, (8, 8, 2, 64)))
        with self.assertRaises(heddle.Declined) as caught:
            heddle.page_split(f.context(), spec, caches, 5)
        self.assertTrue(caught.exception.code.startswith("view."))


if __name__ == "__main__":
    unittest.main()
