#!/usr/bin/env python3
"""Seconds from starting a process to the end of its first training step, against `import torch`.

    bench_start.py [--build build] [--python PYTHON_WITH_TORCH] [--runs 5]

Ours is a whole fettle-trainer process that reads Fashion-MNIST, makes one optimiser step on 128 images,
validates on 128 and exits: an upper bound. "cold" decompresses the data, "warm" finds them in the
cache that every trial but the first finds. Prints medians, and one JSON line at the end.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
CONFIGURATION = {
    "data": {
        "trainImages": str(DATA / "train-images-idx3-ubyte.gz"),
        "trainLabels": str(DATA / "train-labels-idx1-ubyte.gz"),
        "trainSamples": 128,
        "validationSamples": 128,
    },
    "model": {
        "layers": [
            {"type": "conv", "channels": 16},
            {"type": "relu"},
            {"type": "maxPool"},
            {"type": "flatten"},
            {"type": "linear", "units": 10},
        ]
    },
    "training": {"globalBatch": 128, "epochs": 1},
}


def median_seconds(command, environment, runs):
    def once():
        start = time.perf_counter()
        subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return time.perf_counter() - start

    once()  # fills the page cache, and ours where it is on
    return statistics.median(once() for _ in range(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build directory")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch 2.11")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trainer.json"
        file.write_text(json.dumps(CONFIGURATION))
        trainer = [f"{options.build}/bin/fettle-trainer", str(file)]
        result = {
            "warm_seconds": median_seconds(trainer, {"FETTLE_DATA_CACHE": folder}, options.runs),
            "cold_seconds": median_seconds(trainer, {"FETTLE_DATA_CACHE": "off"}, options.runs),
            "import_torch_seconds": median_seconds([options.python, "-c", "import torch"], {}, options.runs),
        }
    print(json.dumps({name: round(seconds, 3) for name, seconds in result.items()}))


if __name__ == "__main__":
    main()
