"""examples/engine on an emulated device: what it says of its loop, and a step of it held against heddle's own float64 reference."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HEDDLE, SOURCE = os.environ["HEDDLE"], pathlib.Path(os.environ["HEDDLE_SOURCE"])
ENGINE = pathlib.Path(os.environ["HEDDLE_BUILD"]) / "examples" / "example_engine"
SPEC = SOURCE / "examples" / "engine" / "engine.yaml"
TARGETS = {"gfx942", "gfx1201"}
DUMP_STEP = 20  # in which sequences of several lengths run, some of them for the second time
sys.path.insert(0, str(SOURCE / "tools"))
import npy  # noqa: E402


class Engine(unittest.TestCase):
    def run_engine(self, *arguments):
        done = subprocess.run([ENGINE, SPEC, *map(str, arguments)], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def number(self, pattern, text):
        return int(re.search(pattern, text).group(1))

    def test_every_request_is_served(self):
        for target in TARGETS:
            said = self.run_engine(f"emu:{target}")
            self.assertEqual(self.number(r"(\d+) finished", said), self.number(r"(\d+) requests", said))
            evictions = self.number(r"(\d+) evictions", said)
            self.assertGreaterEqual(evictions, 3, "the pool is meant to be too small")
            self.assertEqual(self.number(r"(\d+) admissions", said), self.number(r"(\d+) requests", said) + evictions)
            free, pool = re.search(r"(\d+) of (\d+) pages free", said).groups()
            self.assertEqual(free, pool, "every page came back")
            replays = [int(n) for n in re.findall(r"(\d+) replays of one capture", said)]
            self.assertEqual(len(replays), 4)
            self.assertTrue(all(replays), said)
            self.assertEqual(sum(replays), self.number(r"(\d+) steps", said))

    def test_a_step_is_what_the_reference_gives(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_engine("emu:gfx950", DUMP_STEP, folder)
            file = {p.stem: p for p in pathlib.Path(folder).glob("*.npy")}
            inputs = [f"--in={name}={path}" for name, path in file.items() if name != "out"]
            subprocess.run([HEDDLE, "reference", SPEC, "--kernel", "decode", "--target", "gfx950", *inputs, f"--out=out={folder}/expected.npy"], check=True)
            lengths = npy.load(file["lengths"])[0]
            self.assertGreater(len(set(lengths)), 2, "sequences of several lengths")
            (found, shape, _), (expected, expected_shape, _) = npy.load(file["out"]), npy.load(f"{folder}/expected.npy")
            self.assertEqual(shape, expected_shape)
            worst = max(abs(a - b) if a == a else 1 for a, b in zip(found, expected))
            self.assertLess(worst, 2e-3)
            self.assertGreater(max(map(abs, found)), 0.1)


if __name__ == "__main__":
    unittest.main()
