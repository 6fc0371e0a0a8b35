"""Many processes on one cold cache: each kernel is compiled once; a process that is killed costs the others at most the compile it was
at. HEDDLE_TEST_PROCESSES sets their number (default 8):

    HEDDLE_TEST_PROCESSES=64 meson test -C build api-processes --verbose
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HEDDLE = os.environ["HEDDLE"]
SPEC = pathlib.Path(os.environ["HEDDLE_SOURCE"]) / "examples" / "example.yaml"
MANY = int(os.environ.get("HEDDLE_TEST_PROCESSES", "8"))
KERNELS = 2
LOCK_SECONDS = 60  # after which a waiter compiles for itself: nobody may come near it


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, cache, *command, **options):
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, HEDDLE_CACHE_DIR=str(cache)), **options)

    def builder(self, cache, **options):
        return self.start(cache, HEDDLE, "build", SPEC, "--target", "gfx950", "-j", 1, "--json", **options)

    def finish(self, process):
        out, errors = process.communicate(timeout=250)
        self.assertEqual(process.returncode, 0, out + errors)
        return out

    def compiled(self, out):
        results = json.loads(out)
        self.assertEqual(len(results), KERNELS)
        self.assertTrue(all(r["ok"] for r in results))
        return sum(not r["hit"] for r in results)

    def test_each_kernel_is_compiled_once(self):
        begin = time.monotonic()
        counts = [self.compiled(self.finish(p)) for p in [self.builder(self.folder / "cache") for _ in range(MANY)]]
        print(f"{MANY} processes, {KERNELS} kernels: {sum(counts)} compiles, {time.monotonic() - begin:.2f} s", flush=True)
        self.assertEqual(sum(counts), KERNELS)

    def test_programs_that_prepare_and_launch(self):
        program = pathlib.Path(os.environ["HEDDLE_BUILD"]) / "examples" / "example_launch"
        outs = [self.finish(p) for p in [self.start(self.folder / "cache", program) for _ in range(min(MANY, 8))]]
        self.assertEqual(sum(", compiled" in out for out in outs), 1, outs)
        self.assertEqual(sum(", cache" in out for out in outs), len(outs) - 1, outs)

    def test_a_killed_process_costs_one_compile(self):
        """Killed at moments spread over the whole run, from its first instruction on."""
        self.finish(self.builder(self.folder / "warm"))  # what the compiler's files cost to read, once
        shutil.copytree(self.folder / "warm" / "identity", self.folder / "alone" / "identity")
        begin = time.monotonic()
        self.finish(self.builder(self.folder / "alone"))
        alone = time.monotonic() - begin
        seed = int(os.environ.get("HEDDLE_TEST_SEED", time.time()))
        moments = random.Random(seed)
        rounds = max(4, MANY // 2)
        for n in range(rounds):
            cache = self.folder / f"cache-{n}"
            if n > 0:  # the first round also finds out which compiler this is, and may be killed at that
                cache.mkdir(mode=0o700)
                shutil.copytree(self.folder / "warm" / "identity", cache / "identity")
            victim = self.builder(cache, start_new_session=True)
            others = [self.builder(cache) for _ in range(2)]
            time.sleep(alone * (n + moments.random()) / rounds)
            victim.send_signal(signal.SIGKILL)
            begin = time.monotonic()
            counts = [self.compiled(self.finish(p)) for p in others]
            self.assertLessEqual(sum(counts), KERNELS, f"round {n}, seed {seed}")
            self.assertLess(time.monotonic() - begin, min(LOCK_SECONDS / 2, 10 + 10 * alone), f"round {n}, seed {seed}")
            victim.communicate()
            left = self.compiled(self.finish(self.builder(cache)))
            self.assertEqual(left, 0, f"round {n}: every kernel is there, seed {seed}")
            self.assertEqual(list(cache.glob("quarantine/*")), [])


if __name__ == "__main__":
    unittest.main()
