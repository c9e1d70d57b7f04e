"""What the optimisers are measured on: open problems, cheap enough to repeat often.

A space is a list of parameters as `fettle suggest` takes them. Every value is a loss. A problem with noise is
judged by what is true of the point that looked best to the optimiser, not by what it was told."""
import functools
import math
import warnings

import numpy as np


def real(name, low, high, log=False, **more):
    return dict(name=name, type="float", low=low, high=high, log=log, **more)


def integer(name, low, high, log=False, **more):
    return dict(name=name, type="int", low=low, high=high, log=log, **more)


def choice(name, choices, **more):
    return dict(name=name, type="categorical", choices=choices, **more)


def only_if(param, *values):
    return {"when": {"param": param, "in": list(values)}}


def active(parameter, params):
    when = parameter.get("when")
    return when is None or params.get(when["param"]) in when["in"]


def from_unit(parameter, unit):
    """The value at a place of the unit interval; integers and choices get equal shares of its scale."""
    if parameter["type"] == "categorical":
        return parameter["choices"][min(int(unit * len(parameter["choices"])), len(parameter["choices"]) - 1)]
    whole = parameter["type"] == "int"
    low, high = parameter["low"] - 0.5 * whole, parameter["high"] + 0.5 * whole
    if parameter["log"]:
        value = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
    else:
        value = low + unit * (high - low)
    value = min(max(round(value) if whole else value, parameter["low"]), parameter["high"])
    return int(value) if whole else float(value)


def point_at(space, units):
    params = {}
    for parameter, unit in zip(space, units):
        if active(parameter, params):
            params[parameter["name"]] = from_unit(parameter, unit)
    return params


def complaint(space, params):
    """What is wrong with a point, or None: exactly the active parameters, of their type, within bounds."""
    seen = {}
    for parameter in space:
        if not active(parameter, seen):
            continue
        name = parameter["name"]
        if name not in params:
            return f"{name} is missing"
        value = seen[name] = params[name]
        if parameter["type"] == "categorical":
            if value not in parameter["choices"]:
                return f"{name} = {value!r} is no choice"
        elif not parameter["low"] <= value <= parameter["high"]:
            return f"{name} = {value!r} is out of bounds"
        elif parameter["type"] == "int" and value != int(value):
            return f"{name} = {value!r} is no whole number"
    extra = set(params) - set(seen)
    return f"{sorted(extra)} are not active" if extra else None


class Problem:
    """`loss(params)` without noise; `noise` is the standard deviation of what is added to it for the optimiser.
    `optimum`: of the loss, None where it is not known. `pool`: random points that the score's zero rests on."""

    def __init__(self, loss, space, trials, optimum=None, noise=0.0, pool=4000):
        self.loss, self.space, self.trials = loss, space, trials
        self.optimum, self.noise, self.pool = optimum, noise, pool


# ------------------------------------------------------------------------------------------ functions
def vector(params):
    return np.array([params[f"x{i}"] for i in range(len(params))])


def cube(dimensions, low, high):
    return [real(f"x{i}", low, high) for i in range(dimensions)]


def branin(params):
    x, y = params["x0"], params["x1"]
    bend = y - 5.1 * x * x / (4 * math.pi ** 2) + 5 * x / math.pi - 6
    return bend ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SCALES = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
                            [17, 8, 0.05, 10, 0.1, 14]])
HARTMANN_CENTRES = np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                             [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]) / 1e4


def hartmann6(params):
    far = (HARTMANN_SCALES * (vector(params) - HARTMANN_CENTRES) ** 2).sum(axis=1)
    return -float(HARTMANN_WEIGHTS @ np.exp(-far))


def shift(dimensions, width):
    """Moves an optimum away from the centre, where some optimisers look first."""
    return width * (np.modf(np.sqrt(np.arange(2, dimensions + 2)))[0] - 0.5)


def ackley(params):
    z = vector(params) - shift(len(params), 40)
    return float(20 + math.e - 20 * np.exp(-0.2 * np.sqrt((z * z).mean()))
                 - np.exp(np.cos(2 * math.pi * z).mean()))


def rastrigin(params):
    z = vector(params) - shift(len(params), 4)
    return float((z * z + 10 - 10 * np.cos(2 * math.pi * z)).sum())


MIXED = [choice("kind", ["red", "green", "blue", "grey"]), integer("size", 1, 30), real("rate", 1e-5, 1, log=True),
         real("x", 0, 1), real("y", 0, 1)]


def mixed(params):
    """Each kind has a valley of its own, at its own height; the size matters for some of them only."""
    floor, x, y, rate, slope = {"red": (0.3, 0.2, 0.7, -1, 0.0), "green": (0.0, 0.8, 0.3, -3, 0.5),
                                "blue": (0.15, 0.5, 0.5, -2, 0.2), "grey": (0.5, 0.1, 0.1, -4, 0.0)}[params["kind"]]
    bowl = 3 * (params["x"] - x) ** 2 + 2 * (params["y"] - y) ** 2 + 0.15 * (math.log10(params["rate"]) - rate) ** 2
    return floor + bowl + slope * ((params["size"] - 22) / 30) ** 2


CONDITIONAL = [
    choice("model", ["tree", "net", "line"]), real("rate", 1e-6, 1, log=True),
    integer("depth", 1, 16, **only_if("model", "tree")), real("sample", 0.1, 1, **only_if("model", "tree")),
    integer("layers", 1, 6, **only_if("model", "net")), integer("width", 8, 512, log=True, **only_if("model", "net")),
    real("decay", 1e-8, 1e-1, log=True, **only_if("model", "net")), real("mix", 0, 1, **only_if("model", "line"))]


