"""Endurance: processes of many threads that prepare, launch, prune, tune and are killed on one cache.

    tools/endurance.sh [SECONDS] [--processes N] [--threads N] [--seed N] [--json FILE]

Ends with figures, and exit code 0 only if no answer was wrong, no call failed, nobody stood still, the memory of the process that was never
killed stayed flat, and the cache is whole.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

STANDSTILL = 180  # seconds without a launch of a process: a deadlock


class Worker:
    """A process, asked by a line and answering by one."""

    def __init__(self, command, environment, number):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number, self.last, self.moved = number, {"launches": 0}, time.monotonic()

    def ask(self):
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        if told["launches"] > self.last["launches"]:
            self.moved = time.monotonic()
        self.last = told
        return told

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def finish(self):
        self.process.stdin.close()
        self.last = json.loads(self.process.stdout.readline())
        self.process.wait(STANDSTILL)
        return self.last


class Run:
    def __init__(self, options, folder):
        self.options, self.folder, self.random = options, folder, random.Random(options.seed)
        self.environment = dict(os.environ, HEDDLE_CACHE_DIR=str(folder / "cache"))
        self.expected, self.faults, self.sums = folder / "expected", [], {}
        self.count = {"kills": 0, "prunes": 0, "tunes": 0, "tunes_killed": 0, "verifies": 0}
        self.resident = []  # (seconds, kB) of the worker that lives through

    def heddle(self, *arguments):
        return subprocess.run([os.environ["HEDDLE"], *map(str, arguments)], env=self.environment, capture_output=True, text=True)

    def worker(self, number):
        seed = self.random.randrange(1 << 20)
        command = [os.environ["HEDDLE_ENDURANCE_WORKER"], str(self.expected), str(self.options.threads), str(seed)]
        return Worker(command, self.environment, number)

    def fault(self, text):
        self.faults.append(text)
        print(text, file=sys.stderr, flush=True)

    def add(self, told):
        for name in ("launches", "prepared", "compiled", "contexts", "wrong", "failed"):
            self.sums[name] = self.sums.get(name, 0) + told.get(name, 0)

    def verify(self):
        self.count["verifies"] += 1
        checked = self.heddle("cache", "verify")
        if checked.returncode != 0:
            self.fault(f"cache verify: {checked.stdout}{checked.stderr}")

    def prune(self):
        self.count["prunes"] += 1
        size = sum(f.stat().st_size for f in self.files())
        pruned = self.heddle("cache", "prune", "--max-bytes", int(size * self.random.uniform(0.3, 0.9)))
        if pruned.returncode != 0:
            self.fault(f"cache prune: {pruned.stderr}")

    def files(self):
        for path in (self.folder / "cache").rglob("*"):
            try:
                if path.is_file():
                    yield path
            except FileNotFoundError:
                pass

    def tune(self):
        spec = self.folder / "tuned.yaml"
        if not spec.exists():
            spec.write_text("heddle: 1\nname: tuned\nquery: {dtype: bf16, heads_per_kv: 4}\nhead_dim: 64\n"
                            "kv: {dtype: bf16, page: 16, k: [b, s, h, d], v: [b, s, h, d]}\ntune: {waves: [1, 2], stages: [2]}\n")
        self.count["tunes"] += 1
        return subprocess.Popen([os.environ["HEDDLE"], "tune", str(spec), "--device", "emu:gfx950", "--shape", "1x64x1", "--budget", "20", "-q",
                                 "--out", str(self.folder / "record.yaml")], env=self.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def kill(self, workers):
        at = self.random.randrange(1, len(workers))
        self.add(workers[at].ask())
        workers[at].kill()
        self.count["kills"] += 1
        workers[at] = self.worker(at)

    def go(self):
        subprocess.run([os.environ["HEDDLE_ENDURANCE_WORKER"], "expect", str(self.expected)], check=True,
                       env=dict(self.environment, HEDDLE_CACHE_DIR=str(self.folder / "first")))
        begin = time.monotonic()
        workers = [self.worker(n) for n in range(self.options.processes)]
        tuner, due = None, {"kill": 2.0, "prune": 3.0, "tune": 4.0, "verify": 5.0}
        every = {"kill": (0.5, 6), "prune": (2, 12), "tune": (5, 40), "verify": (10, 30)}
        while time.monotonic() - begin < self.options.seconds and not self.faults:
            time.sleep(0.25)
            now = time.monotonic() - begin
            for name in [n for n, at in due.items() if at <= now]:
                due[name] = now + self.random.uniform(*every[name])
                if name == "kill" and len(workers) > 1:
                    self.kill(workers)
                elif name == "prune":
                    self.prune()
                elif name == "verify":
                    self.verify()
                elif name == "tune" and tuner is None:
                    tuner = self.tune()
                elif name == "tune" and tuner.poll() is None and self.random.random() < 0.5:
                    tuner.kill()
                    self.count["tunes_killed"] += 1
            if tuner is not None and tuner.poll() is not None:
                if tuner.returncode not in (0, -signal.SIGKILL):
                    self.fault(f"tune: {tuner.stderr.read()}")
                tuner.communicate()
                tuner = None
            for w in workers:
                told = w.ask()
                if told["wrong"] or told["failed"]:
                    self.fault(f"process {w.number}: {told}")
                if time.monotonic() - w.moved > STANDSTILL:
                    self.fault(f"process {w.number} stands still: {told}")
            self.resident.append((now, workers[0].last["rss_kb"]))
        if tuner is not None:
            tuner.kill()
            tuner.communicate()
        for w in workers:
            self.add(w.finish())
        return time.monotonic() - begin

    def flatness(self):
        """Least and most kB of the second and of the last quarter: what it holds has to be the same."""
        end = self.resident[-1][0]
        quarter = [[kb for at, kb in self.resident if q * end / 4 <= at <= (q + 1) * end / 4] for q in (1, 3)]
        return [sorted(q)[len(q) // 2] for q in quarter], max(kb for _, kb in self.resident)

    def end(self, seconds):
        self.verify()
        left = list((self.folder / "cache").glob("quarantine/*"))
        if left:
            self.fault(f"in quarantine: {left}")
        once = subprocess.run([os.environ["HEDDLE_ENDURANCE_WORKER"], "expect", str(self.folder / "again")], env=self.environment)
        compiled = self.worker(0)
        time.sleep(3)
        last = compiled.finish()
        if once.returncode != 0 or last["compiled"]:
            self.fault(f"entries got lost: {last}")
        (early, late), most = self.flatness()
        if self.options.seconds >= 60 and late > early * 1.05 + 2048:
            self.fault(f"memory grew: {early} kB in the second quarter, {late} kB in the last")
        return {"seconds": round(seconds), "processes": self.options.processes, "threads": self.options.threads, "seed": self.options.seed,
                **self.sums, **self.count, "rss_second_quarter_kb": early, "rss_last_quarter_kb": late, "rss_most_kb": most,
                "faults": len(self.faults)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=3600)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, pathlib.Path(folder))
        report = run.end(run.go())
    text = json.dumps(report, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
