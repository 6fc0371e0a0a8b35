"""The package's structs and numbers against those that C programs were compiled with, and its functions against the library's."""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

from heddle import _native as native

source = pathlib.Path(os.environ["HEDDLE_SOURCE"])
LAYOUT = dict(line.split() for line in (source / "tests/api/layout.txt").read_text().splitlines())


class Native(unittest.TestCase):
    def test_structs_lie_as_in_c(self):
        for name, struct in native.STRUCTS.items():
            members = {key.partition(".")[2]: int(at) for key, at in LAYOUT.items() if key.startswith(name + ".")}
            self.assertEqual({f: getattr(struct, f).offset for f, *_ in struct._fields_}, members, name)
            self.assertEqual(ctypes.sizeof(struct), int(LAYOUT[name]), name)

    def test_numbers_are_those_of_c(self):
        numbers = {f"HD_DTYPE_{n.upper()}": i for i, n in enumerate(native.DTYPES)}
        numbers |= {f"HD_TENSOR_{n.upper()}": i for i, n in enumerate(native.TENSORS)}
        numbers |= {f"HD_{n}": getattr(native, n) for n in ("OK", "DECLINED", "INVALID", "OUT_OF_MEMORY", "IO", "UNAVAILABLE", "DEVICE",
                    "INTERNAL", "WRITE", "DECODE", "MAX_RANK", "ROLE_NONE", "ROLE_INPUT", "ROLE_OUTPUT", "ROLE_UPDATED")}  # fmt: skip
        self.assertEqual(numbers, {name: int(LAYOUT[name]) for name in numbers})
        listed = {name for name in LAYOUT if name.startswith(("HD_DTYPE_", "HD_TENSOR_", "HD_ROLE_"))}
        self.assertLessEqual(listed, set(numbers))

    def test_every_function_is_exported(self):
        exported = {s for s in (source / "tests/api/symbols.txt").read_text().split() if s.startswith("hd_")}
        self.assertLessEqual(set(native._FUNCTIONS), exported)

    def import_with(self, library):
        return subprocess.run([sys.executable, "-c", "import heddle"], env=dict(os.environ, HEDDLE_LIBRARY=library), capture_output=True, text=True)

    def test_a_library_that_is_not_there_is_said(self):
        done = self.import_with("/nowhere/libheddle.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: heddle's C library can't be loaded", done.stderr)
        self.assertIn("/nowhere/libheddle.so", done.stderr)

    def test_torch_and_numpy_are_not_imported(self):
        code = "import sys, heddle; sys.exit(any(m in sys.modules for m in ('torch', 'numpy')))"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
