"""Result: what tune() found. Read only; may be shared by threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fettle.search import Best

__all__ = ["Result", "TrialRecord"]


class TrialRecord(NamedTuple):
    """A trial that has ended. `state`: completed, stopped early, infeasible (a value was None or NaN), or failed."""

    id: int
    parameters: dict[str, Any]
    state: str
    values: tuple[float | None, ...] | None = None
    error: str | None = None  # why it is infeasible or failed
    trace: str | None = None  # the traceback of an exception
    metrics: Mapping[str, float] = {}
    curve: Sequence[tuple[int, Sequence[float | None]]] = ()  # (step, values) of its reports
    seconds: float = 0

    @property
    def value(self) -> float | None:
        """The first of its values."""
        return self.values[0] if self.values else None

    @property
    def params(self) -> dict[str, Any]:
        return self.parameters


class Result:
    """Attributes:

    objectives  name -> minimize or maximize
    trials      the trials that have ended, by number
    front       the completed trials that no other one beats in every objective; with one objective: the best
    study       the name of the study, if it has one
    ended_by    trials, exhausted, timeout, max_cost or interrupt
    """

    def __init__(self, objectives: Mapping[str, str], trials: Sequence[TrialRecord], front: Sequence[Best],
                 study: str | None, ended_by: str) -> None:
        self.objectives = dict(objectives)
        self.trials = sorted(trials, key=lambda one: one.id)
        self.front = list(front)
        self.study = study
        self.ended_by = ended_by

    @property
    def best(self) -> Best:
        """The best completed trial. ValueError: none is feasible, or there are several objectives."""
        if len(self.objectives) > 1:
            raise ValueError("there are several objectives: use front")
        if not self.front:
            raise ValueError(f"none of {len(self.trials)} trials has a result" + self._first_error())
        return self.front[0]

    def _first_error(self) -> str:
        return next((f"; the first: {one.error}" for one in self.trials if one.error), "")

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, one row a trial: id, state, the objectives, the parameters, other metrics, seconds, error."""
        try:
            import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("to_pandas() needs pandas, which is not installed; rows() gives the same as dicts") from None
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The rows of to_pandas() as dicts. A parameter has the prefix `param.` where its name is that of a column."""
        taken = {"id", "state", "seconds", "error", *self.objectives}
        out = []
        for one in self.trials:
            row: dict[str, Any] = {"id": one.id, "state": one.state}
            row.update(zip(self.objectives, one.values or (None,) * len(self.objectives)))
            row.update({f"param.{name}" if name in taken else name: value for name, value in one.parameters.items()})
            row.update({name: value for name, value in one.metrics.items() if name not in row})
            row.update(seconds=round(one.seconds, 6), error=one.error)
            out.append(row)
        return out

    def _repr_html_(self) -> str:
        from fettle.notebook import to_html

        return to_html(self)

    def __repr__(self) -> str:
        best = self.front[0] if len(self.objectives) == 1 and self.front else None
        what = f"best {best.value:g} with {best.parameters}" if best else f"{len(self.front)} on the front"
        return f"<fettle result: {len(self.trials)} trials, {what}>"
