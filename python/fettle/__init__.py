"""Fettle from Python: tune a function, ask for trials, or serve as the program that Fettle tunes.

    fettle.tune(train, space, maximize="accuracy", trials=60)         a function, in worker processes
    for trial in fettle.Search(space, minimize="loss", trials=60):    a loop of one's own: ask and tell
    for trial in fettle.trials(lr=0.1):                               a program that `fettle run` starts
    fettle.report(epoch, loss=loss)                                   the one line of a program that stays as it is
    fettle.Study("resnet", ...)                                       a study for `fettle run` or a cluster

Only the standard library is used. Names are imported on first use, so that programs which only report start fast.
docs/python.md has examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fettle._report import report
from fettle._trial import Stopped, Trial
from fettle._worker import trial, trials

if TYPE_CHECKING:
    from fettle._tune import tune as tune
    from fettle._errors import FettleError as FettleError, Refused as Refused
    from fettle.result import Result as Result, TrialRecord as TrialRecord
    from fettle.search import Best as Best, Search as Search, SearchTrial as SearchTrial
    from fettle.study import Run as Run, Study as Study
    from fettle.space import (Parameter as Parameter, boolean as boolean, choice as choice, integer as integer,
                              loguniform as loguniform, uniform as uniform)

__version__ = "0.1.0"

# Name -> the module that has it.
_LATER = {
    "tune": "_tune", "Run": "study", "Study": "study",
    "Result": "result", "TrialRecord": "result",
    "FettleError": "_errors", "Refused": "_errors",
    "Best": "search", "Search": "search", "SearchTrial": "search",
    "Parameter": "space", "boolean": "space", "choice": "space", "integer": "space", "loguniform": "space",
    "uniform": "space",
}

__all__ = ["Best", "FettleError", "Parameter", "Refused", "Result", "Run", "Search", "SearchTrial", "Stopped",
           "Study", "Trial", "TrialRecord", "boolean", "choice", "integer", "loguniform", "report", "trial", "trials", "tune",
           "uniform"]


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'fettle' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"fettle.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
