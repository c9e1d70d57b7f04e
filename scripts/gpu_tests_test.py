#!/usr/bin/env python3
"""scripts/gpu_tests.py on a program that prints what GoogleTest does, and passes, fails, hangs and aborts."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import gpu_tests

SCRIPT = pathlib.Path(gpu_tests.__file__)
FAKE = '''#!/usr/bin/env python3
import os, sys, time
TESTS = {"Good.": ["A/reference", "A/cuda", "B/cuda"], "Bad.": ["A/cuda", "B/cuda"], "Aborts.": ["A/cuda", "B/cuda"],
         "Skips.": ["A/cuda"], "Prefix/Good.": ["A/cuda"], "Plain.": ["A", "B"], "Leaves.": ["A/cuda"],
         "OnlyCpu.": ["A/reference"], "Large.": ["A", "B"], "Conv.": ["A/cuda", "A/reference", "B/cuda", "Skips/cuda"]}
if "hanging" in sys.argv[0]:
    TESTS = {"Hangs.": ["A/cuda"]}
if sys.argv[1] == "--gtest_list_tests":
    print("Running main() from gtest_main.cc")
    for suite, tests in TESTS.items():
        print(suite)
        for test in tests:
            print("  " + test + ("  # GetParam() = \\"x\\"" if "/" in test else ""))
    sys.exit()
code = 0
for name in sys.argv[1].removeprefix("--gtest_filter=").split(":"):
    print("[ RUN      ] " + name, flush=True)
    if name.startswith("Conv."):
        print("note: cuDNN has no plan; our own kernels do it", flush=True)
    if name == "Bad.A/cuda":
        print("expected 1, found 2\\n[  FAILED  ] Bad.A/cuda, where GetParam() = \\"cuda\\" (3 ms)")
        code = 1
    elif name == "Aborts.A/cuda":
        print("CHECK failed", flush=True)
        os.abort()
    elif name == "Hangs.A/cuda":
        time.sleep(1000)
    elif "Skips" in name:
        print("[  SKIPPED ] " + name + " (0 ms)")
    else:
        print("[       OK ] " + name + " (3 ms)", flush=True)
        if name == "Leaves.A/cuda":
            os.abort()
if code:
    print("[  FAILED  ] Bad.A/cuda, where GetParam() = \\"cuda\\"")
sys.exit(code)
'''


class GpuTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.code, cls.printed, cls.report = cls.run_suites("fake_test")

    @classmethod
    def run_suites(cls, name, *options):
        """The exit code, what was printed, and the report, of the program `name`."""
        folder = pathlib.Path(cls.folder.name)
        program, report = folder / name, folder / f"{name}.txt"
        program.write_text(FAKE)
        program.chmod(0o755)
        run = subprocess.run([sys.executable, SCRIPT, program, "--logs", folder / "logs", "--report", report, *options],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout, report.read_text()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect(self, suite, words, report=None):
        lines = (report or self.report).splitlines()
        lines = [line.split(f"  {suite}: ", 1)[1] for line in lines if f" s  {suite}: " in line]
        self.assertEqual(lines, [words])

    def test_a_suite_that_passes_is_run_on_the_gpu_only(self):
        self.expect("Good", "2 passed")
        self.expect("Prefix/Good", "1 passed")
        self.assertNotIn("OnlyCpu", self.report)

    def test_suites_without_backends_run_too(self):
        self.expect("suites without backends", "2 passed")

    def test_a_suite_that_plans_for_long_is_a_process_per_test(self):
        self.expect("Conv.A", "1 passed")
        self.expect("Conv.B", "1 passed")

    def test_a_suite_at_the_benchmarks_sizes_is_too(self):
        self.expect("Large.A", "1 passed")
        self.expect("Large.B", "1 passed")

    def test_what_is_split_begins_first(self):
        suites = [name for name in gpu_tests.suites_of("A.\n  X\nLarge.\n  X\nB.\n  X/cuda\n")]
        self.assertEqual(sorted(suites, key=lambda name: gpu_tests.place(name.split(".")[0]))[0], "Large.X")

    def test_notes_are_counted(self):
        self.assertIn("   3 x  note: cuDNN has no plan; our own kernels do it\n", self.report)

    def test_what_fails_is_named_once_and_its_words_are_kept(self):
        self.expect("Bad", "1 passed; FAILED: Bad.A/cuda")
        self.assertIn("expected 1, found 2", self.report)

    def test_an_abort_takes_only_its_own_test_along(self):
        self.expect("Aborts", "1 passed; FAILED: Aborts.A/cuda (signal 6)")
        self.assertIn("CHECK failed", self.report)

    def test_a_test_that_hangs_is_named(self):
        code, _, report = self.run_suites("hanging_test", "--suite-seconds", "2")
        self.assertEqual(code, 1)
        self.expect("Hangs", "0 passed; FAILED: Hangs.A/cuda (ended after 2 s)", report)

    def test_a_suite_of_which_nothing_was_run_has_not_passed(self):
        self.expect("Skips", "0 passed; 1 skipped; FAILED: nothing was run")

    def test_a_test_by_itself_may_skip(self):
        self.expect("Conv.Skips", "0 passed; 1 skipped")

    def test_a_crash_after_the_last_test_is_one(self):
        self.expect("Leaves", "1 passed; FAILED: the process itself (signal 6)")

    def test_the_exit_code_says_that_something_failed(self):
        self.assertEqual(self.code, 1)
        self.assertEqual(self.printed.count(" s  "), 12)

    def test_a_program_that_cannot_begin_says_why_in_the_report(self):
        folder = pathlib.Path(self.folder.name)
        program, report = folder / "no_gpu", folder / "no_gpu.txt"
        program.write_text("#!/bin/sh\necho no GPU to test >&2; exit 3\n")
        program.chmod(0o755)
        run = subprocess.run([sys.executable, SCRIPT, program, "--logs", folder / "logs", "--report", report],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("names no tests: no GPU to test", report.read_text())

    def test_without_time_each_test_says_so(self):
        suite = gpu_tests.Suite("/bin/false", "S", ["S.A/cuda"], pathlib.Path(self.folder.name) / "log")
        suite.run(0)
        self.assertEqual(suite.failed, ["S.A/cuda (no time left)"])


if __name__ == "__main__":
    unittest.main()
