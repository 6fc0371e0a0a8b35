"""Holds the documents against the sources: check_docs.py SOURCE_ROOT

- every diagnostic code in the sources is in docs/, and every code in docs/declines.md is in the sources
- every code that a contract or tensor is declined with has a row with cause and cure in docs/declines.md
- every environment variable that the library reads has a row in docs/environment.md, and no row is of one that nobody reads
- every document is on the map, docs/README.md
- every variable that the command can come to read is in its help (runtime/cli/help/environment.c)
- every relative link in the documents leads to a file, and to a heading of it
- every `heddle VERB` in README.md and docs/ is a verb
- every test that docs/security.md names exists, and every fuzz target has its figures there
- every row of docs/spec.md's edge table has a row in docs/edges.md, every test that docs/edges.md names exists, and every test of
  tests/edges is named there
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
sources = {p: p.read_text() for folder in ("generator", "runtime") for p in sorted((root / folder).rglob("*.[ch]"))}
documents = {p: p.read_text() for p in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]}
everything = "\n".join(documents.values())
problems = {}  # by claim, in the order of the list above


def check(claim, good, problem):
    problems.setdefault(claim, [])
    if not good:
        problems[claim].append(problem)


FAMILIES = "bind|cache|codeobject|compile|context|decline|device|embed|emit|emu|file|launch|match|new|npy|reference|request|view"
ANSWERS = ("bind.", "decline.", "match.", "new.", "request.", "view.")
CODE = re.compile(rf'"((?:{FAMILIES}|spec)\.[a-z]+(?:-[a-z]+)*)"')
in_sources = set()
for path, text in sources.items():
    in_sources |= {code for code in CODE.findall(text) if not code.endswith((".h", ".hip"))}
comments_only = set()  # codes that only an example in a header's comment names
for code in in_sources:
    if all(code not in text for path, text in sources.items() if path.suffix == ".c"):
        comments_only.add(code)
for code in sorted(in_sources - comments_only):
    check("codes are documented", f"`{code}`" in everything, f"{code} is in the sources, but in no document")
for code in sorted(set(re.findall(rf"`((?:{FAMILIES})\.[a-z-]+)`", documents[root / "docs" / "declines.md"]))):
    check("documented codes exist", code in in_sources, f"{code} is in docs/declines.md, but not in the sources")

rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in documents[root / "docs" / "declines.md"].splitlines() if line.startswith("|")]
for code in sorted(code for code in in_sources - comments_only if code.startswith(ANSWERS)):
    row = [cells for cells in rows if f"`{code}`" in cells[0]]
    check("declines have a cause and a cure", len(row) == 1 and all(row[0][-2:]), f"{code} has {len(row)} rows in docs/declines.md, or one without a cause or cure")

table = "\n".join(line.split(" | ")[0] for line in documents[root / "docs" / "environment.md"].splitlines() if line.startswith("| "))
readers = "\n".join([t for p, t in sources.items() if p.suffix == ".c"] +
                    [p.read_text() for folder in ("tools", "tests", "runtime/python") for p in (root / folder).rglob("*") if p.suffix in (".py", ".sh")])
for variable in sorted(set(re.findall(r'"(HEDDLE_[A-Z_]+)"', "\n".join(t for p, t in sources.items() if p.suffix == ".c")))):
    check("variables are documented", f"`{variable}`" in table, f"{variable} is read, but has no row in docs/environment.md")
for variable in sorted(set(re.findall(r"`(HEDDLE_[A-Z_]+)`", table))):
    check("documented variables are read", variable in readers, f"docs/environment.md has {variable}, which nobody reads")

for path in documents:
    if path.is_relative_to(root / "docs") and path.name != "README.md":
        link = f"]({path.relative_to(root / 'docs')})"
        check("documents are on the map", link in documents[root / "docs" / "README.md"], f"docs/README.md doesn't lead to {path.relative_to(root)}")

in_help = (root / "runtime/cli/help/environment.c").read_text()
for path, text in sources.items():
    if path.suffix == ".c" and not path.is_relative_to(root / "runtime" / "emu_hip"):
        for variable in sorted(set(re.findall(r'"(HEDDLE_[A-Z_]+)"', text))):
            check("variables are in help", f'"{variable}"' in in_help, f"{variable} is read in {path.relative_to(root)}, but no help names it")

def headings(text):
    """As they are named in links: lower case, blanks as hyphens, no other punctuation."""
    lines = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S).splitlines()
    return {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).strip().replace(" ", "-") for line in lines if line.startswith("#")}


for path, text in documents.items():
    for link, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
        if "://" in link:
            continue
        to = (path.parent / link).resolve() if link else path
        check("links lead somewhere", to.exists(), f"{path.relative_to(root)}: the link {link} leads nowhere")
        if heading and to in documents:
            check("links lead to headings", heading in headings(documents[to]), f"{path.relative_to(root)}: {link} has no heading {heading}")

verbs = set(re.findall(r"^ +X\(([a-z]+)\)", (root / "runtime/cli/verbs.h").read_text(), re.M))
check("verbs exist", len(verbs) > 20, "runtime/cli/verbs.h lists next to no verbs")
for path, text in documents.items():
    for line in re.findall(r"^build/heddle ([a-z]+)", text, re.M) + re.findall(r"`heddle ([a-z]+)[ `]", text):
        check("verbs exist", line in verbs, f"{path.relative_to(root)}: heddle has no verb {line}")

edges = documents[root / "docs" / "edges.md"]
tests = {("edges", name) for p in (root / "tests/edges").glob("*.c") for name in re.findall(r'^    \{"([a-z0-9-]+)", \w+\},', p.read_text(), re.M)}
tests |= {("verify", name) for name in re.findall(r'\.name = "([a-z0-9-]+)"', (root / "runtime/verify/verify_cases.c").read_text())}
for p in (root / "tests").rglob("test_*.c"):
    tests |= set(re.findall(r"^Test\((\w+), (\w+)", p.read_text(), re.M))
named = set(re.findall(r"`(\w+): ([a-z0-9_-]+)`", edges))
check("tests of edges exist", len(named) > 20, "docs/edges.md names next to no tests")
for suite, name in sorted(named):
    check("tests of edges exist", (suite, name) in tests, f"docs/edges.md: there is no test {suite}: {name}")
for suite, name in sorted(test for test in tests if test[0] == "edges"):
    check("tests of edges are named", (suite, name) in named, f"docs/edges.md doesn't name {suite}: {name}")
table = documents[root / "docs" / "spec.md"].split("## What must hold at the edges")[1].split("\n## ")[0]
for row in re.findall(r"^\| (?!case)([^|-][^|]*?) \|", table, re.M):
    check("edges have a test", f"| {row} |" in edges, f"docs/edges.md has no row: {row}")

for p in (root / "tests/cli").glob("test_*.py"):
    tests |= {("cli-" + p.stem[5:], name) for name in re.findall(r"^    def (test_\w+)\(", p.read_text(), re.M)}
for p in (root / "tests/install").glob("test_*.py"):
    tests |= {(p.stem[5:], name) for name in re.findall(r"^    def (test_\w+)\(", p.read_text(), re.M)}
named = re.findall(r"`([\w-]+): ([a-z0-9_]+)`", documents[root / "docs" / "security.md"])
check("tests of security exist", len(named) > 20, "docs/security.md names next to no tests")
for suite, name in named:
    check("tests of security exist", (suite, name) in tests, f"docs/security.md: there is no test {suite}: {name}")
targets = set(re.findall(r"^ +X\((\w+)\)", (root / "tests/fuzz/fuzz.h").read_text(), re.M)) - {"name"}
figures = documents[root / "docs" / "security.md"].split("## Fuzzing")[1]
check("fuzz targets have figures", len(targets) > 8, "tests/fuzz/fuzz.h lists next to no targets")
for target in sorted(targets):
    check("fuzz targets have figures", f"| `{target}` |" in figures, f"docs/security.md has no figures of the target {target}")

for claim, found in problems.items():
    print(f"[{'FAIL' if found else 'PASS'}] {claim}")
    for problem in found:
        print(f"[----]   {problem}")
failed = sum(bool(found) for found in problems.values())
print(f"cases: {len(problems) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
