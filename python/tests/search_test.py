#!/usr/bin/env python3
"""Tests of Search against the program."""

import gc
import os
import pathlib
import signal
import stat
import threading
import time
import unittest
from unittest import mock

from program import PROGRAM, InAFolder

import fettle
from fettle import Search, boolean, choice, integer, loguniform, uniform

LINE = {"x": uniform(-1, 1)}


def children():
    """Processes of `fettle suggest` that this process has started."""
    return pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()


class AskAndTell(InAFolder):
    def search(self, space=LINE, **options):
        options.setdefault("minimize", "loss")
        search = Search(space, **options)
        self.addCleanup(search.close)
        return search

    def test_a_loop_finds_the_minimum(self):
        search = self.search(trials=30, seed=1)
        for trial in search:
            trial.tell((trial["x"] - 0.3) ** 2)
        self.assertTrue(search.exhausted)
        self.assertAlmostEqual(search.best.params["x"], 0.3, delta=0.1)
        self.assertIsNone(search.ask())

    def test_the_same_seed_gives_the_same_trials(self):
        def points(seed):
            with Search(LINE, maximize="y", trials=12, seed=seed) as search:
                return [(trial.tell(trial["x"]), trial["x"])[1] for trial in search]

        self.assertEqual(points(3), points(3))
        self.assertNotEqual(points(3), points(4))

    def test_types_of_values(self):
        space = {"rate": loguniform(1e-3, 1e3), "depth": integer(1, 3), "on": boolean(), "kind": choice("a", 2)}
        for trial in self.search(space, trials=8):
            self.assertEqual([type(trial[name]) for name in ("rate", "depth", "on")], [float, int, bool])
            self.assertIn(trial["kind"], ("a", 2))
            trial.tell(1)

    def test_a_parameter_that_does_not_exist_is_missing(self):
        space = {"momentum": uniform(0, 1, when={"kind": "sgd"}), "kind": choice("sgd", "adam")}
        kinds = set()
        for trial in self.search(space, trials=12, algorithm="random", seed=2):
            kinds.add(trial["kind"])
            self.assertEqual("momentum" in trial.parameters, trial["kind"] == "sgd")
            trial.tell(0)
        self.assertEqual(kinds, {"sgd", "adam"})

    def test_points_to_try_first(self):
        search = self.search({"x": uniform(0, 9), "kind": choice("a", "b")}, first=[{"x": 7}], trials=9)
        self.assertEqual(search.ask()["x"], 7)
        search.enqueue(x=8, kind="b")
        self.assertEqual(search.ask().parameters, {"x": 8, "kind": "b"})
        search.enqueue({"kind": "a"})
        self.assertEqual(search.ask()["kind"], "a")

    def test_known_results_are_learnt_from(self):
        def first_points(known):
            with Search(LINE, minimize="loss", seed=1, algorithm="tpe", known=known, trials=40) as search:
                for trial in search:
                    trial.tell(abs(trial["x"] - 0.8))
                return search.best.value

        self.assertLess(first_points([({"x": 0.8 + k / 100}, abs(k / 100)) for k in range(-15, 16)]), 0.1)
        search = self.search(trials=3)
        search.add({"x": 0.5}, 0.25)
        with self.assertRaisesRegex(ValueError, "finite value"):
            search.add({"x": 0.5}, None)
        with self.assertRaises(fettle.Refused):
            search.add({"x": 5}, 1)

    def test_several_objectives(self):
        search = self.search(minimize=["loss", "size"], trials=3, seed=5)
        for values in ([1, 2], {"size": 1, "loss": 3}, (5, 5)):
            search.ask().tell(values)
        self.assertEqual([one.values for one in search.front], [(1, 2), (3, 1)])
        with self.assertRaisesRegex(ValueError, "use front"):
            search.best

    def test_constraints(self):
        search = self.search(constraints=[{"metric": "size", "max": 10}], trials=2)
        search.ask().tell(1, metrics={"size": 20})
        self.assertIsNone(search.best)
        search.ask().tell(2, metrics={"size": 5})
        self.assertEqual(search.best.value, 2)

    def test_poor_trials_are_stopped(self):
        search = self.search(resource=(1, 9), trials=20, seed=3)
        states = []
        for trial in search:
            for step in range(1, 10):
                if not trial.report(step, abs(trial["x"]) + 1 / step):
                    break
            states.append(trial.state)
        self.assertEqual(set(states), {"stopped", "ended"})

    def test_a_result_may_be_told_and_reported(self):
        search = self.search(resource=(1, 2), trials=2)
        trial = search.ask()
        trial.report(2, 0.5)
        trial.tell(0.5)
        with self.assertRaises(fettle.Refused):
            trial.tell(0.7)

    def test_trials_that_pause_come_again(self):
        search = self.search(resource=(1, 9), early_stopping={"name": "asha", "promote": True}, trials=9, seed=1)
        steps, resumed = {}, 0
        for trial in search:
            resumed += trial.resumed
            while trial.state == "running":
                steps[trial.id] = steps.get(trial.id, 0) + 1
                trial.report(steps[trial.id], abs(trial["x"]))
        self.assertGreater(resumed, 0)
        self.assertEqual(max(steps.values()), 9)

    def test_infeasible_results(self):
        search = self.search(trials=4)
        for value in (None, float("nan"), float("inf")):
            search.ask().tell(value)
        self.assertIsNone(search.best)
        search.ask().tell(3)
        self.assertEqual((search.best.id, search.best.value), (3, 3))

    def test_bad_results(self):
        trial = self.search(trials=1).ask()
        for bad in ("0.5", True, [1, 2], {"size": 1}, object()):
            with self.subTest(bad), self.assertRaises((TypeError, ValueError)):
                trial.tell(bad)
        with self.assertRaisesRegex(ValueError, "at least 0; found int -1"):
            trial.tell(1, cost=-1)
        trial.tell(1, cost=2)
        with self.assertRaisesRegex(fettle.Refused, "ended"):
            trial.tell(2)

    def test_bad_points(self):
        search = self.search(trials=1)
        with self.assertRaisesRegex(ValueError, "no parameter 'y' in the space; it has 'x'"):
            search.enqueue(y=1)
        with self.assertRaisesRegex(TypeError, "finite number"):
            search.enqueue(x=float("nan"))
        with self.assertRaises(fettle.Refused):
            search.enqueue(x=5)

    def test_bad_options(self):
        for options, words in (({"minimize": None}, "name the objective"), ({"minimize": "a", "maximize": "a"}, "twice"),
                               ({"minimize": 3}, "(?s)."), ({"algorithm": "magic"}, "magic"), ({"trials": -1}, "max_trials"),
                               ({"early_stopping": "asha"}, "needs resource"), ({"seed": "a"}, "seed")):
            with self.subTest(options), self.assertRaisesRegex((ValueError, TypeError), words):
                self.search(**options)

    def test_a_loop_that_tells_nothing_and_pauses(self):
        search = self.search(resource=(1, 9), algorithm="hyperband", trials=4, seed=1)
        with self.assertRaisesRegex(fettle.FettleError, "call tell"):
            for _ in search:
                pass


