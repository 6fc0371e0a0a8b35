"""The Python package with numpy's arrays: on an emulated device, or with HEDDLE_TEST_DEVICE=cuda:0 on a GPU."""
import unittest

import fixture as f
import heddle
import numpy


class Device(unittest.TestCase):
    def test_arrays_are_copied_to_a_device_and_back(self):
        write, decode = f.kernels(f.BF16)
        cache = {n: f.context().zeros(f.CACHE_SHAPE, "bf16") for n in ("k_cache", "v_cache")}
        arrays = lambda kernel, tensors: {n: f.context().array(numpy.array(t), dtype=kernel.tensors[n].dtype) for n, t in tensors.items()}
        write.launch(arrays(write, f.INPUTS), **cache)
        out = f.context().array(numpy.full((f.SEQS, f.Q_HEADS, f.DIM), numpy.nan, numpy.float32))
        decode.launch(arrays(decode, f.QUERY), **cache, out=out)
        self.assertLess(numpy.abs(numpy.frombuffer(out.tobytes(), numpy.float32) - f.attention()[0]).max(), 0.01)


@unittest.skipUnless(f.EMULATED, "only an emulated device takes arrays of the host")
class Numpy(unittest.TestCase):
    def arrays(self, tensors):
        return {name: numpy.array(t) for name, t in tensors.items()}

    def run_with(self, spec, make):
        write, decode = f.kernels(spec)
        scales = {n: make((f.PAGES, f.KV_HEADS, f.PAGE), numpy.float32) for n in ("k_scale", "v_scale")} if spec == f.FP8 else {}
        storage = numpy.uint8 if spec == f.FP8 else numpy.uint16
        cache = {n: make(f.CACHE_SHAPE, storage) for n in ("k_cache", "v_cache")} | scales
        write.launch(self.arrays(f.INPUTS), **cache)
        out = numpy.full((f.SEQS, f.Q_HEADS, f.DIM), numpy.nan, numpy.float32)
        lse = {"lse": numpy.empty((f.SEQS, f.Q_HEADS), numpy.float32)} if spec == f.FP8 else {}
        decode.launch(self.arrays(f.QUERY), **cache, **lse, out=out, logits_scale=f.DIM**-0.5 if spec == f.FP8 else 0.0)
        return out.ravel(), cache

    def test_bf16_is_uint16_and_fp8_is_uint8(self):
        expected = f.attention()[0]
        for spec, tolerance in ((f.BF16, 0.01), (f.FP8, 0.06)):
            out, cache = self.run_with(spec, numpy.zeros)
            self.assertLess(numpy.abs(out - expected).max(), tolerance)
            self.assertTrue(cache["k_cache"].any(), "what the writer wrote came back")

    def test_views_with_strides(self):
        """K and V as halves of each page of one array, and heads that are every other one of a larger array."""
        whole, _ = self.run_with(f.BF16, numpy.zeros)
        both, halves = numpy.zeros((f.PAGES, 2, *f.CACHE_SHAPE[1:]), numpy.uint16), []

        def half(*_):
            halves.append(both[:, len(halves)])
            return halves[-1]

        out, _ = self.run_with(f.BF16, half)
        self.assertTrue((out == whole).all())

    def test_the_devices_memory_is_shared(self):
        buffer = f.context().zeros((4, 4), "int32")
        seen = numpy.asarray(buffer)
        seen[1, 2] = 7
        self.assertEqual(numpy.frombuffer(buffer.tobytes(), numpy.int32)[6], 7)
        again = numpy.from_dlpack(buffer)
        self.assertEqual(again.ctypes.data, buffer.address)
        del buffer
        self.assertEqual(seen[1, 2], 7, "arrays keep the memory alive")

    def test_what_heddle_has_no_dtype_for(self):
        write, _ = f.kernels(f.BF16)
        with self.assertRaisesRegex(TypeError, "<f8"):
            write.launch(k=numpy.zeros((1, 2, 64)))
        with self.assertRaisesRegex(ValueError, "negative stride"):
            write.launch(k=numpy.zeros((3, 2, 64), numpy.uint16)[::-1], v=numpy.zeros((3, 2, 64), numpy.uint16))


if __name__ == "__main__":
    unittest.main()
