"""A problem with learning curves: a small network on noisy digits, really trained, as far as the scheduler lets it;
and schedulers to compare with. Eight asynchronous workers; work is counted in full trainings of average cost."""
import functools
import heapq
import json
import math

import numpy as np

from drive import Optimiser, stream, study_of
from problems import complaint, integer, point_at, real

EPOCHS = 30
WORKERS = 8
SPACE = [real("rate", 1e-4, 3, log=True), integer("batch", 8, 512, log=True), real("momentum", 0, 0.99),
         integer("width", 4, 128, log=True), real("decay", 1e-7, 1e-1, log=True), real("cooling", 0.8, 1)]


def cost(params):
    """Of an epoch, in units of time, about 1 on average."""
    return (1 + params["width"] / 32 + 16 / params["batch"]) / 2.6


@functools.lru_cache(maxsize=None)
def digits():
    """700 rows to train on, of which 15 % have a wrong label, and 600 to test on."""
    from sklearn.datasets import load_digits
    x, y = load_digits(return_X_y=True)
    random = np.random.default_rng(3)
    order = random.permutation(len(x))[:1300]
    x, y = (x[order] / 16 - 0.3).astype(np.float32), y[order]
    labels = np.where(random.random(700) < 0.15, random.integers(0, 10, 700), y[:700])
    return x[:700], np.eye(10, dtype=np.float32)[labels], x[700:], y[700:]


def curve(params):
    """The test error after each epoch: a function of the parameters alone."""
    x, targets, test_x, test_y = digits()
    random = stream(json.dumps(params, sort_keys=True))
    width, rate, batch = params["width"], params["rate"], params["batch"]
    weights = [random.normal(0, math.sqrt(2 / 64), (64, width)), np.zeros(width),
               random.normal(0, math.sqrt(1 / width), (width, 10)), np.zeros(10)]
    weights = [w.astype(np.float32) for w in weights]
    speeds = [np.zeros_like(w) for w in weights]
    for _ in range(EPOCHS):
        with np.errstate(all="ignore"):
            order = random.permutation(len(x))
            for begin in range(0, len(x), batch):
                rows = order[begin:begin + batch]
                for weight, speed, gradient in zip(weights, speeds, gradients(weights, x[rows], targets[rows],
                                                                              params["decay"])):
                    speed *= params["momentum"]
                    speed -= np.float32(rate) * gradient
                    weight += speed
            scores = forward(weights, test_x)[1]
        rate *= params["cooling"]
        yield float((scores.argmax(axis=1) != test_y).mean()) if np.isfinite(scores).all() else 0.9


def forward(weights, x):
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


def gradients(weights, x, targets, decay):
    hidden, scores = forward(weights, x)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    wrong = (shares / shares.sum(axis=1, keepdims=True) - targets) / len(x)
    back = (wrong @ weights[2].T) * (hidden > 0)
    return x.T @ back + decay * weights[0], back.sum(0), hidden.T @ wrong + decay * weights[2], wrong.sum(0)


# ------------------------------------------------------------------------------------------ schedulers
class Fettle:
    def __init__(self, argv, seed, algorithm, rule):
        more = {"early_stopping": {"name": rule}} if rule else {}
        self.child = Optimiser(argv, study_of("curves", SPACE, seed, 2000, WORKERS, algorithm={"name": algorithm},
                                              resource={"min": 1, "max": EPOCHS}, **more))

    def ask(self):
        return self.child.ask(1)[0]

    def report(self, trial, step, value):
        self.child.send({"report": {"id": trial, "step": step, "value": value}})
        return self.child.answer()["decision"]

    def close(self):
        self.child.close()


