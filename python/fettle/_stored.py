"""Reads the trials of a study that is kept in .fettle, by `fettle trials` and `fettle status`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from fettle._errors import FettleError
from fettle._program import find_program
from fettle.result import Result, TrialRecord
from fettle.search import Best

_ENDED = {"Completed": "completed", "Stopped": "stopped", "Failed": "failed", "Infeasible": "infeasible"}


def stored_trials(study: str, objectives: Sequence[str], directory: str | os.PathLike[str] | None) -> list[TrialRecord]:
    """The trials that have ended."""
    found = [_record(one, objectives) for one in _read("trials", study, directory)]
    return [one for one in found if one is not None]


def stored_result(study: str, objectives: Mapping[str, str], directory: str | os.PathLike[str] | None) -> Result:
    """The study as far as it is."""
    names = list(objectives)
    trials = stored_trials(study, names, directory)
    status = _read("status", study, directory)
    by_id = {one.id: one for one in trials}
    best = [status["best"]] if status.get("best") else []
    front = []
    for one in status.get("front") or best:
        id = _number(one["trial"])
        values = tuple(float(one["objectives"][name]) for name in names)
        front.append(Best(id, by_id[id].parameters if id in by_id else one["parameters"], values))
    return Result(objectives, trials, front, study, status.get("reason") or "")


def _read(command: str, study: str, directory: str | os.PathLike[str] | None) -> Any:
    where = [] if directory is None else ["-C", os.fspath(directory)]
    done = subprocess.run([find_program(), *where, command, study, "--output", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the study has failed
        raise FettleError(done.stderr.strip().removeprefix("fettle: "))
    return json.loads(done.stdout)


def _number(trial: str) -> int:
    return int(trial.rpartition("-")[2])


def _record(trial: Mapping[str, Any], names: Sequence[str]) -> TrialRecord | None:
    status = trial.get("status", {})
    state = _ENDED.get(status.get("phase", ""))
    if state is None:
        return None
    report = status.get("report") or {}
    last = report.get("metrics", {})
    results = [fact for fact in status.get("facts", ()) if fact["kind"] == "Result"]
    values = results[-1]["values"] if results else [last.get(name) for name in names]
    numbers = tuple(_value(one) for one in values)
    if state == "completed" and (None in numbers or (results and results[-1].get("infeasible"))):
        state = "infeasible"
    conditions = status.get("conditions") or [{}]
    return TrialRecord(
        trial["spec"]["index"], trial["spec"]["parameters"], state, numbers if any(numbers) or results else None,
        conditions[-1].get("message") if state in ("failed", "infeasible") else None, None,
        {name: value for name, value in last.items() if name not in names},
        [(point["step"], [point["metrics"].get(name) for name in names])
         for point in report.get("history", ())])


def _value(value: Any) -> float | None:
    return None if value is None else float(value)
