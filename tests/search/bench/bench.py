#!/usr/bin/env python3
"""make bench-search: Fettle's search against its peers, in one run on one machine.

Four parts. `search`: the problems of problems.py, one trial at a time and with eight pending; a score is 0 for
random search with the same budget and 100 for the optimum (for models: the best that any search found in these
results). `curves`: schedulers over learning curves. `latency`: processor time of an ask, and memory. `stream`: very
many trials through the pipe. Prints tables, and writes everything to OUT/bench-search.json. Runs are kept in
OUT/runs.jsonl and not done twice (those of Fettle for one and the same binary), so that a long measurement can be
interrupted and resumed. What expensive peers reach is in recorded.jsonl: they take minutes a run, and a run is the same
everywhere but for the processor time (--recorded with another name: measure it here)."""
import argparse
import hashlib
import json
import math
import os
import statistics
import sys
import threading
import time

import numpy as np

import curves
import drive
from peers import DEAR, PEERS, QUICK, USUAL
from problems import FUNCTIONS, LATENCY, MODELS, PROBLEMS, latency_loss, point_at

HERE = os.path.dirname(os.path.abspath(__file__))
STREAM = {"random": [1000, 100_000, 450_000], "sobol": [1000, 100_000], "tpe": [1000, 100_000]}


class Runs:
    """Everything that was measured, a line each; `once` measures what is neither there nor recorded."""

    def __init__(self, path, binary, recorded):
        self.path, self.records = path, {}
        with open(binary, "rb") as file:
            self.binary = hashlib.sha256(file.read()).hexdigest()[:12]
        for source in (recorded, path):
            if os.path.exists(source):
                with open(source) as file:
                    for line in file:
                        record = json.loads(line)
                        self.records[tuple(record["key"])] = record["value"]

    def record(self, path, peers):
        """Of each search by these peers what scores are made of."""
        with open(path, "w") as file:
            for key in sorted(key for key in self.records if key[0] == "search" and key[1] in peers):
                value = self.records[key]
                kept = {"curve": value["curve"][-1:], "ask_cpu_ms": round(value["ask_cpu_ms"], 1)}
                file.write(json.dumps({"key": key, "value": kept}) + "\n")

    def once(self, key, measure):
        if key[1].startswith("fettle"):
            key = (*key, self.binary)
        if key not in self.records:
            try:
                value = measure()
            except RuntimeError as error:
                print(*key, "FAILED:", error, file=sys.stderr, flush=True)
                return None
            self.records[key] = value
            with open(self.path, "a") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
            print(".", end="", file=sys.stderr, flush=True)
        return self.records[key]


def contenders(options):
    """Of each label the command that serves it, and the algorithm to name in the study."""
    out = {f"fettle {name}": ([options.fettle, "suggest"], name) for name in options.algorithms}
    out.update({name: ([sys.executable, os.path.join(HERE, "peers.py"), name], None) for name in options.peers})
    return out


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def plus_minus(values):
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def mean_over_problems(by_problem):
    """Of lists of values, one a problem: the mean of their means, and its error from that of each."""
    found = [plus_minus(values) for values in by_problem]
    return (statistics.fmean(mean for mean, _ in found),
            math.sqrt(sum(error ** 2 for _, error in found)) / len(found))


