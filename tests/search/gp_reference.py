#!/usr/bin/env python3
"""Writes search/testdata/gp_reference.json: what scikit-learn's Gaussian process says of fixed data.

search/gp/reference_test.cpp holds the gp sampler's mathematics to these numbers. To make them again:
    python3 -m venv v && v/bin/pip install numpy scikit-learn && v/bin/python tests/search/gp_reference.py
The kernel is scale * (Matern-5/2 with a length scale for each dimension + 1) + white noise, the noise
given as a share of the scale.
"""
import json
import os

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

MEAN_VARIANCE = 1.0
SCALE_OBSERVATIONS = 4  # the prior weight that the sampler gives to an output variance of 1


def case(seed, n, dimensions, noise, scale=None):
    rng = np.random.default_rng(seed)
    x, queries = rng.random((n, dimensions)), rng.random((5, dimensions))
    y = np.sin(5 * x[:, 0]) + x.sum(1) ** 2 / dimensions + 0.1 * rng.normal(size=n)
    y = (y - y.mean()) / y.std()
    lengths = np.exp(rng.normal(-0.5, 0.7, dimensions))

    def process(s):
        kernel = ConstantKernel(s) * (Matern(lengths, nu=2.5) + ConstantKernel(MEAN_VARIANCE, "fixed"))
        kernel += WhiteKernel(s * noise)
        return GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(x, y)

    if scale is None:  # the one that the posterior uses
        unit = process(1.0).kernel_(x)
        scale = (y @ np.linalg.solve(unit, y) + SCALE_OBSERVATIONS) / (n + SCALE_OBSERVATIONS)
    gp = process(scale)
    value, gradient = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
    mean, sd = gp.predict(queries, return_std=True)
    return {"x": x.tolist(), "y": y.tolist(), "queries": queries.tolist(), "lengths": lengths.tolist(),
            "noise": noise, "scale": scale, "log_likelihood": value,
            # by log lengths and log noise; theta[0] is the scale
            "gradient": gradient[1:].tolist(),
            "mean": mean.tolist(), "sd": np.sqrt(sd ** 2 - scale * noise).tolist()}


if __name__ == "__main__":
    cases = [case(1, 6, 1, 0.01), case(2, 25, 3, 0.001), case(3, 60, 6, 0.05)]
    path = os.path.join(os.path.dirname(__file__), "../../search/testdata/gp_reference.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        json.dump(cases, out)
        out.write("\n")
