"""The Debian packages of this tree: built, taken apart, used from where they were unpacked. Lintian, and their installation in a Debian of its own,
are tools/test_packages.sh's."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

source = pathlib.Path(os.environ["HEDDLE_SOURCE"])
VERSION = os.environ["HEDDLE_VERSION"]
SOVERSION = VERSION.rsplit(".", 1)[0]
# Package: what it has to depend on, without versions.
PACKAGES = {
    "heddle": {"heddle-worker", "libyaml-0-2", "libc6"},
    "heddle-worker": {"libc6"},
    "heddle-emu": {"heddle-worker", "libllvm22", "libc6"},
    f"libheddle{SOVERSION}": {"heddle-worker", "libyaml-0-2", "libc6"},
    "libheddle-dev": {"heddle", f"libheddle{SOVERSION}", "libyaml-dev"},
    "python3-heddle": {f"libheddle{SOVERSION}", "python3:any"},
}


def run(*command, cwd="/", **environment):
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment or None, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pack(tarball):
    """As `meson dist` packs it, but of the files as they are now: no commit is needed."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split(b"\0") if name and (source / os.fsdecode(name)).exists()]
    else:
        names = [os.fsencode(path.name) for path in source.iterdir() if not re.match(r"build|dist$|debian$|obj-", path.name)]
    subprocess.run(["tar", "-C", source, "-c", "-J", "-f", tarball, f"--transform=s,^,heddle-{VERSION}/,", "--null", "-T", "-"], input=b"\0".join(names), check=True,
                   env=dict(os.environ, XZ_OPT="-0"))


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        pack(cls.folder / "source.tar.xz")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEDDLE_", "MESON")) and name not in ("CC", "DESTDIR", "MAKEFLAGS", "PYTHONPATH")}
        run(source / "tools" / "build_deb.sh", cls.folder / "out", cls.folder / "source.tar.xz", **kept, HEDDLE_DEB_BUILD="-us -uc -b -d",
            DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=2")
        cls.found = {path.name.split("_")[0]: path for path in (cls.folder / "out").glob("*.deb")}
        for path in cls.found.values():
            run("dpkg-deb", "-x", path, cls.folder / "root")
        cls.root = cls.folder / "root"
        cls.libdir = next(cls.root.rglob("libheddle.so")).parent
        cls.bare = {"PATH": f"{cls.root}/usr/bin:/usr/bin:/bin", "HOME": str(cls.folder / "home"), "HEDDLE_CACHE_DIR": os.environ["HEDDLE_CACHE_DIR"],
                    "LD_LIBRARY_PATH": str(cls.libdir)}
        rocm = os.environ.get("HEDDLE_ROCM") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "heddle" / "rocm"
        if pathlib.Path(rocm).exists():
            cls.bare["HEDDLE_ROCM"] = str(rocm)

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.found[package], name).strip()

    def names(self, package):
        lines = run("dpkg-deb", "-c", self.found[package]).splitlines()
        return {line.split()[5].removeprefix("./") for line in lines if not line.startswith("d")}

    def test_packages_and_what_they_need(self):
        self.assertEqual(sorted(self.found), sorted(PACKAGES))
        for package, needed in PACKAGES.items():
            self.assertTrue(self.field(package, "Version").startswith(f"{VERSION}-"))
            depends = {part.split()[0] for part in re.split(r"[,|]", self.field(package, "Depends")) if part.strip()}
            self.assertEqual(depends - {"python3"}, needed, package)

    def test_the_page_names_what_the_build_needs(self):
        control = (source / "packaging" / "debian" / "control").read_text()
        needed = set(re.findall(r"^ ([a-z0-9.+-]+)", re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.M)[1], re.M)) - {"debhelper-compat", "python3"}
        page = re.search(r"^apt-get install --no-install-recommends (.*)$", (source / "docs" / "install.md").read_text(), re.M)[1].split()
        self.assertEqual(sorted((needed | {"debhelper", "build-essential", "git"}) - set(page)), [])

    def test_no_program_of_the_tests_is_built(self):
        compiled = re.findall(r" -c (\.\./\S+\.c)", (self.folder / "out" / "build.log").read_text())
        self.assertIn("../runtime/api/context.c", compiled)
        self.assertEqual([name for name in compiled if not name.startswith(("../generator/", "../runtime/"))], [])

    def test_command_library_and_devices_come_in_one_version(self):
        for package in ("heddle", "heddle-emu", f"libheddle{SOVERSION}"):
            self.assertIn(f"heddle-worker (= {self.field(package, 'Version')})", self.field(package, "Depends"))

    def test_each_file_in_its_package(self):
        lib = str(self.libdir.relative_to(self.root))
        for package, names in {
            "heddle": ["usr/bin/heddle", "usr/share/man/man1/heddle.1.gz", "usr/share/man/man1/heddle-verify.1.gz", "usr/share/bash-completion/completions/heddle",
                       "usr/share/zsh/vendor-completions/_heddle", "usr/share/fish/vendor_completions.d/heddle.fish", "usr/share/heddle/fetch-rocm.sh",
                       *(f"usr/share/heddle/specs/{path.name}" for path in (source / "specs").glob("*.yaml"))],
            "heddle-worker": ["usr/libexec/heddle/heddle-compile-worker"],
            "heddle-emu": [f"{lib}/heddle/{name}" for name in ("libheddle-emu.so", "libheddle-hip.so", "hip/libamdhip64.so.7")],
            f"libheddle{SOVERSION}": [f"{lib}/libheddle.so.{VERSION}", f"{lib}/libheddle.so.{SOVERSION}"],
            "libheddle-dev": ["usr/include/heddle.h", f"{lib}/libheddle.so", f"{lib}/libheddle.a", f"{lib}/pkgconfig/heddle.pc", f"{lib}/cmake/heddle/heddleConfig.cmake"],
            "python3-heddle": [f"usr/lib/python3/dist-packages/heddle/{path.name}" for path in (source / "runtime/python/heddle").glob("*.py")],
        }.items():
            self.assertEqual(sorted(set(names) - self.names(package)), [], package)

    def test_no_file_names_the_folders_of_the_build(self):
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(str(self.folder).encode(), path.read_bytes(), path)

    def test_the_command_works(self):
        said = run(self.root / "usr" / "bin" / "heddle", "verify", "nhd-fp16", "--device", "emu:gfx950", "--cases", "1", **self.bare)
        self.assertIn(", 0 bad;", said)

    def test_the_python_package_works(self):
        program = "import heddle; print(heddle.__file__, heddle.library_version(), heddle.Context('emu:gfx950').prepare('%s', 'decode').info.target)"
        said = run("/usr/bin/python3", "-c", program % (source / "examples" / "example.yaml"), **self.bare, PYTHONPATH=str(self.root / "usr/lib/python3/dist-packages"))
        self.assertEqual(said.split(), [str(self.root / "usr/lib/python3/dist-packages/heddle/__init__.py"), VERSION, "gfx950"])


if __name__ == "__main__":
    unittest.main()
