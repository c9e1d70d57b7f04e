"""The same under Ray Tune with reuse_actors: ray_peer.py TRIALS AT_ONCE SECONDS

Prints one JSON line: seconds of Tuner.fit(), without Ray's own start, seconds of everything, and how many trials had no
error, in how many processes. A trial without checkpoints must not save one at its end: the error would cost its actor.
Ray's resources alone bound the trials at once, so there are pending trials that it keeps actors for.
"""

import json
import os
import sys
import tempfile
import time

BEGAN = time.monotonic()
HERE = os.path.dirname(os.path.abspath(__file__))
os.environ |= {"PYTHONPATH": HERE, "RAY_DISABLE_IMPORT_WARNING": "1", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
               "RAY_USAGE_STATS_ENABLED": "0"}
sys.path.insert(0, HERE)

import ray
from ray import tune

TRIALS, AT_ONCE, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])


class Trial(tune.Trainable):
    def setup(self, config):
        self.reset_config(config)

    def reset_config(self, config):
        self.lr = config["lr"]
        return True

    def step(self):
        from torch_trial import train
        return {"loss": train(self.lr, 7, SECONDS), "process": os.getpid(), "done": True}


def main():
    with tempfile.TemporaryDirectory() as folder:
        ray.init(num_cpus=AT_ONCE, include_dashboard=False, log_to_driver=False)
        began = time.monotonic()
        tuner = tune.Tuner(
            Trial,
            param_space={"lr": tune.uniform(0.01, 0.3)},
            tune_config=tune.TuneConfig(num_samples=TRIALS, metric="loss", mode="min", reuse_actors=True),
            run_config=tune.RunConfig(storage_path=folder, verbose=0,
                                      checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False)))
        results = tuner.fit()
        fit = time.monotonic() - began
        trained = len(results) - results.num_errors
        processes = len({result.metrics["process"] for result in results})
        ray.shutdown()
    print(json.dumps({"fit_seconds": fit, "seconds": time.monotonic() - BEGAN, "trials": trained,
                      "processes": processes}))


if __name__ == "__main__":
    main()
