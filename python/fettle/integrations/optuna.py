"""FettleSampler: Fettle's search behind optuna.create_study(sampler=...).

    sampler = FettleSampler({"lr": FloatDistribution(1e-5, 1e-1, log=True), "layers": IntDistribution(1, 4)})
    optuna.create_study(sampler=sampler, direction="maximize").optimize(objective, n_trials=60, n_jobs=2)

Without a space it is found as Optuna's own samplers find it: parameters that all completed trials have in common. So
the first trial is random then, and so is every parameter that not all trials have. Threads may share a sampler. A
study that was resumed, or that other processes work on, teaches the search through its storage.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from fettle.integrations._optuna_search import StudySearch

__all__ = ["FettleSampler"]


class FettleSampler(BaseSampler):
    """space                {name: distribution of Optuna}, or None: found from the trials
    seed                 of the search
    algorithm            of the search, a name or a dict (docs/search.md); None: automatic
    independent_sampler  for parameters outside the space; None: at random
    """

    def __init__(self, space: Mapping[str, BaseDistribution] | None = None, *, seed: int | None = None,
                 algorithm: str | Mapping[str, Any] | None = None, independent_sampler: BaseSampler | None = None) -> None:
        if space is not None and not space:
            raise ValueError("the space is empty; leave it out to have it found from the trials")
        for name, distribution in (space or {}).items():
            if not isinstance(distribution, BaseDistribution):
                raise TypeError(f"parameter {name!r}: expected a distribution of Optuna, such as FloatDistribution(0, 1); "
                                f"found {distribution!r}")
        self._space = None if space is None else dict(space)
        self._seed = secrets.randbits(31) if seed is None else seed
        self._algorithm = algorithm
        self._independent = independent_sampler or RandomSampler(seed)
        self._lock = threading.RLock()
        self._searches: dict[str, StudySearch] = {}  # by the name of the study

    def reseed_rng(self) -> None:
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        space = self._space or intersection_search_space(study.get_trials(deepcopy=False))
        return {name: distribution for name, distribution in space.items() if not distribution.single()}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            search = self._searches.get(study.study_name)
            if search is None or search.space != search_space:
                search = self._searches[study.study_name] = StudySearch(study, search_space, self._seed, self._algorithm)
            return search.ask(study, trial)

    def sample_independent(self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        with self._lock:
            if study.study_name in self._searches:
                self._searches[study.study_name].tell(trial, values)
        self._independent.after_trial(study, trial, state, values)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_searches": {}}  # a copy in another process learns from the storage

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())
