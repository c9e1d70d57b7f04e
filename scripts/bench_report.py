#!/usr/bin/env python3
"""How long `fettle report` takes for a Study of thousands of trials.

Runs a small Study with early stopping, then repeats its trials in its database, each with other
parameters, values and facts of its own; then times the report, several times.

Usage: bench_report.py FETTLE [--trials N] [--times N] [--keep FOLDER]
"""
import argparse
import json
import os
import pathlib
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

SCRIPT = r"""
for step in 1 2 3 4 5 6 7 8 9; do
  awk -v lr="$FETTLE_PARAM_LEARNING_RATE" -v depth="$FETTLE_PARAM_DEPTH" -v step="$step" 'BEGIN {
    off = log(lr) / log(10) + 3
    printf "{\"step\": %d, \"loss\": %.6f}\n", step, 0.05 + 0.04 * off * off + 0.01 * (depth - 5) ^ 2 + 0.6 / step
  }'
done
"""
STUDY = {
    "apiVersion": "fettle.dev/v1alpha1",
    "kind": "Study",
    "metadata": {"name": "many"},
    "spec": {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [
            {"name": "learning_rate", "type": "Double", "min": 1e-5, "max": 1, "scale": "Log"},
            {"name": "depth", "type": "Integer", "min": 1, "max": 9},
            {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam"]},
            {"name": "momentum", "type": "Double", "min": 0, "max": 1,
             "when": {"parameter": "optimizer", "in": ["sgd"]}},
            {"name": "dropout", "type": "Double", "min": 0, "max": 0.9},
            {"name": "warm_up", "type": "Double", "min": 0, "max": 1},
        ],
        "resource": {"unit": "epoch", "min": 1, "max": 9},
        "algorithm": {"name": "tpe", "seed": 3},
        "earlyStopping": {"name": "asha", "reductionFactor": 3},
        "budget": {"trials": 60, "parallelism": 6},
        "trial": {"template": {"spec": {"containers": [{
            "name": "trial", "image": "busybox", "resources": {"requests": {"cpu": "100m"}},
            "command": ["/bin/sh", "-c", SCRIPT]}]}}},
    },
}  # fmt: skip


def varied(trial, copy, size, facts, draw):
    """The trial as number `copy` of its kind: of `size` trials there are `facts` facts."""
    index = trial["spec"]["index"] + copy * size
    trial["metadata"].update(name=f"many-{index}", uid=f"uid-{index}")
    trial["spec"]["index"] = index
    trial["spec"]["search"]["basis"] = trial["spec"]["search"].get("basis", 0) + copy * facts
    if "stop" in trial["spec"]:
        trial["spec"]["stop"]["basis"] += copy * facts
    parameters = trial["spec"]["parameters"]
    parameters["learning_rate"] = 10 ** draw.uniform(-5, 0)
    parameters["dropout"] = draw.uniform(0, 0.9)
    parameters["warm_up"] = draw.uniform(0, 1)
    factor = 1 + 0.1 * draw.random() + parameters["dropout"]
    for fact in trial["status"].get("facts", []):
        fact["seq"] += copy * facts
        fact["values"] = [value and value * factor for value in fact["values"]]
    return trial


def repeat_trials(database, count):
    """Fills the database up to `count` trials."""
    store = sqlite3.connect(database)
    rows = store.execute("SELECT namespace, study, json FROM objects WHERE kind = 'Trial'").fetchall()
    facts = sum(len(json.loads(row[2])["status"].get("facts", [])) for row in rows)
    draw = random.Random(7)
    for copy in range(1, (count + len(rows) - 1) // len(rows)):  # the rows themselves are the first copy
        for namespace, study, document in rows:
            trial = varied(json.loads(document), copy, len(rows), facts, draw)
            if trial["spec"]["index"] >= count:
                continue
            name = trial["metadata"]["name"]
            row = ("Trial", namespace, name, study, 1, json.dumps(trial))
            store.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)
    store.commit()
    store.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="fettle-report-"))
    folder.mkdir(parents=True, exist_ok=True)
    fettle = str(options.fettle.resolve())
    (folder / "many.yaml").write_text(json.dumps(STUDY))
    run = subprocess.run([fettle, "run", "many.yaml"], cwd=folder, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    repeat_trials(folder / ".fettle/many.db", options.trials)
    for _ in range(options.times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        subprocess.run([fettle, "report", "many"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = os.path.getsize(folder / "many.html") / 2**20
        print(f"{options.trials} trials: {wall:.2f} s, {work:.2f} s of processor time, page of {size:.1f} MiB",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
