"""The library's outside: exported symbols against the committed list and the header, names and numbers that programs were
compiled with, the header under the strictest compilers, the static library's names, what is installed and found."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

build = pathlib.Path(os.environ["HEDDLE_BUILD"])
source = pathlib.Path(os.environ["HEDDLE_SOURCE"])
header = source / "runtime" / "heddle.h"
CC, CXX = os.environ["CC"], os.environ.get("CXX")


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def listed():
    lines = (source / "tests" / "api" / "symbols.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class Symbols(unittest.TestCase):
    def test_exports_are_the_committed_list(self):
        lines = output("nm", "-D", "--defined-only", build / "libheddle.so").splitlines()
        exported = sorted(line.split()[-1] for line in lines if " A " not in line)
        self.assertEqual(exported, [f"{name}@@HEDDLE_0.1" for name in listed()])

    def test_header_declares_exactly_these(self):
        declared = re.findall(r"^HD_API [^;(]*?\b(hd_\w+)\(", header.read_text(), re.M)
        self.assertEqual(sorted(declared), listed())

    def test_static_library_has_no_other_name(self):
        lines = output("nm", "-g", "--defined-only", build / "libheddle.a").splitlines()
        names = sorted(line.split()[-1] for line in lines if len(line.split()) == 3)
        self.assertEqual(names, listed())

    def test_soname(self):
        dynamic = output("readelf", "-d", build / "libheddle.so")
        self.assertIn("[libheddle.so.0.1]", dynamic)
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        self.assertLessEqual({n for n in needed if not n.startswith(("libasan", "libubsan", "libtsan"))},
                             {"libyaml-0.so.2", "libm.so.6", "libc.so.6", "libpthread.so.0", "libdl.so.2"})


class Header(unittest.TestCase):
    def compile(self, text, compiler, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / ("a.cpp" if compiler == CXX else "a.c")
            path.write_text(text)
            program = pathlib.Path(folder) / "a"
            done = subprocess.run([*compiler.split(), *options, "-I", header.parent, path, "-o", program, "-L", build,
                                   "-lheddle", f"-Wl,-rpath,{build}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return output(program)

    def test_strict_c(self):
        for standard in ("c99", "c11", "c17"):
            self.compile("#include <heddle.h>\nint main(void) { return hd_version() == 0; }\n", CC, f"-std={standard}", "-Wall",
                         "-Wextra", "-Wpedantic", "-Werror", "-Wstrict-prototypes", "-Wshadow", "-Wconversion", "-Wc++-compat")

    def test_cplusplus(self):
        self.assertTrue(CXX, "no C++ compiler")
        text = (source / "tests" / "api" / "header.cpp").read_text()
        for standard in ("c++11", "c++20"):
            said = self.compile(text, CXX, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
            self.assertIn("device.name", said)

    def test_numbers_and_sizes_are_as_programs_were_compiled(self):
        """Every enumerator and the layout of every struct, against the committed list."""
        text = header.read_text()
        body = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        numbers = re.findall(r"\b(HD_[A-Z0-9_]+) = \d+", body)
        structs = re.findall(r"^} (hd_\w+);", body, re.M)
        structs = [s for s in structs if re.search(rf"typedef struct {s} {{", body)]
        lines = [f'printf("{n} %d\\n", (int){n});' for n in numbers]
        for s in structs:
            members = re.search(rf"typedef struct {s} {{(.*?)}} {s};", body, re.S).group(1)
            lines.append(f'printf("{s} %zu\\n", sizeof({s}));')
            for declaration in members.split(";"):
                for part in declaration.split(","):
                    name = re.search(r"(\w+)(\[\d+\])?\s*$", part.strip())
                    if name:
                        lines.append(f'printf("{s}.{name.group(1)} %zu\\n", offsetof({s}, {name.group(1)}));')
        program = "#include <heddle.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
        found = self.compile(program, CC)
        committed = (source / "tests" / "api" / "layout.txt").read_text()
        self.assertEqual(found.splitlines(), committed.splitlines())

    def test_status_texts(self):
        names = re.findall(r"\b(HD_\w+) = \d+,? */?\*?", header.read_text()[:header.read_text().index("} hd_status;")])
        names = [n for n in names if not n.startswith("HD_VERSION")]
        program = "#include <heddle.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(
            f'puts(hd_status_text({n}));' for n in names) + "\nputs(hd_status_text((hd_status)99)); return 0; }\n"
        said = self.compile(program, CC).splitlines()
        self.assertEqual(said, ["ok", "declined", "invalid argument", "out of memory", "input/output error", "unavailable",
                                "device error", "internal error", "unknown status"])

    def test_version_is_the_projects(self):
        version = os.environ["HEDDLE_VERSION"]
        self.assertIn(f'#define HD_VERSION_TEXT "{version}"', header.read_text())
        program = '#include <heddle.h>\n#include <stdio.h>\nint main(void) { printf("%u %s", hd_version(), hd_version_text()); return 0; }\n'
        major, minor, patch = map(int, version.split("."))
        self.assertEqual(self.compile(program, CC), f"{major * 1000000 + minor * 1000 + patch} {version}")


if __name__ == "__main__":
    unittest.main()