def conditional(params):
    rate = math.log10(params["rate"])
    if params["model"] == "tree":
        return 0.12 + 0.2 * (rate + 1) ** 2 + 0.004 * (params["depth"] - 6) ** 2 + 0.4 * (params["sample"] - 0.7) ** 2
    if params["model"] == "line":
        return 0.3 + 0.1 * (rate + 2) ** 2 + 0.5 * (params["mix"] - 0.4) ** 2
    return (0.05 + 0.3 * (rate + 3) ** 2 + 0.03 * (params["layers"] - 3) ** 2
            + 0.05 * (math.log2(params["width"]) - 7) ** 2 + 0.02 * (math.log10(params["decay"]) + 4) ** 2)


# ------------------------------------------------------------------------------------------ models
@functools.lru_cache(maxsize=None)
def data(name, rows):
    """Standardised, a fixed subset, three fixed folds."""
    from sklearn import datasets
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler
    x, y = getattr(datasets, "load_" + name)(return_X_y=True)
    keep = np.random.default_rng(1).permutation(len(x))[:rows]
    return StandardScaler().fit_transform(x[keep]), y[keep], list(KFold(3).split(keep))


def cross_validated(make, name, rows, loss):
    x, y, folds = data(name, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = [loss(make().fit(x[train], y[train]), x[test], y[test]) for train, test in folds]
    return float(np.mean(losses))


def misses(model, x, y):
    return float((model.predict(x) != y).mean())


def unexplained(model, x, y):
    """Mean squared error over the variance: 1 is what the mean alone reaches."""
    return min(float(((model.predict(x) - y) ** 2).mean() / y.var()), 10.0)


SUPPORT_VECTORS = [choice("kernel", ["linear", "rbf", "poly"]), real("C", 1e-3, 1e3, log=True),
                   real("gamma", 1e-5, 1, log=True, **only_if("kernel", "rbf", "poly")),
                   integer("degree", 2, 5, **only_if("kernel", "poly")),
                   real("coef0", 0, 2, **only_if("kernel", "poly"))]


def support_vectors(params):
    from sklearn.svm import SVC
    return cross_validated(lambda: SVC(max_iter=2000, **params), "digits", 360, misses)


BOOSTED_TREES = [integer("n_estimators", 5, 60, log=True), real("learning_rate", 1e-3, 1, log=True),
                 integer("max_depth", 1, 8), real("subsample", 0.2, 1), integer("min_samples_leaf", 1, 60, log=True),
                 real("max_features", 0.1, 1), choice("loss", ["squared_error", "absolute_error", "huber"])]


def boosted_trees(params):
    from sklearn.ensemble import GradientBoostingRegressor
    return cross_validated(lambda: GradientBoostingRegressor(random_state=0, **params), "diabetes", 300, unexplained)


ELASTIC_LINE = [choice("penalty", ["l2", "l1", "elasticnet"]), real("alpha", 1e-7, 1, log=True),
                real("l1_ratio", 0, 1, **only_if("penalty", "elasticnet")), real("eta0", 1e-5, 1, log=True),
                choice("learning_rate", ["constant", "invscaling", "adaptive"]), integer("max_iter", 2, 40, log=True)]


def elastic_line(params):
    from sklearn.linear_model import SGDClassifier
    return cross_validated(lambda: SGDClassifier(random_state=0, tol=None, **params), "breast_cancer", 300, misses)


PROBLEMS = {
    "branin": Problem(branin, [real("x0", -5, 10), real("x1", 0, 15)], 40, optimum=0.39788735772973816),
    "hartmann6": Problem(hartmann6, cube(6, 0, 1), 60, optimum=-3.322368011415515),
    "ackley10": Problem(ackley, cube(10, -32, 32), 100, optimum=0.0),
    "noisy_rastrigin4": Problem(rastrigin, cube(4, -5.12, 5.12), 80, optimum=0.0, noise=2.0),
    "mixed": Problem(mixed, MIXED, 60, optimum=0.0),
    "conditional": Problem(conditional, CONDITIONAL, 60, optimum=0.05),
    "support_vectors": Problem(support_vectors, SUPPORT_VECTORS, 40, pool=300),
    "boosted_trees": Problem(boosted_trees, BOOSTED_TREES, 40, pool=300),
    "elastic_line": Problem(elastic_line, ELASTIC_LINE, 40, pool=300),
}
FUNCTIONS = ["branin", "hartmann6", "ackley10", "noisy_rastrigin4", "mixed", "conditional"]
MODELS = ["support_vectors", "boosted_trees", "elastic_line"]

# For latency and memory: ten parameters of every kind, and a loss that needs no time.
LATENCY = [real(f"a{i}", 0, 1) for i in range(4)] + [real(f"b{i}", 1e-5, 1, log=True) for i in range(2)] + [
    integer("m", 1, 64, log=True), integer("n", 0, 10), choice("c", list("pqrs")), choice("d", list("xyz"))]


def latency_loss(params):
    return (sum((params[f"a{i}"] - 0.2 * i) ** 2 for i in range(4))
            + sum((math.log10(params[f"b{i}"]) + 2 + i) ** 2 / 9 for i in range(2)) + abs(params["m"] - 20) / 64
            + abs(params["n"] - 3) / 10 + 0.2 * "pqrs".index(params["c"]) + 0.1 * "xyz".index(params["d"]))