class TheProcess(InAFolder):
    def run_in_threads(self, count, work):
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            self.assertFalse(thread.is_alive())

    def test_two_threads_share_a_search(self):
        with Search(LINE, minimize="loss", trials=200, algorithm="random") as search:
            seen, errors = [], []

            def work():
                try:
                    for trial in search:
                        seen.append(trial.id)
                        trial.tell(trial["x"])
                except BaseException as error:
                    errors.append(error)

            self.run_in_threads(2, work)
            self.assertEqual((sorted(seen), errors), (list(range(200)), []))

    def test_threads_wait_for_what_others_train(self):
        with Search(LINE, minimize="loss", trials=9, seed=1, resource=(1, 9),
                    early_stopping={"name": "asha", "promote": True}) as search:
            errors = []

            def work():
                try:
                    for trial in search:
                        for step in range(1, 10):
                            time.sleep(0.001)
                            if not trial.report(step, abs(trial["x"])) or trial.state != "running":
                                break
                except BaseException as error:
                    errors.append(error)

            self.run_in_threads(3, work)
            self.assertEqual(errors, [])

    def test_it_ends_with_the_search(self):
        gc.collect()
        before = children()
        search = Search(LINE, minimize="loss", trials=2)
        self.assertEqual(len(children()), len(before) + 1)
        search.close()
        search.close()
        self.assertEqual(children(), before)
        with self.assertRaisesRegex(fettle.FettleError, "closed"):
            search.ask()

    def test_it_ends_with_a_search_that_is_forgotten(self):
        before = children()
        Search(LINE, minimize="loss", trials=2).ask()
        gc.collect()
        self.assertEqual(children(), before)

    def test_its_death_is_an_error_with_its_words(self):
        with Search(LINE, minimize="loss", trials=2) as search:
            os.kill(int(children()[-1]), signal.SIGKILL)
            with self.assertRaisesRegex(fettle.FettleError, "was ended by signal 9"):
                search.ask()

    def test_a_forked_child_does_not_keep_it(self):
        search = Search(LINE, minimize="loss", trials=2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                search.ask()
            except fettle.FettleError as error:
                code = 0 if "belongs to process" in str(error) else 2
            time.sleep(0.5)
            os._exit(code)
        begun = time.monotonic()
        search.close()
        self.assertLess(time.monotonic() - begun, 0.4)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def stand_in(self, text):
        path = self.folder / "fettle"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, {"FETTLE_PROGRAM": str(path)})

    def refused(self, words):
        with self.assertRaisesRegex(fettle.FettleError, words):
            Search(LINE, minimize="loss")

    def test_programs_of_another_version(self):
        with self.stand_in('read x; echo \'{"hello": {"protocol": 3, "version": "9.0"}, "re": 1}\'; cat > /dev/null'):
            self.refused("is fettle 9.0 with protocol 3; this package needs protocol 2")
        with self.stand_in('read x; echo \'{"error": "there is no request hello", "line": 1, "re": 1}\'; cat > /dev/null'):
            self.refused("too old.*protocol 2.*no request hello")

    def test_programs_of_the_first_protocol(self):
        with self.stand_in('read x; echo \'{"error": "a line is an object with one member", "line": 1}\'; cat > /dev/null'):
            self.refused("too old.*protocol 2.*one member")

    def test_programs_that_cannot_run(self):
        with self.stand_in("echo no such library >&2; exit 3"):
            self.refused("exit code 3: no such library")
        with self.stand_in("echo nonsense; cat > /dev/null"):
            self.refused("nonsense")
        with mock.patch.dict(os.environ, {"FETTLE_PROGRAM": "/nowhere"}):
            self.refused("FETTLE_PROGRAM is '/nowhere', which is no program")
        with mock.patch.dict(os.environ, {"FETTLE_PROGRAM": "", "PATH": "/nowhere"}):
            self.refused("was not found: install the wheel")

    def test_the_program_on_path(self):
        (self.folder / "fettle").symlink_to(PROGRAM)
        with mock.patch.dict(os.environ, {"FETTLE_PROGRAM": "", "PATH": str(self.folder)}):
            Search(LINE, minimize="loss").close()


if __name__ == "__main__":
    unittest.main()