class PlainAsha:
    """Li et al. 2020 over random points, eta 3: `stop` those that are not among the best third of a rung so far, or
    pause everybody and `promote` the best third."""

    def __init__(self, seed, promote):
        self.random, self.promote, self.count = np.random.default_rng(seed), promote, 0
        self.rungs = {step: {} for step in (1, 3, 9, 27)}
        self.promoted = {step: set() for step in self.rungs}

    def ask(self):
        for step in reversed(self.rungs) if self.promote else ():
            rung = self.rungs[step]
            for trial in sorted(rung, key=rung.get)[:len(rung) // 3]:
                if trial not in self.promoted[step]:
                    self.promoted[step].add(trial)
                    return {"id": trial, "resume": True}
        self.count += 1
        return {"id": self.count, "params": point_at(SPACE, self.random.random(len(SPACE)))}

    def report(self, trial, step, value):
        if step not in self.rungs:
            return "continue"
        rung = self.rungs[step]
        rung[trial] = value
        if self.promote:
            return "pause"
        better = sum(other < value for other in rung.values())
        return "continue" if better < max(1, len(rung) // 3) else "stop"

    def close(self):
        pass


class Optuna:
    def __init__(self, seed, sampler, pruner):
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.state = optuna.trial.TrialState
        self.study = optuna.create_study(
            sampler={"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}[sampler](seed=seed),
            pruner={"none": lambda: optuna.pruners.NopPruner(), "median": lambda: optuna.pruners.MedianPruner(),
                    "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
                    "hyperband": lambda: optuna.pruners.HyperbandPruner(1, EPOCHS, 3)}[pruner]())
        self.running = {}

    def ask(self):
        trial = self.study.ask()
        self.running[trial.number] = trial
        params = {p["name"]: (trial.suggest_int if p["type"] == "int" else trial.suggest_float)(
            p["name"], p["low"], p["high"], log=p["log"]) for p in SPACE}
        return {"id": trial.number, "params": params}

    def report(self, trial, step, value):
        running = self.running[trial]
        running.report(value, step)
        if step == EPOCHS:
            self.study.tell(running, value)
        elif running.should_prune():
            self.study.tell(running, state=self.state.PRUNED)
            return "stop"
        return "continue"

    def close(self):
        pass


PEERS = {"plain_asha_stop": lambda seed: PlainAsha(seed, promote=False),
         "plain_asha_promote": lambda seed: PlainAsha(seed, promote=True),
         "optuna_random": lambda seed: Optuna(seed, "random", "none"),
         "optuna_tpe_median": lambda seed: Optuna(seed, "tpe", "median"),
         "optuna_tpe_halving": lambda seed: Optuna(seed, "tpe", "halving"),
         "optuna_tpe_hyperband": lambda seed: Optuna(seed, "tpe", "hyperband")}


# ------------------------------------------------------------------------------------------ simulation
def simulate(scheduler, work):
    """[full trainings so far, lowest error so far], each time that it fell, until `work` full trainings are done."""
    running, trials, trace, best, started = [], {}, [], math.inf, 0

    def start(now):
        nonlocal started
        trial = scheduler.ask()
        if not trial.get("resume"):
            wrong = complaint(SPACE, trial["params"])
            if wrong:
                raise RuntimeError(wrong)
            trials[trial["id"]] = (trial["params"], enumerate(curve(trial["params"]), 1))
        started += 1
        heapq.heappush(running, (now + cost(trials[trial["id"]][0]), started, trial["id"]))

    for _ in range(WORKERS):
        start(0.0)
    while True:
        now, _, trial = heapq.heappop(running)
        if now * WORKERS > work * EPOCHS:
            return {"trace": trace, "trials": len(trials)}
        params, epochs = trials[trial]
        step, error = next(epochs)
        if error < best:
            best = error
            trace.append([now * WORKERS / EPOCHS, error])
        if scheduler.report(trial, step, error) == "continue" and step < EPOCHS:
            started += 1
            heapq.heappush(running, (now + cost(params), started, trial))
        else:
            start(now)


def targets(count=1000):
    """Errors that 1 % and 0.2 % of random full trainings reach; both and the best are kept by the caller."""
    random = np.random.default_rng(4)
    lowest = sorted(min(curve(point_at(SPACE, random.random(len(SPACE))))) for _ in range(count))
    return {"one_percent": lowest[count // 100], "two_permille": lowest[count // 500], "best": lowest[0]}
