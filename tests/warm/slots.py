"""Trainings in the slots of one fettle-trainer against a process for each: the same bits (docs/worker-protocol.md).

The network is small, and its width is a parameter, so the slots train different shapes. The backend is cuda: the
emulated GPU, or a real one where FETTLE_CUDA_LIBRARY is set.
"""

import struct

SAMPLES, SIDE, CLASSES = 400, 4, 3
COMPARED = ("loss", "validation_loss", "validation_accuracy")


def write_images(folder):
    """Images whose brightest third is their class, as idx files."""
    pixels = bytearray()
    for i in range(SAMPLES):
        bright = [j * CLASSES // SIDE**2 == i % CLASSES for j in range(SIDE**2)]
        pixels += bytes((37 * i + 11 * j) % 97 + 150 * bright[j] for j in range(SIDE**2))
    labels = bytes(i % CLASSES for i in range(SAMPLES))
    (folder / "images").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, SAMPLES, SIDE, SIDE) + pixels)
    (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, SAMPLES) + labels)


def study(name, data, trials, how):
    """`how`: the fields of `trial` that say in what kind of process."""
    layers = [{"type": "flatten"}, {"type": "linear", "units": 8}, {"type": "relu"}, {"type": "linear", "units": CLASSES}]
    trainer = {
        "data": {"trainImages": str(data / "images"), "trainLabels": str(data / "labels"), "validationSamples": 100},
        "model": {"layers": layers},
        "training": {"globalBatch": 50, "epochs": 2, "backend": "cuda", "optimizer": "adam"},
    }  # fmt: skip
    return {
        "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name},
        "spec": {
            "objectives": [{"metric": "validation_loss", "direction": "Minimize"}],
            "parameters": [
                {"name": "lr", "type": "Double", "min": 1e-3, "max": 1e-1, "scale": "Log", "sets": "training.learningRate"},
                {"name": "units", "type": "Integer", "min": 4, "max": 16, "sets": "model.layers[1].units"},
            ],
            "algorithm": {"name": "random", "seed": 1},
            "resource": {"unit": "epoch", "max": 2},
            "budget": {"trials": trials, "parallelism": 4, "failures": 0},
            "trial": {"retries": 0, "passEnvironment": ["FETTLE_CUDA_LIBRARY"], "trainer": trainer} | how,
        },
    }  # fmt: skip


def results(trials):
    """By name, what each trial reported last."""
    return {trial["metadata"]["name"].rpartition("-")[2]: [trial["status"]["report"]["metrics"][name] for name in COMPARED]
            for trial in trials}  # fmt: skip
