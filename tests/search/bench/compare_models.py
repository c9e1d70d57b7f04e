#!/usr/bin/env python3
"""make bench-models: searches of Fettle against each other, on the models of development_models.py.

For developers of the search: a program (and one from before, --against) and some algorithms, one row a model. A
score is 0 for the expected best of as many random points and 100 for the lowest loss ever seen in the folder OUT,
within -100 ... 100. Differences are to the first column, paired by seed. A mean over 31 models with 16 seeds is known
to about 1.7, a difference to about 2; less than twice that is no difference."""
import argparse
import concurrent.futures
import json
import os
import sys

import drive
from bench import low_quantile, mean_over_problems, names, plus_minus, reference, score, table
from development_models import DEVELOPMENT


def random_search(name):
    return reference(name, DEVELOPMENT[name])


def read_references(path, models, pool):
    """By model what bench.reference() says of it. Kept in a file, since it takes minutes."""
    known = {}
    if os.path.exists(path):
        with open(path) as file:
            known = json.load(file)
    missing = [name for name in models if name not in known]
    known.update(zip(missing, pool.map(random_search, missing)))
    return known


def last_loss(program, algorithm, name, seed, pending):
    return drive.optimise([program, "suggest"], name, DEVELOPMENT[name], seed, pending, algorithm)["curve"][-1]


def show(contenders, models, found):
    rows = [[name, *("%.1f ± %.1f" % plus_minus(found[contender, name]) for contender in contenders)]
            for name in models]
    rows.append(["all", *("%.1f ± %.1f" % mean_over_problems([found[contender, name] for name in models])
                          for contender in contenders)])
    rows.append(["10 % quantile", *("%.1f" % low_quantile([x for name in models for x in found[contender, name]])
                                    for contender in contenders)])
    first = contenders[0]
    rows.append(["difference", "", *(
        "%+.1f ± %.1f" % mean_over_problems([[a - b for a, b in zip(found[contender, name], found[first, name])]
                                           for name in models]) for contender in contenders[1:])])
    print(table(["model", *(" ".join(contender) for contender in contenders)], rows))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--fettle", default="build/bin/fettle", help="the program")
    add("--against", help="another one, to compare it with: it comes first")
    add("--out", default="build/bench-search", help="folder of what random search reaches, and of the lowest losses")
    add("--algorithms", type=names, default="auto,gp,tpe")
    add("--models", type=names, default=",".join(DEVELOPMENT), help="of " + ", ".join(DEVELOPMENT))
    add("--pending", type=int, default=1), add("--seeds", type=int, default=8), add("--first-seed", type=int, default=0)
    add("--jobs", type=int, default=os.cpu_count(), help="searches at a time")
    options = parser.parse_args()
    for name in options.models:
        if name not in DEVELOPMENT:
            parser.error(f"there is no {name}; there are {', '.join(DEVELOPMENT)}")
    if options.seeds < 2:
        parser.error("an error needs 2 seeds or more")
    return options


def main():
    os.environ.update(drive.ONE_THREAD)
    options = read_options()
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "models.json")
    programs = {"before": options.against, "": options.fettle} if options.against else {"": options.fettle}
    contenders = {(algorithm, label) if label else (algorithm,): (os.path.abspath(program), algorithm)
                  for algorithm in options.algorithms for label, program in programs.items()}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        known = read_references(path, options.models, pool)
        running = {(contender, name): [pool.submit(last_loss, *what, name, seed, options.pending) for seed in seeds]
                   for name in options.models for contender, what in contenders.items()}
        losses = {}
        for key, runs in running.items():
            losses[key] = [run.result() for run in runs]
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for (_, name), by_seed in losses.items():  # lowest losses first: all scores rest on them
        known[name]["lowest"] = min(known[name]["lowest"], *by_seed)
    with open(path, "w") as file:
        json.dump(known, file, indent=1)
    print(f"{options.pending} pending, seeds {seeds.start} to {seeds.stop - 1}\n")
    found = {(contender, name): [score(loss, known[name]["random"], known[name]["lowest"]) for loss in by_seed]
             for (contender, name), by_seed in losses.items()}
    show(list(contenders), options.models, found)


if __name__ == "__main__":
    main()
