#!/usr/bin/env python3
"""What a teacher is worth: a network, its half, and the half taught by it, on Fashion-MNIST.

    nice scripts/bench_distil.py --trainer build/bin/fettle-trainer      (docs/benchmarks/distil.md)

Trains the teacher once, then the student alone and taught, each with the same seeds, and prints the
accuracy on the 10,000 test images. The teacher has dropout and shifted and mirrored images, the student
neither (as in Hinton et al. 2015, section 3), but with --augment. Results stay in --folder; what is there
is not trained again.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

DATA = "/usr/share/datasets/fashion-mnist"


def layers(width, dropout):
    return [{"type": "conv", "channels": width}, {"type": "batchNorm"}, {"type": "relu"}, {"type": "maxPool"},
            {"type": "conv", "channels": 2 * width}, {"type": "batchNorm"}, {"type": "relu"}, {"type": "maxPool"},
            {"type": "dropout", "rate": dropout}, {"type": "linear", "units": 4 * width}, {"type": "relu"},
            {"type": "linear", "units": 10}]


def config(args, width, dropout, epochs, augment):
    files = {f"{split}{kind.capitalize()}": f"{args.data}/{name}-{kind}-idx{digit}-ubyte.gz"
             for split, name in (("train", "train"), ("test", "t10k"))
             for kind, digit in (("images", 3), ("labels", 1))}
    data = {**files, "trainSamples": args.samples, "validationSamples": 4000}
    if augment:
        data["augment"] = {"shift": 2, "flip": True}
    return {"data": data,
            "model": {"layers": layers(width, dropout)},
            "training": {"epochs": epochs, "globalBatch": 128, "optimizer": "adamw", "learningRate": 0.003,
                         "weightDecay": 0.01, "schedule": {"name": "cosine", "warmupEpochs": 1}}}


def train(args, name, configuration, seed):
    """The report of the last epoch."""
    result = args.folder / f"{name}-{seed}.json"
    if not result.exists():
        file = args.folder / f"{name}.config.json"
        file.write_text(json.dumps(configuration))
        lines = subprocess.run([args.trainer, "--seed", str(seed), "--checkpoints", args.folder / f"{name}-{seed}", file],
                               check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        result.write_text(lines[-1])
    return json.loads(result.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", default="build/bin/fettle-trainer")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/fettle-distil"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--width", type=int, default=16, help="of the teacher's first layer")
    parser.add_argument("--teacher-epochs", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--temperature", type=float, default=2)
    parser.add_argument("--weight", type=float, default=0.7)
    parser.add_argument("--augment", action="store_true", help="the student's images, too")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    teacher = train(args, "teacher", config(args, args.width, 0.3, args.teacher_epochs, True), 1)
    file = args.folder / "teacher.safetensors"
    subprocess.run([args.trainer, "--export", file, "--force", "--checkpoints", args.folder / "teacher-1"], check=True)
    print(f"teacher: {teacher['parameters']:.0f} parameters, {100 * teacher['test_accuracy']:.2f} %")

    alone = config(args, args.width // 2, 0, args.epochs, args.augment)
    taught = json.loads(json.dumps(alone))
    taught["training"]["distill"] = {"teacher": str(file), "temperature": args.temperature, "weight": args.weight}
    means = []
    for name, configuration in (("alone", alone), ("taught", taught)):
        reports = [train(args, name, configuration, seed) for seed in range(1, args.seeds + 1)]
        accuracies = [100 * report["test_accuracy"] for report in reports]
        means.append(statistics.mean(accuracies))
        spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0
        print(f"{name}: {reports[0]['parameters']:.0f} parameters, {means[-1]:.2f} % (deviation {spread:.2f}; "
              + ", ".join(f"{value:.2f}" for value in accuracies) + ")")
    print(f"difference: {means[1] - means[0]:.2f} points")


if __name__ == "__main__":
    main()
