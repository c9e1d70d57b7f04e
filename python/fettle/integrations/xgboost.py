"""ReportCallback: reports the evaluations of XGBoost after each boosting round.

    xgboost.train(..., evals=[(validation, "valid")], callbacks=[ReportCallback("valid-logloss")])

A step is a round, counted from the first one of the model that training continues from. Metrics have the names that
XGBoost prints: data set, hyphen, metric. In xgboost.cv() they are means over the folds. Only rank 0 reports.
"""

from __future__ import annotations

from typing import Any

from xgboost import collective
from xgboost.callback import TrainingCallback

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["ReportCallback"]


class ReportCallback(TrainingCallback):
    """`metrics`: names such as "valid-logloss", a dict {name in the study: that name}, or None: all."""

    def __init__(self, metrics: Metrics = None) -> None:
        super().__init__()
        self.metrics = metrics

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        newest = {f"{data}-{metric}": values[-1] for data, logs in evals_log.items() for metric, values in logs.items()}
        means = {name: value[0] if isinstance(value, tuple) else value for name, value in newest.items()}
        step = model.num_boosted_rounds() if hasattr(model, "num_boosted_rounds") else epoch + 1  # cv() has no model
        if collective.get_rank() == 0:
            report_chosen(step, means, self.metrics, "XGBoost")
        return False  # training continues
