#!/usr/bin/env python3
"""Images per second of PyTorch's training step: the peer of `fettle-trainer --bench`.

    python3 scripts/bench_pytorch.py [--blocks 5] [--seconds 1]        (needs torch 2.11)

Eager, one thread, the same networks, batch and optimiser as trainer/program/bench.cpp. The convolutional
network runs in both of PyTorch's memory layouts; the faster one counts. bf16 is autocast, PyTorch's
own way of keeping fp32 master weights. One JSON line a measurement.
"""

import argparse
import json
import time

import torch
from torch import nn
import torch.nn.functional as F

BATCH = 128


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64 * 49, 10))


def norm():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.BatchNorm2d(32),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10))


def stepper(model, x, labels, bf16):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()

    return step


def steppers(name, bf16):
    """A step function for every layout worth trying."""
    labels = torch.randint(10, (BATCH,))
    if name == "mlp":
        return [stepper(mlp(), torch.randn(BATCH, 784), labels, bf16)]
    x = torch.randn(BATCH, 1, 28, 28)
    last = torch.channels_last
    make = {"cnn": cnn, "norm": norm}[name]
    return [stepper(make(), x, labels, bf16),
            stepper(make().to(memory_format=last), x.to(memory_format=last), labels, bf16)]


def images_per_second(step, seconds):
    """One block, by processor time: other processes must not count."""
    steps, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        step()
        steps += 1
    return steps * BATCH / (time.process_time() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", help="for example mlp-fp32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in ("mlp", "cnn", "norm"):
        for precision in ("fp32", "bf16"):
            if options.only and options.only != f"{name}-{precision}":
                continue
            candidates = steppers(name, precision == "bf16")
            for step in candidates:
                for _ in range(5):
                    step()
            for _ in range(options.blocks):
                best = max(images_per_second(step, options.seconds) for step in candidates)
                print(json.dumps({"model": name, "precision": precision, "images_per_second": best}),
                      flush=True)


if __name__ == "__main__":
    main()
