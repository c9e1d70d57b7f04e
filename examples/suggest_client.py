#!/usr/bin/env python3
"""Any program can use Fettle's search: this one tunes gradient descent on Rosenbrock's function.

    examples/suggest_client.py [path of fettle]

It asks `fettle suggest` for trials, reports each one's loss as it trains, and lets it continue or
pause as it is told. A paused trial may be resumed by a later ask; it is kept where it was until then.
"""
import json, math, subprocess, sys

fettle = subprocess.Popen([*(sys.argv[1:2] or ["fettle"]), "suggest"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(verb, content, answered=True):
    print(json.dumps({verb: content}), file=fettle.stdin, flush=True)
    return json.loads(fettle.stdout.readline()) if answered else None


send("study", {"name": "descent", "seed": 1, "max_trials": 100, "resource": {"min": 1, "max": 27}, "space": [
    {"name": "rate", "type": "float", "low": 1e-6, "high": 1e-1, "log": True},
    {"name": "momentum", "type": "float", "low": 0, "high": 0.999}]}, answered=False)
trials = {}
while asked := send("ask", 1)["trials"]:
    id = asked[0]["id"]
    trial = trials.setdefault(id, {"params": asked[0].get("params"), "step": 0, "loss": math.inf,
                                   "x": -1.2, "y": 1.0, "dx": 0.0, "dy": 0.0})
    rate, momentum, decision = *trial["params"].values(), "continue"
    while decision == "continue" and trial["step"] < 27:
        for _ in range(20):
            x, y = trial["x"], trial["y"]
            trial["dx"] = momentum * trial["dx"] - rate * (-2 * (1 - x) - 400 * x * (y - x * x))
            trial["dy"] = momentum * trial["dy"] - rate * 200 * (y - x * x)
            trial["x"], trial["y"] = (max(-1e9, min(1e9, v)) for v in (x + trial["dx"], y + trial["dy"]))
        trial["step"] += 1
        trial["loss"] = (1 - trial["x"]) ** 2 + 100 * (trial["y"] - trial["x"] ** 2) ** 2
        if trial["loss"] > 1e6:  # it diverges: there is nothing more to learn of it
            send("tell", {"id": id, "value": None}, answered=False)
            break
        decision = send("report", {"id": id, "step": trial["step"], "value": trial["loss"]})["decision"]
best = min(trials.values(), key=lambda trial: trial["loss"])
steps = sum(trial["step"] for trial in trials.values())
print(f"best of {len(trials)} trials after {steps} steps: {best['loss']:.2g} with {best['params']}")
