#!/usr/bin/env python3
"""A whole training in PyTorch, the peer of `fettle-trainer FILE`: one JSON line an epoch, as it writes them.

    python3 scripts/bench_pytorch_trial.py CONFIG --model mlp --epochs 20 [--way graph] [--weights CHECKPOINT]

CONFIG is the trainer's configuration (scripts/bench_gpu.py writes it). The data lie on the device. With --way graph
a step is one CUDA graph, which is as fast as PyTorch gets without compiling. With --weights it starts from that
checkpoint of fettle-trainer and takes the samples in its order (seed 0); otherwise it draws the order on the device.
"""

import argparse
import json
import pathlib
import time

START = time.perf_counter()

import torch  # noqa: E402
from torch import nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from bench_pytorch_gpu import MODELS, capture  # noqa: E402
import fettle_numbers  # noqa: E402


class Data:
    """Images in [0, 1] as the network takes them, on the device."""

    def __init__(self, config, shape, device):
        data = config["data"]
        height, width, channels = shape
        pixels = torch.frombuffer(bytearray(fettle_numbers.read_npy(data["trainImages"])), dtype=torch.uint8)
        images = pixels.to(device).view(-1, height, width, channels).permute(0, 3, 1, 2).float() / 255
        images = (images - data["normalize"]["mean"]) / data["normalize"]["std"]
        self.images = images.contiguous(memory_format=torch.channels_last)
        labels = bytearray(fettle_numbers.read_npy(data["trainLabels"]))
        self.labels = torch.frombuffer(labels, dtype=torch.uint8).to(device).long()
        self.train, self.held_out = fettle_numbers.split(len(labels), data["validationSamples"])

    def order(self, epoch, as_fettle):
        device = self.labels.device
        if as_fettle:
            return torch.tensor(fettle_numbers.epoch_order(self.train, 0, epoch), device=device)
        train = torch.tensor(self.train, device=device)
        return train[torch.randperm(len(self.train), device=device)]


def load_weights(model, path):
    """In the order of a NetworkPlan: weights of layers, then all that weight decay leaves alone."""
    drawn = (nn.Conv2d, nn.Linear)
    layers = [module for module in model.modules() if isinstance(module, (*drawn, nn.BatchNorm2d))]
    decayed = [layer.weight for layer in layers if isinstance(layer, drawn)]
    others = []
    for layer in layers:
        others += [] if isinstance(layer, drawn) else [layer.weight]
        others += [] if layer.bias is None else [layer.bias]
    values = torch.frombuffer(fettle_numbers.read_weights(path), dtype=torch.float32)
    places, begin = fettle_numbers.blocks([parameter.numel() for parameter in decayed])
    places += fettle_numbers.blocks([parameter.numel() for parameter in others], begin)[0]
    with torch.no_grad():
        for parameter, place in zip(decayed + others, places):
            flat = values[place:place + parameter.numel()]
            if parameter.dim() == 4:                        # [out, height, width, in]
                out, inputs, height, width = parameter.shape
                flat = flat.view(out, height, width, inputs).permute(0, 3, 1, 2)
            parameter.copy_(flat.reshape(parameter.shape))


class Trainer:
    def __init__(self, model, data, options, config):
        self.model, self.data, self.options = model, data, options
        training = config["training"]
        self.batch, self.precision = training["globalBatch"], training["precision"]
        on_gpu = data.labels.is_cuda
        self.optimizer = torch.optim.SGD(model.parameters(), lr=training["learningRate"],
                                         momentum=training["momentum"], fused=on_gpu)
        self.x = torch.empty_like(data.images[:self.batch])
        self.y = torch.zeros(self.batch, dtype=torch.long, device=data.labels.device)
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=data.labels.device)
        self.graph = None

    def loss_of(self, x, y):
        device = "cuda" if y.is_cuda else "cpu"
        with torch.autocast(device, torch.bfloat16, enabled=self.precision == "bf16"):
            return F.cross_entropy(self.model(x).float(), y)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(x, y)
        loss.backward()
        self.optimizer.step()
        self.loss_sum += loss.detach() * len(y)

    def capture(self):
        """The captured steps must not train: the state is put back."""
        saved = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.x.copy_(self.data.images[:self.batch])
        replay = capture(lambda: self.step(self.x, self.y))
        self.model.load_state_dict(saved)
        for state in self.optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()
        self.graph = replay

    def epoch(self, number):
        self.model.train()
        self.loss_sum.zero_()
        order = self.data.order(number, self.options.weights is not None)
        for chosen in order.split(self.batch):
            if self.graph and len(chosen) == self.batch:
                torch.index_select(self.data.images, 0, chosen, out=self.x)
                torch.index_select(self.data.labels, 0, chosen, out=self.y)
                self.graph()
            else:
                self.step(self.data.images[chosen], self.data.labels[chosen])
        return self.loss_sum.item() / len(order)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        chosen = torch.tensor(self.data.held_out, device=self.data.labels.device)
        loss = sum(self.loss_of(self.data.images[part], self.data.labels[part]) * len(part)
                   for part in chosen.split(4 * self.batch))
        return loss.item() / len(chosen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--model", choices=("mlp", "resnet9"), required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--way", choices=("eager", "graph"), default="eager")
    parser.add_argument("--weights", help="a checkpoint of fettle-trainer before its first step")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    config = json.loads(options.config.read_text())
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = options.device == "cuda"
    # fp32 is fp32, as it is with us: TF32 would be another curve.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    shape = (28, 28, 1) if options.model == "mlp" else (32, 32, 3)
    model = MODELS[options.model][0]().to(options.device).to(memory_format=torch.channels_last)
    if options.weights:
        load_weights(model, options.weights)
    trainer = Trainer(model, Data(config, shape, options.device), options, config)
    if options.way == "graph":
        trainer.capture()
    ready = time.perf_counter() - START
    for number in range(options.epochs):
        began = time.perf_counter()
        line = {"step": number + 1, "loss": trainer.epoch(number), "validation_loss": trainer.validate()}
        line |= {"seconds": time.perf_counter() - began, "seconds_until_ready": round(ready, 3)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
