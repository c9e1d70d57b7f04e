#!/usr/bin/env python3
"""Writes search/testdata/cmaes.json: what the Python package `cmaes` makes of given generations.

    python3 tests/golden/cmaes_golden.py        (needs cmaes 0.13, numpy and scipy)

Each case feeds the same positions, best first, to CMAwM (CMA-ES with margin) or CatCMAwM (the
categorical part) and records the state after every generation. Runs give the same file.
"""

import json
import pathlib

import numpy as np
from cmaes import CMAwM, CatCMAwM, get_warm_start_mgd

OUT = pathlib.Path(__file__).resolve().parents[2] / "search" / "testdata" / "cmaes.json"


def margin_case(cells, population, generations, seed):
    """`cells`: values of each axis on the unit interval, 0 for a continuous one."""
    rng = np.random.RandomState(seed)
    n = len(cells)
    bounds = np.array([[0.5 / k, 1 - 0.5 / k] if k else [0.0, 1.0] for k in cells])
    steps = np.array([1 / k if k else 0.0 for k in cells])
    mean = np.full(n, 0.5) + 0.05 * np.arange(n) / n
    optimizer = CMAwM(mean=mean, sigma=0.2, bounds=bounds, steps=steps, seed=seed,
                      population_size=population)
    optimum = rng.uniform(0.1, 0.9, n)
    case = {"cells": cells, "mean": mean.tolist(), "sigma": 0.2, "generations": []}
    for _ in range(generations):
        asked = [optimizer.ask() for _ in range(population)]
        asked.sort(key=lambda pair: float(np.sum((pair[0] - optimum) ** 2)))
        # ask() gives the point to evaluate and the raw one, for tell(). The margin's factors _A, which it has only
        # with axes of cells, stretch the raw point around the mean; ours hands such positions over.
        stretch = getattr(optimizer, "_A", np.ones(n))
        centre = optimizer.mean.copy()
        positions = [((raw - centre) * stretch + centre).tolist() for _, raw in asked]
        optimizer.tell([(raw, float(rank)) for rank, (_, raw) in enumerate(asked)])
        inner = optimizer._cma
        case["generations"].append({
            "positions": positions, "mean": inner._mean.tolist(), "sigma": float(inner._sigma),
            "covariance": inner._C.tolist(),
            "margins": getattr(optimizer, "_A", np.ones(n)).tolist()})
    return case


def categorical_case(sizes, population, generations, seed):
    optimizer = CatCMAwM(c_space=sizes, population_size=population, seed=seed)
    case = {"sizes": sizes, "generations": []}
    for _ in range(generations):
        asked = [optimizer.ask() for _ in range(population)]
        # Best: the first choice of everything, later parameters mattering less.
        loss = lambda s: sum(s.c[i].argmax() / (1 + i) for i in range(len(sizes)))
        asked.sort(key=loss)
        choices = [[int(row.argmax()) for row in s.c] for s in asked]
        optimizer.tell([(s, float(rank)) for rank, s in enumerate(asked)])
        shares = [optimizer._q[i, :size].tolist() for i, size in enumerate(sizes)]
        case["generations"].append({"choices": choices, "shares": shares})
    return case


def warm_start_case(n, count, seed):
    rng = np.random.RandomState(seed)
    points = rng.uniform(0, 1, (count, n))
    mean, sigma, covariance = get_warm_start_mgd([(p, float(i)) for i, p in enumerate(points)],
                                                 gamma=1.0, alpha=0.1)
    return {"points": points.tolist(), "mean": mean.tolist(), "sigma": sigma,
            "covariance": covariance.tolist()}


def main():
    document = {
        "margin": [margin_case([0, 0, 0], 7, 8, 1), margin_case([0, 0, 5, 12], 8, 12, 2),
                   margin_case([2, 3, 0, 100], 10, 20, 3), margin_case([4, 9], 6, 25, 4)],
        "categorical": [categorical_case([3, 4, 2], 8, 12, 5), categorical_case([5, 20], 11, 15, 6)],
        "warm_start": [warm_start_case(2, 1, 7), warm_start_case(4, 6, 8)],
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
