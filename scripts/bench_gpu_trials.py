"""Whole trainings of both, for scripts/bench_gpu.py: how long a trial takes from the start of its process, and whether
loss curves from the same weights lie on top of each other. `left`: the seconds that are left."""

import json
import pathlib
import random
import shutil
import sys
import time

from bench_gpu_run import lines_of
import curve_picture
import fettle_numbers

PEER = str(pathlib.Path(__file__).resolve().parent / "bench_pytorch_trial.py")
SHAPES = {"mlp": (28, 28, 1), "resnet9": (32, 32, 3)}
LABEL_NOISE = 0.1                                           # so that the loss has somewhere to stay


def layers_of(model):
    def conv_norm(channels):
        return [{"type": "conv", "channels": channels}, {"type": "batchNorm"}, {"type": "relu"}]

    def wide(channels):
        return [{"type": "residual"}, *conv_norm(channels), *conv_norm(channels), {"type": "add"}]

    pool, relu = {"type": "maxPool"}, {"type": "relu"}
    if model == "mlp":
        wide_layer = {"type": "linear", "units": 512}
        return [wide_layer, relu, wide_layer, relu, {"type": "linear", "units": 10}]
    return [*conv_norm(64), *conv_norm(128), pool, *wide(128), *conv_norm(256), pool, *conv_norm(512), pool,
            *wide(512), {"type": "globalPool"}, {"type": "linear", "units": 10}]


def write_images(folder, shape, count):
    """Of ten classes: a picture a class, three bits in four of it noise."""
    rng, size = random.Random(1), shape[0] * shape[1] * shape[2]
    pictures = [int.from_bytes(rng.randbytes(size)) for _ in range(10)]
    pixels, labels = bytearray(), bytearray()
    for _ in range(count):
        kind = rng.randrange(10)
        kept = int.from_bytes(rng.randbytes(size)) & int.from_bytes(rng.randbytes(size))  # a bit in four
        noise = int.from_bytes(rng.randbytes(size))
        pixels += ((pictures[kind] & kept) | (noise & ~kept)).to_bytes(size)
        labels.append(rng.randrange(10) if rng.random() < LABEL_NOISE else kind)
    fettle_numbers.write_npy(folder / "images.npy", "|u1", (count, *shape), pixels)
    fettle_numbers.write_npy(folder / "labels.npy", "|u1", (count,), labels)


def write_config(folder, model, count, epochs, precision, backend, rate):
    folder.mkdir(parents=True, exist_ok=True)
    write_images(folder, SHAPES[model], count)
    held_out = count // 6
    config = {"data": {"format": "npy", "trainImages": str(folder / "images.npy"),
                       "trainLabels": str(folder / "labels.npy"), "validationSamples": held_out,
                       "normalize": {"mean": 0.5, "std": 0.25}},
              "model": {"layers": layers_of(model)},
              "training": {"globalBatch": 128, "epochs": epochs, "optimizer": "sgd", "learningRate": rate,
                           "momentum": 0.9, "precision": precision, "backend": backend}}
    path = folder / "config.json"
    path.write_text(json.dumps(config, indent=1))
    return path


def timed(command, seconds):
    began = time.perf_counter()
    lines, wrong = lines_of(command, seconds)
    return lines, time.perf_counter() - began, wrong


def peer(config, model, epochs, way, device):
    return [sys.executable, PEER, str(config), "--model", model, "--epochs", str(epochs), "--way", way,
            "--device", device]


def epochs_in(target, seconds, lines):
    """The number of epochs that fit into the time, start included, at the pace of `lines`; at least as many as in `lines`."""
    return len(lines) + max(0, int((target - seconds) / min(line["seconds"] for line in lines)))


def epochs_for(target, folder, options, left):
    """How many epochs the faster of PyTorch's ways makes in `target` seconds, and which way that is; also what went
    wrong."""
    config = write_config(folder, "mlp", options.samples, 1, options.precision, options.backend, 0.02)
    found, errors = [], []
    for way in options.ways:
        lines, seconds, wrong = timed(peer(config, "mlp", 3, way, options.device), left(60))
        errors += [f"PyTorch, {way}: {wrong}"] if wrong else []
        if len(lines) == 3:
            found.append((epochs_in(target, seconds, lines), way))
    return (*max(found, default=(0, "")), errors)


def whole_trial(options, left):
    """An MLP of 784-512-512-10, as long as takes PyTorch `options.trial_seconds`; both without checkpoints."""
    folder, limit = options.scratch / "trial", 3 * options.trial_seconds
    epochs, way, errors = epochs_for(options.trial_seconds, folder, options, left)
    row = {"epochs": epochs, "way": way, "errors": errors, "goal": 2.0}
    if epochs < 1:
        return row
    config = write_config(folder, "mlp", options.samples, epochs, options.precision, options.backend, 0.02)
    theirs, their_seconds, wrong = timed(peer(config, "mlp", epochs, way, options.device), left(limit))
    ours, our_seconds, also_wrong = timed([options.trainer, str(config)], left(limit))
    row["errors"] += [error for error in (wrong, also_wrong) if error]
    if len(ours) == len(theirs) == epochs:
        row |= {"ours_seconds": round(our_seconds, 2), "pytorch_seconds": round(their_seconds, 2),
                "ratio": round(their_seconds / our_seconds, 3), "ours_loss": ours[-1]["validation_loss"],
                "pytorch_loss": theirs[-1]["validation_loss"]}
    return row


def curves(options, model, precision, left):
    """Epoch by epoch from the same weights, with the same samples in the same order."""
    limit = 40
    folder = options.scratch / f"curve-{model}-{precision}"
    config = write_config(folder, model, options.curve_samples, options.curve_epochs, precision, options.backend, 0.01)
    row = {"model": model, "precision": precision, "epochs": options.curve_epochs, "errors": []}
    start, checkpoints = [options.trainer, str(config)], folder / "checkpoints"
    shutil.rmtree(checkpoints, ignore_errors=True)          # or it would resume from an earlier build's
    _, wrong = lines_of([*start, "--until-epoch", "0", "--checkpoints", str(checkpoints)], left(limit))
    weights = sorted(checkpoints.glob("*.checkpoint"))
    ours, also_wrong = lines_of(start, left(limit))
    theirs, wrong_there = [], "fettle-trainer has written no checkpoint"
    if weights:
        command = peer(config, model, options.curve_epochs, "eager", options.device)
        theirs, wrong_there = lines_of([*command, "--weights", str(weights[0])], left(limit))
    row["errors"] = [error for error in (wrong, also_wrong, wrong_there) if error]
    if len(ours) != options.curve_epochs or len(theirs) != options.curve_epochs:
        return row
    for name in ("loss", "validation_loss"):
        pair = [[line[name] for line in lines] for lines in (theirs, ours)]
        row[name] = {"pytorch": pair[0], "ours": pair[1],
                     "max_difference": max(abs(a - b) for a, b in zip(*pair))}
    picture = f"curve-{model}-{precision}.svg"
    (options.results / picture).write_text(curve_picture.svg(
        f"{model}, {precision}: loss in training from the same weights",
        [("PyTorch", row["loss"]["pytorch"]), ("fettle", row["loss"]["ours"])]))
    return row | {"picture": picture}
