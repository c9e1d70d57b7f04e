#!/usr/bin/env python3
"""Studies with a name survive: the client and the search are killed at random moments, and the same call resumes."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from program import ENVIRONMENT, PROGRAM, InAFolder

import fettle

KILLS = 20
SPACE = {"x": fettle.uniform(-1, 1), "kind": fettle.choice("a", "b"),
         "y": fettle.loguniform(1e-3, 1, when={"kind": "b"})}
CLIENT = """
import sys, time
import fettle
SPACE = {"x": fettle.uniform(-1, 1), "kind": fettle.choice("a", "b"), "y": fettle.loguniform(1e-3, 1, when={"kind": "b"})}
def function(x, kind, trial, y=1.0):
    for step in trial.steps():
        time.sleep(0.002)
        trial.report(step, abs(x) + y / step)
fettle.tune(function, SPACE, minimize="loss", trials=40, resource=(1, 4), study="killed", seed=3, algorithm="tpe",
            workers=WORKERS)
"""


def children_of(pid):
    try:
        return [int(one) for one in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_the_search(pid):
    try:
        return b"\0suggest\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class Resume(InAFolder):
    def tune(self, study, **options):
        def function(x, kind, trial, y=1.0):
            for step in trial.steps():
                trial.report(step, abs(x) + y / step)

        return fettle.tune(function, SPACE, **{"minimize": "loss", "trials": 40, "resource": (1, 4), "study": study, "seed": 3,
                                               "algorithm": "tpe", **options})

    def kill_again_and_again(self, workers):
        """Kills the client, or its search, at random moments. Returns how often it died of that."""
        dice = random.Random(7)
        died = 0
        for _ in range(KILLS):
            process = subprocess.Popen([sys.executable, "-c", CLIENT.replace("WORKERS", str(workers))], env=ENVIRONMENT,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(dice.uniform(0.1, 0.5))
            of_search = dice.random() < 0.5
            victims = [pid for pid in children_of(process.pid) if is_the_search(pid)] if of_search else [process.pid]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            words = process.communicate()[1]
            died += process.returncode != 0
            if of_search and process.returncode != 0:
                self.assertIn("FettleError: `fettle suggest` was ended by signal 9", words)
            elif process.returncode not in (0, -signal.SIGKILL):
                self.fail(words)
        return died

    def test_what_was_killed_is_what_was_not(self):
        undisturbed = self.tune("undisturbed")
        self.assertGreater(self.kill_again_and_again(1), 3)
        resumed = self.tune("killed")
        self.assertEqual([one.id for one in resumed.trials], list(range(40)))
        for ours, theirs in zip(resumed.trials, undisturbed.trials):
            self.assertEqual((ours.id, ours.parameters, ours.state, ours.values, ours.curve),
                             (theirs.id, theirs.parameters, theirs.state, theirs.values, theirs.curve))
        self.assertEqual(resumed.best, undisturbed.best)
        subprocess.run([PROGRAM, "replay", "killed"], check=True, stdout=subprocess.DEVNULL)

    def test_two_workers(self):
        self.assertGreater(self.kill_again_and_again(2), 3)
        resumed = self.tune("killed", workers=2)
        self.assertEqual([one.id for one in resumed.trials], list(range(40)))
        self.assertLessEqual({one.state for one in resumed.trials}, {"completed", "stopped"})
        subprocess.run([PROGRAM, "replay", "killed"], check=True, stdout=subprocess.DEVNULL)

    def test_more_trials_of_a_study_that_is_done(self):
        first = self.tune("grows", trials=5)
        again = self.tune("grows", trials=5)
        self.assertEqual([one.parameters for one in again.trials], [one.parameters for one in first.trials])
        more = self.tune("grows", trials=8)
        self.assertEqual([one.id for one in more.trials], list(range(8)))
        self.assertEqual([one.parameters for one in more.trials[:5]], [one.parameters for one in first.trials])
        self.assertEqual(len(self.tune("grows", trials=3).trials), 8)  # a smaller number only ends it
        subprocess.run([PROGRAM, "replay", "grows"], check=True, stdout=subprocess.DEVNULL)

    def test_another_space_is_refused(self):
        self.tune("fixed", trials=3)
        with self.assertRaisesRegex(fettle.Refused, "(?i)space|parameters|kind"):
            fettle.tune(lambda x: x, {"x": fettle.uniform(-1, 2)}, minimize="loss", trials=3, study="fixed")

    def test_a_study_that_is_in_use(self):
        with fettle.Search(SPACE, minimize="loss", study="used"):
            with self.assertRaises(fettle.FettleError):
                fettle.Search(SPACE, minimize="loss", study="used")
        fettle.Search(SPACE, minimize="loss", study="used").close()

    def test_a_search_hands_out_what_was_running(self):
        with fettle.Search(SPACE, minimize="loss", study="asked", trials=4, seed=1) as search:
            lost = search.ask()
            search.ask().tell(1)
        with fettle.Search(SPACE, minimize="loss", study="asked", trials=4, seed=1) as search:
            self.assertEqual(search.stored_trials, 2)
            again = search.ask()
            self.assertEqual((again.id, again.parameters, again.again), (lost.id, lost.parameters, True))
            self.assertFalse(search.ask().again)

    def test_a_paused_trial_resumes_with_its_parameters(self):
        options = {"minimize": "loss", "trials": 9, "seed": 1, "study": "paused", "algorithm": "hyperband", "resource": (1, 9)}
        with fettle.Search(SPACE, **options) as search:
            before = {}
            for _ in range(2):
                trial = search.ask()
                before[trial.id] = trial.parameters
                while trial.report(1, trial.id):  # the first are the best
                    pass
        resumed = {}
        with fettle.Search(SPACE, **options) as search:
            for trial in search:
                if trial.resumed:
                    resumed.setdefault(trial.id, trial.parameters)
                step = 0
                while trial.state == "running":
                    step += 1
                    trial.report(step, trial.id)
        self.assertEqual({id: resumed[id] for id in before if id in resumed}, {id: before[id] for id in resumed if id in before})
        self.assertIn(0, resumed)

    def test_another_directory(self):
        pathlib.Path("elsewhere").mkdir()
        self.tune("there", trials=3, directory="elsewhere")
        self.assertTrue(pathlib.Path("elsewhere/.fettle/there.db").exists())
        self.assertEqual(len(self.tune("there", trials=3, directory="elsewhere").trials), 3)

    def test_names_that_cannot_be(self):
        for name in ("", "a/b", "A B"):
            with self.subTest(name), self.assertRaises((ValueError, fettle.FettleError)):
                fettle.Search(SPACE, minimize="loss", study=name)

    def test_an_interrupted_study_is_resumed(self):
        client = CLIENT.replace("WORKERS", "2").replace("time.sleep(0.002)", 'open("begun", "w"); time.sleep(0.2)')
        process = subprocess.Popen([sys.executable, "-c", client], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        while not pathlib.Path("begun").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        words = process.communicate()[1]
        self.assertEqual(process.returncode, -signal.SIGINT, words)
        self.assertIn("the same call resumes the study 'killed'", words)
        self.assertEqual(len(self.tune("killed").trials), 40)


if __name__ == "__main__":
    unittest.main()
