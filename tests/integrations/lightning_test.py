"""Lightning with a callback that reports: validation of every kind, two ranks, and trials that Fettle stops."""
import pathlib
import sys
import unittest

import support
from support import FettleTest, reports, run_program, run_study

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "lightning_training.py"


@support.needs("pytorch_lightning")
class LightningTest(FettleTest):
    def fit(self, metrics=None, epochs=2, validate=True, **options):
        from programs.lightning_training import fit

        return reports(lambda: fit(metrics, epochs, validate, **options))

    def test_each_epoch_is_a_step(self):
        found = self.fit()
        self.assert_steps(found, 1, 2)
        self.assertLessEqual({"step", "train_loss", "val/loss", "val/first"}, set(found[0]))
        self.assertLess(found[1]["val/loss"], found[0]["val/loss"])

    def test_the_sanity_check_is_no_epoch(self):
        self.assert_steps(self.fit("val/loss", num_sanity_val_steps=2), 1, 2)

    def test_epochs_without_validation_are_passed_over(self):
        self.assert_steps(self.fit("val/loss", epochs=4, check_val_every_n_epoch=2), 2, 4)

    def test_several_validations_in_an_epoch(self):
        self.assert_steps(self.fit("val/loss", val_check_interval=2), 1, 2)

    def test_without_validation(self):
        self.assert_steps(self.fit({"loss": "train_loss"}, validate=False), 1, 2)

    def test_a_metric_that_is_absent_is_named(self):
        with self.assertRaisesRegex(ValueError, "the Trainer has no metric 'loss' at step 1; it has .*'val/loss'"):
            self.fit("loss")

    def test_nan_is_reported_as_nan(self):
        self.assertNotEqual(*[self.fit({"loss": "val/nan"})[0]["loss"]] * 2)

    def test_two_ranks_report_once(self):
        """The metric is the mean over both, which each rank must compute."""
        out = run_program(PROGRAM, "--devices", "2", FETTLE_TRIAL="/dev/null")
        found = support.reports_in(out)
        self.assert_steps(found, 1, 2, 3)
        self.assertEqual(found[0]["val/rank"], 0.5)

    def test_nothing_is_printed_outside_fettle(self):
        self.assertEqual(support.reports_in(run_program(PROGRAM)), [])

    def test_a_study_of_two_ranks_that_stops_trials(self):
        """SIGTERM ends both ranks, by Lightning's own handler of it."""
        trials = run_study([sys.executable, str(PROGRAM), "--devices", "2", "--epochs", "12", "--pause", "0.2"], "val/loss",
                           resource={"unit": "epoch", "min": 1, "max": 12},
                           earlyStopping={"name": "asha", "reductionFactor": 3},
                           budget={"trials": 4, "parallelism": 2})
        phases = [trial["phase"] for trial in trials]
        self.assertIn("Stopped", phases)
        self.assertLessEqual(set(phases), {"Stopped", "Completed"})
        for trial in trials:
            steps = [point["step"] for point in trial["curve"]]
            self.assertEqual(steps, list(range(1, trial["step"] + 1)))


if __name__ == "__main__":
    unittest.main()
