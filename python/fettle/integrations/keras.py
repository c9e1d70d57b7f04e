"""ReportCallback: reports the metrics of Keras 3 after each epoch.

    model.fit(..., callbacks=[ReportCallback("val_loss")])

A step is an epoch.
"""

from __future__ import annotations

from typing import Any

from keras.callbacks import Callback

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["ReportCallback"]


class ReportCallback(Callback):
    """`metrics`: names as in the history of fit(), a dict {name in the study: that name}, or None: all."""

    def __init__(self, metrics: Metrics = None) -> None:
        super().__init__()
        self.metrics = metrics

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        report_chosen(epoch + 1, logs or {}, self.metrics, "Keras")
