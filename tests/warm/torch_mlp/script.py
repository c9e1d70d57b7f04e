"""Trains one trial and knows nothing of Fettle but its variables."""
import json
import os

import mlp

with open(os.environ["FETTLE_TRIAL"], encoding="utf-8") as file:
    seed = json.load(file)["seed"] % 2**31
curve = mlp.losses(float(os.environ["FETTLE_PARAM_RATE"]), int(os.environ["FETTLE_PARAM_HIDDEN"]), seed,
                   int(os.environ["FETTLE_UNTIL_STEP"]))
for step, loss in enumerate(curve, 1):
    print(json.dumps({"step": step, "loss": loss}), flush=True)
