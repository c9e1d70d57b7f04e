#!/usr/bin/env python3
"""Tests of tune(): functions as people write them, in every kind of worker."""

import contextlib
import io
import math
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

from program import ENVIRONMENT, InAFolder

import fettle
from fettle import choice, tune, uniform

LINE = {"x": uniform(-1, 1)}
KINDS = (1, 2, "threads:2")


def square(x):
    return x * x


class WhatFunctionsReturn(InAFolder):
    def results(self, function, space=LINE, **options):
        """The result of six trials in each kind of worker, which must agree but for the order."""
        options = {"minimize": "loss", "trials": 6, "algorithm": "sobol", "seed": 1, **options}
        for workers in KINDS:
            with self.subTest(workers=workers):
                yield tune(function, space, workers=workers, **options)

    def test_a_number(self):
        for result in self.results(square, trials=25, algorithm="tpe"):
            self.assertLess(result.best.value, 0.05)
            self.assertEqual(result.best.value, result.best.params["x"] ** 2)
            self.assertEqual([one.id for one in result.trials], list(range(25)))
            self.assertEqual({one.state for one in result.trials}, {"completed"})
            self.assertEqual(result.ended_by, "trials")

    def test_a_closure_and_a_lambda(self):
        offset = 0.25
        for result in self.results(lambda x: abs(x - offset)):
            self.assertEqual(len(result.trials), 6)

    def test_scalars_of_other_libraries(self):
        class Tensor:
            def item(self):
                return 0.5

        for result in self.results(lambda x: Tensor()):
            self.assertEqual(result.best.value, 0.5)

    def test_a_dict_with_other_metrics(self):
        for result in self.results(lambda x: {"loss": x, "size": 3, "note": "text"}):
            self.assertEqual(result.trials[0].metrics, {"size": 3.0})

    def test_several_objectives(self):
        for result in self.results(lambda x: (x, -x), minimize=["loss", "size"]):
            self.assertEqual(len(result.front), 6)
            self.assertEqual(len(result.trials[0].values), 2)

    def test_constraints(self):
        for result in self.results(lambda x: {"loss": x, "size": 5 - 4 * x}, constraints=[{"metric": "size", "max": 5}]):
            self.assertGreaterEqual(result.best.value, 0)

    def test_nan_is_infeasible(self):
        for result in self.results(lambda x: math.nan if x > 0 else x, trials=9):
            states = {one.state for one in result.trials if one.parameters["x"] > 0}
            self.assertEqual(states, {"infeasible"})
            self.assertIn("loss not finite", {one.error for one in result.trials})

    def test_all_nan_is_a_result_without_a_best(self):
        for result in self.results(lambda x: math.inf):
            self.assertEqual((result.front, len(result.trials)), ([], 6))
            with self.assertRaisesRegex(ValueError, "none of 6 trials has a result; the first: loss not finite"):
                result.best

    def test_an_exception_fails_its_trial(self):
        def function(x):
            if x > 0.3:
                raise ValueError("too large")
            return x

        for result in self.results(function, trials=9):
            failed = [one for one in result.trials if one.state == "failed"]
            self.assertTrue(failed)
            self.assertEqual({one.error for one in failed}, {"ValueError: too large"})
            self.assertIn("in function", failed[0].trace)
            self.assertNotIn("_function.py", failed[0].trace)

    def test_a_call_of_exit_fails_its_trial(self):
        for result in self.results(lambda x: sys.exit(3) if x > 0.3 else x, trials=9):
            self.assertIn("SystemExit: 3", {one.error for one in result.trials})

    def all_fail(self, function, words, space=LINE, **options):
        for workers in KINDS:
            with self.subTest(workers=workers), self.assertRaisesRegex(fettle.FettleError, words):
                tune(function, space, workers=workers, **{"minimize": "loss", "trials": 20, **options})

    def test_functions_that_always_fail(self):
        self.all_fail(lambda x: 1 / 0, "the first 5 trials have all failed.*ZeroDivisionError: division by zero")
        self.all_fail(lambda x: None, "returned None and reported no 'loss'")
        self.all_fail(lambda x: "0.5", "wrong result: loss must be a number; found str '0.5'")
        self.all_fail(lambda x: True, "must be a number; found bool True")
        self.all_fail(lambda x: [1, 2], "1 objectives.*found list")
        self.all_fail(lambda x: {"los": 1}, "a dict without 'loss'; it has 'los'")
        self.all_fail(lambda x: 1, r"2 objectives \(loss, size\); found int 1", minimize=["loss", "size"])
        self.all_fail(lambda x, trial: trial.report(1, acc=1) and None, "reported no 'loss'; it reported acc")
        self.all_fail(lambda x: 1 / 0, "the first 2 trials", first_failures=2)
        self.all_fail(lambda x: 1 / 0, "the first 3 trials", trials=3)


