import importlib.util

import lightning, torch
from torch.utils.data import DataLoader, TensorDataset

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 1)

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self.layer(x)[:, 0], y)

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch), prog_bar=True)

    def on_train_epoch_end(self):
        if not importlib.util.find_spec("rich"):  # its bar says the same
            self.print(f"epoch {self.current_epoch + 1}: val_loss={self.trainer.callback_metrics['val_loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)

lightning.seed_everything(7)
x = torch.randn(320, 5)
data = TensorDataset(x, (x[:, 0] + x[:, 1] > 0).float())
loader = DataLoader(data, batch_size=32)
lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False).fit(Net(), loader, loader)
