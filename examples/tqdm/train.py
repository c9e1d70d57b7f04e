# An ordinary training script, which knows nothing of Fettle: logistic regression in plain Python,
# with a progress bar. Needs tqdm (pip install tqdm).
import argparse
import math
import random

from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--epochs", type=int, default=9)
options = parser.parse_args()

random.seed(7)
points = [[random.gauss(0, 1) for _ in range(8)] for _ in range(1200)]
labels = [x[0] - 2 * x[1] + 0.5 * x[2] * x[3] > 0 for x in points]
train, valid = range(0, 1000), range(1000, 1200)

weights = [0.0] * 8
speed = [0.0] * 8


def predict(x):
    return 1 / (1 + math.exp(-sum(w * value for w, value in zip(weights, x))))


for epoch in range(1, options.epochs + 1):
    bar = tqdm(train, desc=f"epoch {epoch}")
    for i in bar:
        error = predict(points[i]) - labels[i]
        for j, value in enumerate(points[i]):
            speed[j] = options.momentum * speed[j] - options.learning_rate * error * value
            weights[j] += speed[j]
        if i % 100 == 0:
            bar.set_postfix(error=f"{abs(error):.3f}")
    right = sum((predict(points[i]) > 0.5) == labels[i] for i in valid)
    print(f"epoch {epoch}: accuracy={right / len(valid):.4f}")
