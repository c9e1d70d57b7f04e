"""Imports an experiment of Ray Tune from its folder: params.json and result.json of each trial. Ray is not needed.

The trials that trained longest count as results; shorter ones as stopped early, for the folder does not say who ended
them. Nested parameters get names such as train_loop_config/lr.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from fettle.importers import _lines


def flat(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out = {}
    for name, value in parameters.items():
        out.update(flat(value, f"{prefix}{name}/") if isinstance(value, dict) else {prefix + name: value})
    return out


def last_result(path: pathlib.Path) -> dict[str, Any] | None:
    """The last complete line."""
    result = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                result = json.loads(line)
            except ValueError:  # the run was killed while it wrote
                continue
    return result


def trials(folder: pathlib.Path) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """(name, parameters, last result), by time."""
    out = []
    for path in folder.rglob("params.json"):
        results = path.with_name("result.json")
        failed = path.with_name("error.txt").exists() or path.with_name("error.pkl").exists()
        try:
            parameters = flat(json.loads(path.read_text(encoding="utf-8")))
            result = last_result(results) if results.exists() and not failed else None
        except (OSError, ValueError, AttributeError) as error:
            raise _lines.invalid(f"{path.parent} holds no trial of Ray Tune: {error}") from error
        out.append((path.parent.name, parameters, result))
    return sorted(out, key=lambda trial: (trial[2] or {}).get("timestamp", 0))


def read(options: argparse.Namespace) -> _lines.Lines:
    if not options.objective:
        raise _lines.invalid("say which metric of result.json is the objective: --objective NAME")
    folder = pathlib.Path(options.source).expanduser()
    there = trials(folder)
    if not there:
        raise _lines.invalid(f"{folder} holds no trial of Ray Tune: there is no params.json below it")
    results = [result for _, _, result in there if result]
    for metric in options.objective:
        if results and not any(metric in result for result in results):
            raise _lines.invalid(f"no result below {folder} has a metric {metric}; the first one has: {', '.join(results[0])}")
    longest = max((result.get("training_iteration", 0) for result in results), default=0)
    found = _lines.Lines()
    for name, parameters, result in there:
        values = {metric: (result or {}).get(metric) for metric in options.objective}
        step = (result or {}).get("training_iteration", longest)
        found.add(name, parameters, values, step=step, stopped=step < longest)
    return found


if __name__ == "__main__":
    _lines.main("ray", read)
