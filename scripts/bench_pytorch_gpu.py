#!/usr/bin/env python3
"""PyTorch's training step on a GPU, in every way that makes it fast: the peer of `fettle-trainer --bench`.

    python3 scripts/bench_pytorch_gpu.py --model resnet9 --batch 512 [--seconds 2] [--ways eager,graph]

bf16 autocast with fp32 master weights, SGD with momentum, fused; channels_last for convolutions; random samples
that lie on the device. Ways: eager, compile (default, reduce-overhead, max-autotune), graph (the whole step, optimiser
included, captured once), default+graph (what is compiled, in such a graph). With "+cudnn-attention" attention is
cuDNN's, with "+bf16-residual" what runs past the blocks of a GPT is bf16 (autocast leaves it fp32), as Fettle's is.
One JSON line a way: median of the blocks.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

WAYS = ("eager", "graph", "default", "default+graph", "reduce-overhead", "max-autotune")
MODES = ("default", "reduce-overhead", "max-autotune")  # of torch.compile


class Residual(nn.Module):
    """relu(inner(x) + shortcut(x)), or without the ReLU."""

    def __init__(self, inner, shortcut=None, relu=True):
        super().__init__()
        self.inner, self.shortcut, self.relu = inner, shortcut or nn.Identity(), relu

    def forward(self, x):
        y = self.inner(x) + self.shortcut(x)
        return F.relu(y) if self.relu else y


def conv_norm(inputs, outputs, kernel=3, stride=1, relu=True):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def resnet9():
    def wide(channels):
        return Residual(nn.Sequential(conv_norm(channels, channels), conv_norm(channels, channels)), relu=False)
    return nn.Sequential(conv_norm(3, 64), conv_norm(64, 128), nn.MaxPool2d(2), wide(128), conv_norm(128, 256),
                         nn.MaxPool2d(2), conv_norm(256, 512), nn.MaxPool2d(2), wide(512), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(512, 10))


def resnet50():
    layers = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(2)]
    inputs = 64
    for blocks, channels, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            inner = nn.Sequential(conv_norm(inputs, channels, 1), conv_norm(channels, channels, 3, step),
                                  conv_norm(channels, 4 * channels, 1, relu=False))
            # The first block of a stage changes the number of channels, so its shortcut has to, too.
            shortcut = conv_norm(inputs, 4 * channels, 1, step, relu=False) if block == 0 else None
            layers.append(Residual(inner, shortcut))
            inputs = 4 * channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = [part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, 2)]
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, length, vocabulary):
        super().__init__()
        self.table, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.residual = nn.LayerNorm(width), torch.float32

    def forward(self, tokens):
        x = (self.table(tokens) + self.positions).to(self.residual)
        x = self.norm(self.blocks(x))
        return F.linear(x, self.table.weight).flatten(0, 1)  # tied


def images(batch, device, channels, side, classes):
    x = torch.randn(batch, channels, side, side, device=device).to(memory_format=torch.channels_last)
    return x, torch.randint(classes, (batch,), device=device), batch


def text(batch, device, length, vocabulary):
    tokens = torch.randint(vocabulary, (batch, length + 1), device=device)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten(), batch * length


# As trainer/program/bench.cpp has them: network, samples, and the unit of what is counted.
MODELS = {
    "mlp": (mlp, lambda *to: images(*to, 1, 28, 10), "images"),
    "resnet9": (resnet9, lambda *to: images(*to, 3, 32, 10), "images"),
    "resnet50": (resnet50, lambda *to: images(*to, 3, 224, 1000), "images"),
    "chargpt": (lambda: Gpt(6, 6, 384, 256, 84), lambda *to: text(*to, 256, 84), "tokens"),
    "gpt2": (lambda: Gpt(12, 12, 768, 1024, 50304), lambda *to: text(*to, 1024, 50304), "tokens"),
}


def make_step(make_model, x, labels, way):
    torch.manual_seed(0)
    device = labels.device.type
    model = make_model().to(device).to(memory_format=torch.channels_last)
    parts = way.split("+")
    if "bf16-residual" in parts:
        model.residual = torch.bfloat16
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def loss_of(x, labels):
        with torch.autocast(device, torch.bfloat16):
            return F.cross_entropy(model(x), labels)

    # Compiled together with the loss. Otherwise the fp32 logits, of 50304 classes, would be written to memory and read
    # again.
    mode = next((part for part in parts if part in MODES), None)
    run = torch.compile(loss_of, mode=mode) if mode else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        with attention_of(parts):
            run(x, labels).backward()
        optimizer.step()

    return capture(step) if "graph" in parts else step


def attention_of(parts):
    """Which kernel scaled_dot_product_attention is to take."""
    if "cudnn-attention" not in parts:
        return contextlib.nullcontext()
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION])


def capture(step):
    """A function that replays the step as one CUDA graph. The steps before it, on another stream as PyTorch asks for,
    make its libraries allocate what they need."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())  # for what the step is about to change
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def wait():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_a_step(step, seconds, blocks=5):
    """Median of the blocks; a block waits for the GPU only at its end."""
    for _ in range(20):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(5):
        step()
    wait()
    # A block's share of the seconds, divided by the time of a step: a fifth of that of the five.
    steps = max(1, int(seconds / blocks * 5 / (time.perf_counter() - start)))
    times = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        times.append((time.perf_counter() - start) / steps)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--device", default="cuda", help="cpu: to try out this script")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench_pytorch_gpu: PyTorch finds no GPU here")
    torch.backends.cudnn.benchmark = True
    make_model, make_samples, unit = MODELS[options.model]
    x, labels, counted = make_samples(options.batch, options.device)
    for way in options.ways.split(","):
        start = time.perf_counter()
        try:
            step = make_step(make_model, x, labels, way)
            step()
            wait()
            ready = time.perf_counter() - start
            seconds = seconds_a_step(step, options.seconds)
        except Exception as error:  # the other ways still count; the table names this one
            print(f"{way}: {error}", file=sys.stderr)
            continue
        print(json.dumps({"way": way, "model": options.model, "batch": options.batch, "step_ms_median": 1e3 * seconds,
                          f"{unit}_per_second": counted / seconds, "seconds_until_ready": round(ready, 2)}),
              flush=True)


if __name__ == "__main__":
    main()
