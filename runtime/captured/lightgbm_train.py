import lightgbm, numpy

rng = numpy.random.default_rng(7)
x = rng.normal(size=(300, 5))
y = (x[:, 0] + x[:, 1] > 0).astype(int)
train = lightgbm.Dataset(x[:200], y[:200])
valid = lightgbm.Dataset(x[200:], y[200:], reference=train)
settings = {"objective": "binary", "metric": ["binary_logloss", "auc"], "num_threads": 1}
lightgbm.train(settings, train, 5, valid_sets=[valid], callbacks=[lightgbm.log_evaluation(1)])
