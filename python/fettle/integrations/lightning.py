"""ReportCallback: reports the metrics of a Lightning training after each epoch.

    Trainer(callbacks=[ReportCallback("val_loss")])

A step is an epoch. Where the model is validated, epochs without a validation are not reported. Each rank reads the
metrics, because reading them may reduce over all ranks; only rank 0 prints. Works with the packages `lightning` and
`pytorch_lightning`, and takes the first if both are installed.
"""

from __future__ import annotations

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ModuleNotFoundError:
    from pytorch_lightning import Callback, LightningModule, Trainer

from fettle.integrations._metrics import Metrics, report_chosen

__all__ = ["ReportCallback"]


class ReportCallback(Callback):
    """`metrics`: names that the model logs, a dict {name in the study: name in the log}, or None: all."""

    def __init__(self, metrics: Metrics = None) -> None:
        super().__init__()
        self.metrics = metrics
        self._is_validated = False

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._is_validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._is_validated or not trainer.enable_validation:
            self._is_validated = False
            report_chosen(trainer.current_epoch + 1, trainer.callback_metrics, self.metrics, "the Trainer")
