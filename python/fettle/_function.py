"""A function that tune() calls: its arguments, the trial that it sees, and how what it returns is judged.

A result is the report at the last step, else what the function returns, else its last report. Whatever cannot be a
result is a failure of this trial alone, with a sentence. One thread evaluates one trial at a time.
"""

from __future__ import annotations

import inspect
import math
import time
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fettle._report import set_current
from fettle._trial import Stopped, Trial
from fettle._values import found, number_of
from fettle.space import Space

LONGEST_CURVE = 100_000

Values = list["float | None"]
# (step, values) -> continue, stop, pause (the trial comes again later), or ended: that was the last step.
OnReport = Callable[[int, Values], str]


class Outcome(NamedTuple):
    """The end of one evaluation. `values`: one an objective, None if it is not finite; None: none was found."""

    values: Values | None
    is_reported: bool = False  # the search knows the end already: by a report at the last step, or a stop
    is_stopped: bool = False
    is_paused: bool = False  # the trial comes again, and begins anew
    is_failed: bool = False  # the function is at fault, not the point
    error: str | None = None
    trace: str | None = None
    metrics: dict[str, float] = {}
    curve: list[tuple[int, Values]] = []
    seconds: float = 0


class Task(NamedTuple):
    """What all evaluations of a tune() share."""

    objectives: list[str]
    study: str
    seed: int
    last_step: int | None  # None: reports are only recorded


class FunctionTrial(Trial):
    """The trial as a function sees it. Its report() raises Stopped when the trial is to end."""

    def __init__(self, task: Task, id: int, parameters: Mapping[str, Any], on_report: OnReport) -> None:
        self.id = id
        self._task = task
        self._on_report = on_report
        self.curve: list[tuple[int, Values]] = []
        self.decision = "continue"
        self.reported_names: set[str] = set()
        self._set({"trial": f"{task.study}-{id}" if task.study else str(id), "study": task.study,
                   "seed": zlib.crc32(f"{task.seed}-{id}".encode()), "parameters": dict(parameters),
                   "untilStep": task.last_step or 1, "checkpoints": {"directory": ""}}, lambda: self.is_over,
                  None)

    @property
    def is_over(self) -> bool:
        """Whether the search wants no more reports, before the last step."""
        return self.decision in ("stop", "pause")

    def report(self, step: int | None = None, value: Any = None, **metrics: Any) -> bool:
        """Reports the objective at a step: trial.report(3, 0.9), or by name: trial.report(3, accuracy=0.9)."""
        if self.is_over:
            raise Stopped(self.name)
        last = self.curve[-1][0] if self.curve else 0
        number = last + 1 if step is None else _step(step)
        values = self._values(value, metrics)
        if values is None:  # a report of other metrics
            return True
        if len(self.curve) < LONGEST_CURVE:
            self.curve.append((number, values))
        if self._task.last_step is not None and self.decision == "continue":
            self.decision = self._on_report(number, values)
            if self.is_over:
                raise Stopped(self.name)
        return True

    def _values(self, value: Any, metrics: Mapping[str, Any]) -> Values | None:
        names = self._task.objectives
        self.reported_names.update(metrics)
        if value is None:
            if not metrics:
                return [None for _ in names]
            if any(name not in metrics for name in names):
                return None
            value = [metrics[name] for name in names]
        values, error = values_of(value, names)
        if error is not None:
            raise TypeError(f"report: {error}")
        return values


