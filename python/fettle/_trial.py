"""Trial: one run of one trial, as its program sees it. Used by one thread."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from fettle._report import write_line


class Stopped(Exception):
    """The trial is to end: it was judged not worth continuing, or its Study ends. `with trial:` ends with it."""


class Trial:
    """A trial to train. Attributes: name, study, seed, parameters, until_step, checkpoints, parent, parent_step."""

    # Whether report() prints: not without a runner, which would read it.
    _is_read = True

    def __init__(self, environment: Mapping[str, str], stop_requested: Callable[[], bool] = lambda: False,
                 defaults: Mapping[str, Any] | None = None) -> None:
        """`environment`: the FETTLE_ variables of the run. `stop_requested`: asked at each report. `defaults`: of
        parameters that the trial does not have."""
        with open(environment["FETTLE_TRIAL"], encoding="utf-8") as file:
            content = json.load(file)
        self._set(content, stop_requested, defaults)

    @classmethod
    def alone(cls, parameters: Mapping[str, Any], until_step: int) -> Trial:
        """The trial of a program that runs without Fettle: its reports go nowhere."""
        trial = cls.__new__(cls)
        trial._set({"trial": "", "study": "", "seed": 0, "parameters": {}, "untilStep": until_step,
                    "checkpoints": {"directory": ""}}, lambda: False, parameters)
        trial._is_read = False
        return trial

    def _set(self, content: dict[str, Any], stop_requested: Callable[[], bool],
             defaults: Mapping[str, Any] | None) -> None:
        self._stop_requested = stop_requested
        self._is_entered = False
        self.exit_code = 0
        self.file = content
        self.name: str = content["trial"]
        self.study: str = content["study"]
        self.seed: int = content["seed"]
        self.parameters: dict[str, Any] = {**(defaults or {}), **content["parameters"]}
        self.until_step: int = content["untilStep"]
        self.checkpoints: str = content["checkpoints"]["directory"]
        parent = content.get("parent")
        self.parent: str | None = parent["directory"] if parent else None
        self.parent_step: int = parent["step"] if parent else 0

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters[parameter]

    @property
    def params(self) -> dict[str, Any]:
        """The same as `parameters`."""
        return self.parameters

    def steps(self, first: int = 1) -> range:
        """The steps to train, ascending: range(first, until_step + 1). `first`: one above the step that was restored."""
        return range(first, self.until_step + 1)

    @property
    def should_stop(self) -> bool:
        """Whether the trial is to end now."""
        return self._stop_requested()

    def report(self, step: int | None = None, **metrics: Any) -> bool:
        """Reports the metrics of a step. Returns whether to continue; inside `with trial:` it raises Stopped if not.

        Without a step it is the step after the last one. A metric is a number, also of NumPy or PyTorch; None and NaN
        mean that it has diverged. Of several workers only that of rank 0 prints.
        """
        if self._is_read:
            write_line(step, metrics)
        if not self.should_stop:
            return True
        if self._is_entered:
            raise Stopped(self.name)
        return False

    def __enter__(self) -> Trial:
        self._is_entered = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool:
        self._is_entered = False
        if kind is not None and issubclass(kind, Stopped):
            self.exit_code = os.EX_OK if not self._stop_requested() else 143
            return True
        return False