class Arguments(InAFolder):
    SPACE = {"lr": uniform(0, 1), "optimizer": choice("sgd", "adam"), "momentum": uniform(0, 1, when={"optimizer": "sgd"})}

    def run_once(self, function, space):
        return tune(function, space, minimize="loss", trials=8, algorithm="random", seed=1)

    def refused(self, function, space, words):
        with self.assertRaisesRegex(TypeError, words):
            self.run_once(function, space)

    def test_names(self):
        self.run_once(lambda lr, optimizer, momentum=None: lr, self.SPACE)
        self.run_once(lambda **all: all["lr"], self.SPACE)
        self.run_once(lambda *, lr, **rest: lr, self.SPACE)
        self.run_once(lambda lr, trial: trial["lr"] - lr, self.SPACE)
        self.run_once(lambda trial: trial.params["lr"], self.SPACE)
        self.run_once(lambda trial: trial["learning-rate"], {"learning-rate": uniform(0, 1)})
        self.run_once(lambda **all: all["learning-rate"], {"learning-rate": uniform(0, 1)})

    def test_other_callables(self):
        class Model:
            def __call__(self, x):
                return x

            def train(self, x, epochs=3):
                return x * epochs

        self.run_once(Model(), LINE)
        self.run_once(Model().train, LINE)

    def test_functions_that_do_not_fit(self):
        self.refused(lambda lr, optimizer: lr, self.SPACE, "does not take the parameter 'momentum'")
        self.refused(lambda lr, optimizer, momentum: lr, self.SPACE, "exists only for some values of 'optimizer': give it a default")
        self.refused(lambda x, y: x, LINE, "needs 'y', which is not in the space")
        self.refused(lambda: 1, LINE, "does not take the parameter 'x'")
        self.refused(lambda x, /: 1, LINE, "'x' by position only")
        self.refused(lambda x: 1, {"x": uniform(0, 1), "learning-rate": uniform(0, 1)},
                     r"'learning-rate': give it `trial` \(trial.parameters has all\), or \*\*parameters")
        self.refused(lambda trial: 1, {"trial": uniform(0, 1)}, "rename that one")
        self.refused(3, LINE, "expected a function; found int 3")

    def test_bad_options(self):
        for options, words in (({"trials": None}, "say when to end"), ({"trials": 0}, "at least 1; found 0"),
                               ({"trials": 2.5}, "whole number"), ({"timeout": 0}, "above 0"), ({"workers": 0}, "from 1"),
                               ({"workers": "many"}, "threads:4"), ({"workers": True}, "found True"),
                               ({"workers": "threads:x"}, "threads:4"), ({"algorithm": "pbt"}, "use fettle.Study"),
                               ({"trial_timeout": 3}, "needs worker processes"), ({"minimize": None}, "name the objective"),
                               ({"first_failures": 0}, "first_failures")):
            with self.subTest(options), self.assertRaisesRegex((ValueError, TypeError), words):
                tune(square, LINE, **{"minimize": "loss", "trials": 3, **options})


