"""ReportCallback: reports the evaluations of a training by the Trainer of transformers.

    Trainer(..., callbacks=[ReportCallback("eval_loss")])

A step is an epoch with eval_strategy="epoch", else one of the optimizer. Evaluations of several data sets at one step
are one report, made before the next training step, so behind the checkpoint. Evaluations outside train() are silent.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerState, TrainingArguments

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["ReportCallback"]


class ReportCallback(TrainerCallback):
    """`metrics`: names as in an evaluation ("eval_loss"), a dict {name in the study: that name}, or None: all."""

    def __init__(self, metrics: Metrics = None) -> None:
        self.metrics = metrics
        self._measured: dict[int, dict[str, Any]] = {}  # by step; not reported yet

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._measured = {}

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, *_: Any, metrics: dict[str, Any], **__: Any) -> None:
        step = max(1, round(state.epoch or 0)) if args.eval_strategy == "epoch" else state.global_step
        self._measured.setdefault(step, {}).update(metrics)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        measured, self._measured = self._measured, {}
        for step, metrics in measured.items():
            report_chosen(step, metrics, self.metrics, "the evaluation")

    on_train_end = on_step_begin
