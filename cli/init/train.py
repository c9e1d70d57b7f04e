"""A program to tune: fits a line to noisy points by gradient descent. Put your training here.

Parameters come in environment variables; each epoch prints one JSON line with its metrics.
"""
import json
import os
import random
import time

learning_rate = float(os.environ["FETTLE_PARAM_LEARNING_RATE"])
momentum = float(os.environ["FETTLE_PARAM_MOMENTUM"])
decay = os.environ["FETTLE_PARAM_DECAY"]
epochs = int(os.environ["FETTLE_UNTIL_STEP"])

random.seed(1)
xs = [random.uniform(-1, 1) for _ in range(200)]
points = [(x, 3 * x - 2 + random.gauss(0, 0.3)) for x in xs]
slope = offset = step_slope = step_offset = 0.0

for epoch in range(1, epochs + 1):
    rate = learning_rate * (1 - (epoch - 1) / epochs if decay == "linear" else 1)
    errors = [(slope * x + offset - y, x) for x, y in points]
    step_slope = momentum * step_slope - rate * sum(error * x for error, x in errors) / len(errors)
    step_offset = momentum * step_offset - rate * sum(error for error, _ in errors) / len(errors)
    slope += step_slope
    offset += step_offset
    loss = sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)
    time.sleep(0.05)  # your epochs take longer
    print(json.dumps({"step": epoch, "loss": loss}), flush=True)
