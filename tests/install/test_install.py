"""What `meson install` lays down: every file in its place, nothing in it that names the folders it was built in; and the command, the
plug-in, the worker and a program through pkg-config from there alone, after the whole was moved.

The packages, and an installation in a Debian of its own with its removal, are tools/test_packages.sh's."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

build = pathlib.Path(os.environ["HEDDLE_BUILD"])
source = pathlib.Path(os.environ["HEDDLE_SOURCE"])
prefix = pathlib.Path(os.environ["HEDDLE_PREFIX"])
libdir = os.environ["HEDDLE_LIBDIR"]
emu = (build / "libheddle-emu.so").exists()
DEVICE = "emu:gfx950"


def run(*command, cwd="/", code=0, **environment):
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        staged = cls.folder / "staged"
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", staged, **os.environ)
        cls.outside = [p for p in staged.rglob("*") if not p.is_dir() and not p.is_relative_to(staged / prefix.relative_to("/"))]
        cls.root = cls.folder / "some" / "where else"
        cls.root.parent.mkdir()
        (staged / prefix.relative_to("/")).rename(cls.root)
        cls.files = {str(p.relative_to(cls.root)) for p in cls.root.rglob("*") if p.is_symlink() or not p.is_dir()}
        # Nothing of the build, of this checkout or of the shell that runs the test.
        cls.bare = {"PATH": "/usr/bin:/bin", "HOME": str(cls.folder / "home"), "HEDDLE_CACHE_DIR": os.environ["HEDDLE_CACHE_DIR"]}
        rocm = os.environ.get("HEDDLE_ROCM") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "heddle" / "rocm"
        if pathlib.Path(rocm).exists():
            cls.bare["HEDDLE_ROCM"] = str(rocm)

    def heddle(self, *arguments, **environment):
        return run(self.root / "bin" / "heddle", *arguments, **self.bare, **environment)

    def test_every_file_in_its_place(self):
        verbs = [verb["name"] for verb in json.loads(self.heddle("help", "--json"))["verbs"]]
        self.assertIn("verify", verbs)
        version = self.heddle("version").split()[1]
        minor = ".".join(version.split(".")[:2])
        expected = {
            "bin/heddle",
            "include/heddle.h",
            "libexec/heddle/heddle-compile-worker",
            "share/heddle/fetch-rocm.sh",
            *(f"{libdir}/{name}" for name in ("libheddle.a", "libheddle.so", f"libheddle.so.{minor}", f"libheddle.so.{version}", "pkgconfig/heddle.pc")),
            *(f"{libdir}/cmake/heddle/heddle{name}.cmake" for name in ("Config", "ConfigVersion")),
            *(f"share/heddle/specs/{path.name}" for path in (source / "specs").glob("*.yaml")),
            *(f"share/doc/heddle/{name}" for name in ("CHANGELOG.md", "LICENSE", "README.md")),
            "share/man/man1/heddle.1",
            *(f"share/man/man1/heddle-{verb}.1" for verb in verbs),
            "share/bash-completion/completions/heddle",
            "share/zsh/site-functions/_heddle",
            "share/fish/vendor_completions.d/heddle.fish",
        }
        if emu:
            expected |= {f"{libdir}/heddle/{name}" for name in ("libheddle-emu.so", "libheddle-hip.so", "hip/libamdhip64.so.7")}
        self.assertEqual(sorted(self.files), sorted(expected))
        self.assertEqual(self.outside, [])

    def test_no_file_names_the_folders_of_the_build(self):
        """Debug information aside, which says where the sources were."""
        for name in sorted(self.files):
            path = self.root / name
            if path.is_symlink():
                self.assertTrue(path.exists() and not os.readlink(path).startswith("/"), name)
                continue
            data = path.read_bytes()
            if data.startswith((b"\x7fELF", b"!<arch>")):
                plain = self.folder / "plain"
                run("strip", "-g", "-o", plain, path, **os.environ)
                data = plain.read_bytes()
                plain.unlink()
                self.assertNotIn(b"RUNPATH", run("readelf", "-d", path, **os.environ).encode(), name)
            for folder in (build, source, self.folder):
                # Of sources in /src "/src-list" is no mention.
                self.assertIsNone(re.search(re.escape(str(folder).encode()) + rb"(?![\w.-])", data), f"{name} names {folder}")

    def test_manual_pages_and_completion_are_the_commands(self):
        for name in sorted(self.files):
            page = re.fullmatch(r"share/man/man1/heddle(?:-(\w+))?\.1", name)
            if page:
                self.assertEqual((self.root / name).read_text(), self.heddle("help", "--man", *filter(None, page.groups())), name)
        for shell, place in {"bash": "bash-completion/completions/heddle", "zsh": "zsh/site-functions/_heddle", "fish": "fish/vendor_completions.d/heddle.fish"}.items():
            self.assertEqual((self.root / "share" / place).read_text(), self.heddle("help", "--completion", shell))

    @unittest.skipUnless(emu, "no emulated device in this build")
    def test_the_command_finds_specs_worker_and_plug_in(self):
        self.assertIn(", 0 bad;", self.heddle("verify", "nhd-fp16", "--device", DEVICE, "--cases", "1"))

    @unittest.skipUnless(emu, "no emulated device in this build")
    def test_a_program_through_pkg_config_finds_worker_and_plug_in(self):
        """Deep in a folder of its own, so that nothing lies around it by chance."""
        lib = self.root / libdir
        program = self.folder / "a" / "b" / "program"
        program.parent.mkdir(parents=True)
        flags = run("pkg-config", "--cflags", "--libs", "heddle", PATH=os.environ["PATH"], PKG_CONFIG_PATH=str(lib / "pkgconfig"))
        self.assertIn("where", flags)
        run("sh", "-c", f'{os.environ["CC"]} "$1" -o "$2" {flags.strip()} -lm', "sh", source / "examples" / "launch.c", program, **os.environ)
        cache = self.folder / "cache"
        said = run(program, DEVICE, **{**self.bare, "LD_LIBRARY_PATH": str(lib), "HEDDLE_CACHE_DIR": str(cache)})
        self.assertIn(f"{DEVICE}: decode for gfx950, compiled", said)

    @unittest.skipUnless(emu and os.geteuid() == 0, "needs another user's files")
    def test_what_another_user_laid_around_a_program_is_not_run(self):
        """Both are also looked for one folder up, which for a program in a folder below /tmp is everybody's."""
        nobody, lib = 65534, self.root / libdir
        program = self.folder / "everybody" / "mine" / "program"
        program.parent.mkdir(parents=True)
        run("sh", "-c", f'{os.environ["CC"]} "$1" -o "$2" "-I$3/include" "-L$4" -lheddle -lm', "sh", source / "examples" / "launch.c", program, self.root, lib, **os.environ)
        ran = self.folder / "ran"
        planted = [program.parents[1] / "heddle-compile-worker", program.parents[1] / "libheddle-emu.so"]
        planted[0].write_text(f"#!/bin/sh\necho worker >>'{ran}'\n")
        run("sh", "-c", f'{os.environ["CC"]} -shared -fPIC -x c - -o "$1" <<END\n#include <stdio.h>\n__attribute__((constructor)) static void here(void) {{ fclose(fopen("{ran}", "a")); }}\nEND', "sh",
            planted[1], **os.environ)
        environment = {**self.bare, "LD_LIBRARY_PATH": str(lib), "HEDDLE_CACHE_DIR": str(self.folder / "cache of its own")}
        for path in planted:
            path.chmod(0o755)
            os.chown(path, nobody, nobody)
        self.assertIn("compiled", run(program, DEVICE, **environment))
        self.assertFalse(ran.exists(), "what another user laid there was run")


if __name__ == "__main__":
    unittest.main()
