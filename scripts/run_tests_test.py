#!/usr/bin/env python3
"""Tests of run_tests.py: lanes of small shell commands instead of the parts of `make test`."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_tests
from run_tests import Lane, Part


class RunTestsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.said = []

    def script(self, name, text):
        """A command without spaces in its words."""
        path = self.folder / name
        path.write_text(f"cd {self.folder}\n{text}\n")
        return f"sh {path}"

    def part(self, name, text="true", **more):
        return Part(name, self.script(name, text), **more)

    def run_lanes(self, *lanes):
        self.run_of = run_tests.Run(
            [Lane(list(parts)) for parts in lanes], self.folder / "logs", say=lambda text, flush: self.said.append(text)
        )
        return self.run_of.run()

    def state(self, name):
        return self.run_of.outcomes[name].state

    def test_all_passed(self):
        self.assertTrue(self.run_lanes([self.part("a"), self.part("b")], [self.part("c")]))
        self.assertTrue(self.run_of.table().endswith("parts: 3 passed, 0 failed, 0 skipped\nmake test: all passed"))

    def test_lanes_run_side_by_side(self):
        """Each lane waits for what the other one has begun: one after the other they would hang."""
        meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done"
        self.assertTrue(self.run_lanes([self.part("a", meet.format("1", "2"))], [self.part("b", meet.format("2", "1"))]))

    def test_a_part_begins_after_those_that_it_needs(self):
        self.assertTrue(
            self.run_lanes([self.part("a"), self.part("b", "touch made")], [self.part("c", "[ -e made ]", after=("b",))])
        )

    def test_a_failure_shows_the_log_and_stops_only_what_needs_it(self):
        self.assertFalse(
            self.run_lanes(
                [self.part("a", "echo the reason; exit 3"), self.part("b")],
                [self.part("c", after=("a",)), self.part("d")],
            )
        )
        self.assertEqual([self.state(name) for name in "abcd"], ["failed", "passed", "not begun", "passed"])
        self.assertTrue(any("the reason" in text for text in self.said))
        self.assertIn("NOT BEGUN: it needs a", self.run_of.table())
        self.assertTrue(self.run_of.table().endswith("parts: 2 passed, 2 failed, 0 skipped\nmake test: FAILED"))

    def test_the_end_names_what_failed(self):
        self.run_lanes([self.part("a", "echo fine; echo Disk.Full FAILED; seq 200; exit 1")])
        self.assertIn("  a: Disk.Full FAILED\nparts:", self.run_of.table())

    def test_what_failed_is_named_whatever_else_complains(self):
        noise = "for i in 1 2 3 4 5 6 7 8; do echo component $i: error: closing; done"
        self.run_lanes([self.part("a", f"echo journey: FAILED: no node; {noise}; exit 1")])
        self.assertIn("  a: journey: FAILED: no node\n", self.run_of.table())

    def test_reasons_are_told_whole_and_passing_errors_left_out(self):
        log = ("a_test.cpp:3: Failure\nExpected equality of these values:\n  1\n  2\n"
               "fettle._lines.FettleError: it has ended\n"
               "E1128 20:45:16 reflector.go:227] rpc error: code = NotFound\n[  FAILED  ] A.B\n")  # fmt: skip
        self.assertEqual(run_tests.complaints(log), [
            "a_test.cpp:3: Failure Expected equality of these values: 1 2",
            "fettle._lines.FettleError: it has ended", "[ FAILED ] A.B"])  # fmt: skip

    def test_what_cannot_run_is_named_in_the_last_line(self):
        self.assertTrue(
            self.run_lanes([self.part("a", "echo a: NOT RUN: no browser; exit 77"), self.part("b", after=("a",))])
        )
        self.assertIn("SKIPPED: no browser", self.run_of.table())
        self.assertTrue(self.run_of.table().endswith("make test: passed, but NOT RUN: a, b"))

    def test_the_table_says_what_was_run(self):
        text = "echo 0 tests failed out of 7; echo 0 tests failed out of 5"
        self.run_lanes([self.part("a", text, ran=r"tests failed out of (\d+)", unit="tests")])
        self.assertEqual(self.run_of.outcomes["a"].note, "12 tests")

    def test_processor_time_is_that_of_all_descendants(self):
        count = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
        self.run_lanes([self.part("a", f"sh -c '{count}'"), self.part("b")])
        self.assertGreater(self.run_of.outcomes["a"].cpu, self.run_of.outcomes["b"].cpu)

    def test_an_interrupted_run_ends_what_is_running(self):
        run = run_tests.Run(
            [Lane([self.part("a", "touch begun; sleep 1000 & wait"), self.part("b")])],
            self.folder / "logs", say=lambda text, flush: None,
        )  # fmt: skip

        def stop_once_begun():
            while not (self.folder / "begun").exists():
                pass
            run.stop()

        stopper = threading.Thread(target=stop_once_begun)
        stopper.start()
        self.assertFalse(run.run())
        stopper.join()
        self.assertEqual([run.outcomes[name].state for name in "ab"], ["failed", "not begun"])

    def test_a_part_that_has_just_ended_does_not_keep_others_running(self):
        run = run_tests.Run([], self.folder / "logs", say=lambda text, flush: None)
        ended = subprocess.Popen(["true"], start_new_session=True)
        ended.wait()
        running = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        run.running = {"a": (ended, 0), "b": (running, 0)}
        try:
            run.stop()
            self.assertEqual(running.wait(10), -signal.SIGTERM)
        finally:
            running.kill()
            running.wait()

    def test_the_parts_of_make_test_need_only_parts_that_exist(self):
        names = {part.name for lane in run_tests.lanes("build") for part in lane.parts}
        needed = {name for lane in run_tests.lanes("build") for part in lane.parts for name in part.after}
        self.assertLessEqual(needed, names)


if __name__ == "__main__":
    unittest.main()
