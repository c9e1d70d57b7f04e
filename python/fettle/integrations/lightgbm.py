"""report_callback(): reports the evaluations of LightGBM after each boosting round.

    lightgbm.train(..., valid_sets=[validation], valid_names=["valid"], callbacks=[report_callback("valid-l2")])

A step is a round. Metrics are named by data set, hyphen, metric. In lightgbm.cv() they are means over the folds, and
the data set is "valid" or "train".
"""

from __future__ import annotations

from collections.abc import Callable

from lightgbm.callback import CallbackEnv

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["report_callback"]


def report_callback(metrics: Metrics = None) -> Callable[[CallbackEnv], None]:
    """`metrics`: names such as "valid-l2", a dict {name in the study: that name}, or None: all."""

    def report(env: CallbackEnv) -> None:
        measured = {}
        for data, metric, value, *_ in env.evaluation_result_list or ():
            name = metric.replace(" ", "-") if data == "cv_agg" else f"{data}-{metric}"  # cv() before 4.6: "valid l2"
            measured[name] = value
        report_chosen(env.iteration + 1, measured, metrics, "LightGBM")

    return report
