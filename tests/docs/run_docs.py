"""Does what the documents say: run_docs.py SOURCE_ROOT BUILD_ROOT [--list] [DOCUMENT]...

Runs every block of `sh` and `console` of README.md, CONTRIBUTING.md, docs/ and examples/, in order, in a folder of its own for each document, against the built
tree. The folder looks like the top of a checkout after a build. What a `console` block shows has to be what its commands print (blocks.py says how
loosely). Blocks marked `needs` are listed and counted, and their commands are held against the command's own help, like every `heddle …` in running text.
Whole specs in YAML have to be valid.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from blocks import NEEDS, blocks_of, console, same_output
from commands import Commands

LIMIT = 240  # seconds a document's block may take
SHELLS = ("sh", "console")
# Never run, marked or not: they set the machine up or build everything anew.
HEAVY = re.compile(r"(^|[\s;&|])(tools/(test|demo|setup|test_torch|test_packages|build_deb)\.sh|\.ci/run|meson|ninja|pip|apt-get|sudo)\b", re.M)


def python_with_numpy():
    """The first of the likely Pythons that has numpy, which the examples need: it may be the system's alone."""
    likely = [sys.executable, "/usr/bin/python3"]
    return next((python for python in likely if pathlib.Path(python).exists() and
                 subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0), sys.executable)


class Folder:
    """What looks like the top of a checkout; `close` takes it away."""

    def __init__(self, source, built):
        self.place = tempfile.TemporaryDirectory(prefix="heddle-docs-")
        self.path = pathlib.Path(self.place.name) / "heddle"
        self.path.mkdir()
        for name in ("specs", "docs"):  # written to by some
            shutil.copytree(source / name, self.path / name)
        for name in ("README.md", "CONTRIBUTING.md", "examples", "generator", "runtime", "templates", "tests", "tools"):
            (self.path / name).symlink_to(source / name)
        (self.path / "build").symlink_to(built)
        home, programs = (pathlib.Path(self.place.name) / name for name in ("home", "programs"))
        home.mkdir()
        programs.mkdir()
        (programs / "python3").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
        (programs / "python3").chmod(0o755)
        rocm = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "heddle" / "rocm"
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("HEDDLE_", "XDG_"))}
        self.environment = keep | {
            "HOME": str(home), "PATH": f"{programs}:{built}:{os.environ['PATH']}", "NO_COLOR": "1", "no_proxy": "127.0.0.1",
            "HEDDLE_CACHE_DIR": str(built / "tests" / "docs-cache"),
            **({"HEDDLE_ROCM": os.environ["HEDDLE_ROCM"]} if "HEDDLE_ROCM" in os.environ else {"HEDDLE_ROCM": str(rocm)} if rocm.exists() else {}),
        }

    def run(self, script):
        """(exit code, what it printed) of a script; -e, so that the first command that fails ends it."""
        bash = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=self.path, env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            printed, _ = bash.communicate(timeout=LIMIT)
            return bash.returncode, printed
        except subprocess.TimeoutExpired:
            os.killpg(bash.pid, signal.SIGKILL)  # and what it started
            return None, bash.communicate()[0]

    def close(self):
        self.place.cleanup()


PYTHON = python_with_numpy()


def ended(code):
    return f"took more than {LIMIT} s" if code is None else f"ended with {code}"


def run_block(block, folder):
    """What is wrong with a block that is run."""
    wanted = int(block.marks.get("exits", 0))
    if HEAVY.search(block.text):
        return f"{block.place}: a test doesn't run this; mark it with what it needs"
    if block.language == "sh":
        code, printed = folder.run(block.text)
        return None if code == wanted else f"{block.place}: {ended(code)}:\n{block.text}{printed}"
    try:
        steps = console(block.text)
    except ValueError as error:
        return f"{block.place}: {error}"
    for number, (command, expected) in enumerate(steps):
        code, printed = folder.run(command)
        if code != (wanted if number == len(steps) - 1 else 0):
            return f"{block.place}: {command}: {ended(code)}:\n{printed}"
        while expected and not expected[-1].strip():
            expected = expected[:-1]
        missing = same_output(expected, printed.rstrip().splitlines())
        if missing is not None:
            return f"{block.place}: {command}: expected {missing}\nbut it prints:\n{printed}"
    return None


