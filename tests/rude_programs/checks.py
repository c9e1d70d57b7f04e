"""What must be true of every Study that has ended, whatever its program and its search.

Each check yields a sentence for every thing that is not.
"""
import collections
import re

from programs import ACCUSATIONS, LAST_EPOCH
from searches import NONE
from studies import condition_of, facts_of, reasons_of, step_of, x_of

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
        yield f"no trial got to the end: {dict(reached)}"


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
            yield f"{name} is stopped and nothing says why"
        if stop and ended.search.name == NONE:
            yield f"{name} is stopped under the rule that stops no trial: {stop!r}"
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
        yield f"no trial got to the end, and it {state}: {ended.sentence!r}"
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
