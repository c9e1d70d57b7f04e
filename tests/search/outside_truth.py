#!/usr/bin/env python3
"""Writes outside_truth.json beside this file: numbers of SciPy and Optuna that search/samplers/outside_truth_test.cpp
compares Fettle's search with. Run it with the interpreter of `make bench-search`'s environment; the output
was made with SciPy 1.17 and Optuna 5.0."""
import json
import os
import warnings

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_gamma, default_weights
from scipy.stats import qmc

warnings.simplefilter("ignore")
DIMENSIONS = [0, 1, 2, 3, 7, 19, 50, 100, 364, 999, 1110, 2500, 3666]
INDICES = [1, 2, 3, 6, 17, 100, 1023, 1024, 65535]
SPACE = {
    "x": FloatDistribution(-1, 3),
    "rate": FloatDistribution(1e-5, 1, log=True),
    "layers": IntDistribution(1, 9),
    "kind": CategoricalDistribution(["a", "b", "c"]),
}


def sobol():
    engine = qmc.Sobol(max(DIMENSIONS) + 1, scramble=False, bits=32)
    out, at = [], 0
    for index in INDICES:
        engine.fast_forward(index - at)
        point = engine.random(1)[0]
        at = index + 1
        out.append({"index": index, "point": [float(point[d]) for d in DIMENSIONS]})
    return {"dimensions": DIMENSIONS, "points": out}


def rows_of(random, count):
    return {
        "x": random.uniform(-1, 3, count),
        "rate": 10 ** random.uniform(-5, 0, count),
        "layers": (random.permutation(max(count, 9)) % 9 + 1)[:count].astype(float),
        "kind": random.integers(0, 3, count).astype(float),
    }


def as_lists(rows):
    return [[float(rows[name][i]) for name in SPACE] for i in range(len(rows["x"]))]


def densities(trials):
    """Good over bad, in the logarithm, at some points, by Optuna's multivariate TPE over its default split. The
    integer takes part only where no value of it comes twice: which of equals is wider is left to NumPy's sort."""
    random = np.random.default_rng(trials)
    history, points = rows_of(random, trials), rows_of(random, 9)
    values = random.normal(size=trials)
    good = np.sort(np.argsort(values)[:default_gamma(trials)])
    bad = np.setdiff1d(np.arange(trials), good)
    space = {name: kind for name, kind in SPACE.items() if name != "layers" or trials <= 9}
    parameters = _ParzenEstimatorParameters(1.0, True, False, default_weights, True)

    def log_density(rows):
        estimator = _ParzenEstimator({name: history[name][rows] for name in space}, space, parameters)
        return estimator.log_pdf({name: points[name] for name in space})

    return {"parameters": [list(SPACE).index(name) for name in space], "trials": as_lists(history),
            "good": good.tolist(), "points": as_lists(points),
            "log_ratios": (log_density(good) - log_density(bad)).tolist()}


def main():
    out = {"versions": {"optuna": optuna.__version__}, "sobol": sobol(),
           "tpe": [densities(n) for n in (9, 40, 150)]}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "outside_truth.json"), "w") as file:
        json.dump(out, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