class Function:
    """Calls a function with the parameters of a trial by name, and the trial itself if it takes `trial`."""

    def __init__(self, function: Callable[..., Any], space: Space) -> None:
        """TypeError: the function cannot take the parameters of the space."""
        if not callable(function):
            raise TypeError(f"expected a function; found {found(function)}")
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._wants_trial = False
        self._names: set[str] | None = None  # that it takes; None: all
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some functions of C
            return
        self._read(signature, space)

    def _read(self, signature: inspect.Signature, space: Space) -> None:
        by_name = {name: one for name, one in signature.parameters.items()
                   if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
        takes_all = any(one.kind == one.VAR_KEYWORD for one in signature.parameters.values())
        self._wants_trial = "trial" in by_name
        if self._wants_trial and "trial" in space:
            raise TypeError(f"{self.name}() takes `trial`, which is the name of a parameter, too: rename that one")
        for name, one in signature.parameters.items():
            if one.kind == one.POSITIONAL_ONLY and one.default is one.empty:
                raise TypeError(f"{self.name}() takes {name!r} by position only; parameters are given by name")
        for name, one in by_name.items():
            if one.default is not one.empty or name == "trial":
                continue
            if name not in space:
                raise TypeError(f"{self.name}() needs {name!r}, which is not in the space ({', '.join(space)}): add it, "
                                "or give it a default value")
            if space[name].on is not None:
                raise TypeError(f"{self.name}() needs {name!r}, which exists only for some values of "
                                f"{space[name].on!r}: give it a default value, as in {name}=None")
        for name in space:
            if name not in by_name and not takes_all and not self._wants_trial:
                how = f"an argument {name!r}, or `trial`" if name.isidentifier() else "`trial`"
                raise TypeError(f"{self.name}() does not take the parameter {name!r}: give it {how} "
                                "(trial.parameters has all), or **parameters")
        self._names = None if takes_all else set(by_name)

    def __call__(self, trial: FunctionTrial) -> Any:
        arguments = {name: value for name, value in trial.parameters.items()
                     if self._names is None or name in self._names}
        if self._wants_trial:
            arguments["trial"] = trial
        return self.function(**arguments)


def evaluate(function: Function, task: Task, id: int, parameters: Mapping[str, Any], on_report: OnReport, *,
             whole_process: bool) -> Outcome:
    """Calls the function for one trial. KeyboardInterrupt passes, and so does what `on_report` raises, but Exceptions."""
    trial = FunctionTrial(task, id, parameters, on_report)
    set_current(trial, whole_process=whole_process)
    begun = time.monotonic()
    try:
        outcome = _result(function(trial), function.name, trial)
    except Stopped:
        outcome = _result(None, function.name, trial)
    except (Exception, SystemExit) as error:
        outcome = _failure(error, trial)
    finally:
        set_current(None, whole_process=whole_process)
    return outcome._replace(curve=trial.curve, seconds=time.monotonic() - begun)


def _failure(error: BaseException, trial: FunctionTrial) -> Outcome:
    if trial.decision != "continue":  # it was over already
        return _reported(trial)
    words = traceback.format_exception_only(type(error), error)[-1].strip()
    trace = "".join(traceback.format_exception(type(error), error, _below(error.__traceback__)))
    return Outcome(None, is_failed=True, error=words, trace=trace)


def _below(trace: Any) -> Any:
    """The traceback from the user's function on."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    return trace


def _reported(trial: FunctionTrial) -> Outcome:
    values = trial.curve[-1][1] if trial.curve else None
    if trial.is_over:
        return Outcome(values, is_reported=True, is_stopped=True, is_paused=trial.decision == "pause")
    return Outcome(values, is_reported=True, error=_not_finite(values, trial._task.objectives))


def _result(returned: Any, name: str, trial: FunctionTrial) -> Outcome:
    names = trial._task.objectives
    if trial.decision != "continue":
        return _reported(trial)
    if returned is None and trial.curve:
        values = trial.curve[-1][1]
        return Outcome(values, error=_not_finite(values, names))
    if returned is None:
        others = f"; it reported {', '.join(sorted(trial.reported_names))}" if trial.reported_names else ""
        return Outcome(None, is_failed=True, error=f"{name}() returned None and reported no {names[0]!r}{others}")
    metrics: dict[str, float] = {}
    if isinstance(returned, Mapping):
        for key, value in returned.items():
            number = number_of(value)
            if isinstance(key, str) and number is not None and key not in names:
                metrics[key] = number
        missing = [one for one in names if one not in returned]
        if missing:
            return Outcome(None, is_failed=True, metrics=metrics,
                           error=f"{name}() returned a dict without {missing[0]!r}; it has "
                                 f"{', '.join(map(repr, returned))}")
        returned = [returned[one] for one in names]
    results, error = values_of(returned, names)
    if error is not None:
        return Outcome(None, is_failed=True, error=f"{name}() returned a wrong result: {error}", metrics=metrics)
    return Outcome(results, error=_not_finite(results, names), metrics=metrics)


def values_of(value: Any, names: Sequence[str]) -> tuple[Values, str | None]:
    """One value an objective, None if it is not finite; and why it is no result."""
    several = value if isinstance(value, (list, tuple)) else [value]
    if len(several) != len(names):
        return [], f"there are {len(names)} objectives ({', '.join(names)}); found {found(value)}"
    out: Values = []
    for name, one in zip(names, several):
        number = math.nan if one is None else number_of(one)
        if number is None:
            return [], f"{name} must be a number; found {found(one)}"
        out.append(number if math.isfinite(number) else None)
    return out, None


def _not_finite(values: Values | None, names: Sequence[str]) -> str | None:
    missing = [name for name, value in zip(names, values or []) if value is None]
    return f"{' and '.join(missing)} not finite" if missing else None


def _step(step: Any) -> int:
    number = number_of(step)
    if number is None or not number.is_integer() or number < 0:
        raise TypeError(f"report: a step is a whole number of at least 0; found {found(step)}")
    return int(number)
