#!/usr/bin/env python3
"""Programs as people write them, each under every way of stopping early that there is.

tests/programs/ holds small programs that are rude in one way each. PROGRAMS below says of each how a
person would say that its trials end. The ways of stopping early come from the built program itself:
every algorithm that decides which trials continue, and every rule of spec.earlyStopping; so a new one is run
without a change here (or asks for its SETTINGS). Each pair is a small Study, run by the real
`fettle run`, and CHECKS holds what must be true of all of them.

Usage: rude_programs.py FETTLE [--program NAME] [--search NAME] [--at-once N] [--keep FOLDER]
"""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent / "programs"
LAST_EPOCH = 9
PATIENCE = 100  # seconds after which a Study that has not ended never will
NONE = "none"


# ---- The programs ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Program:
    """One of tests/programs/, and what is true of a trial that runs it."""

    file: str
    # A regular expression for the reason why its trials fail; "" for one that gets to its end.
    fails: str = ""
    # The step of its newest value when it has got to its end.
    last: int = LAST_EPOCH
    # What it reports at `step` where x is `x`; None: no finite number.
    loss: object = lambda x, step: 100 * x + 120 // step
    # Words of a reason that are untrue of every other program.
    may_say: str = ""
    trials: int = 6
    spec: dict = dataclasses.field(default_factory=dict)  # over the Study's spec
    trial: dict = dataclasses.field(default_factory=dict)  # over spec.trial
    limits: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return self.file.partition(".")[0]


def regex(pattern):
    return {"metrics": {"regex": pattern}}


