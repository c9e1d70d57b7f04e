"""XGBoost and LightGBM with callbacks that report.

Of a callback is known: which steps it reports, under which names, with the values that the library itself recorded, and
what it says where a metric is missing.
"""
import unittest

import support
from support import FettleTest, reports

ROUNDS = 3


def samples():
    import numpy

    x = numpy.random.default_rng(0).normal(size=(200, 4))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


@support.needs("xgboost")
class XGBoostTest(FettleTest):
    def setUp(self):
        import xgboost
        from fettle.integrations.xgboost import ReportCallback

        self.library, self.callback = xgboost, ReportCallback
        self.data = xgboost.DMatrix(*samples())

    def train(self, metrics=None, evaluate=True, **options):
        parameters = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}
        evals = [(self.data, "valid")] if evaluate else []
        return self.library.train(parameters, self.data, ROUNDS, evals=evals, verbose_eval=False,
                                  callbacks=[self.callback(metrics)], **options)

    def test_each_round_is_a_step(self):
        recorded = {}
        found = reports(lambda: self.train(evals_result=recorded))
        self.assert_steps(found, 1, 2, 3)
        self.assertEqual([line["valid-logloss"] for line in found], recorded["valid"]["logloss"])
        self.assertEqual(set(found[0]), {"step", "valid-auc", "valid-logloss"})

    def test_chosen_metrics_and_names(self):
        self.assertEqual(set(reports(lambda: self.train("valid-auc"))[0]), {"step", "valid-auc"})
        self.assertEqual(set(reports(lambda: self.train({"loss": "valid-logloss"}))[0]), {"step", "loss"})

    def test_steps_continue_from_a_model(self):
        model = self.train()
        self.assert_steps(reports(lambda: self.train(xgb_model=model)), 4, 5, 6)

    def test_cross_validation_reports_means(self):
        def cross_validate():
            nonlocal table
            table = self.library.cv({"objective": "binary:logistic"}, self.data, ROUNDS, as_pandas=False,
                                    callbacks=[self.callback()])

        table = None
        found = reports(cross_validate)
        self.assertEqual([line["test-logloss"] for line in found], table["test-logloss-mean"])

    def test_scikit_learn_interface(self):
        def fit():
            self.library.XGBClassifier(n_estimators=2, callbacks=[self.callback()]).fit(
                *samples(), eval_set=[samples()], verbose=False)

        self.assert_steps(reports(fit), 1, 2)

    def test_a_metric_that_is_absent_is_named(self):
        with self.assertRaisesRegex(ValueError, "XGBoost has no metric 'val' at step 1; it has 'valid-auc', 'valid-logloss'"):
            reports(lambda: self.train("val"))

    def test_no_evaluation_at_all_is_said(self):
        with self.assertRaisesRegex(ValueError, "XGBoost has no metrics at step 1; it has none at all"):
            reports(lambda: self.train(evaluate=False))

    def test_nothing_is_printed_outside_fettle(self):
        self.assertEqual(reports(self.train, inside=False), [])


@support.needs("lightgbm")
class LightGBMTest(FettleTest):
    def setUp(self):
        import lightgbm
        from fettle.integrations.lightgbm import report_callback

        self.library, self.callback = lightgbm, report_callback
        self.parameters = {"objective": "binary", "metric": ["auc", "binary_logloss"], "verbose": -1}

    def data(self):
        return self.library.Dataset(*samples())

    def train(self, metrics=None, evaluate=True, more=(), **options):
        sets = {"valid_sets": [self.data()], "valid_names": ["valid"]} if evaluate else {}
        return self.library.train(self.parameters, self.data(), ROUNDS, callbacks=[self.callback(metrics), *more],
                                  **sets, **options)

    def test_each_round_is_a_step(self):
        recorded = {}
        found = reports(lambda: self.train(more=[self.library.record_evaluation(recorded)]))
        self.assert_steps(found, 1, 2, 3)
        self.assertEqual([line["valid-binary_logloss"] for line in found], recorded["valid"]["binary_logloss"])
        self.assertEqual(set(found[0]), {"step", "valid-auc", "valid-binary_logloss"})

    def test_chosen_metrics_and_names(self):
        self.assertEqual(set(reports(lambda: self.train(["valid-auc"]))[0]), {"step", "valid-auc"})
        self.assertEqual(set(reports(lambda: self.train({"auc": "valid-auc"}))[0]), {"step", "auc"})

    def test_steps_continue_from_a_model(self):
        model = self.train()
        self.assert_steps(reports(lambda: self.train(init_model=model)), 4, 5, 6)

    def test_cross_validation_reports_means(self):
        def cross_validate():
            nonlocal table
            table = self.library.cv(self.parameters, self.data(), ROUNDS, callbacks=[self.callback()], eval_train_metric=True)

        table = None
        found = reports(cross_validate)
        self.assertEqual([line["valid-auc"] for line in found], list(table["valid auc-mean"]))
        self.assertIn("train-auc", found[0])

    def test_a_metric_that_is_absent_is_named(self):
        with self.assertRaisesRegex(ValueError, "LightGBM has no metric 'loss' at step 1; it has 'valid-auc'"):
            reports(lambda: self.train("loss"))

    def test_no_evaluation_at_all_is_said(self):
        with self.assertRaisesRegex(ValueError, "LightGBM has no metrics at step 1; it has none at all"):
            reports(lambda: self.train(evaluate=False))

    def test_nan_is_reported_as_nan(self):
        def diverges(predictions, data):
            return "own", float("nan"), False

        found = reports(lambda: self.train("valid-own", feval=diverges))
        self.assertTrue(all(line["valid-own"] != line["valid-own"] for line in found))

    def test_nothing_is_printed_outside_fettle(self):
        self.assertEqual(reports(self.train, inside=False), [])


class ChosenMetricsTest(FettleTest):
    """What no library can be brought to do."""

    def report(self, measured, metrics=None):
        from fettle.integrations._metrics import report_chosen

        return reports(lambda: report_chosen(1, measured, metrics, "the library"))

    def test_step_names_no_metric(self):
        self.assertEqual(self.report({"step": 7, "loss": 2}), [{"step": 1, "loss": 2.0}])
        with self.assertRaisesRegex(ValueError, "needs another name"):
            self.report({"step": 7}, "step")
        self.assertEqual(self.report({"step": 7}, {"steps": "step"}), [{"step": 1, "steps": 7.0}])

    def test_more_metrics_than_a_report_holds(self):
        with self.assertRaisesRegex(ValueError, "33 metrics, and a report at most 32: name those of the study"):
            self.report({f"m{index}": index for index in range(33)})

    def test_only_numbers_are_taken(self):
        self.assertEqual(self.report({"a": 1, "text": "x", "list": [1], "no": None}), [{"step": 1, "a": 1.0}])

    def test_a_choice_of_nothing(self):
        with self.assertRaisesRegex(ValueError, "the library has no metrics at step 1; it has 'a'"):
            self.report({"a": 1}, [])


if __name__ == "__main__":
    unittest.main()