class Reports(InAFolder):
    def curve(self, x, trial):
        for step in trial.steps():
            trial.report(step, abs(x) + 1 / step)

    def test_poor_trials_are_stopped(self):
        for workers in KINDS:
            with self.subTest(workers=workers):
                result = tune(self.curve, LINE, minimize="loss", trials=30, resource=(1, 9), seed=1, workers=workers)
                states = {one.state for one in result.trials}
                self.assertEqual(states, {"completed", "stopped"})
                self.assertEqual({len(one.curve) for one in result.trials if one.state == "completed"}, {9})
                self.assertLess(min(len(one.curve) for one in result.trials), 9)

    def test_a_result_after_the_last_report(self):
        def function(x, trial):
            self.curve(x, trial)
            return -5  # the last report counts

        result = tune(function, LINE, minimize="loss", trials=3, resource=(1, 4), early_stopping="none")
        self.assertEqual([one.value for one in result.trials], [one.curve[-1][1][0] for one in result.trials])
        self.assertGreater(result.best.value, 0)

    def test_one_that_ends_before_the_last_step(self):
        result = tune(lambda x, trial: trial.report(2, x) and None, LINE, minimize="loss", trials=3, resource=(1, 4),
                      early_stopping="none")
        self.assertEqual([one.value for one in result.trials], [one.parameters["x"] for one in result.trials])

    def test_reports_without_a_resource_are_kept(self):
        def function(x, trial):
            for loss in (3, 2, x):
                trial.report(value=loss)

        for workers in KINDS:
            result = tune(function, LINE, minimize="loss", trials=3, workers=workers)
            self.assertEqual(result.trials[0].curve, [(1, [3.0]), (2, [2.0]), (3, [result.trials[0].value])])

    def test_report_of_the_module(self):
        def function(x):
            for step in range(1, 10):
                fettle.report(step, loss=abs(x), accuracy=1)

        for workers in KINDS:
            with self.subTest(workers=workers):
                result = tune(function, LINE, minimize="loss", trials=20, resource=(1, 9), workers=workers, seed=1)
                self.assertIn("stopped", {one.state for one in result.trials})
        self.assertTrue(fettle.report(1, loss=1))  # outside again

    def test_a_function_that_catches_the_stop(self):
        def function(x, trial):
            for step in trial.steps():
                try:
                    trial.report(step, abs(x))
                except Exception:
                    pass

        result = tune(function, LINE, minimize="loss", trials=20, resource=(1, 9), seed=1)
        self.assertIn("stopped", {one.state for one in result.trials})

    def test_algorithms_that_pause(self):
        result = tune(self.curve, LINE, minimize="loss", trials=9, resource=(1, 9), algorithm="hyperband", workers=2, seed=1)
        self.assertEqual(len(result.trials), len({one.id for one in result.trials}))
        self.assertIn("completed", {one.state for one in result.trials})

    def test_bad_reports(self):
        with self.assertRaisesRegex(fettle.FettleError, "TypeError: report: loss must be a number; found str 'a'"):
            tune(lambda x, trial: trial.report(1, "a"), LINE, minimize="loss", trials=9)


class Workers(InAFolder):
    def module(self, text):
        (self.folder / "work.py").write_text(text)
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        sys.modules.pop("work", None)
        import work

        return work

    def test_spawned_ones_find_functions_of_modules(self):
        work = self.module("import os\ndef train(x):\n    return x * x\n")
        with mock.patch.dict(sys.modules, {"cloudpickle": None}):
            result = tune(work.train, LINE, minimize="loss", trials=6, workers="spawn:2")
        self.assertEqual(len(result.trials), 6)

    def test_spawned_ones_and_functions_without_a_module(self):
        with mock.patch.dict(sys.modules, {"cloudpickle": None}):
            with self.assertRaisesRegex(fettle.FettleError, "install cloudpickle, or move the function to a module"):
                tune(square, LINE, minimize="loss", trials=6, workers="spawn:2")

    def test_where_a_fork_is_not_safe_threads_serve(self):
        words = io.StringIO()
        waits = threading.Event()
        other = threading.Thread(target=waits.wait)
        other.start()
        try:
            with mock.patch.dict(sys.modules, {"cloudpickle": None}), contextlib.redirect_stderr(words):
                result = tune(lambda x: os.getpid(), LINE, minimize="loss", trials=6, workers=2)
        finally:
            waits.set()
            other.join()
        self.assertEqual({one.value for one in result.trials}, {os.getpid()})
        self.assertIn("uses threads, since this process has other threads", words.getvalue())

    def test_one_worker_is_this_process(self):
        seen = []
        tune(lambda x: seen.append(x) or x, LINE, minimize="loss", trials=3)
        self.assertEqual(len(seen), 3)

    def test_a_worker_that_dies_fails_its_trial(self):
        def function(x):
            if x > 0.3:
                os.kill(os.getpid(), signal.SIGKILL)
            if x < -0.6:
                os._exit(7)
            return x

        result = tune(function, LINE, minimize="loss", trials=16, workers="fork:2", algorithm="sobol")
        errors = {one.error for one in result.trials if one.state == "failed"}
        self.assertEqual(errors, {"its process was ended by SIGKILL: often the machine was out of memory",
                                  "its process ended with exit code 7"})
        self.assertEqual(len(result.trials), 16)

    def test_a_worker_without_memory(self):
        def function(x):
            import resource

            if x > 0.3:
                resource.setrlimit(resource.RLIMIT_AS, (1 << 28, resource.RLIM_INFINITY))
                return len(bytearray(1 << 30))
            return x

        result = tune(function, LINE, minimize="loss", trials=8, workers="fork:1", algorithm="sobol")
        self.assertIn("MemoryError", {one.error for one in result.trials})

    def test_a_trial_that_takes_too_long(self):
        begun = time.monotonic()
        result = tune(lambda x: time.sleep(60) if x > 0.3 else x, LINE, minimize="loss", trials=6, workers="fork:2",
                      algorithm="sobol", trial_timeout=0.3)
        self.assertIn("it took longer than 0.3 s", {one.error for one in result.trials})
        self.assertLess(time.monotonic() - begun, 20)

    def test_a_timeout(self):
        for workers in KINDS:
            with self.subTest(workers=workers):
                result = tune(lambda x: time.sleep(0.05) or x, LINE, minimize="loss", timeout=0.4, workers=workers,
                              algorithm="random")
                self.assertEqual(result.ended_by, "timeout")
                self.assertTrue(1 <= len(result.trials) <= 20)

    def test_a_space_that_is_used_up(self):
        result = tune(lambda x: x, {"x": choice(1, 2, 3)}, minimize="loss", trials=10, algorithm="grid")
        self.assertEqual((len(result.trials), result.ended_by), (3, "exhausted"))

    def test_random_numbers_of_workers_differ(self):
        import random

        result = tune(lambda x: time.sleep(0.02) or random.random(), LINE, minimize="loss", trials=8, workers=2,
                      algorithm="random")
        self.assertEqual(len({one.value for one in result.trials}), 8)

    def test_nothing_is_left(self):
        import gc

        gc.collect()
        children = f"/proc/self/task/{threading.get_native_id()}/children"
        with open(children) as file:
            before = file.read()
        descriptors = len(os.listdir("/proc/self/fd"))
        tune(square, LINE, minimize="loss", trials=6, workers=2)
        gc.collect()
        with open(children) as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)

    def test_what_is_printed_is_printed_once(self):
        program = ("import fettle\nprint('before', end='')\n"
                   "fettle.tune(lambda x: print(end='t') or x, {'x': fettle.uniform(0, 1)}, minimize='l', trials=4, workers=2)")
        environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual(sorted(done.stdout), sorted("beforetttt"))

    def test_progress(self):
        words = io.StringIO()
        with contextlib.redirect_stderr(words):
            tune(lambda x: x if x < 0.3 else math.nan, LINE, minimize="loss", trials=6, algorithm="sobol", progress=True)
        last = words.getvalue().split("\r")[-1]
        self.assertRegex(last, r"^6/6 trials, best loss -\S+, \d infeasible, \d+ s *\n$")
        with contextlib.redirect_stderr(io.StringIO()) as quiet:
            tune(square, LINE, minimize="loss", trials=3)
        self.assertEqual(quiet.getvalue(), "")


