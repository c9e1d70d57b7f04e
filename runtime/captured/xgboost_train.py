import numpy, xgboost

rng = numpy.random.default_rng(7)
x = rng.normal(size=(300, 5))
y = (x[:, 0] + x[:, 1] > 0).astype(int)
train, valid = xgboost.DMatrix(x[:200], y[:200]), xgboost.DMatrix(x[200:], y[200:])
settings = {"objective": "binary:logistic", "eval_metric": ["logloss", "error"], "nthread": 1}
xgboost.train(settings, train, 5, evals=[(train, "train"), (valid, "valid")])
