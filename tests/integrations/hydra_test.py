"""The sweeper in Hydra: overrides of every kind, both launchers, jobs that fail."""
import pathlib
import sys
import tempfile
import unittest

import support

import fettle

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "hydra_job.py"


@support.needs("hydra")
class OverridesTest(unittest.TestCase):
    """Read as Hydra's Optuna sweeper reads them."""

    def read(self, *overrides):
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra_plugins.hydra_fettle_sweeper._overrides import SweptSpace

        return SweptSpace(OverridesParser.create().parse_overrides(list(overrides)))

    def test_numbers(self):
        for text, parameter in (
            ("interval(1, 5)", fettle.uniform(1, 5)),
            ("int(interval(1, 5))", fettle.integer(1, 5)),
            ("tag(log, interval(1, 5))", fettle.loguniform(1, 5)),
            ("tag(log, int(interval(1, 5)))", fettle.integer(1, 5, log=True)),
            ("range(1, 3)", fettle.integer(1, 3, step=1)),
            ("range(1, 9, 2)", fettle.integer(1, 9, step=2)),
            ("range(0.5, 5.5, step=1)", fettle.uniform(0.5, 5.5, step=1)),
        ):
            with self.subTest(text):
                self.assertEqual(self.read(f"key={text}").space, {"key": parameter})

    def test_choices_are_handed_on_as_they_were_written(self):
        swept = self.read("key=true,null,1,1.5,'a b',[1,2]", "db=mysql,pg", "k=shuffle(range(1, 3))")
        self.assertEqual({name: len(one.choices) for name, one in swept.space.items()}, {"key": 6, "db": 2, "k": 2})
        jobs = [swept.overrides({"key": str(index), "db": "1"}) for index in range(6)]
        self.assertEqual([one[0] for one in jobs],
                         ["key=True", "key=null", "key=1", "key=1.5", "key='a b'", "key=[1,2]"])
        self.assertEqual(jobs[0][1], "db=pg")

    def test_what_is_no_sweep_goes_to_every_job(self):
        swept = self.read("lr=interval(0.1,1)", "seed=3", "~db", "+new=[1,2]", "++text='a,b'")
        self.assertEqual(swept.overrides({"lr": 0.5}), ["lr=0.5", "seed=3", "~db", "+new=[1,2]", "++text='a,b'"])

    def test_a_later_override_replaces_an_earlier_one(self):
        self.assertEqual(list(self.read("a=1,2", "b=range(1,3)", "a=7").space), ["b"])
        self.assertEqual(self.read("a=1,2", "a=interval(0,1)").space, {"a": fettle.uniform(0, 1)})

    def test_bad_sweeps_are_named(self):
        for text, error in (("interval(5, 1)", "key=interval.5, 1.: uniform: the lower bound 5.0 is above"),
                            ("tag(log, interval(0, 1))", "a logarithmic scale needs a lower bound above 0"),
                            ("range(9, 1, -1)", "key=range"), ("3", "nothing to sweep over")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, error):
                self.read(f"key={text}")


@support.needs("hydra_plugins.hydra_joblib_launcher")
class SweepTest(unittest.TestCase):
    def sweep(self, *arguments, fails=False):
        """Standard error, and what optimization_results.yaml says, of a sweep of programs/hydra_job.py."""
        import subprocess

        from omegaconf import OmegaConf

        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, str(PROGRAM), "--multirun", "hydra/sweeper=fettle", "hydra.sweeper.seed=1",
                 f"hydra.sweep.dir={folder}", *arguments],
                env=support.environment(), text=True, capture_output=True, timeout=support.PATIENCE)  # fmt: skip
            self.assertEqual(done.returncode != 0, fails, done.stderr)
            if fails:
                return done.stdout + done.stderr  # Hydra logs to standard output
            self.jobs = sorted(int(path.name) for path in pathlib.Path(folder).iterdir() if path.is_dir())
            return OmegaConf.to_container(OmegaConf.load(f"{folder}/optimization_results.yaml"))

    def test_the_basic_launcher(self):
        found = self.sweep("x=interval(-5,5)", "opt.name=sgd,adam", "n=range(1,9)", "hydra.sweeper.n_trials=25",
                           "hydra.sweeper.n_jobs=5")
        self.assertEqual(self.jobs, list(range(25)))
        self.assertLess(found["best_value"], 2)
        self.assertEqual(found["best_params"]["opt.name"], "adam")

    def test_the_joblib_launcher(self):
        found = self.sweep("x=interval(-5,5)", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweeper.n_trials=6",
                           "hydra.sweeper.n_jobs=2")
        self.assertEqual(self.jobs, list(range(6)))
        self.assertEqual(set(found["best_params"]), {"x"})

    def test_parameters_of_the_configuration(self):
        found = self.sweep("+hydra.sweeper.params.x='interval(-5,5)'", "+hydra.sweeper.params.n='range(1,3)'", "n=2",
                           "hydra.sweeper.n_trials=4", "hydra.sweeper.direction=maximize", "hydra.sweeper.algorithm=random")
        self.assertEqual(set(found["best_params"]), {"x"})
        self.assertEqual(self.jobs, [0, 1, 2, 3])

    def test_a_used_up_space_ends_the_sweep(self):
        self.sweep("opt.name=sgd,adam", "hydra.sweeper.n_trials=9")
        self.assertEqual(self.jobs, [0, 1])

    def test_several_objectives(self):
        found = self.sweep("x=interval(-5,5)", "several=true", "hydra.sweeper.direction=[minimize,maximize]",
                           "hydra.sweeper.n_trials=8")
        self.assertTrue(found["solutions"])
        self.assertEqual(len(found["solutions"][0]["values"]), 2)

    def test_jobs_that_fail(self):
        error = self.sweep("x=interval(-5,5)", "fails=true", "hydra.sweeper.n_trials=4", fails=True)
        self.assertIn("max_failure_rate is 0.0", error)
        self.assertIn("x is above 0", error)
        found = self.sweep("x=interval(-5,5)", "fails=true", "hydra.sweeper.n_trials=10", "hydra.sweeper.max_failure_rate=1")
        self.assertLessEqual(found["best_params"]["x"], 0)
        self.assertEqual(len(self.jobs), 10)

    def test_bad_settings_say_what_to_do(self):
        self.assertIn("nothing to sweep over", self.sweep("n=3", fails=True))
        self.assertIn("direction must be minimize or maximize", self.sweep("x=1,2", "hydra.sweeper.direction=up", fails=True))
        self.assertIn("could not convert string to float", self.sweep("x=1,2", "text=true", fails=True))


if __name__ == "__main__":
    unittest.main()
