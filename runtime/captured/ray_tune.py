from ray import tune

def train(config):
    accuracy = 0.0
    for epoch in range(3):
        accuracy += config["lr"]
        tune.report({"accuracy": accuracy})

tune.Tuner(train, param_space={"lr": 0.25}).fit()
