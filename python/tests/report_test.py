#!/usr/bin/env python3
"""Tests of report(), trial() and trials() in programs that Fettle runs, and in those that it does not."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE))

import fettle  # noqa: E402

TRIAL = {"trial": "digits-3", "study": "digits", "seed": 7, "parameters": {"lr": 0.5}, "untilStep": 9,
         "checkpoints": {"directory": "/checkpoints"}}


class Scalar:
    """As NumPy and PyTorch have them: numbers that are no float."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class InATrial(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "trial.json")
        path.write_text(json.dumps(TRIAL))
        self.environment = {"FETTLE_TRIAL": str(path)}

    def said(self, step=None, /, environment=(), **values):
        out = io.StringIO()
        with mock.patch.dict(os.environ, {**self.environment, **dict(environment)}), contextlib.redirect_stdout(out):
            self.assertTrue(fettle.report(step, **values))
        return out.getvalue()

    def test_a_report_is_a_line(self):
        self.assertEqual(self.said(3, loss=0.25, accuracy=1), '{"step": 3, "loss": 0.25, "accuracy": 1.0}\n')

    def test_without_a_step(self):
        self.assertEqual(self.said(loss=0.25), '{"loss": 0.25}\n')

    def test_scalars_of_other_libraries(self):
        self.assertEqual(self.said(Scalar(3).item(), loss=Scalar(0.25)), '{"step": 3, "loss": 0.25}\n')

    def test_what_is_not_finite_is_infeasible(self):
        self.assertEqual(self.said(loss=float("nan")), '{"loss": NaN}\n')
        self.assertEqual(self.said(loss=float("-inf")), '{"loss": -Infinity}\n')
        self.assertEqual(self.said(loss=None), '{"loss": null}\n')
        self.assertEqual(self.said(loss=Scalar(float("nan"))), '{"loss": NaN}\n')

    def test_names_and_texts(self):
        self.assertEqual(self.said(checkpoint="step-3", **{"val/loss": 1}), '{"checkpoint": "step-3", "val/loss": 1.0}\n')

    def test_bad_values(self):
        with self.assertRaisesRegex(TypeError, "loss must be a number; found list"):
            self.said(loss=[1, 2])
        with self.assertRaisesRegex(TypeError, "whole number of at least 0; found -1"):
            self.said(-1, loss=1)
        with self.assertRaisesRegex(TypeError, "whole number of at least 0; found 1.5"):
            self.said(1.5, loss=1)

    def test_only_rank_zero_prints(self):
        for environment, prints in (({"RANK": "0"}, True), ({"RANK": "1"}, False), ({"LOCAL_RANK": "1"}, False),
                                    ({"RANK": "4", "LOCAL_RANK": "0"}, False), ({"LOCAL_RANK": "0"}, True),
                                    ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False), ({"PMI_RANK": "2"}, False)):
            with self.subTest(environment):
                self.assertEqual(bool(self.said(loss=1, environment=environment)), prints)

    def test_a_rank_of_pytorch(self):
        distributed = mock.Mock(**{"is_available.return_value": True, "is_initialized.return_value": True,
                                   "get_rank.return_value": 1})
        with mock.patch.dict(sys.modules, {"torch": mock.Mock(distributed=distributed)}):
            self.assertEqual(self.said(loss=1), "")

    def test_it_is_flushed(self):
        program = "import fettle, os; fettle.report(1, loss=2); os._exit(0)"
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **self.environment,
                              "PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True)
        self.assertEqual(done.stdout, '{"step": 1, "loss": 2.0}\n')

    def test_the_trial(self):
        with mock.patch.dict(os.environ, self.environment):
            trial = fettle.trial(lr=0.1, momentum=0.9)
        self.assertEqual((trial["lr"], trial["momentum"], trial.until_step, trial.name), (0.5, 0.9, 9, "digits-3"))

    def test_a_loop_over_the_only_trial(self):
        out = io.StringIO()
        with mock.patch.dict(os.environ, self.environment), contextlib.redirect_stdout(out):
            for trial in fettle.trials(lr=0.1):
                with trial:
                    fettle.report(1, loss=trial["lr"])
                self.assertIs(fettle.trial(), trial)
        self.assertEqual(out.getvalue(), '{"step": 1, "loss": 0.5}\n')


class Alone(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("FETTLE_TRIAL", None)

    def test_a_report_does_nothing(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertTrue(fettle.report(1, loss=0.5))
        self.assertEqual(out.getvalue(), "")

    def test_defaults_make_one_trial(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            seen = []
            for trial in fettle.trials(lr=0.1, until_step=3):
                with trial:
                    for step in trial.steps():
                        trial.report(step, loss=trial["lr"])
                        seen.append(step)
        self.assertEqual((seen, out.getvalue()), ([1, 2, 3], ""))

    def test_without_defaults_it_says_what_to_do(self):
        with self.assertRaisesRegex(RuntimeError, "fettle run study.yaml.*or give defaults"):
            fettle.trial()
        with self.assertRaisesRegex(RuntimeError, "give defaults"):
            next(fettle.trials())


class TheModule(unittest.TestCase):
    def test_every_name_is_there(self):
        for name in fettle.__all__:
            self.assertTrue(hasattr(fettle, name), name)
        self.assertLessEqual(set(fettle.__all__), set(dir(fettle)))
        with self.assertRaisesRegex(AttributeError, "no attribute 'tuned'"):
            fettle.tuned


if __name__ == "__main__":
    unittest.main()
