#!/usr/bin/env python3
"""The tests of programs made with GoogleTest on this machine's GPU: a process per suite, several at once.

    scripts/gpu_tests.py --logs build-gpu/test-logs --report tests.txt [--seconds 160] [--suite-seconds 110] \\
        [--jobs 8] PROGRAM...

Of tests that run over several backends only those called .../cuda are run; suites without any of these are run in one
process, but for those that are split. What ends a process (an abort, an error that stays with a GPU's context, a test that hangs) fails only its
own test: another process continues behind it. Suites that plan for long are a process per test. Tests of kernels do
not wait for the GPU before they read its results: the caller has to set CUDA_LAUNCH_BLOCKING=1
(kernels/cuda/testing/gpu_memory.cpp).

Adds to the report a line per suite, as soon as it has ended, then the notes in their logs (a library without a plan
is named in one), and the ends of the logs of those that failed. Exit code 1: a test failed, or one had no time, or none of
a suite's was run at all.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

BACKEND = "/cuda"
# They have many plans to make: each test by itself, and these begin first.
SPLIT = ("Conv", "Attention", "Linear", "LinearGelu", "Large")
FIRST = (*SPLIT, "PyTorch")
MOST_LOG_LINES = 60


def suites_of(listing):
    """Of what --gtest_list_tests prints: the suites, and the tests of each that are to run."""
    listed, suite = {}, None
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if name.endswith(".") and not name.startswith(" "):
            suite = name
        elif name.startswith("  ") and suite:
            listed.setdefault(suite, []).append(suite + name.strip())
    chosen, plain = {}, []
    for suite, tests in listed.items():
        name = suite.rstrip(".")
        has_parameters = any("/" in test.rsplit(".", 1)[1] for test in tests)
        wanted = [test for test in tests if test.endswith(BACKEND)] if has_parameters else tests
        if name in SPLIT:
            chosen |= {test.removesuffix(BACKEND): [test] for test in wanted}
        elif not has_parameters:
            plain += wanted
        elif wanted:
            chosen[name] = wanted
    if plain:
        chosen["suites without backends"] = plain
    return chosen


class Suite:
    def __init__(self, program, name, tests, log):
        self.program, self.name, self.tests, self.log = program, name, tests, log
        self.is_split = name.split(".")[0] in SPLIT
        self.failed, self.skipped, self.passed = [], [], []

    def run(self, seconds):
        """Process after process, until each test has ended or is what ended one."""
        began, left = time.monotonic(), list(self.tests)
        while left:
            budget = seconds - (time.monotonic() - began)
            if budget < 1:
                self.failed += [f"{test} (no time left)" for test in left]
                break
            text, ending = self.run_process(left, budget)
            ended = self.take(text)
            left = [test for test in left if test not in ended]
            guilty = self.running(text)
            if guilty in left:
                self.failed.append(f"{guilty} ({ending or 'has no result'})")
                left.remove(guilty)
            elif ending or left:  # also after the last test: libraries are unloaded there
                self.failed.append(f"the process itself ({ending or 'ran too little'})")
                break
        self.seconds = time.monotonic() - began

    def run_process(self, tests, seconds):
        """What it printed, and why it ended early, or ""."""
        begins = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("a") as log:
            try:
                code = subprocess.run([self.program, f"--gtest_filter={':'.join(tests)}"], stdout=log,
                                      stderr=subprocess.STDOUT, check=False, timeout=seconds).returncode
            except subprocess.TimeoutExpired:
                code = None
        with self.log.open(errors="replace") as log:
            log.seek(begins)
            text = log.read()
        if code is None:
            return text, f"ended after {seconds:.0f} s"
        if code < 0:
            return text, f"signal {-code}"
        # 1 is GoogleTest's for tests that failed.
        return text, "" if code in (0, 1) else f"exit code {code}"

    def take(self, text):
        """Adds the tests that have ended to passed, failed and skipped, and returns them."""
        ended = []
        for kind, into in (("      OK", self.passed), ("  FAILED ", self.failed), (" SKIPPED", self.skipped)):
            # The summary at the end names them again, without the time.
            found = re.findall(rf"^\[ *{kind.strip()} *\] (\S+?)(?:, where .*)? \(\d+ ms\)$", text, re.MULTILINE)
            into += found
            ended += found
        return ended

    @staticmethod
    def running(text):
        return (re.findall(r"^\[ RUN      \] (\S+)$", text, re.MULTILINE) or [""])[-1]

    def ran(self):
        """A test by itself may skip: what a library does with NaN, say, is its own. A whole suite that does ran nothing."""
        return bool(self.passed) or (len(self.tests) == 1 and bool(self.skipped) and self.is_split)

    def well(self):
        return not self.failed and self.ran()

    def line(self):
        words = [f"{len(self.passed)} passed"]
        words += [f"{len(self.skipped)} skipped"] if self.skipped else []
        words += [f"FAILED: {', '.join(self.failed)}"] if self.failed else []
        words += ["FAILED: nothing was run"] if not self.ran() and not self.failed else []
        return f"{self.seconds:6.1f} s  {self.name}: {'; '.join(words)}"


class NoTests(Exception):
    pass


def all_suites(programs, logs):
    suites = []
    for program in programs:
        listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=False)
        found = suites_of(listing.stdout)
        if not found:
            raise NoTests(f"{program} names no tests: {listing.stderr.strip()[-300:]}")
        for name, tests in found.items():
            log = logs / (re.sub(r"\W+", "-", f"{pathlib.Path(program).name}-{name}") + ".txt")
            log.unlink(missing_ok=True)
            suites.append(Suite(program, name, tests, log))
    return sorted(suites, key=lambda suite: place(suite.name.split(".")[0]))


def place(name):
    return FIRST.index(name) if name in FIRST else len(FIRST)


def notes_in(logs):
    """Lines that begin with "note:", with how many of the logs have each."""
    found = collections.Counter(line for log in logs if log.exists()
                                for line in set(log.read_text(errors="replace").splitlines())
                                if line.startswith("note:"))
    return [f"{count:4} x  {line}" for line, count in sorted(found.items())]


def run_all(suites, jobs, suite_seconds, deadline, report):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def run(suite):
            suite.run(min(suite_seconds, deadline - time.monotonic()))
            return suite
        for done in concurrent.futures.as_completed([pool.submit(run, suite) for suite in suites]):
            line = done.result().line()
            print(line, flush=True)
            print(line, file=report, flush=True)
    for line in notes_in([suite.log for suite in suites]):
        print(line, flush=True)
        report.write(f"{line}\n")
    for suite in suites:
        if not suite.well() and suite.log.exists():
            report.write(f"\n==== {suite.name}, the end of {suite.log.name}\n")
            report.writelines(f"{line}\n" for line in tail(suite.log))
    return all(suite.well() for suite in suites)


def tail(log):
    return log.read_text(errors="replace").splitlines()[-MOST_LOG_LINES:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--logs", type=pathlib.Path, required=True)
    parser.add_argument("--report", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=160, help="for all of them")
    parser.add_argument("--suite-seconds", type=float, default=110)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.seconds
    with options.report.open("a") as report:
        try:
            suites = all_suites(options.programs, options.logs)
        except NoTests as error:
            report.write(f"{error}\n")
            sys.exit(f"gpu_tests: {error}")
        well = run_all(suites, options.jobs, options.suite_seconds, deadline, report)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
