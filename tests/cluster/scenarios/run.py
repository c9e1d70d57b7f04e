#!/usr/bin/env python3
"""Runs the scenarios, and prints each with its seconds as it ends.

Those that disturb others (`alone`) run first, one at a time; the rest run in parallel. They mostly
wait, so more of them run at once than there are processors.

Usage: run.py [--jobs N] [--only alone|together] [--folder FOLDER] [WORD...]
(FOLDER: of the files *_test.py, if not this one; WORD: scenarios with it in their name)
"""
import argparse
import concurrent.futures
import importlib
import pathlib
import sys
import time
import unittest

from cluster import LOGS
from setup import install_definitions

JOBS = 8
LOG_LINES = 20
REASON_LENGTH = 300


def scenarios(folder, words):
    """Those of all files *_test.py in the folder."""
    sys.path.insert(0, str(folder))
    found = []
    for path in sorted(folder.glob("*_test.py")):
        for group in unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(path.stem)):
            found += [test for test in group if not words or any(word in test.id() for word in words)]
    return found


def log_tails(test):
    """The ends of the logs of the scenario's operators."""
    text = ""
    for log in sorted(LOGS.glob(f"{test._testMethodName}*.log")):
        lines = log.read_text(errors="replace").splitlines(keepends=True)
        text += f"--- the end of {log}\n" + "".join(lines[-LOG_LINES:])
    return text


def reason_of(trace):
    """The message of the exception, on one line: `make test` repeats it below its table."""
    lines = trace.splitlines()
    first = next((i for i, line in enumerate(lines) if i and not line.startswith((" ", "Traceback"))), -1)
    return " ".join(" ".join(lines[first:]).split())[:REASON_LENGTH]


def run(test):
    """Runs and reports one scenario; returns whether it passed."""
    started = time.monotonic()
    result = unittest.TestResult()
    test.run(result)
    words = "FAILED" if not result.wasSuccessful() else "skipped" if result.skipped else "passed"
    traces = [trace for _, trace in result.failures + result.errors]
    reasons = "".join(f": {reason_of(trace)}" for trace in traces)
    report = f"scenario {words} after {time.monotonic() - started:5.1f} s: {test._testMethodName}{reasons}\n"
    for _, why in result.skipped:
        report += f"NOT RUN: {why}\n"
    report += "".join(traces)
    if not result.wasSuccessful():
        report += log_tails(test)
    sys.stdout.write(report)  # at once: others print, too
    sys.stdout.flush()
    return result.wasSuccessful()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--only", choices=["alone", "together"])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    started = time.monotonic()
    chosen = scenarios(options.folder, options.words)
    install_definitions()
    passed = []
    if options.only != "together":
        passed += [run(test) for test in chosen if test.alone]
    if options.only != "alone":
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            passed += pool.map(run, [test for test in chosen if not test.alone])
    print(f"scenarios: {sum(passed)} of {len(passed)} passed after {time.monotonic() - started:.0f} s")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
