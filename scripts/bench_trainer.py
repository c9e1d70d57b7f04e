#!/usr/bin/env python3
"""The whole training loop against PyTorch's eager one, as ratios: one core, in turn, median of the blocks.

    python3 scripts/bench_trainer.py [--build build] [--python PYTHON_WITH_TORCH] [--blocks 5]

A block runs ours and PyTorch's directly after one another on the same core, so that whatever else the
machine does touches both; the order changes from block to block. Prints images per second of both, their
ratio with its spread, and one JSON line at the end.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKLOADS = ("mlp-fp32", "mlp-bf16", "cnn-fp32", "cnn-bf16")


def images_per_second(command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"bench_trainer: {' '.join(command)} failed:\n{run.stderr.strip()}")
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return max(line["images_per_second"] for line in lines)


def measure(ours, theirs, blocks):
    """Pairs of (ours, theirs)."""
    pairs = []
    for block in range(blocks):
        if block % 2 == 0:
            a = images_per_second(ours)
            b = images_per_second(theirs)
        else:
            b = images_per_second(theirs)
            a = images_per_second(ours)
        pairs.append((a, b))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build"), help="the build directory")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch 2.11")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="a measurement's length")
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()

    pin = ["taskset", "-c", str(options.core)] if shutil.which("taskset") else []
    results = {}
    for workload in WORKLOADS:
        model, precision = workload.split("-")
        ours = [*pin, f"{options.build}/bin/fettle-trainer", "--bench", model, "--precision", precision,
                "--backend", "onednn", "--seconds", str(options.seconds)]
        theirs = [*pin, options.python, str(ROOT / "scripts" / "bench_pytorch.py"), "--only", workload,
                  "--blocks", "2", "--seconds", str(options.seconds / 2)]
        pairs = measure(ours, theirs, options.blocks)
        ratios = [a / b for a, b in pairs]
        results[workload] = round(statistics.median(ratios), 3)
        print(f"{workload}: fettle {statistics.median(a for a, _ in pairs):8.0f} images/s, "
              f"pytorch {statistics.median(b for _, b in pairs):8.0f} images/s, "
              f"ratio {results[workload]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    print(json.dumps({"images_per_second_over_pytorch": results}))


if __name__ == "__main__":
    main()
