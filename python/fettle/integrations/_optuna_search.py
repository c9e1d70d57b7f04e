"""StudySearch: the Search behind one study of Optuna and one space. The caller has a lock.

A trial of Optuna that this search proposed is told. Any other that finished inside the space (of an earlier process,
of another one, with parameters that the user fixed) is asked for by its parameters and told: so it counts as the
search's own. Results from elsewhere, Search.add(), would be tried again and forgotten in time. A proposal that Optuna
did not use stays open, so that the search stays away from it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

import fettle


class StudySearch:
    def __init__(self, study: Study, space: Mapping[str, BaseDistribution], seed: int, algorithm: Any) -> None:
        self.space = dict(space)
        self._asked: dict[int, fettle.SearchTrial] = {}
        self._taught: set[int] = set()  # numbers of the trials that the search knows
        directions = dict(enumerate(study.directions))
        self._names = [f"value{index}" for index in directions]
        finished = _finished(study)
        self._search = fettle.Search(
            {name: _parameter(name, distribution) for name, distribution in space.items()},
            minimize=[f"value{index}" for index, one in directions.items() if one == StudyDirection.MINIMIZE],
            maximize=[f"value{index}" for index, one in directions.items() if one == StudyDirection.MAXIMIZE],
            seed=(seed + len(finished)) % 2**53, algorithm=algorithm)  # a resumed study does not repeat its first points
        outside = sum(not self._add(trial, trial.values) for trial in finished)
        if outside:
            warnings.warn(f"{outside} of {len(finished)} trials of the study {study.study_name!r} are outside the space of "
                          "FettleSampler, and it does not learn from them", stacklevel=4)

    def ask(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        """Values of all parameters; empty: the search has no more points, or the user has fixed one outside the space."""
        for one in _finished(study):
            if one.number not in self._taught:
                self._add(one, one.values)
        fixed = self._point(trial.system_attrs.get("fixed_params", {}))
        if fixed:
            self._search.enqueue(fixed)
        asked = None if fixed is None else self._search.ask()
        if asked is None:
            return {}
        self._asked[trial.number] = asked
        return {name: distribution.choices[int(asked[name])] if isinstance(distribution, CategoricalDistribution) else asked[name]
                for name, distribution in self.space.items()}

    def tell(self, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        """The end of a trial. `values`: None if it failed, the last report if it was pruned."""
        asked = self._asked.pop(trial.number, None)
        point = self._point(trial.params)
        if asked is None or point is None or any(asked[name] != value for name, value in point.items()):
            self._add(trial, values)
            return
        self._taught.add(trial.number)
        asked.tell(self._result(values))

    def _add(self, trial: FrozenTrial, values: Sequence[float] | None) -> bool:
        """Teaches the search a trial that it did not propose. False: the trial is outside the space."""
        self._taught.add(trial.number)
        point = self._point(trial.params)
        if point is None or len(point) < len(self.space):
            return False
        self._search.enqueue(point)
        asked = self._search.ask()
        if asked is not None:
            asked.tell(self._result(values))
        return True

    def _point(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Those parameters of a trial that the space has, as the search names their values. None: outside the space."""
        point: dict[str, Any] = {}
        for name, distribution in self.space.items():
            if name not in parameters:
                continue
            try:
                inner = distribution.to_internal_repr(parameters[name])
            except (TypeError, ValueError):  # not one of the choices
                return None
            if not distribution._contains(inner):
                return None
            point[name] = str(int(inner)) if isinstance(distribution, CategoricalDistribution) else parameters[name]
        return point

    def _result(self, values: Sequence[float] | None) -> dict[str, float] | None:
        if values is None or not all(map(math.isfinite, values)):
            return None
        return dict(zip(self._names, values))


def _finished(study: Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def _parameter(name: str, distribution: BaseDistribution) -> fettle.Parameter:
    """Choices are known to the search by their indices: None may be one, and 1 is not True."""
    if isinstance(distribution, CategoricalDistribution):
        return fettle.choice([str(index) for index in range(len(distribution.choices))])
    if isinstance(distribution, IntDistribution):
        return fettle.integer(distribution.low, distribution.high, log=distribution.log,
                              step=None if distribution.step == 1 else distribution.step)
    if isinstance(distribution, FloatDistribution):
        if distribution.log:
            return fettle.loguniform(distribution.low, distribution.high)
        return fettle.uniform(distribution.low, distribution.high, step=distribution.step)
    raise TypeError(f"parameter {name!r}: FettleSampler has no {type(distribution).__name__}; use FloatDistribution, "
                    "IntDistribution or CategoricalDistribution")
