"""Kernels built with a program: the C file and the bundles, the same bytes anywhere; the examples under Meson and CMake against an
installed heddle, without a compiler at run time; a bundle through HIP's own functions."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

build = pathlib.Path(os.environ["HEDDLE_BUILD"])
source = pathlib.Path(os.environ["HEDDLE_SOURCE"])
SPEC = source / "examples" / "example.yaml"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ)

    def run_in(self, folder, *command, code=0, **environment):
        done = subprocess.run(list(map(str, command)), cwd=folder, env=dict(self.environment, **environment), capture_output=True,
                              text=True, timeout=200)
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def heddle(self, folder, *arguments, code=0, **environment):
        return self.run_in(folder, os.environ["HEDDLE"], *arguments, code=code, **environment)


class Files(Case):
    def test_the_same_bytes_from_two_places(self):
        """Other folder, other cache, other name of the spec's file, other TMPDIR, other number of jobs."""
        found = []
        for place, jobs in (("a", 1), ("b/much/deeper", 4)):
            folder = self.folder / place
            (folder / "tmp").mkdir(parents=True)
            shutil.copy(SPEC, folder / f"spec-{jobs}.yaml")
            where = {"HEDDLE_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp"), "HOME": str(folder)}
            where["HEDDLE_ROCM"] = os.environ.get("HEDDLE_ROCM") or os.path.expanduser("~/.cache/heddle/rocm")
            common = ["build", f"spec-{jobs}.yaml", "--target", "gfx950", "--target", "gfx1201", "-j", jobs]
            self.heddle(folder, *common, "--embed", "c", "--symbol", "k", "-o", "k.c", **where)
            self.heddle(folder, *common, "--bundle", "-o", "out", **where)
            files = ["k.c", *(f"out/{n}" for n in sorted(os.listdir(folder / "out")))]
            found.append({name: (folder / name).read_bytes() for name in files})
        self.assertEqual(sorted(found[0]), sorted(["k.c", "out/example.decode.gfx1201.json", "out/example.decode.gfx950.json",
                                                   "out/example.decode.hipfb", "out/example.write.gfx1201.json",
                                                   "out/example.write.gfx950.json", "out/example.write.hipfb"]))
        self.assertEqual(found[0], found[1])
        self.assertNotIn(str(self.folder).encode(), b"".join(found[0].values()))

    def test_a_bundle_lists_its_targets(self):
        """Read by clang's own tool where it is installed, and by its layout in any case."""
        self.heddle(self.folder, "build", SPEC, "--kernel", "write", "--target", "gfx942", "--target", "gfx950", "--bundle", "-o", ".")
        bundle = (self.folder / "example.write.hipfb").read_bytes()
        word = lambda at: int.from_bytes(bundle[at:at + 8], "little")
        self.assertEqual(bundle[:24], b"__CLANG_OFFLOAD_BUNDLE__")
        at, ids = 32, {}
        for _ in range(word(24)):
            offset, size, length = word(at), word(at + 8), word(at + 16)
            ids[bundle[at + 24:at + 24 + length].decode()] = bundle[offset:offset + size]
            at += 24 + length
        self.assertEqual(list(ids), ["host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx942", "hipv4-amdgcn-amd-amdhsa--gfx950"])
        for name, code in list(ids.items())[1:]:
            self.assertEqual(code[:4], b"\x7fELF", name)
        tool = next(filter(None, map(shutil.which, ("clang-offload-bundler-22", "clang-offload-bundler", "clang-offload-bundler-14"))), None)
        if tool:
            usage = self.run_in(self.folder, tool, "--help")
            option = "--input" if "--input=" in usage else "--inputs"
            listed = self.run_in(self.folder, tool, "--list", "--type=o", f"{option}=example.write.hipfb").split()
            self.assertEqual(sorted(listed), sorted(ids))

    def test_refusals(self):
        out = self.heddle(self.folder, "build", SPEC, "--embed", "rust", "-o", "x", code=2)
        self.assertIn("unknown language 'rust': c", out)
        self.heddle(self.folder, "build", SPEC, "--embed", "c", code=2)
        self.heddle(self.folder, "build", SPEC, "--embed", "c", "--bundle", "-o", "x", code=2)
        self.heddle(self.folder, "build", SPEC, "--embed", "c", "--symbol", "a-b", "-o", "x", code=2)
        self.heddle(self.folder, "build", SPEC, "-o", "x", code=2)
        bad = self.folder / "bad.yaml"
        bad.write_text(SPEC.read_text().replace("head_dim: 64", "head_dim: 100"))
        out = self.heddle(self.folder, "build", bad, "--target", "gfx950", "--embed", "c", "-o", "x.c", code=1)
        self.assertIn("x.c is not written", out)
        self.assertFalse((self.folder / "x.c").exists(), "half a file")