# All but a few report the loss 100 x + 120 / epoch, so a value tells the epoch that it is of.
PROGRAMS = [
    # When it reports.
    Program("every_second_epoch.sh", spec={"resource": {"unit": "epoch", "min": 3, "max": LAST_EPOCH}}),
    Program("own_patience.sh"),
    Program("only_at_the_end.sh"),
    Program("one_number.sh", last=1, loss=lambda x, step: 100 * x),
    Program("counts_from_zero.sh", last=LAST_EPOCH - 1, loss=lambda x, step: 100 * x + 120 // (step + 1)),
    Program("ignores_until_step.sh"),
    Program("good_only_at_the_end.sh", spec={"constraints": [{"metric": "accuracy", "min": 80}]}),
    Program("diverges.sh", loss=lambda x, step: None if x % 2 else 100 * x + 120 // step, may_say="finite"),
    Program("silent.sh", fails="exited with 0 but reported no metric"),
    # How it prints.
    Program("progress_bar.py", trial=regex(r"epoch (?P<step>\d+).*?(?P<name>loss)=(?P<value>\d+)")),
    Program("progress_bar_json.sh"),
    Program("colours.sh", trial=regex(r"(loss)=(\S+)")),
    Program("byte_order_mark.sh"),
    Program("block_buffered.py", trials=3, trial={"heartbeat": "2200ms"}),
    Program("json_logs.sh"),
    Program("invalid_text.sh"),
    Program("floods.py", trials=3),
    Program("long_line.py", trials=3),
    Program("closes_its_output.sh", last=4),
    # What it does with signals and processes.
    Program("ignores_sigterm.sh"),
    Program("saves_on_sigterm.py"),
    Program("behind_a_shell.sh"),
    Program("leaves_a_process.sh", may_say="behind killed"),
    Program("pool_of_workers.py"),
    Program("killed_once.sh", may_say="killed"),
    # How it ends, and what it does to the machine.
    Program("exits_with_3.sh", fails="exit code 3(.|\n)*cannot read shard 7"),
    Program("crashes.sh", fails="crashed with SIGSEGV", may_say="crashed"),
    Program("maps_a_file.py", trials=3, limits={"memory": "64Mi"}),
    Program("cleans_up.sh"),
    Program("asks.sh"),
]  # fmt: skip

# Untrue of every program that does not say so in may_say, and in every Study that nobody interrupted.
ACCUSATIONS = ["finite", "behind", "killed", "crashed", "memory", "heartbeat", "reported nothing", "interrupted", "died"]


# ---- The ways of stopping early ----------------------------------------------------------------

# What they need besides their name. `rungs` at 1 and 3 of 9 epochs, wherever that can be said.
SETTINGS = {
    "asha": {"reductionFactor": 3},
    "median": {"minTrials": 2},
    "percentile": {"minTrials": 2},
    "curve": {"minTrials": 2},
    "threshold": {"threshold": 100000},
    "hyperband": {"reductionFactor": 3},
    "bohb": {"reductionFactor": 3},
    "dehb": {"reductionFactor": 3},
    "pbt": {"interval": 3},
    "pb2": {"interval": 3},
    "schedule": {"legs": [{"untilStep": 3, "parameters": {"x": 10}}, {"untilStep": 9, "parameters": {"x": 20}}]},
}


@dataclasses.dataclass(frozen=True)
class Search:
    """One way of choosing which trials continue."""

    name: str
    spec: dict = dataclasses.field(hash=False)
    pauses: bool = False  # trials pause at rungs; nobody is stopped


class Listing:
    """What the built program offers, asked of `fettle validate` in its own words."""

    def __init__(self, fettle):
        self.fettle = fettle

    def errors(self, spec):
        """What is wrong with a Study of this search; "" if nothing."""
        document = json.dumps(study("list", PROGRAMS[0], spec, {}))
        done = subprocess.run([self.fettle, "validate", "-"], input=document, capture_output=True, text=True)
        return done.stdout + done.stderr if done.returncode else ""

    def names(self, field):
        said = self.errors({field: {"name": "nonesuch"}})
        found = re.search(rf'spec\.{field}\.name: found "nonesuch", expected (.*)', said)
        if not found:
            sys.exit(f"rude programs: fettle validate does not list the names of spec.{field}: {said}")
        return re.split(", | or ", found.group(1))

    def searches(self):
        out = [Search("auto", {"algorithm": {"name": "auto", "seed": 1}})]
        rules = self.names("earlyStopping")
        for name in self.names("algorithm"):
            alone = {"algorithm": {"name": name, "seed": 1, **SETTINGS.get(name, {})}}
            # The built program says which ones decide by themselves which trials continue.
            if "decides by itself" in self.errors({**alone, "earlyStopping": {"name": rules[0]}}):
                out.append(Search(name, alone, pauses=True))
        for name in rules:
            rule = {"name": name, **SETTINGS.get(name, {})}
            beside = {"algorithm": {"name": "random", "seed": 1}, "earlyStopping": rule}
            out.append(Search(name, beside))
            if name == "asha":
                promoting = {**beside, "earlyStopping": {**rule, "promote": True}}
                out.append(Search("asha-promote", promoting, pauses=True))
        for search in out:
            wrong = self.errors(search.spec)
            if wrong:
                sys.exit(f"rude programs: {search.name} needs SETTINGS in {__file__}: {wrong}")
        return out


# ---- A Study of one program under one search ---------------------------------------------------


def study(name, program, search_spec, more):
    container = {
        "name": "trial",
        "image": "busybox",
        "command": [str(FOLDER / program.file)],
        "resources": {"requests": {"cpu": "1m"}, "limits": program.limits},
    }
    spec = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [{"name": "x", "type": "Integer", "min": 0, "max": 99}],
        "resource": {"unit": "epoch", "min": 1, "max": LAST_EPOCH},
        "budget": {"trials": program.trials, "parallelism": 3, "failures": 100},
        "trial": {
            "retries": 0,
            "gracePeriod": "2s",
            "template": {"spec": {"containers": [container]}},
            **program.trial,
        },
        **program.spec,
        **search_spec,
    }
    spec["trial"].update(more)
    return {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name}, "spec": spec}


class Ended:
    """A Study that has ended, as its user sees it."""

    def __init__(self, fettle, program, search, folder, code, lines, errors):
        self.program, self.search, self.folder, self.code, self.errors = program, search, folder, code, errors
        self.result = next((line["result"] for line in reversed(lines) if "result" in line), {})
        self.trials = json.loads(ask(fettle, folder, "trials", "rude", "--output", "json").stdout or "[]")
        self.replayed = ask(fettle, folder, "replay", "rude")
        self.left = processes_of(folder)

    @property
    def sentence(self):
        return self.result.get("message", "")

    @property
    def succeeded(self):
        return self.result.get("state") == "succeeded"

    def phase(self, phase):
        return [trial for trial in self.trials if trial["status"]["phase"] == phase]


def facts_of(trial):
    return trial["status"].get("facts", [])


def step_of(trial):
    return trial["status"].get("report", {}).get("step", 0)


def x_of(trial):
    return trial["spec"]["parameters"]["x"]


def condition_of(trial, kind):
    """The message of a condition that holds; "" where none does."""
    held = [one for one in trial["status"].get("conditions", []) if one["type"] == kind and one["status"] == "True"]
    return held[0].get("message", "") if held else ""