def low_quantile(scores):
    """What nine runs in ten reach."""
    return sorted(scores)[len(scores) // 10]


# ------------------------------------------------------------------------------------------ search
def reference(name, problem):
    """The expected loss of the best of that number of random points, and the lowest seen."""
    random = drive.stream(name, "pool")
    losses = np.array([problem.loss(point_at(problem.space, random.random(len(problem.space))))
                       for _ in range(problem.pool)])
    bests = []
    for _ in range(4000):
        rows = random.integers(0, len(losses), problem.trials)
        told = losses[rows] + problem.noise * random.normal(size=len(rows))
        bests.append(losses[rows[told.argmin()]])
    return {"random": float(np.mean(bests)), "lowest": float(losses.min())}


def score(loss, random, optimum):
    """0 at what random search reaches, 100 at the optimum, clipped."""
    return min(max(100 * (1 - (loss - optimum) / (random - optimum)), -100), 100)


def ranks(values):
    """From 1; equal ones share the mean of their places."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
            for value in values]


def search(options, runs):
    everything = {}
    for name in options.problems:
        everything[name] = runs.once(("reference", name), lambda: reference(name, PROBLEMS[name]))
    found = {}
    for seed in range(options.seeds):  # outermost, so that a run broken off has whole seeds
        for name in options.problems:
            if name in MODELS and seed >= options.model_seeds:
                continue
            for pending in options.pending:
                for label, (argv, algorithm) in contenders(options).items():
                    run = runs.once(("search", label, name, seed, pending), lambda: drive.optimise(
                        argv, name, PROBLEMS[name], seed, pending, algorithm))
                    if run:
                        found[label, name, seed, pending] = run
    return [scores(options, everything, found, pending) for pending in options.pending]


def scores(options, everything, found, pending):
    labels = list(contenders(options))
    by_label = {label: {} for label in labels}
    losses = {label: {} for label in labels}
    for name in options.problems:
        runs = {key: run for key, run in found.items() if key[1] == name}
        optimum = PROBLEMS[name].optimum
        if optimum is None:
            optimum = min([everything[name]["lowest"]] + [run["curve"][-1] for run in runs.values()])
        for (label, _, seed, at), run in runs.items():
            if at != pending:
                continue
            by_label[label][name, seed] = score(run["curve"][-1], everything[name]["random"], optimum)
            losses[label].setdefault(name, []).append(run["curve"][-1])
    labels = [label for label in labels if by_label[label]]
    names = [name for name in options.problems if all(name in losses[label] for label in labels)]
    places = [ranks([statistics.fmean(losses[label][name]) for label in labels]) for name in names]
    out = {}
    for at, label in enumerate(labels):
        values = {name: [v for (n, _), v in by_label[label].items() if n == name] for name in names}
        mean, error = mean_over_problems(values.values())
        cpu = [run["ask_cpu_ms"] for (who, _, _, at_once), run in found.items() if who == label and at_once == pending]
        out[label] = {"score": round(mean, 1), "standard_error": round(error, 1),
                      "low_quantile": round(low_quantile([v for of in values.values() for v in of]), 1),
                      "rank": round(statistics.fmean(place[at] for place in places), 2),
                      "ask_cpu_ms": round(statistics.median(cpu), 2),
                      "problems": {name: round(statistics.fmean(of), 1) for name, of in values.items()}}
    order = sorted(out, key=lambda label: -out[label]["score"])
    print(f"\n{pending} pending, {options.seeds} seeds (models {min(options.seeds, options.model_seeds)})\n")
    print(table(["optimiser", "score", "±", "10 %", "rank", "ask, CPU ms"] + names,
                [[label, out[label]["score"], out[label]["standard_error"], out[label]["low_quantile"],
                  out[label]["rank"], out[label]["ask_cpu_ms"], *out[label]["problems"].values()] for label in order]))
    return {"pending": pending, "optimisers": out}


# ------------------------------------------------------------------------------------------ curves
def schedulers(options):
    out = dict(curves.PEERS)
    for pair in options.schedulers:
        algorithm, _, rule = pair.partition("+")
        out[f"fettle {pair}"] = lambda seed, a=algorithm, r=rule: curves.Fettle([options.fettle, "suggest"], seed, a, r)
    return out


def work_to(trace, target):
    return next((work for work, error in trace if error <= target), math.inf)


def learning_curves(options, runs):
    goal = runs.once(("reference", "curves"), curves.targets)
    out = {}
    for label, make in schedulers(options).items():
        def run(seed):
            scheduler = make(seed)
            try:
                return curves.simulate(scheduler, options.work)
            finally:
                scheduler.close()
        found = [runs.once(("curves", label, seed, options.work), lambda s=seed: run(s))
                 for seed in range(options.curve_seeds)]
        found = [one for one in found if one]
        if not found:
            continue
        works = [[work_to(one["trace"], goal[which]) for one in found] for which in ("one_percent", "two_permille")]
        out[label] = {"regret": round(statistics.fmean(one["trace"][-1][1] for one in found) - goal["best"], 4),
                      "trials": round(statistics.fmean(one["trials"] for one in found)),
                      **{name: {"work": round(w, 1) if math.isfinite(w := statistics.median(work)) else None,
                                "reached": sum(map(math.isfinite, work)), "runs": len(work)}
                         for name, work in zip(("one_percent", "two_permille"), works)}}

    def cell(one):
        return f"{one['work'] or f'> {options.work}'} ({one['reached']} of {one['runs']})"
    print(f"\nlearning curves, 8 workers, {options.curve_seeds} seeds; targets: 1 % of random full trainings reach "
          f"{goal['one_percent']:.4f}, 0.2 % {goal['two_permille']:.4f}\n")
    print(table(["scheduler", f"regret at {options.work}", "trials", "work to 1 %", "work to 0.2 %"],
                [[label, one["regret"], one["trials"], cell(one["one_percent"]), cell(one["two_permille"])]
                 for label, one in sorted(out.items(), key=lambda item: item[1]["regret"])]))
    return out


# ------------------------------------------------------------------------------------------ latency
def latencies(options, runs):
    out = {}
    for label, (argv, algorithm) in contenders(options).items():
        at = [100, 1000] if label.startswith("fettle") else [100]
        out[label] = runs.once(("latency", label), lambda: drive.latency(
            argv, LATENCY, latency_loss, at, algorithm=algorithm, seconds=options.latency_seconds))
    out = {label: one for label, one in out.items() if one}
    print("\nan ask on ten mixed parameters, one core\n")
    print(table(["optimiser", "CPU ms at 100", "at 1,000", "wall ms at 100", "at 1,000", "MB at the end"],
                [[label, *(one.get(key, "–") for key in ("cpu_ms_at_100", "cpu_ms_at_1000", "wall_ms_at_100",
                                                         "wall_ms_at_1000", "megabytes"))]
                 for label, one in out.items()]))
    return out


def stream(argv, algorithm, trials):
    """All requests at once, ask and tell in turn: seconds until the last reply, and the peak of memory then."""
    values = drive.stream("values").random(trials)
    study = drive.study_of("stream", LATENCY, 0, 0, 1, algorithm={"name": algorithm})
    start = time.monotonic()
    with drive.Optimiser(argv, study) as optimiser:
        def write():
            for trial in range(trials):
                optimiser.process.stdin.write(
                    f'{{"ask":1}}\n{{"tell":{{"id":{trial},"value":{values[trial]:.6f}}}}}\n')
            optimiser.process.stdin.flush()
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(trials):
            if "params" not in optimiser.process.stdout.readline():
                raise RuntimeError("a trial is missing")
        seconds = time.monotonic() - start
        megabytes = optimiser.peak_megabytes()
        writer.join()
    return {"seconds": round(seconds, 2), "megabytes": round(megabytes, 1)}


def streams(options, runs):
    out = {}
    for algorithm, counts in STREAM.items():
        for trials in counts[:1] if options.quick else counts:
            key = ("stream", f"fettle {algorithm}", trials)
            out[f"{algorithm} {trials}"] = runs.once(
                key, lambda: stream([options.fettle, "suggest"], algorithm, trials))
    out = {what: one for what, one in out.items() if one}
    print("\nask and tell in turn through the pipe, ten mixed parameters\n")
    print(table(["algorithm and trials", "seconds", "MB"], [[what, *one.values()] for what, one in out.items()]))
    return out


# ------------------------------------------------------------------------------------------ command line
def names(text):
    return [name for name in text.split(",") if name]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--fettle", default="build/bin/fettle", help="the program")
    add("--out", default="build/bench-search", help="folder of the results")
    add("--recorded", default=os.path.join(HERE, "recorded.jsonl"), help="file of runs of expensive peers")
    add("--record", action="store_true", help=f"write those of {', '.join(DEAR)} to that file at the end")
    add("--quick", action="store_true", help="a few minutes: fewer seeds, no models, quick peers")
    add("--parts", type=names, default="search,curves,latency,stream")
    add("--algorithms", type=names, default="auto,tpe", help="of Fettle")
    add("--schedulers", type=names, default="random+asha,tpe+asha,tpe+median", help="of Fettle: algorithm+rule")
    add("--peers", type=names, help=f"of {', '.join(PEERS)}; usual: {','.join(USUAL)}")
    add("--problems", type=names, help=f"of {', '.join(PROBLEMS)}")
    add("--pending", type=lambda text: [int(n) for n in names(text)], default="1,8")
    add("--seeds", type=int), add("--model-seeds", type=int, default=5), add("--curve-seeds", type=int)
    add("--work", type=int, default=40, help="full trainings a run of a learning curve")
    add("--latency-seconds", type=float, default=120)
    options = parser.parse_args()
    options.peers = options.peers or (QUICK if options.quick else USUAL)
    options.problems = options.problems or (FUNCTIONS if options.quick else FUNCTIONS + MODELS)
    options.seeds = options.seeds or (3 if options.quick else 20)
    options.curve_seeds = options.curve_seeds or (3 if options.quick else 10)
    for given, known in ((options.peers, PEERS), (options.problems, PROBLEMS)):
        for name in given:
            if name not in known:
                parser.error(f"there is no {name}; there are {', '.join(known)}")
    options.fettle = os.path.abspath(options.fettle)
    return options


def main():
    options = read_options()
    os.makedirs(options.out, exist_ok=True)
    runs = Runs(os.path.join(options.out, "runs.jsonl"), options.fettle, options.recorded)
    out = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv[1:])}
    parts = {"search": search, "curves": learning_curves, "latency": latencies, "stream": streams}
    for part in options.parts:
        out[part] = parts[part](options, runs)
    with open(os.path.join(options.out, "bench-search.json"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")
    if options.record:
        runs.record(options.recorded, DEAR)


if __name__ == "__main__":
    main()
