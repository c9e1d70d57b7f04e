"""An experiment of Ray Tune: tune_with_ray.py FOLDER NAME

Prints JSON: Ray's own table of the trials without an error, and the number of trials with an error. One trial runs at a
time, so that the scheduler always stops the same two; the fourth trial fails.
"""
import json
import os
import sys

os.environ |= {"RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0"}

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

STEPS = 4
FAILS = 0.12


def train(config):
    for step in range(1, STEPS + 1):
        if config["rate"] == FAILS and step == 2:
            raise ValueError("it diverges")
        tune.report({"loss": (config["rate"] - 0.1) ** 2 + 1 / step, "steps": {"all": STEPS}})


def main():
    folder, name = sys.argv[1:]
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    space = {"rate": tune.grid_search([0.1, 0.5, 0.05, FAILS, 0.1]), "net": {"kind": tune.choice(["a", "b"]), "wide": True}, "seed": 7}
    tuner = tune.Tuner(
        train,
        param_space=space,
        tune_config=tune.TuneConfig(metric="loss", mode="min", max_concurrent_trials=1,
                                    scheduler=ASHAScheduler(max_t=STEPS, grace_period=1, reduction_factor=2)),
        run_config=tune.RunConfig(name=name, storage_path=folder, verbose=0))
    results = tuner.fit()
    ray.shutdown()
    failed = {result.metrics["trial_id"] for result in results if result.error}
    rows = [row for row in results.get_dataframe().to_dict(orient="records") if row["trial_id"] not in failed]
    print(json.dumps({"errors": results.num_errors, "rows": rows}, default=str))


if __name__ == "__main__":
    main()