def reasons_of(trial):
    """Every sentence that says why something of the trial ended."""
    runs = [run.get("message", "") for run in trial["status"].get("runs", [])]
    stop = trial["spec"].get("stop", {}).get("message", "")
    return [*runs, condition_of(trial, "Complete"), condition_of(trial, "Failed"), stop]


def ask(fettle, folder, *arguments):
    return subprocess.run([fettle, *arguments], cwd=folder, capture_output=True, text=True)


def processes_of(folder):
    """The processes that belong to a trial of a Study in the folder: told by their environment."""
    mark = f"FETTLE_TRIAL={folder}/".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # ended meanwhile, or somebody else's
            pass
    return found


# ---- What must be true of every one ------------------------------------------------------------

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@check
def no_trial_is_lost(ended):
    indices = sorted(trial["spec"]["index"] for trial in ended.trials)
    if indices != list(range(len(indices))):
        yield f"the indices are {indices}"
    planned = 1 if ended.search.name == "schedule" else ended.program.trials
    if len(indices) < planned:
        yield f"there are {len(indices)} of {planned} trials"
    counts = ended.result.get("trials", {})
    if counts.get("created") != len(indices):
        yield f"the summary counts {counts.get('created')} trials, the list {len(indices)}"
    by_phase = [len(ended.phase(phase)) for phase in ("Completed", "Stopped", "Failed")]
    counted = [counts.get(name) for name in ("completed", "stopped", "failed")]
    if sum(by_phase) != len(indices):
        yield f"only {sum(by_phase)} of {len(indices)} trials have ended"
    # One that waits at a rung until the end is Completed there, and counted as stopped early.
    if sum(counted) != len(indices) or counted[2] != by_phase[2]:
        yield f"the summary counts {counts}, by phase there are {by_phase}"


@check
def every_end_is_recorded_once(ended):
    sequence = sorted(fact["seq"] for trial in ended.trials for fact in facts_of(trial))
    if sequence != list(range(1, len(sequence) + 1)):
        yield f"facts are numbered {sequence}"
    for trial in ended.trials:
        name = trial["metadata"]["name"]
        ends = [(fact["kind"], fact["step"]) for fact in facts_of(trial) if fact["kind"] != "Rung"]
        if not ends:
            yield f"{name} has ended and no fact says so"
        if len(ends) > 1 and not ended.search.pauses:
            yield f"{name} has ended more than once: {ends}"
        # The step that was reported: the same again where a leg added nothing.
        steps = [step for kind, step in ends if kind != "Failed"]
        if sorted(steps) != steps:
            yield f"{name} paused at the steps {steps}"
        if any(kind in ("Result", "Failed") for kind, _ in ends[:-1]):
            yield f"{name} went on after its end: {ends}"
        runs = [run["run"] for run in trial["status"].get("runs", [])]
        if sorted(set(runs)) != runs:
            yield f"{name} has the runs {runs}"


@check
def every_trial_ends_as_a_person_would_say(ended):
    for trial in ended.trials:
        name, phase = trial["metadata"]["name"], trial["status"]["phase"]
        failure = condition_of(trial, "Failed")
        if ended.program.fails:
            if phase == "Failed" and not re.search(ended.program.fails, failure):
                yield f"{name} failed: {failure!r}"
            elif phase == "Completed":
                yield f"{name} is {phase}"
        elif phase == "Failed":
            yield f"{name} failed: {failure!r}"
    if not ended.program.fails and not finishers(ended):
        reached = collections.Counter((step_of(trial), trial["status"]["phase"]) for trial in ended.trials)
        yield f"nobody got to the end: {dict(reached)}"


def finishers(ended):
    """The trials that got to the end of the training, or as far as their program ever says."""
    return [
        trial
        for trial in ended.phase("Completed")
        if step_of(trial) >= LAST_EPOCH
        or (step_of(trial) >= ended.program.last and trial["spec"]["untilStep"] == LAST_EPOCH)
    ]


@check
def every_reason_is_true(ended):
    untrue = [word for word in ACCUSATIONS if word not in ended.program.may_say]
    for trial in ended.trials:
        name = trial["metadata"]["name"]
        stop = trial["spec"].get("stop", {}).get("message", "")
        for reason in reasons_of(trial):
            said = [word for word in untrue if re.search(rf"\b{word}\b", reason)]
            if said:
                yield f"{name}: {reason!r}"
        if trial["status"]["phase"] == "Stopped" and not stop:
            yield f"{name} is stopped and nobody says why"
        if stop and ended.search.name == NONE:
            yield f"{name} is stopped under the rule that stops nobody: {stop!r}"
        if "no finite value" in stop and any(is_finite(fact) for fact in facts_of(trial)[-1:]):
            yield f"{name} has a finite value: {stop!r}"
        reached = re.search(r"reached epoch (\d+)", condition_of(trial, "Complete"))
        if reached and int(reached.group(1)) > step_of(trial) and ended.program.last > 1:
            yield f"{name} reached epoch {step_of(trial)}: {reached.group(0)!r}"


