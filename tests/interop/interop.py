#!/usr/bin/env python3
"""Exported networks in the programs that read them, against fettle-trainer --predict.

Trains a little on random samples, exports, and compares the logits of 1,000 samples: the largest difference relative
to the largest logit is below 1e-5, and the largest logit of each sample is the same.

Usage: interop.py FETTLE_TRAINER [CASE...]   (with the Python of scripts/interop_python.sh --torch)
"""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.numpy

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SAMPLES = 1000
TOLERANCE = 1e-5


def example(name):
    """The layers, or the GPT, of an example's model."""
    text = (EXAMPLES / f"{name}.yaml").read_text()
    model = text[text.index("      model:"):]
    model = model[:model.index("      training:")]
    if found := re.search(r"gpt: \{(.*)\}", model):
        return {"gpt": fields(found[1])}
    return {"layers": [fields(line) for line in re.findall(r"- \{(.*)\}", model)]}


def fields(text):
    """{"type": "conv", "channels": 16} of "type: conv, channels: 16"."""
    return {key: value if value.isalpha() or not value[0].isdigit() else json.loads(value)
            for key, value in re.findall(r"(\w+): ([\w.]+)", text)}


def layers(*names):
    """Layers from short words: "conv 8", "flatten"."""
    numbers = {"conv": "channels", "linear": "units"}
    made = []
    for words in (name.split() for name in names):
        layer = {"type": words[0]}
        if len(words) > 1:
            layer[numbers[words[0]]] = int(words[1])
        for option in words[2:]:
            key, value = option.split("=")
            layer[key] = int(value)
        made.append(layer)
    return {"layers": made}


TANH = {"type": "gelu", "approximate": "tanh"}
# name: model, shape of a sample, type, classes
CASES = {
    "fashion-mnist": (example("fashion-mnist"), (28, 28), np.uint8, 10),
    "resnet9": (example("resnet9"), (28, 28), np.uint8, 10),
    "char-gpt": (example("char-gpt"), None, None, None),
    "mlp": (layers("flatten", "linear 32", "relu", "linear 5"), (6, 7, 3), np.uint8, 5),
    "list": (layers("linear 16", "batchNorm", "relu", "linear 16", "rmsNorm", "linear 4"), (20,), np.float32, 4),
    "bottleneck": (layers("conv 8 kernel=3", "batchNorm", "relu", "residual", "conv 4 kernel=1", "batchNorm", "relu",
                          "conv 16 kernel=3 stride=2", "batchNorm", "shortcut", "conv 16 kernel=1 stride=2",
                          "batchNorm", "add", "relu", "globalPool", "linear 6"), (9, 8, 3), np.float32, 6),
    "norms": (layers("conv 6", "layerNorm", "gelu", "averagePool", "conv 4 padding=0", "rmsNorm", "relu", "flatten",
                     "layerNorm", "linear 3"), (12, 10, 2), np.uint8, 3),
    "last": (layers("conv 2", "flatten", "residual", "linear 24", "relu", "add", "linear 4"), (4, 3, 1), np.uint8, 4),
    "logits": (layers("conv 2", "flatten"), (2, 3, 1), np.uint8, 12),
    "pixel": (layers("conv 8 kernel=3 stride=2 padding=0", "batchNorm", "relu", "linear 3"), (3, 3, 2), np.uint8, 3),
}
CASES["norms"][0]["layers"].insert(7, TANH)


