#!/usr/bin/env python3
"""Whether a training gives the same bits each time on this GPU, and whatever its work is enqueued as.

    scripts/gpu_same_bits.py --trainer .gpu/bin/fettle-trainer --scratch FOLDER [--seconds 60] [--rehearse]

Each training is run as it is, again, with branches in a step's graph, and without graphs; all of them must report the
same losses, epoch by epoch. A race between two streams, a graph that reads a buffer of the step before, or a copy that
comes too late shows here, also within a library's kernels, where compute-sanitizer does not look. Exit code 1: a loss
differs, or a training failed; 2: there was no time for all of them.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import bench_gpu_trials

# Name, network, precision, samples, most samples at once: with a smaller last batch, and with micro-batches of two sizes.
TRAININGS = (("whole batches", "resnet9", "bf16", 4920, None), ("micro-batches", "mlp", "tf32", 4920, 48))
REHEARSAL = (("whole batches", "mlp", "bf16", 300, None), ("micro-batches", "mlp", "fp32", 300, 48))
WAYS = (("as it is", {}), ("again", {}), ("with branches", {"FETTLE_CUDA_BRANCHES": "1"}),
        ("without graphs", {"FETTLE_CUDA_GRAPHS": "0"}))
# Untimed: of two processes that time plans each could take another one.
ALWAYS = {"FETTLE_CUDA_PLANS": "first", "FETTLE_KERNEL_CACHE": "off"}
EPOCHS = 4


def write_config(folder, training):
    name, model, precision, samples, most = training
    path = bench_gpu_trials.write_config(folder / name.replace(" ", "-"), model, samples, EPOCHS, precision, "cuda", 0.01)
    config = json.loads(path.read_text())
    if most:
        config["training"]["maxPerWorker"] = most
    path.write_text(json.dumps(config, indent=1))
    return path


def losses_of(trainer, config, environment, seconds):
    """Of every epoch, and what went wrong, or ""; None: it was not done in time."""
    try:
        run = subprocess.run([trainer, str(config)], capture_output=True, text=True, check=False, timeout=seconds,
                             env=os.environ | ALWAYS | environment)
    except subprocess.TimeoutExpired:
        return None, ""
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    losses = [(line["loss"], line["validation_loss"]) for line in lines if "validation_loss" in line]
    if run.returncode != 0 or len(losses) != EPOCHS:
        return losses, run.stderr.strip()[-300:] or f"exit code {run.returncode}, {len(losses)} epochs"
    return losses, ""


def difference(expected, found):
    """The first epoch whose losses differ, in words, or ""."""
    for epoch, (a, b) in enumerate(zip(expected, found), start=1):
        if a != b:
            return f"epoch {epoch}: loss {a[0]!r}, {b[0]!r}; validation loss {a[1]!r}, {b[1]!r}"
    return ""


def compare(trainer, config, name, deadline):
    """0, or an exit code."""
    expected = None
    for way, environment in WAYS:
        left = deadline - time.monotonic()
        losses, wrong = losses_of(trainer, config, environment, left) if left > 1 else (None, "")
        if losses is None:
            print(f"{name}, {way}: no time left")
            return 2
        expected = expected or losses
        wrong = wrong or difference(expected, losses)
        print(f"{name}, {way}: {wrong or f'the same, {losses[-1]}'}", flush=True)
        if wrong:
            return 1
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rehearse", action="store_true", help="small, for the emulated GPU")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    codes = [compare(options.trainer, write_config(options.scratch / "same-bits", training), training[0], deadline)
             for training in (REHEARSAL if options.rehearse else TRAININGS)]
    print("the same bits" if not any(codes) else "NOT the same bits" if 1 in codes else "no time for all")
    sys.exit(1 if 1 in codes else max(codes))


if __name__ == "__main__":
    main()