def is_finite(fact):
    return all(isinstance(value, (int, float)) for value in fact.get("values", []))


@check
def values_are_those_that_were_printed(ended):
    loss = ended.program.loss
    first = 0 if ended.program.last == LAST_EPOCH - 1 else 1
    for trial in ended.trials:
        printed = {step: loss(x_of(trial), step) for step in range(first, LAST_EPOCH + 1)}
        for fact in facts_of(trial):
            value = fact["values"][0] if fact.get("values") else None
            if value is not None and value not in printed.values():
                yield f"{trial['metadata']['name']}: {fact['kind']} at {fact['step']} has {value}, never printed"
            at_end = fact["kind"] == "Result" and printed[min(step_of(trial), LAST_EPOCH)]
            if fact["kind"] == "Result" and value != at_end:
                yield f"{trial['metadata']['name']}: the result is {value}, it printed {at_end}"


@check
def feasible_results_are_called_feasible(ended):
    for trial in ended.phase("Completed"):
        result = next((fact for fact in facts_of(trial) if fact["kind"] == "Result"), None)
        if result and result.get("infeasible") and ended.program.loss(x_of(trial), LAST_EPOCH) is not None:
            yield f"{trial['metadata']['name']} got to the end within all constraints and is infeasible"


PLAIN = re.compile(r"all \d+ trials are done|every point of the space was tried: .*")


@check
def the_last_sentence_is_true(ended):
    state = ended.result.get("state")
    if ended.code != {"succeeded": 0, "failed": 1}.get(state):
        yield f"exit code {ended.code} of a study that {state}: {ended.sentence!r} {ended.errors!r}"
    got_far = finishers(ended)
    if not got_far and ended.succeeded and PLAIN.fullmatch(ended.sentence):
        yield f"nobody got to the end, and it {state}: {ended.sentence!r}"
    if not ended.succeeded and any(ended.program.loss(x_of(t), LAST_EPOCH) is not None for t in got_far):
        yield f"{len(got_far)} trials have a result, and it {state}: {ended.sentence!r}"
    best = ended.result.get("best")
    if ended.succeeded and not best:
        yield f"it succeeded without a best trial: {ended.sentence!r}"
    numbers = [int(number) for number in re.findall(r"all (\d+) trials", ended.sentence)]
    if numbers and numbers[0] != len(ended.trials):
        yield f"there are {len(ended.trials)} trials: {ended.sentence!r}"


@check
def decisions_come_out_again(ended):
    if ended.replayed.returncode != 0:
        yield f"fettle replay: {ended.replayed.stdout.strip()} {ended.replayed.stderr.strip()}"


@check
def no_process_is_left(ended):
    if ended.left:
        yield f"left running: {ended.left}"


def problems_of(ended):
    """Every sentence that is not true of the Study, under the name of its check."""
    return [f"{one.__name__}: {problem}" for one in CHECKS for problem in one(ended)]


# ---- Running them ------------------------------------------------------------------------------