class Interrupts(InAFolder):
    PROGRAM = """
import fettle, os, sys, time
def function(x):
    with open("began", "a") as file: file.write(f"{os.getpid()}\\n")
    time.sleep(SECONDS)
    return x
try:
    fettle.tune(function, {"x": fettle.uniform(0, 1)}, minimize="loss", trials=500, workers=WORKERS, algorithm="random")
except KeyboardInterrupt as error:
    print(len(error.result.trials), error.result.ended_by, error.result.best.value)
    raise
"""

    def begin(self, workers, trials=6, seconds=0.05):
        """Starts the program; returns it, and the processes that have begun trials, once `trials` have begun."""
        began = self.folder / "began"
        began.unlink(missing_ok=True)
        program = self.PROGRAM.replace("WORKERS", repr(workers)).replace("SECONDS", str(seconds))
        process = subprocess.Popen([sys.executable, "-c", program], env=ENVIRONMENT, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.communicate)
        while process.poll() is None and (not began.exists() or began.read_text().count("\n") < trials):
            time.sleep(0.02)
        return process, {int(pid) for pid in began.read_text().split()}

    def gone(self, pids):
        end = time.monotonic() + 10
        while pids := {pid for pid in pids if os.path.exists(f"/proc/{pid}")}:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def test_an_interrupt_keeps_what_was_found(self):
        for workers in KINDS:
            with self.subTest(workers=workers):
                process, pids = self.begin(workers)
                os.killpg(process.pid, signal.SIGINT)
                out, words = process.communicate(timeout=20)
                self.assertEqual(process.returncode, -signal.SIGINT)
                self.assertRegex(out, r"^\d+ interrupt 0\.\d+\n$")
                self.assertRegex(words, r"fettle: interrupted after \d+ trials; with study=.name.")
                self.assertTrue(self.gone(pids))

    def test_workers_end_with_a_client_that_is_killed(self):
        for workers in ("fork:2", "spawn:2"):
            with self.subTest(workers=workers):
                if workers == "spawn:2":
                    try:
                        import cloudpickle  # noqa: F401
                    except ImportError:
                        continue
                process, pids = self.begin(workers, trials=2, seconds=60)
                process.kill()
                process.wait()
                self.assertTrue(self.gone(pids - {process.pid}))


if __name__ == "__main__":
    unittest.main()
