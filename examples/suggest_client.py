#!/usr/bin/env python3
"""Any program can use Fettle's search: examples/suggest_client.py [path of fettle] tunes gradient descent."""
import json, subprocess, sys

fettle = subprocess.Popen([*(sys.argv[1:2] or ["fettle"]), "suggest"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def send(message, answered=True):
    print(json.dumps(message), file=fettle.stdin, flush=True)
    return json.loads(fettle.stdout.readline()) if answered else None

send({"study": {"name": "descent", "seed": 1, "max_trials": 100, "resource": {"min": 1, "max": 27},
                "space": [{"name": "rate", "type": "float", "low": 1e-4, "high": 1, "log": True}]}}, answered=False)
trials = {}  # by id: the parameters of each, the step it came to, and its state, x and y
while asked := send({"ask": 1})["trials"]:
    id, params = asked[0]["id"], asked[0].get("params")  # a new trial, or one that paused and is to go on
    trial = trials.setdefault(id, {"params": params, "step": 0, "x": 1.0, "y": 1.0})
    decision = "continue"
    while decision == "continue" and trial["step"] < 27:
        trial["x"] -= trial["params"]["rate"] * trial["x"]
        trial["y"] -= trial["params"]["rate"] * trial["y"] * 10
        trial["step"] += 1
        trial["loss"] = trial["x"] ** 2 + 10 * trial["y"] ** 2
        decision = send({"report": {"id": id, "step": trial["step"], "value": trial["loss"]}})["decision"]
best = min(trials.values(), key=lambda trial: trial["loss"])
steps = sum(trial["step"] for trial in trials.values())
print(f"best of {len(trials)} trials after {steps} steps: {best['loss']:.2g} with {best['params']}")
