"""A tiny training with Lightning on one or two CPUs, which reports by ReportCallback. FETTLE_PARAM_LR: learning rate."""
import argparse
import logging
import os
import time
import warnings

import torch
from fettle.integrations.lightning import ReportCallback
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as lightning
except ModuleNotFoundError:
    import pytorch_lightning as lightning

QUIET = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
         "enable_model_summary": False}  # fmt: skip


class Model(lightning.LightningModule):
    def __init__(self, rate, pause=0.0):
        super().__init__()
        self.rate, self.pause = rate, pause
        self.layer = torch.nn.Linear(4, 1)

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self.layer(x)[:, 0], y)

    def training_step(self, batch, index):
        time.sleep(self.pause if index == 0 else 0)
        loss = self.loss(batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val/loss", self.loss(batch), sync_dist=True)
        self.log("val/first", self.layer.weight[0, 0], sync_dist=True)
        self.log("val/nan", float("nan"), sync_dist=True)
        self.log("val/rank", float(self.global_rank), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


def data():
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(x, (x[:, 0] > 0).float()), batch_size=16)


def fit(metrics, epochs, validate=True, rate=0.5, pause=0.0, **options):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    lightning.seed_everything(1)
    trainer = lightning.Trainer(max_epochs=epochs, callbacks=[ReportCallback(metrics)], **{"devices": 1, **QUIET, **options})
    trainer.fit(Model(rate, pause), data(), *[data()] if validate else [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    arguments = parser.parse_args()
    rate = float(os.environ.get("FETTLE_PARAM_LR", 0.5))
    strategy = {"strategy": "ddp"} if arguments.devices > 1 else {}
    fit(None, arguments.epochs, rate=rate, pause=arguments.pause, devices=arguments.devices, **strategy)
