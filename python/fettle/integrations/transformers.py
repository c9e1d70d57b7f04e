"""ReportCallback: reports the evaluations of a training by the Trainer of transformers.

    Trainer(..., callbacks=[ReportCallback("eval_loss")])

A step is an epoch with eval_strategy="epoch", and a step of the optimizer with eval_strategy="steps". Evaluations of
several data sets at one step are one report. It is made before the next training step, so behind the checkpoint of
that step. trainer.evaluate() before or after the training is not reported.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["ReportCallback"]


class ReportCallback(TrainerCallback):
    """`metrics`: names as in an evaluation ("eval_loss"), a dict {name in the study: that name}, or None: all."""

    def __init__(self, metrics: Metrics = None) -> None:
        self.metrics = metrics
        self._measured: dict[str, Any] = {}
        self._step = 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._measured = {}

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl,
                    metrics: dict[str, Any] | None = None, **_: Any) -> None:
        strategy = args.eval_strategy
        self._step = max(1, round(state.epoch or 0)) if strategy == "epoch" else state.global_step
        self._measured.update(metrics or {})

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        measured, self._measured = self._measured, {}
        if measured:
            report_chosen(self._step, measured, self.metrics, "the evaluation")

    on_train_end = on_step_begin
