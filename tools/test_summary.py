"""Counts the test cases of a meson run: test_summary.py BUILD_FOLDER [--no-skips]

Reads meson-logs/testlog.json. A suite of Criterion or unittest counts as many cases as its last lines say, one that prints "cases: N passed,
N failed" as many as that, any other test as one.
Prints one line a suite, the cases that failed, and last "N passed, N failed". Exits 1 when anything failed, or nothing ran.
With --no-skips a skipped test is a failed one.
"""
import json
import pathlib
import re
import sys

SYNTHESIS = re.compile(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing:")
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(.*)$", re.M)
COUNTED = re.compile(r"^cases: (\d+) passed, (\d+) failed$", re.M)  # how a suite that isn't Criterion reports its cases
FAILED_CASE = re.compile(r"^(?:\[(?:FAIL|----)\]|FAIL:|ERROR:|\w*Error:).*$", re.M)
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def cases(test):
    """(passed, failed) of one entry of the log."""
    output = ESCAPES.sub("", test.get("stdout", "") + "\n" + test.get("stderr", ""))
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    lines = [tuple(map(int, found)) for found in SYNTHESIS.findall(output)]
    passed = sum(line[1] for line in lines)
    failed = sum(line[0] - line[1] for line in lines)  # Criterion counts a crash as failing and as crashing
    for ran, what in UNITTEST.findall(output):
        bad = sum(int(count) for count in re.findall(r"(?:failures|errors|unexpected successes)=(\d+)", what))
        passed, failed = passed + int(ran) - bad, failed + bad
    for found in COUNTED.findall(output):
        passed, failed = passed + int(found[0]), failed + int(found[1])
    if passed + failed == 0:
        passed = 1 if good else 0
    if not good and failed == 0:
        failed = 1  # a time-out, a sanitizer's report, a crash before the count
    return passed, failed


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--no-skips"]
    skips_fail = "--no-skips" in sys.argv[1:]
    log = pathlib.Path(arguments[0]) / "meson-logs" / "testlog.json"
    tests = [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.strip()]
    passed = failed = 0
    for test in tests:
        name = test["name"].split(" / ")[-1]
        if test["result"] == "SKIP":
            print(f"  {name:<24} SKIPPED  {test['duration']:7.1f} s")
            failed += skips_fail
            continue
        suite_passed, suite_failed = cases(test)
        passed += suite_passed
        failed += suite_failed
        state = f"{suite_failed} FAILED ({test['result']})" if suite_failed else "ok"
        print(f"  {name:<24} {suite_passed:5} passed  {test['duration']:7.1f} s  {state}")
        if suite_failed:
            output = ESCAPES.sub("", test.get("stdout", "") + "\n" + test.get("stderr", ""))
            for line in FAILED_CASE.findall(output)[:40] or output.strip().splitlines()[-25:]:
                print(f"    | {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
