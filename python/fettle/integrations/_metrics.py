"""report_chosen(): the part that all callbacks share. It takes a user's choice from all metrics that a library has.

May be called from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

import fettle
from fettle._values import number_of

__all__ = ["Metrics", "report_chosen"]

# None: all that are numbers. Names: these. A dict: name in the report -> name in the library.
Metrics = Union[None, str, Iterable[str], Mapping[str, str]]

MOST = 32  # metrics that a report may have (docs/your-program.md)


def report_chosen(step: int, measured: Mapping[str, Any], metrics: Metrics, library: str) -> None:
    """Reports the chosen metrics of a step. ValueError: one is missing, or none is there."""
    chosen = _numbers(measured) if metrics is None else _names(metrics)
    if "step" in chosen:
        raise ValueError("`step` names the step of a report, so a metric needs another name: metrics={\"other\": \"step\"}")
    missing = [name for name in chosen.values() if name not in measured]
    if missing or not chosen:
        wanted = f"no metric {missing[0]!r}" if missing else "no metrics"
        raise ValueError(f"{library} has {wanted} at step {step}; it has {', '.join(map(repr, measured)) or 'none at all'}")
    if len(chosen) > MOST:
        raise ValueError(f"{library} has {len(chosen)} metrics, and a report at most {MOST}: name those of the study by metrics=")
    fettle.report(step, **{name: measured[source] for name, source in chosen.items()})


def _numbers(measured: Mapping[str, Any]) -> dict[str, str]:
    return {name: name for name, value in measured.items() if name != "step" and number_of(value) is not None}


def _names(metrics: str | Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(metrics, Mapping):
        return dict(metrics)
    return {name: name for name in ([metrics] if isinstance(metrics, str) else metrics)}
