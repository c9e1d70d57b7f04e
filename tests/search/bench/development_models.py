"""Small models of scikit-learn that choices about the search are made on (compare_models.py), so that the problems it
is compared with its peers on (problems.py) stay unseen: no kind of model is here with the data it has there.

Data that ship with scikit-learn or are made by it, 200 rows at most, two folds: an evaluation takes
milliseconds, and a tenth of a second at most."""
import functools
import importlib
import warnings

import numpy as np

from problems import Problem, choice, integer, misses, only_if, real

ROWS = 200


# ------------------------------------------------------------------------------------------ data
def made(name, **more):
    from sklearn import datasets
    return getattr(datasets, "make_" + name)(n_samples=ROWS, random_state=0, **more)


DATA = {
    "blobs": lambda: made("blobs", centers=5, n_features=4, cluster_std=3.0),
    "circles": lambda: made("circles", noise=0.15, factor=0.6),
    "clusters": lambda: made("classification", n_features=12, n_informative=5, n_classes=3, flip_y=0.05),
    "friedman1": lambda: made("friedman1", noise=1.0),
    "friedman2": lambda: made("friedman2", noise=50.0),
    "friedman3": lambda: made("friedman3", noise=0.1),
    "moons": lambda: made("moons", noise=0.25),
    "quantiles": lambda: made("gaussian_quantiles", n_features=4, n_classes=3),
    "sparse": lambda: made("sparse_uncorrelated"),
    "wide": lambda: made("classification", n_features=60, n_informative=6, n_classes=2, flip_y=0.1),
}
NUMBERS = {"diabetes", "friedman1", "friedman2", "friedman3", "sparse"}  # a number is predicted, not a class


@functools.lru_cache(maxsize=None)
def data(name):
    """Standardised, a fixed subset, two fixed folds."""
    from sklearn import datasets
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler
    x, y = DATA[name]() if name in DATA else getattr(datasets, "load_" + name)(return_X_y=True)
    keep = np.random.default_rng(2).permutation(len(x))[:ROWS]
    x, y = StandardScaler().fit_transform(x[keep]), y[keep]
    if name in NUMBERS:
        y = (y - y.mean()) / y.std()
    return x, y, list(KFold(2).split(keep))


