#!/usr/bin/env python3
"""Measures the Python package: its import, 100 evaluations of tune(), and the overhead of ask and tell.

Optuna, if it is installed in the interpreter, runs the same function in the same process. The overhead of the client is
an ask and a tell of the sampler that decides fastest (random): the program answers at once, so what remains is the
package, two pipes and JSON.
Usage: bench_python.py PROGRAM [--repeats N]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python"
sys.path.insert(0, str(PACKAGE))
BYTE_CODE = tempfile.TemporaryDirectory()


def core_seconds():
    """Of this process and of the children that have ended."""
    return sum(os.times()[:4])


def row(name, wanted, repeats, measure):
    """Prints the smallest and the median of `repeats` runs, and what one run costs on average."""
    before = core_seconds()
    seconds = sorted(measure() for _ in range(repeats))
    core = (core_seconds() - before) / repeats
    lowest, median = (f"{one * 1000:.2f} ms" if one < 1 else f"{one:.2f} s"
                      for one in (seconds[0], statistics.median(seconds)))
    print(f"| {name} | {wanted} | {lowest} | {median} | {core:.2f} |", flush=True)


def import_seconds(module):
    """In an interpreter of its own, by its own clock, with byte code, as pip installs it."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONPYCACHEPREFIX": BYTE_CODE.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = f"import time; begun = time.perf_counter(); import {module}; print(time.perf_counter() - begun)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                                env=environment).stdout)


def tune_seconds(workers, algorithm):
    import fettle

    space = {"x": fettle.uniform(-5, 5), "y": fettle.uniform(-5, 5), "kind": fettle.choice("a", "b", "c")}
    begun = time.perf_counter()
    fettle.tune(lambda x, y, kind: x * x + y * y, space, minimize="loss", trials=100, workers=workers,
                algorithm=algorithm, seed=1)
    return time.perf_counter() - begun


def optuna_seconds():
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        trial.suggest_categorical("kind", ["a", "b", "c"])
        return trial.suggest_float("x", -5, 5) ** 2 + trial.suggest_float("y", -5, 5) ** 2

    begun = time.perf_counter()
    optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1)).optimize(objective, n_trials=100)
    return time.perf_counter() - begun


def ask_and_tell_seconds():
    """Of one trial, the median of 1,000."""
    import fettle

    seconds = []
    with fettle.Search({"x": fettle.uniform(0, 1)}, minimize="loss", algorithm="random", trials=1000, seed=1) as search:
        while True:
            begun = time.perf_counter()
            trial = search.ask()
            if trial is None:
                return statistics.median(seconds)
            trial.tell(trial["x"])
            seconds.append(time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    os.environ["FETTLE_PROGRAM"] = str(pathlib.Path(options.program).resolve())
    import_seconds("fettle._tune")  # writes the byte code
    print("| | wanted | best | median | seconds of a core, a run |\n|---|---|---|---|---|")
    row("`import fettle`", "30 ms", options.repeats, lambda: import_seconds("fettle"))
    row("`import fettle` and `fettle.tune`", "", options.repeats, lambda: import_seconds("fettle._tune"))
    row("ask and tell, `random`", "1 ms", options.repeats, ask_and_tell_seconds)
    row("100 evaluations, `workers=1`", "1.5 s", options.repeats, lambda: tune_seconds(1, None))
    row("100 evaluations, `workers=2`", "1.5 s", options.repeats, lambda: tune_seconds(2, None))
    row("100 evaluations, `tpe`", "", options.repeats, lambda: tune_seconds(1, "tpe"))
    try:
        row("Optuna, 100 evaluations, TPE", "", options.repeats, optuna_seconds)
    except ImportError:
        print("\nOptuna is not installed in this interpreter.", file=sys.stderr)


if __name__ == "__main__":
    main()
