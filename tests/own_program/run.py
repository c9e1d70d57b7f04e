#!/usr/bin/env python3
"""Programs of users that keep the worker contract (docs/your-program.md), killed and resumed.

examples/own-program under each way in which a trial runs more than once: bohb, asha with promote,
and pbt. Trials are killed, then `fettle run` itself; the same command ends what it began. Every value
that was reported must be what a training that nobody interrupted would have reported.

Usage: run.py FETTLE [--program train.sh|train.py] [--python PYTHON] [--keep FOLDER]
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "own-program"
PATIENCE = 300  # seconds after which what has not come never will
SEARCHES = {
    "bohb": {"algorithm": {"name": "bohb", "seed": 1, "reductionFactor": 3}},
    "asha-promote": {"algorithm": {"name": "random", "seed": 1}, "earlyStopping": {"name": "asha", "reductionFactor": 3, "promote": True}},
    "pbt": {"algorithm": {"name": "pbt", "seed": 1, "interval": 3}},
}  # fmt: skip


def study(command, search, trials=6, **trial):
    container = {"name": "train", "command": command, "resources": {"requests": {"cpu": "1m"}}}
    spec = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [{"name": "lr", "type": "Double", "min": 0.01, "max": 1, "scale": "Log"}],
        "resource": {"unit": "epoch", "min": 1, "max": 9},
        "budget": {"trials": trials, "parallelism": 3, "failures": 0},
        "trial": {"retries": 0, "gracePeriod": "60s", "template": {"spec": {"containers": [container]}}, **trial},
    }
    return {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "own"}, "spec": spec | search}


class Place:
    """A folder with one Study in it."""

    def __init__(self, fettle, folder, document):
        self.fettle, self.folder = fettle, folder
        folder.mkdir(parents=True)
        (folder / "study.yaml").write_text(json.dumps(document, indent=1))

    def start(self):
        return subprocess.Popen(
            [self.fettle, "run", "study.yaml", "--output", "json"], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def finish(self, running):
        out, errors = running.communicate(timeout=PATIENCE)
        assert running.returncode == 0, f"exit code {running.returncode}: {out[-2000:]} {errors}"

    def trials(self):
        done = subprocess.run(
            [self.fettle, "trials", "own", "--output", "json"], cwd=self.folder, capture_output=True, text=True
        )
        return json.loads(done.stdout) if done.returncode == 0 else []

    def processes(self):
        """Processes of trials, told by their environment."""
        mark = f"FETTLE_TRIAL={self.folder}/".encode()
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in pathlib.Path(f"/proc/{process}/environ").read_bytes():
                    found.append(int(process))
            except OSError:  # ended meanwhile
                pass
        return found

    def saved(self):
        return [file for file in self.folder.glob(".fettle/own/checkpoints/*/*/*") if any(map(str.isdigit, file.name))]

    def reported(self):
        """Of each run: its trial, its number, and the (step, loss) that it printed, in order."""
        for log in sorted(self.folder.glob(".fettle/own/own-*/r*/output.log")):
            lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
            values = [(one["step"], one["loss"]) for one in map(json.loads, lines)]
            yield log.parts[-3], int(log.parts[-2][1:]), values


def wait_until(what, holds):
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, f"{what}: it has not come"
        time.sleep(0.02)


def disrupted(trials):
    return sum(run.get("outcome") == "Disrupted" for trial in trials for run in trial["status"].get("runs", []))


def kill_trials(place, running):
    """As a machine out of memory does: without a word. How many runs are known to have ended so."""
    assert running.poll() is None, "it has ended before two runs were killed"
    for process in place.processes():
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    time.sleep(0.3)  # for a step or two
    return disrupted(place.trials())


def undisturbed(trials):
    """What train.sh reports at each step where nobody kills it, by the schedule of its lineage."""
    by_name = {trial["metadata"]["name"]: trial for trial in trials}

    def weight(name, step):
        trial = by_name[name]
        parent = trial["spec"].get("parent")
        begin = parent["step"] if parent else 0
        w = weight(parent["trial"], begin) if parent else 0.0
        for _ in range(begin, step):
            w = round(w + trial["spec"]["parameters"]["lr"] * (1 - w), 9)
        return w

    return lambda name, step: (1 - weight(name, step)) ** 2


def check_values(place, trials):
    expected = undisturbed(trials)
    for name, run, values in place.reported():
        for step, loss in values:
            assert abs(loss - expected(name, step)) < 1e-6, f"{name}-r{run} at {step}: {loss}, not {expected(name, step)}"


def check_steps(place, trials):
    """A run begins where the one before had saved: at most one step is trained again."""
    parents = {trial["metadata"]["name"]: trial["spec"].get("parent", {}).get("step", 0) for trial in trials}
    reached = {}
    resumed = 0
    for name, run, values in sorted(place.reported(), key=lambda one: one[:2]):
        steps = [step for step, _ in values]
        before = reached.get(name, parents[name])
        if steps:
            assert steps == list(range(steps[0], steps[0] + len(steps))), f"{name}-r{run}: {steps}"
            assert steps[0] in (before, before + 1), f"{name}-r{run} begins at {steps[0]} after {before}"
            resumed += before > 0
            reached[name] = steps[-1]
    return resumed


def run_one(fettle, folder, command, search, is_shell):
    place = Place(fettle, folder, study(command, SEARCHES[search]))
    running = place.start()
    wait_until("a first checkpoint", place.saved)
    wait_until("two runs that were killed", lambda: kill_trials(place, running) >= 2)
    wait_until("more checkpoints", lambda: len(place.saved()) >= 8)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=PATIENCE)
    place.finish(place.start())
    trials = place.trials()
    ends = {trial["status"]["phase"] for trial in trials}
    assert ends <= {"Completed", "Stopped"}, ends
    resumed = check_steps(place, trials)
    assert resumed >= 3, f"{resumed} runs resumed"
    assert disrupted(trials) >= 2, "nobody was killed"
    if search == "pbt":
        assert any("parent" in trial["spec"] for trial in trials), "none took over from another"
    if is_shell:
        check_values(place, trials)
    return resumed


def torn_checkpoint(fettle, folder, command, is_shell):
    """A checkpoint that was cut off, and one of nothing: the program passes over them."""
    place = Place(fettle, folder, study(command, SEARCHES["asha-promote"], trials=3))
    running = place.start()
    wait_until("checkpoints", lambda: len(place.saved()) >= 2)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=PATIENCE)
    wait_until("the trials to end", lambda: not place.processes())
    newest = {}
    for file in sorted(place.saved(), key=lambda file: int("".join(filter(str.isdigit, file.stem)))):
        newest[file.parent] = file
    for file in newest.values():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        file.with_name(file.name.replace(file.stem, "step-8" if file.stem.startswith("step") else "8")).write_bytes(b"")
    place.finish(place.start())
    assert {trial["status"]["phase"] for trial in place.trials()} <= {"Completed", "Stopped"}
    if is_shell:
        check_values(place, place.trials())


def full_disk(fettle, folder, command):
    """Nothing can be saved: the trials report all the same, and their logs say what happened."""
    place = Place(fettle, folder, study(command, {"algorithm": {"name": "random", "seed": 1}}, trials=2))
    # A folder in the place of each file that is renamed over, since root may write anywhere.
    blocked = ["sh", "-c", 'mkdir -p "$FETTLE_CHECKPOINTS/new/x" && exec "$@"', "sh", *command]
    (folder / "study.yaml").write_text(json.dumps(study(blocked, {"algorithm": {"name": "random", "seed": 1}}, trials=2)))
    place.finish(place.start())
    assert {trial["status"]["phase"] for trial in place.trials()} == {"Completed"}
    assert not place.saved()
    for log in folder.glob(".fettle/own/own-*/r0/output.log"):
        assert "cannot save step 9" in log.read_text(), log


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle")
    parser.add_argument("--program", default="train.sh", choices=["train.sh", "train.py"])
    parser.add_argument("--python", default=sys.executable, help="which has torch")
    parser.add_argument("--keep", help="a new folder that the Studies stay in")
    options = parser.parse_args()
    fettle = str(pathlib.Path(options.fettle).resolve())
    script = str(EXAMPLE / options.program)
    is_shell = options.program == "train.sh"
    command = [script] if is_shell else [options.python, script]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(options.keep or scratch).resolve()
        os.environ["FETTLE_MACHINE_DIR"] = str(place / "machine")
        cases = {name: lambda folder, name=name: run_one(fettle, folder, command, name, is_shell) for name in SEARCHES}
        cases["torn"] = lambda folder: torn_checkpoint(fettle, folder, command, is_shell)
        cases["full"] = lambda folder: full_disk(fettle, folder, command)
        for name, case in cases.items():
            begun = time.monotonic()
            try:
                said = case(place / name)
                passed += 1
                print(f"{name}: ok after {time.monotonic() - begun:.1f} s{f', {said} runs resumed' if said else ''}")
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{name}: {error}")
    print(f"own program: {passed} of {passed + failed} passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