def surprise(model, x, y):
    """Mean negative log-likelihood of the classes."""
    share = np.clip(model.predict_proba(x), 1e-6, 1)
    return float(-np.log(share[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean())


def squares(model, x, y):
    """Mean squared error; the data have a variance of 1."""
    return min(float(((model.predict(x) - y) ** 2).mean()), 10.0)


def on(name, make, loss):
    """The loss of a model on a data set: a function of what `make` takes. 10 where training fails."""
    def evaluate(params):
        x, y, folds = data(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = float(np.mean([loss(make(params).fit(x[a], y[a]), x[b], y[b]) for a, b in folds]))
            except ValueError:
                return 10.0
        return found if np.isfinite(found) else 10.0
    return evaluate


# ------------------------------------------------------------------------------------------ models
KERNELS = [choice("kernel", ["linear", "rbf", "poly", "sigmoid"]), real("C", 1e-3, 1e4, log=True),
           real("gamma", 1e-5, 10, log=True, **only_if("kernel", "rbf", "poly", "sigmoid")),
           integer("degree", 2, 5, **only_if("kernel", "poly")),
           real("coef0", -1, 1, **only_if("kernel", "poly", "sigmoid"))]


def estimator(module, kind, **fixed):
    """What makes a model of scikit-learn from parameters, and from some that are the same for all."""
    def make(params):
        return getattr(importlib.import_module("sklearn." + module), kind)(**fixed, **params)
    return make


def network(kind, iterations):
    of_layers = estimator("neural_network", kind, max_iter=iterations, tol=0.0, random_state=0)

    def make(params):
        params = dict(params)
        return of_layers({"hidden_layer_sizes": (params.pop("width"),) * params.pop("depth"), **params})
    return make


def pipeline(params):
    """What goes before a model, and which one."""
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PowerTransformer, QuantileTransformer
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier
    scale = {"none": None, "power": PowerTransformer(), "quantile": QuantileTransformer(n_quantiles=40)}
    keep = {"all": lambda: None, "best": lambda: SelectKBest(k=params["k"]),
            "pca": lambda: PCA(params["components"], random_state=0, whiten=params["whiten"] == "yes")}
    model = {"logistic": lambda: LogisticRegression(C=params["C"], max_iter=60),
             "svm": lambda: SVC(C=params["svm_C"], gamma=params["gamma"], max_iter=2000, probability=True,
                                random_state=0),
             "neighbours": lambda: KNeighborsClassifier(params["neighbours"]),
             "tree": lambda: DecisionTreeClassifier(max_depth=params["depth"], ccp_alpha=params["pruning"],
                                                    random_state=0)}
    steps = [scale[params["scale"]], keep[params["keep"]](), model[params["model"]]()]
    return make_pipeline(*[step for step in steps if step is not None])


def pipeline_space(columns):
    return [choice("scale", ["none", "power", "quantile"]), choice("keep", ["all", "best", "pca"]),
            integer("k", 1, columns, **only_if("keep", "best")),
            integer("components", 1, columns, **only_if("keep", "pca")),
            choice("whiten", ["yes", "no"], **only_if("keep", "pca")),
            choice("model", ["logistic", "svm", "neighbours", "tree"]),
            real("C", 1e-4, 1e3, log=True, **only_if("model", "logistic")),
            real("svm_C", 1e-3, 1e3, log=True, **only_if("model", "svm")),
            real("gamma", 1e-5, 10, log=True, **only_if("model", "svm")),
            integer("neighbours", 1, 60, log=True, **only_if("model", "neighbours")),
            integer("depth", 1, 12, **only_if("model", "tree")),
            real("pruning", 1e-4, 0.3, log=True, **only_if("model", "tree"))]


TREE = [choice("splitter", ["best", "random"]), integer("max_depth", 1, 20),
        integer("min_samples_split", 2, 60, log=True), integer("min_samples_leaf", 1, 40, log=True),
        real("max_features", 0.1, 1), real("ccp_alpha", 1e-5, 0.1, log=True)]
FOREST = [integer("n_estimators", 2, 20, log=True), integer("max_depth", 1, 16),
          integer("min_samples_leaf", 1, 40, log=True), real("max_features", 0.1, 1),
          choice("criterion", ["gini", "entropy", "log_loss"])]
FOREST_OF_NUMBERS = [*FOREST[:-1], real("min_impurity_decrease", 1e-6, 0.1, log=True)]
BOOSTED = [integer("n_estimators", 3, 30, log=True), real("learning_rate", 1e-3, 1, log=True),
           integer("max_depth", 1, 6), real("subsample", 0.2, 1), integer("min_samples_leaf", 1, 40, log=True),
           real("max_features", 0.1, 1)]
NET = [integer("width", 4, 64, log=True), integer("depth", 1, 3), real("alpha", 1e-6, 10, log=True),
       choice("activation", ["relu", "tanh", "logistic"]), choice("solver", ["sgd", "adam", "lbfgs"]),
       real("learning_rate_init", 1e-4, 1, log=True, **only_if("solver", "sgd", "adam")),
       integer("batch_size", 8, 100, log=True, **only_if("solver", "sgd", "adam")),
       real("momentum", 0, 0.99, **only_if("solver", "sgd")), real("beta_1", 0.5, 0.99, **only_if("solver", "adam"))]
LINE = [choice("loss", ["log_loss", "modified_huber"]), choice("penalty", ["l2", "l1", "elasticnet"]),
        real("alpha", 1e-6, 1, log=True), real("l1_ratio", 0, 1, **only_if("penalty", "elasticnet")),
        real("eta0", 1e-4, 10, log=True), choice("learning_rate", ["constant", "invscaling", "adaptive"]),
        real("power_t", 0.05, 1, **only_if("learning_rate", "invscaling")), integer("max_iter", 2, 30, log=True)]
RIDGE = [choice("kernel", ["rbf", "laplacian", "poly"]), real("alpha", 1e-5, 10, log=True),
         real("gamma", 1e-4, 10, log=True), integer("degree", 1, 4, **only_if("kernel", "poly")),
         real("coef0", 0, 3, **only_if("kernel", "poly"))]
NEAR = [integer("n_neighbors", 1, 80, log=True), choice("weights", ["uniform", "distance"]), real("p", 1, 6)]


def problem(loss, space, trials=40):
    return Problem(loss, space, trials, pool=400)


SVC, SVR = estimator("svm", "SVC", max_iter=2000), estimator("svm", "SVR", max_iter=2000)
SGD = estimator("linear_model", "SGDClassifier", random_state=0, tol=None)


def tree(kind):
    return estimator("tree", kind, random_state=0)


def trees(kind):
    return estimator("ensemble", kind, random_state=0)


# By name: model, then data.
DEVELOPMENT = {
    **{f"svc_{name}": problem(on(name, SVC, misses), KERNELS) for name in
       ("wine", "breast_cancer", "circles", "clusters", "quantiles", "wide")},
    **{f"svr_{name}": problem(on(name, SVR, squares), KERNELS) for name in ("diabetes", "friedman1", "friedman2")},
    **{f"ridge_{name}": problem(on(name, estimator("kernel_ridge", "KernelRidge"), squares), RIDGE) for name in
       ("diabetes", "friedman1", "friedman3")},
    "near_moons": problem(on("moons", estimator("neighbors", "KNeighborsClassifier"), surprise), NEAR),
    "near_friedman1": problem(on("friedman1", estimator("neighbors", "KNeighborsRegressor"), squares), NEAR),
    "tree_clusters": problem(on("clusters", tree("DecisionTreeClassifier"), surprise), TREE),
    "tree_friedman2": problem(on("friedman2", tree("DecisionTreeRegressor"), squares), TREE),
    "tree_breast_cancer": problem(on("breast_cancer", tree("DecisionTreeClassifier"), misses), TREE),
    "forest_wine": problem(on("wine", trees("RandomForestClassifier"), surprise), FOREST),
    "forest_wide": problem(on("wide", trees("ExtraTreesClassifier"), misses), FOREST),
    "forest_friedman3": problem(on("friedman3", trees("ExtraTreesRegressor"), squares), FOREST_OF_NUMBERS),
    "boosted_friedman1": problem(on("friedman1", trees("GradientBoostingRegressor"), squares), BOOSTED),
    "boosted_moons": problem(on("moons", trees("GradientBoostingClassifier"), surprise), BOOSTED),
    "boosted_sparse": problem(on("sparse", trees("GradientBoostingRegressor"), squares), BOOSTED),
    "net_iris": problem(on("iris", network("MLPClassifier", 8), surprise), NET),
    "net_quantiles": problem(on("quantiles", network("MLPClassifier", 12), surprise), NET),
    "net_diabetes": problem(on("diabetes", network("MLPRegressor", 12), squares), NET),
    "line_blobs": problem(on("blobs", SGD, surprise), LINE),
    "line_wide": problem(on("wide", SGD, surprise), LINE),
    "pipeline_clusters": problem(on("clusters", pipeline, misses), pipeline_space(12), 50),
    "pipeline_wine": problem(on("wine", pipeline, misses), pipeline_space(13), 50),
    "pipeline_quantiles": problem(on("quantiles", pipeline, surprise), pipeline_space(4), 50),
}
