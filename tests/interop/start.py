#!/usr/bin/env python3
"""Networks of transformers and torchvision that a training starts from (model.from).

Writes a network with random weights as its library saves it, starts a training from the file that changes nothing, and
compares the logits of --predict with the library's: the largest difference relative to the largest logit is below 1e-4.

Usage: start.py FETTLE_TRAINER   (with the Python of scripts/interop_python.sh --torch)
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch

SAMPLES, VOCABULARY, CONTEXT, SIDE, CLASSES = 40, 61, 24, 16, 7
TOLERANCE = 1e-4


def logits_of(trainer, folder, data, model):
    """After an epoch with a learning rate that moves no weight; running statistics are frozen."""
    training = {"epochs": 1, "globalBatch": 8, "learningRate": 1e-30, "optimizer": "sgd", "precision": "fp32"}
    (folder / "config.json").write_text(json.dumps({"data": data, "model": model, "training": training}))
    for arguments in ([folder / "config.json", "--checkpoints", folder / "kept"],
                      ["--predict", folder / "logits.npy", "--checkpoints", folder / "kept"]):
        done = subprocess.run([trainer, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        print("\n".join(line for line in done.stderr.splitlines() if "starts from" in line), end="")
    return np.load(folder / "logits.npy"), np.load(folder / "logits.samples.npy")


def gpt2(trainer, folder):
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(1)
    network = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=CONTEXT + 8, n_embd=48, n_layer=3, n_head=4,
                                         initializer_range=0.2)).eval()
    network.save_pretrained(folder / "gpt2")
    tokens = np.random.default_rng(1).integers(VOCABULARY, size=CONTEXT * (SAMPLES + 16) + 1)
    np.save(folder / "tokens.npy", tokens)
    data = {"format": "tokens", "trainText": str(folder / "tokens.npy"), "context": CONTEXT, "vocabulary": VOCABULARY,
            "validationSamples": SAMPLES}
    model = {"gpt": {"layers": 3, "heads": 4, "width": 48}, "from": {"file": str(folder / "gpt2/model.safetensors")}}
    logits, chosen = logits_of(trainer, folder, data, model)
    inputs = torch.from_numpy(np.stack([tokens[CONTEXT * i:CONTEXT * (i + 1)] for i in chosen]))
    return logits, network(inputs).logits


def resnet_layers():
    """ResNet-18 of torchvision with a stem for small images, as a list of Fettle's layers."""
    relu, norm = {"type": "relu"}, {"type": "batchNorm"}

    def conv(channels, kernel, stride=1):
        return {"type": "conv", "channels": channels, "kernel": kernel, "stride": stride}

    layers = [conv(64, 3), norm, relu]
    for channels in (64, 128, 256, 512):
        for block in range(2):
            changes = block == 0 and channels > 64
            layers += [{"type": "residual"}, conv(channels, 3, 2 if changes else 1), norm, relu, conv(channels, 3), norm]
            layers += [{"type": "shortcut"}, conv(channels, 1, 2), norm] if changes else []
            layers += [{"type": "add"}, relu]
    return [*layers, {"type": "globalPool"}, {"type": "linear", "units": CLASSES}]


def resnet18(trainer, folder):
    import torchvision
    torch.manual_seed(1)
    network = torchvision.models.resnet18(num_classes=CLASSES)
    network.conv1, network.maxpool = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False), torch.nn.Identity()
    images = np.random.default_rng(1).standard_normal((SAMPLES + 16, SIDE, SIDE, 3)).astype(np.float32)
    with torch.no_grad():
        network(torch.from_numpy(images).permute(0, 3, 1, 2))  # running statistics of their own
    network.eval()
    safetensors.torch.save_file(network.state_dict(), folder / "resnet.safetensors")
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", np.arange(len(images)) % CLASSES)
    data = {"format": "npy", "trainImages": str(folder / "images.npy"), "trainLabels": str(folder / "labels.npy"),
            "validationSamples": SAMPLES, "normalize": {"mean": 0, "std": 1}}
    layers = resnet_layers()
    model = {"layers": layers, "freeze": len(layers) - 1, "from": {"file": str(folder / "resnet.safetensors")}}
    logits, chosen = logits_of(trainer, folder, data, model)
    return logits, network(torch.from_numpy(images[chosen]).permute(0, 3, 1, 2))


def main():
    for start in (gpt2, resnet18):
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            logits, expected = start(sys.argv[1], pathlib.Path(folder))
        expected = expected.numpy().reshape(logits.shape)
        error = np.abs(logits - expected).max() / np.abs(expected).max()
        print(f"\n{start.__name__}: largest difference {error:.1e}")
        assert error <= TOLERANCE, (start.__name__, error)


if __name__ == "__main__":
    main()