class Workshop:
    def __init__(self, trainer, folder):
        self.trainer, self.folder = trainer, pathlib.Path(folder)
        self.training = {}  # beside what every case has

    def run(self, *arguments):
        done = subprocess.run([self.trainer, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"fettle-trainer {' '.join(map(str, arguments))}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def train(self, model, data):
        config = {"data": data, "model": model,
                  "training": {"epochs": 1, "globalBatch": 32, "learningRate": 0.01, "optimizer": "adam",
                               **self.training}}
        (self.folder / "config.json").write_text(json.dumps(config))
        self.run(self.folder / "config.json", "--checkpoints", self.folder / "kept")

    def images(self, shape, kind, classes):
        generator = np.random.default_rng(7)
        labels = generator.integers(classes, size=SAMPLES + 96)
        images = generator.integers(200, size=(len(labels), *shape)) + 5 * labels.reshape(-1, *[1] * len(shape))
        np.save(self.folder / "images.npy", images.astype(kind) if kind == np.uint8 else (images / 80 - 1).astype(kind))
        np.save(self.folder / "labels.npy", labels)
        return {"format": "npy", "trainImages": str(self.folder / "images.npy"),
                "trainLabels": str(self.folder / "labels.npy"), "validationSamples": SAMPLES}

    def text(self):
        generator = np.random.default_rng(7)
        letters = "".join(generator.choice(list("abcdefgh ijkl\n"), size=64 * (SAMPLES + 96) + 1))
        (self.folder / "text").write_text(letters)
        return {"format": "text", "trainText": str(self.folder / "text"), "context": 64, "validationSamples": SAMPLES}

    def inputs(self, data):
        """The validation samples, as the files have them."""
        chosen = np.load(self.folder / "logits.samples.npy")
        if data["format"] == "npy":
            return np.load(self.folder / "images.npy")[chosen]
        letters = np.frombuffer((self.folder / "text").read_bytes(), np.uint8)
        ids = np.searchsorted(np.unique(letters), letters)
        return np.stack([ids[64 * i:64 * (i + 1)] for i in chosen])


def by_torch(shop, inputs):
    import torch
    shop.run("--export", shop.folder / "net.py", "--format", "torch", "--checkpoints", shop.folder / "kept",
             "--origin", "digits/digits-3", "--force")
    spec = importlib.util.spec_from_file_location("net", shop.folder / "net.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = module.Network.load()
    with torch.no_grad():
        return torch.cat([network(part) for part in torch.from_numpy(inputs).split(100)]).numpy()


def by_onnxruntime(shop, inputs):
    import onnx
    import onnxruntime
    path = shop.folder / "net.onnx"
    shop.run("--export", path, "--format", "onnx", "--checkpoints", shop.folder / "kept", "--force")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = json.loads(session.get_modelmeta().custom_metadata_map["fettle"])
    assert about["classes"] > 0 and about["model"], about
    sides = session.get_inputs()[0].shape[1:]
    return session.run(None, {"input": inputs.reshape(len(inputs), *sides)})[0]


READERS = {"torch": by_torch, "onnxruntime": by_onnxruntime}


def check_safetensors(shop):
    """The library reads what the trainer writes, and would write the same bytes."""
    path = shop.folder / "net.safetensors"
    shop.run("--export", path, "--checkpoints", shop.folder / "kept", "--force")
    tensors = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["fettle"])
    assert about["classes"] > 0 and about["model"], about
    assert all(tensor.dtype == np.float32 for tensor in tensors.values())
    again = safetensors.numpy.load(safetensors.numpy.save(tensors))
    assert all((again[name] == tensor).all() for name, tensor in tensors.items())
    return sum(tensor.size for tensor in tensors.values())


def check(trainer, name, readers):
    model, shape, kind, classes = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(trainer, folder)
        data = shop.images(shape, kind, classes) if shape else shop.text()
        shop.train(model, data)
        shop.run("--predict", shop.folder / "logits.npy", "--checkpoints", shop.folder / "kept")
        expected = np.load(shop.folder / "logits.npy")
        numbers = check_safetensors(shop)
        inputs = shop.inputs(data)
        assert len(inputs) == len(expected) == SAMPLES
        for reader in readers:
            logits = READERS[reader](shop, inputs)
            assert logits.shape == expected.shape, (name, reader, logits.shape, expected.shape)
            error = np.abs(logits - expected).max() / np.abs(expected).max()
            others = int((logits.argmax(-1) != expected.argmax(-1)).sum())
            print(f"{name}, {reader}: {numbers} numbers, largest difference {error:.1e}, other argmax {others}")
            assert error <= TOLERANCE and others == 0, (name, reader, error, others)


def main():
    trainer, chosen = sys.argv[1], sys.argv[2:]
    readers = [reader for reader in READERS if importlib.util.find_spec(reader)]
    names = chosen or list(CASES)
    for name in names:
        check(trainer, name, readers)
    print(f"interop: {len(names)} networks agree")


if __name__ == "__main__":
    main()
