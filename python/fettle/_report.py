"""report(): tells Fettle the metrics of the trial that is being trained.

Three places to be in: a function that tune() calls, or a loop over trials() (the current trial of the thread or the
process takes the report); a program that Fettle started (a JSON line on standard output); neither (nothing happens).
May be called from any thread of the program.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fettle._trial import Trial

# Where launchers write the rank of a process among the workers of one trial.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class _Current(threading.local):
    trial: Trial | None = None


_of_thread = _Current()
_of_process: Trial | None = None


def set_current(trial: Trial | None, *, whole_process: bool = True) -> None:
    """Makes `trial` the one that report() speaks for, on this thread alone or in the whole process."""
    global _of_process
    if whole_process:
        _of_process = trial
    else:
        _of_thread.trial = trial


def current() -> Trial | None:
    """The trial that this thread trains, if it is known."""
    return _of_thread.trial or _of_process


def report(step: int | None = None, **values: Any) -> bool:
    """Reports the metrics of a step: fettle.report(epoch, loss=0.3). Does nothing in a program that Fettle does not run.

    Without a step it is the step after the last one. Values are numbers, also of NumPy or PyTorch; None and NaN mean
    that the trial has diverged. Of several workers only that of rank 0 prints. Returns whether to continue; inside
    tune(), or `with trial:`, it raises Stopped if not.
    """
    trial = current()
    if trial is not None:
        return trial.report(step, **values)
    if "FETTLE_TRIAL" in os.environ:
        write_line(step, values)
    return True


def write_line(step: int | None, values: Mapping[str, Any]) -> None:
    """Prints the line of a report, if this is the worker of rank 0."""
    line = {} if step is None else {"step": _step(step)}
    for name, value in values.items():
        line[name] = _metric(name, value)
    if is_first_rank():
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def is_first_rank() -> bool:
    """Whether this process speaks for its trial: it is the only worker, or the one of rank 0."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    for name in _RANKS:
        if os.environ.get(name):
            return os.environ[name] == "0"
    # Lightning sets no RANK in the processes that it launches itself.
    return os.environ.get("LOCAL_RANK", "0") in ("", "0") and os.environ.get("NODE_RANK", "0") in ("", "0")


def _step(step: Any) -> int:
    try:
        whole = int(step)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if whole < 0 or whole != step:
        raise TypeError(f"report: a step is a whole number of at least 0; found {step!r}")
    return whole


def _metric(name: str, value: Any) -> Any:
    """NaN and the infinities stay: json writes them as the runner reads them."""
    if value is None or isinstance(value, (str, bool)):
        return value
    from fettle._values import found, number_of

    number = number_of(value)
    if number is None:
        raise TypeError(f"report: {name} must be a number; found {found(value)}")
    return number
