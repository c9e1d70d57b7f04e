"""One optimiser as a child process that speaks the JSON lines of `fettle suggest`, and one optimisation with it."""
import hashlib
import heapq
import json
import math
import os
import subprocess
import time

import numpy as np

from problems import complaint

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def stream(*what):
    """Random numbers that depend on what they are for alone: the same for every optimiser."""
    digest = hashlib.sha256("|".join(map(str, what)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


class Optimiser:
    """Child of this process. Raises RuntimeError with what it said where it does not answer as it should."""

    def __init__(self, argv, study):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=dict(os.environ, **ONE_THREAD))
        self.send({"study": study})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("it died: " + self.process.stderr.read()[-800:])
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def ask(self, count):
        self.send({"ask": count})
        trials = self.answer()["trials"]
        if len(trials) != count:
            raise RuntimeError(f"{count} trials were asked for, {len(trials)} came")
        return trials

    def cpu_seconds(self):
        """Of all its threads, which a busy machine does not change much."""
        total, tasks = 0, f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def peak_megabytes(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def study_of(name, space, seed, trials, pending, **more):
    return dict(name=name, direction="minimize", seed=seed, max_trials=trials, parallel=pending, space=space, **more)


def optimise(argv, name, problem, seed, pending, algorithm=None):
    """`problem.trials` trials, always `pending` of them running, which last for log-normal times. Of each number of
    results the true loss of the point that looked best."""
    noise, durations = stream(name, seed, "noise"), stream(name, seed, "duration")
    more = {"algorithm": {"name": algorithm}} if algorithm else {}
    running, curve, cpu, seen, best, now, asked = [], [], [], math.inf, math.inf, 0.0, 0
    with Optimiser(argv, study_of(name, problem.space, seed, problem.trials, pending, **more)) as optimiser:
        while len(curve) < problem.trials:
            count = min(pending - len(running), problem.trials - asked)
            if count > 0:
                before = optimiser.cpu_seconds()
                for trial in optimiser.ask(count):
                    wrong = complaint(problem.space, trial["params"])
                    if wrong:
                        raise RuntimeError(wrong)
                    heapq.heappush(running, (now + durations.lognormal(0, 0.7), asked, trial))
                    asked += 1
                cpu.append((optimiser.cpu_seconds() - before) / count)
            now, _, trial = heapq.heappop(running)
            loss = problem.loss(trial["params"])
            told = loss + problem.noise * noise.normal() if problem.noise else loss
            optimiser.send({"tell": {"id": trial["id"], "value": told}})
            if told < seen:
                seen, best = told, loss
            curve.append(best)
    return {"curve": curve, "ask_cpu_ms": 1e3 * float(np.median(cpu[1:] or cpu))}


def latency(argv, space, loss, trials, seed=0, algorithm=None, seconds=120.0):
    """CPU milliseconds of one ask after each number of trials (median of the last 21 asks before each), wall too, and the
    peak of memory at the end. Ends early after `seconds`."""
    more = {"algorithm": {"name": algorithm}} if algorithm else {}
    cpu, wall, start = [], [], time.monotonic()
    with Optimiser(argv, study_of("latency", space, seed, max(trials), 1, **more)) as optimiser:
        while len(cpu) < max(trials) and time.monotonic() - start < seconds:
            cpu_before, wall_before = optimiser.cpu_seconds(), time.perf_counter()
            trial = optimiser.ask(1)[0]
            wall.append(1e3 * (time.perf_counter() - wall_before))
            cpu.append(1e3 * (optimiser.cpu_seconds() - cpu_before))
            optimiser.send({"tell": {"id": trial["id"], "value": loss(trial["params"])}})
        memory = optimiser.peak_megabytes()
    out = {"trials": len(cpu), "megabytes": round(memory, 1)}
    for at in trials:
        if len(cpu) >= at:
            out[f"cpu_ms_at_{at}"] = round(float(np.median(cpu[max(at - 21, 0):at])), 3)
            out[f"wall_ms_at_{at}"] = round(float(np.median(wall[max(at - 21, 0):at])), 3)
    return out
