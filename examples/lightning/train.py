# An ordinary PyTorch Lightning script, which knows nothing of Fettle. Needs lightning
# (pip install lightning).
import argparse

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.01)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--epochs", type=int, default=9)
options = parser.parse_args()


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, options.width), torch.nn.ReLU(), torch.nn.Linear(options.width, 1))

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self.layers(x)[:, 0], y)

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch))

    def on_train_epoch_end(self):  # Lightning has validated by then
        val_loss = self.trainer.callback_metrics["val_loss"]
        self.print(f"epoch {self.current_epoch + 1}: val_loss={val_loss:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=options.learning_rate)


def loader(samples):
    x = torch.randn(samples, 8)
    return DataLoader(TensorDataset(x, (x[:, 0] * x[:, 1] > 0).float()), batch_size=32)


lightning.seed_everything(7)
trainer = lightning.Trainer(max_epochs=options.epochs, logger=False, enable_checkpointing=False)
trainer.fit(Net(), loader(2000), loader(400))