def run_document(blocks, source, built):
    """What is wrong with the blocks of one document, how many were run, and the seconds they took."""
    began, problems, ran, folder = time.monotonic(), [], 0, None
    try:
        for block in blocks:
            file = block.marks.get("file") or block.marks.get("file+")
            runs = block.language in SHELLS and "needs" not in block.marks
            spec = block.language == "yaml" and block.text.startswith("heddle: 1\n")
            if not (file or runs or spec):
                continue
            folder = folder or Folder(source, built)
            if file:
                path = folder.path / file
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "w" if "file" in block.marks else "a") as out:
                    out.write(block.text)
            if spec:
                done = subprocess.run([built / "heddle", "check", "-"], input=block.text, capture_output=True, text=True)
                if done.returncode:
                    problems.append(f"{block.place}: the spec isn't served: {done.stderr}")
            if runs:
                ran += 1
                problem = run_block(block, folder)
                if problem:
                    problems.append(problem)
                    break  # what follows builds on it
    finally:
        if folder:
            folder.close()
    return problems, ran, time.monotonic() - began


def inline_commands(text):
    """Commands in running text: `heddle check SPEC`, outside of blocks."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    return [code for code in re.findall(r"`([^`\n]+)`", text) if re.match(r"(build/)?heddle [a-z]+( |$)", code)]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    source, built = (pathlib.Path(argument).resolve() for argument in arguments[:2])
    paths = [source / "README.md", source / "CONTRIBUTING.md", *(path for folder in ("docs", "examples") for path in sorted((source / folder).rglob("*.md")))]
    names = arguments[2:] or [str(path.relative_to(source)) for path in paths]
    documents, left_out, problems = {}, {}, {"marks are known": [], "commands that aren't run are right": [], "what isn't run is marked so": []}
    commands = Commands(json.loads(subprocess.check_output([built / "heddle", "help", "--json"])), source, built)
    for name in names:
        text = (source / name).read_text()
        documents[name], wrong = blocks_of(name, text)
        problems["marks are known"] += wrong
        for code in inline_commands(text):
            problems["commands that aren't run are right"] += [f"{name}: {problem}" for problem in commands.problems(code, words_only=True)]
        for block in documents[name]:
            if block.language in SHELLS and "needs" in block.marks:
                left_out.setdefault(block.marks["needs"], []).append(block)
                script = block.text if block.language == "sh" else "\n".join(command for command, _ in console(block.text))
                problems["commands that aren't run are right"] += [f"{block.place}: {problem}" for problem in commands.problems(script)]
            elif block.language == "" and re.search(r"^(\$ )?(build/)?heddle [a-z]+ ", block.text, re.M):
                problems["what isn't run is marked so"].append(f"{block.place}: commands in a block that is neither sh nor console")
    if "--list" in sys.argv:
        for need, blocks in left_out.items():
            print(f"{NEEDS[need]}: " + " ".join(block.place for block in blocks))
        return 0

    (built / "tests" / "docs-cache").mkdir(parents=True, exist_ok=True, mode=0o700)
    total = 0
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        running = {name: pool.submit(run_document, blocks, source, built) for name, blocks in documents.items()}
        for name, future in running.items():
            wrong, ran, seconds = future.result()
            total += ran
            if ran or wrong:
                problems[f"{name}: {ran} blocks, {seconds:.1f} s"] = wrong
    for need, blocks in left_out.items():
        print(f"[----] not run, since they need {NEEDS[need]}: {len(blocks)} blocks")
    print(f"[----] run: {total} blocks")
    for claim, found in problems.items():
        print(f"[{'FAIL' if found else 'PASS'}] {claim}")
        for problem in found:
            print("\n".join(f"[----]   {line}" for line in problem.splitlines()))
    failed = sum(bool(found) for found in problems.values())
    print(f"cases: {len(problems) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