@unittest.skipIf("HEDDLE_HIP_LIBRARY" not in os.environ, "no emulated device in this build")
class Hip(Case):
    PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
typedef int (*fn)();
int main(int argc, char **argv) {
  void *l = dlopen(getenv("HEDDLE_HIP_LIBRARY"), RTLD_NOW), *module = 0, *function = 0;
  int (*load)(void **, const char *) = dlsym(l, "hipModuleLoad");
  int (*get)(void **, void *, const char *) = dlsym(l, "hipModuleGetFunction");
  int (*init)(unsigned) = dlsym(l, "hipInit");
  return argc != 3 || init(0) || load(&module, argv[1]) || get(&function, module, argv[2]) || !function;
}
"""

    def test_hip_loads_a_bundle(self):
        self.heddle(self.folder, "build", SPEC, "--kernel", "write", "--target", "gfx942", "--target", "gfx950", "--bundle", "-o", ".")
        descriptor = (self.folder / "example.write.gfx950.json").read_text()
        symbol = descriptor.split('"symbol": "')[1].split('"')[0]
        (self.folder / "p.c").write_text(self.PROGRAM)
        self.run_in(self.folder, *os.environ["CC"].split(), "-w", "p.c", "-o", "p", "-ldl")
        for target in ("gfx950", "gfx942"):
            self.run_in(self.folder, "./p", "example.write.hipfb", symbol, HEDDLE_HIP_TARGET=target)
        self.run_in(self.folder, "./p", "example.write.hipfb", symbol, code=1, HEDDLE_HIP_TARGET="gfx1201")  # not in it
        self.run_in(self.folder, "./p", "example.write.hipfb", "other", code=1)


@unittest.skipIf("HEDDLE_HIP_LIBRARY" not in os.environ, "no emulated device in this build")
class Examples(Case):
    """Against an installation that was moved after it was made."""

    def setUp(self):
        super().setUp()
        self.run_in(self.folder, "meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", self.folder / "staged")
        made = next((self.folder / "staged").rglob("heddle.h")).parent.parent
        self.prefix = self.folder / "moved"
        made.rename(self.prefix)
        self.libdir = next(self.prefix.rglob("libheddle.so")).parent
        for variable in ("HEDDLE_HIP_LIBRARY", "HEDDLE_EMU_LIBRARY", "HEDDLE_WORKER"):
            self.environment.pop(variable, None)
        self.environment["LD_LIBRARY_PATH"] = str(self.libdir)
        self.environment["PKG_CONFIG_PATH"] = str(self.libdir / "pkgconfig")
        self.environment["CC"] = os.environ["CC"]

    def runs_alone(self, program):
        """No compiler, no cache, no specs, no command: the kernels lie in the program."""
        out = self.run_in(self.folder, program, HEDDLE_WORKER="/nonexistent", HEDDLE_ROCM="/nonexistent", HEDDLE_CLANG="/nonexistent")
        self.assertIn("example/decode for gfx950: embedded", out)

    def test_meson(self):
        self.run_in(self.folder, "meson", "setup", "b", source / "examples" / "meson")
        self.run_in(self.folder, "ninja", "-C", "b")
        self.runs_alone(self.folder / "b" / "program")

    def test_cmake(self):
        cmake = shutil.which("cmake")
        if not cmake:
            self.skipTest("no cmake")
        self.run_in(self.folder, cmake, "-S", source / "examples" / "cmake", "-B", "b", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-G", "Ninja")
        self.run_in(self.folder, cmake, "--build", "b")
        self.runs_alone(self.folder / "b" / "program")
        del self.environment["LD_LIBRARY_PATH"]
        self.environment["HEDDLE_EMU_LIBRARY"] = str(self.libdir / "heddle" / "libheddle-emu.so")
        self.runs_alone(self.folder / "b" / "program-static")

    def test_pkg_config(self):
        flags = self.run_in(self.folder, "pkg-config", "--cflags", "--libs", "heddle").split()
        self.run_in(self.folder, *os.environ["CC"].split(), source / "examples" / "launch.c", *flags, "-lm", "-o", "launch")
        self.assertIn("largest error", self.run_in(self.folder, "./launch"))


if __name__ == "__main__":
    unittest.main()