class Place:
    """A folder in which one Study runs."""

    def __init__(self, fettle, folder, program, search, trial=None):
        self.fettle, self.folder, self.program, self.search = fettle, folder, program, search
        folder.mkdir(parents=True)
        document = study("rude", program, search.spec, trial or {})
        (folder / "study.yaml").write_text(json.dumps(document, indent=1))

    def start(self):
        """`fettle run`, in a process group of its own."""
        return subprocess.Popen(
            [self.fettle, "run", "study.yaml", "--output", "json"], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def finish(self, running):
        """Its end; one that does not come is a problem of its own."""
        try:
            out, errors = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            for process in processes_of(self.folder):
                os.kill(process, signal.SIGKILL)
            return None, [f"it has not ended after {PATIENCE} s"]
        lines = [json.loads(line) for line in out.splitlines()]
        return Ended(self.fettle, self.program, self.search, self.folder, running.returncode, lines, errors), []

    def logs(self):
        return self.folder.glob(".fettle/rude/*/r0/output.log")

    def saves(self):
        """Whether its programs save, and are at work long enough to be caught at it."""
        return self.program.name in ("saves_on_sigterm", "behind_a_shell") and not self.search.pauses

    def at_work(self):
        """Whether its first trials run; of programs that save: whether one has trained for a while."""
        if self.saves():
            return any(log.read_bytes().count(b'"step"') >= 2 for log in self.logs())
        return len(list(self.logs())) >= 3

    def has_saved(self):
        return any(self.folder.glob(".fettle/rude/checkpoints/*/*/epoch"))


def run_to_the_end(place):
    ended, problems = place.finish(place.start())
    return problems or problems_of(ended)


def family_of(runner):
    """The process and all its descendants."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            pass
    family = [runner]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return family


def press_ctrl_c(runner):
    os.kill(runner, signal.SIGINT)


def shut_down(runner):
    """As systemctl stop, scancel and a shutdown do: everybody at once."""
    for process in family_of(runner):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def kill_the_runner(runner):
    os.kill(runner, signal.SIGKILL)


def interrupted_by(interrupt):
    """Interrupts the run when the first trials are at work; the same command then ends what it began."""

    def run(place):
        running = place.start()
        until = time.monotonic() + PATIENCE
        while running.poll() is None and time.monotonic() < until and not place.at_work():
            time.sleep(0.02)
        time.sleep(0 if place.saves() else 0.25)
        interrupt(running.pid)
        _, errors = running.communicate(timeout=PATIENCE)
        problems = []
        if interrupt is not kill_the_runner:
            # SIGINT itself: the Study had just ended.
            if running.returncode not in (130, 0, 1, -signal.SIGINT):
                problems.append(f"{interrupt.__name__}: exit code {running.returncode}: {errors}")
            if processes_of(place.folder):
                problems.append(f"{interrupt.__name__}: left running: {processes_of(place.folder)}")
        ended, late = place.finish(place.start())
        if place.saves() and running.returncode in (130, -signal.SIGKILL) and not place.has_saved():
            problems.append(f"{interrupt.__name__}: the programs had no time to save")
        if ended:  # now some sentences are true
            may_say = ended.program.may_say + " interrupted killed behind died"
            ended.program = dataclasses.replace(ended.program, may_say=may_say)
        return problems + (late or problems_of(ended))

    return run


# What a stop does depends on these.
INTERRUPTED = ["every_second_epoch", "saves_on_sigterm", "behind_a_shell", "ignores_sigterm", "leaves_a_process",
               "pool_of_workers", "closes_its_output", "only_at_the_end"]  # fmt: skip
INTERRUPTED_UNDER = ["asha", "asha-promote", "hyperband", "pbt"]


def cells(searches):
    """All there is to run: (name, how, program, search)."""
    for program in PROGRAMS:
        for search in searches:
            yield f"{program.name} under {search.name}", run_to_the_end, program, search
            if program.name not in INTERRUPTED or search.name not in INTERRUPTED_UNDER:
                continue
            for interrupt in (press_ctrl_c, shut_down, kill_the_runner):
                name = f"{program.name} under {search.name}, {interrupt.__name__}"
                yield name, interrupted_by(interrupt), program, search


def run_cell(fettle, root, number, cell, keep):
    name, how, program, search = cell
    folder = root / str(number)
    began = time.monotonic()
    try:
        problems = how(Place(fettle, folder, program, search))
    except (ValueError, KeyError, subprocess.TimeoutExpired) as wrong:
        problems = [f"{type(wrong).__name__}: {wrong}"]
    if keep and problems:
        (folder / "problems").write_text("\n".join([name, *problems]))
    elif not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return name, problems, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=pathlib.Path)
    parser.add_argument("--program", action="append")
    parser.add_argument("--search", action="append")
    parser.add_argument("--at-once", type=int, default=4 * (os.cpu_count() or 2), metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    fettle = str(options.fettle.resolve())
    searches = [s for s in Listing(fettle).searches() if not options.search or s.name in options.search]
    chosen = [c for c in cells(searches) if not options.program or c[2].name in options.program]
    root = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="fettle-rude-")).resolve()
    began = time.monotonic()
    failed = {}
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        running = [pool.submit(run_cell, fettle, root, n, cell, options.keep) for n, cell in enumerate(chosen)]
        for future in running:
            name, problems, _ = future.result()
            if problems:
                failed[name] = problems
                print(f"rude programs: {name}:", *problems[:6], sep="\n    ", flush=True)
    if not options.keep:
        shutil.rmtree(root, ignore_errors=True)
    print(f"rude programs: {len({c[2].name for c in chosen})} programs, {len(searches)} searches, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    print(f"rude programs: {len(chosen) - len(failed)} of {len(chosen)} passed")
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
