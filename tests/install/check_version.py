"""Holds every place that says a version against meson.build's: check_version.py SOURCE_ROOT VERSION

What is written out of it when heddle is built (the command, manual pages, pkg-config, CMake, the wheel, SONAMEs) can't differ and is
not looked at here. The last line is "cases: N passed, N failed"."""
import pathlib
import re
import sys

root, version = pathlib.Path(sys.argv[1]), sys.argv[2]
major, minor, patch = version.split(".")
soversion = f"{major}.{minor}"
PLACES = [  # file, what has to be found in it, what its group has to be
    ("runtime/heddle.h", r'^#define HD_VERSION_TEXT "([^"]+)"$', version),
    ("runtime/heddle.h", r"^#define HD_VERSION_MAJOR (\d+)$", major),
    ("runtime/heddle.h", r"^#define HD_VERSION_MINOR (\d+)$", minor),
    ("runtime/heddle.h", r"^#define HD_VERSION_PATCH (\d+)$", patch),
    ("runtime/api/exports.map", r"^HEDDLE_([\d.]+) \{", soversion),
    ("runtime/python/heddle/__init__.py", r'^__version__ = "([^"]+)"$', version),
    ("runtime/python/heddle/_native.py", r"^VERSION = \((\d+, \d+)\)", f"{major}, {minor}"),
    ("CHANGELOG.md", r"\A# Changes\n\n(?:[^#\n].*\n+)*## ([\d.]+) ", version),
    ("packaging/debian/changelog", r"\Aheddle \(([\d.]+)-\d+\) ", version),
    ("packaging/debian/control", r"^Package: libheddle([\d.]+)$", soversion),
    ("docs/api.md", r"`libheddle\.so\.([\d.]+)`", soversion),
    ("docs/install.md", r"`libheddle\.so\.([\d.]+)`", soversion),
    ("docs/install.md", r"heddle-([\d.]+)\.tar\.xz", version),
    ("docs/python.md", r"`libheddle\.so\.([\d.]+)`", soversion),
]

failed = 0
for name, pattern, expected in PLACES:
    path = root / name
    found = re.findall(pattern, path.read_text(), re.M) if path.exists() else []
    good = bool(found) and set(found) == {expected}
    failed += not good
    print(f"[{'PASS' if good else 'FAIL'}] {name} says {expected}")
    if not good:
        print(f"[----]   {name}: {', '.join(sorted(set(found))) or 'nothing'} found for {pattern}")
print(f"cases: {len(PLACES) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
