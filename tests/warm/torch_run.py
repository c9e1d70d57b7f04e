#!/usr/bin/env python3
"""PyTorch in both kinds of Python worker: the same numbers as in a process for each trial, bit by bit.

One Study three times: as processes, by `python -m fettle.warm`, and by fettle.trials(), with one thread and with two.
All losses of all trials must be equal. Importing torch leaves no thread behind, so fettle.warm takes it; a module that
computes while it is imported starts OpenMP's threads, and is refused.

Usage: torch_run.py FETTLE --python PYTHON    (a Python that has torch)
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"
TRIALS = 8
THREADS = ("1", "2")


def command(python, way):
    program = [str(HERE / "torch_mlp" / "script.py")]
    if way == "trials()":
        program = [str(HERE / "torch_mlp" / "loop.py")]
    if way == "warm":
        program = ["-m", "fettle.warm", "--preload", "torch,numpy", *program]
    return [python, *program]


def study(python, way, threads):
    container = {"name": "train", "command": command(python, way), "resources": {"requests": {"cpu": "1m"}},
                 "env": [{"name": "PYTHONPATH", "value": str(PACKAGE)}, {"name": "OMP_NUM_THREADS", "value": threads}]}
    return {
        "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "mlp"},
        "spec": {
            "objectives": [{"metric": "loss", "direction": "Minimize"}],
            "parameters": [{"name": "rate", "type": "Double", "min": 1e-3, "max": 1e-1, "scale": "Log"},
                           {"name": "hidden", "type": "Integer", "min": 4, "max": 64}],
            "resource": {"unit": "epoch", "max": 3},
            "algorithm": {"name": "random", "seed": 1},
            "budget": {"trials": TRIALS, "parallelism": 2},
            "trial": {"execution": "Process" if way == "process" else "Warm", "retries": 0,
                      "template": {"spec": {"containers": [container]}}},
        },
    }  # fmt: skip


def curves(fettle, folder, document):
    """The lines that each trial printed, and the seconds that the Study took."""
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(json.dumps(document))
    begun = time.monotonic()
    done = subprocess.run([fettle, "run", "study.yaml", "--output", "json"], cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    wall = time.monotonic() - begun
    said = subprocess.run([fettle, "trials", "mlp", "--output", "json"], cwd=folder, capture_output=True, text=True)
    for trial in json.loads(said.stdout):
        runs = trial["status"]["runs"]
        assert [run["outcome"] for run in runs] == ["Succeeded"] and "message" not in runs[0], runs
    return {log.parts[-3]: log.read_text() for log in folder.glob(".fettle/mlp/mlp-*/r0/output.log")}, wall


def refuses_threads(python, folder):
    """A child that computes would wait for ever for the threads of OpenMP that its parent had."""
    (folder / "computes.py").write_text("import torch\n(torch.ones(512, 512) @ torch.ones(512, 512)).sum()\n")
    (folder / "train.py").write_text("")
    reading, _ = os.pipe()
    variables = {"FETTLE_WORKER_FD": str(reading), "FETTLE_WORKER_NONCE": "0" * 32, "FETTLE_WORKER_VERSION": "1",
                 "PYTHONPATH": f"{PACKAGE}:{folder}", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([python, "-m", "fettle.warm", "--preload", "torch,computes", "train.py"], cwd=folder, text=True,
                          env=dict(os.environ, **variables), pass_fds=[reading], capture_output=True, timeout=100)
    return done.returncode == 2 and "--preload computes: importing it started a thread" in done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    fettle = str(pathlib.Path(options.fettle).resolve())
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(scratch)
        os.environ["FETTLE_MACHINE_DIR"] = str(place / "machine")
        refuses = refuses_threads(options.python, place)
        failed += not refuses
        print(f"a module that computes is {'refused' if refuses else 'NOT REFUSED'}", flush=True)
        for threads in THREADS:
            expected = None
            for way in ("process", "warm", "trials()"):
                found, wall = curves(fettle, place / threads / way, study(options.python, way, threads))
                expected = expected or found
                same = len(found) == TRIALS and found == expected and all(text.count("loss") == 3 for text in found.values())
                failed += not same
                print(f"{way}, {threads} threads: {'the same bits' if same else 'OTHER NUMBERS'}, {wall:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
