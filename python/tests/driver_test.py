#!/usr/bin/env python3
"""Plays the runner to both kinds of worker, fettle.trials() and fettle.warm.

Both must keep the same rules (docs/worker-protocol.md): one run after another in the order of their assignment, a stop
ends one run, also one that has not begun, and the end of the assignments ends the worker.
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
NONCE = b"89abcdef89abcdef89abcdef89abcdef"
LOOP = """
    import time, fettle
    for trial in fettle.trials():
        with trial:
            end = time.monotonic() + float(trial["seconds"])
            while time.monotonic() < end and not trial.should_stop:
                time.sleep(0.002)
            trial.report(1, value=0.5)
"""
SCRIPT = """
    import json, os, time
    time.sleep(float(os.environ["FETTLE_PARAM_SECONDS"]))
    print(json.dumps({"value": 0.5}), flush=True)
"""


class Driver:
    """One worker, and the runner's ends of its pipes."""

    def __init__(self, command, folder):
        self.folder = pathlib.Path(folder)
        reading, self.assignments = os.pipe()
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), FETTLE_WORKER_FD=str(reading), FETTLE_WORKER_SLOTS="1",
                           FETTLE_WORKER_VERSION="1", FETTLE_WORKER_NONCE=NONCE.decode())
        self.process = subprocess.Popen(command, cwd=folder, env=environment, pass_fds=[reading], stdout=subprocess.PIPE)
        os.close(reading)
        self.unread = b""

    def assign(self, run, seconds):
        path = self.folder / f"{run}.json"
        path.write_text(json.dumps({"study": "s", "trial": run[:-3], "seed": 7, "parameters": {"seconds": seconds}, "untilStep": 1,
                                    "checkpoints": {"directory": "c"}}))
        self.send({"run": run, "environment": {"FETTLE_TRIAL": str(path), "FETTLE_PARAM_SECONDS": str(seconds)}, "arguments": []})

    def send(self, message):
        os.write(self.assignments, json.dumps(message).encode() + b"\n")

    def take(self, patience=20):
        """The next frame, as words, or the next line of text, or None at the end of the output."""
        while b"\n" not in self.unread:
            if not select.select([self.process.stdout], [], [], patience)[0]:
                raise AssertionError(f"silent for {patience} s")
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                return None
            self.unread += some
        line, self.unread = self.unread.split(b"\n", 1)
        text, mark, frame = line.partition(b"\x1e" + NONCE + b" ")
        return frame.decode().split(" ") if mark else ["text", text.decode()]

    def take_until(self, *words):
        """Everything up to that frame."""
        taken = [self.take()]
        while taken[-1] is not None and taken[-1][:len(words)] != list(words):
            taken.append(self.take())
        return taken

    def finish(self):
        """No more assignments. Returns what comes yet, and the exit code."""
        os.close(self.assignments)
        rest = []
        while (words := self.take()) is not None:
            rest.append(words)
        return rest, self.process.wait(60)

    def kill(self):
        self.process.kill()
        self.process.wait()
        os.close(self.assignments)


def commands(folder):
    """The command of each kind of worker, by its name."""
    pathlib.Path(folder, "loop.py").write_text(textwrap.dedent(LOOP))
    pathlib.Path(folder, "script.py").write_text(textwrap.dedent(SCRIPT))
    return {"trials()": [sys.executable, "loop.py"],
            "warm": [sys.executable, "-m", "fettle.warm", "--preload", "json", "script.py"]}


METRIC = (["text", '{"value": 0.5}'], ["text", '{"step": 1, "value": 0.5}'])


def each_worker(test):
    """Runs a test for each kind of worker."""

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, command in commands(folder).items():
                driver = Driver(command, folder)
                try:
                    with self.subTest(kind):
                        test(self, driver)
                finally:
                    driver.process.kill()
                    driver.process.wait()
                    driver.process.stdout.close()

    return run


class Workers(unittest.TestCase):
    @each_worker
    def test_runs_that_are_assigned_ahead_are_trained_in_order(self, driver):
        for number in range(3):
            driver.assign(f"s-{number}-r0", 0.01)
        rest, code = driver.finish()
        self.assertEqual(code, 0)
        self.assertEqual(rest[0][:3], ["ready", "1", "1"])
        for number in range(3):
            begin, metric, end = rest[1 + 3 * number:4 + 3 * number]
            self.assertEqual(begin, ["begin", f"s-{number}-r0"])
            self.assertIn(metric, METRIC)
            self.assertEqual(end, ["end", f"s-{number}-r0", "0"])
        self.assertEqual(len(rest), 10)

    @each_worker
    def test_a_stop_ends_its_run_and_not_the_one_ahead(self, driver):
        driver.assign("s-0-r0", 60)
        driver.assign("s-1-r0", 0)
        driver.take_until("begin", "s-0-r0")
        driver.send({"stop": "s-0-r0"})
        end = driver.take_until("end", "s-0-r0")[-1]
        self.assertEqual(end, ["end", "s-0-r0", "143"])
        self.assertEqual(driver.take_until("end", "s-1-r0")[-1], ["end", "s-1-r0", "0"])
        self.assertEqual(driver.finish(), ([], 0))

    @each_worker
    def test_a_stop_that_comes_before_its_run_ends_it(self, driver):
        driver.assign("s-0-r0", 0.2)
        driver.assign("s-1-r0", 60)
        driver.send({"stop": "s-1-r0"})
        self.assertEqual(driver.take_until("end", "s-0-r0")[-1], ["end", "s-0-r0", "0"])
        self.assertEqual(driver.take_until("end", "s-1-r0")[-1], ["end", "s-1-r0", "143"])
        self.assertEqual(driver.finish(), ([], 0))

    @each_worker
    def test_a_stop_of_a_run_that_has_ended_does_nothing(self, driver):
        driver.assign("s-0-r0", 0)
        driver.take_until("end", "s-0-r0")
        driver.send({"stop": "s-0-r0"})
        driver.send({"unknown": 1})
        driver.assign("s-1-r0", 0)
        self.assertEqual(driver.take_until("end", "s-1-r0")[-1], ["end", "s-1-r0", "0"])
        self.assertEqual(driver.finish(), ([], 0))

    @each_worker
    def test_a_worker_that_is_killed_ends_its_output(self, driver):
        driver.assign("s-0-r0", 0.5)  # a child of fettle.warm outlives it until the guard comes
        driver.take_until("begin", "s-0-r0")
        driver.kill()
        left = driver.take_until("end", "s-0-r0")
        self.assertEqual(left[-1], None, left)

    @each_worker
    def test_no_assignment_is_a_clean_end(self, driver):
        rest, code = driver.finish()
        self.assertEqual(code, 0)
        self.assertIn([words[:3] for words in rest], ([], [["ready", "1", "1"]]))


if __name__ == "__main__":
    signal.alarm(300)
    unittest.main()
