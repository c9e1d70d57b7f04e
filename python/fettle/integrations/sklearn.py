"""SearchCV: Fettle's search as a search of scikit-learn, beside GridSearchCV and RandomizedSearchCV.

    search = SearchCV(SVC(), {"C": fettle.loguniform(1e-3, 1e3), "kernel": fettle.choice("rbf", "poly")}, n_trials=30)
    search.fit(X, y).best_params_

Candidates come `batch_size` at a time, and each batch knows the scores of those before. The same `random_state` and
`batch_size` give the same candidates, whatever `n_jobs` is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

import fettle
from fettle.space import Space

__all__ = ["SearchCV"]


class SearchCV(BaseSearchCV):
    """Parameters as in GridSearchCV, and:

    space         what each parameter may be: fettle.uniform(), loguniform(), integer(), choice(), boolean()
    n_trials      candidates at most; fewer if the space has no more
    algorithm     of the search, a name or a dict (docs/search.md); None: automatic
    batch_size    candidates that are tried at the same time; with n_jobs above 1 more use all cores
    random_state  seed of the search

    With several metrics `refit` names the one that is searched for. Where every fit of a batch fails, its candidates are
    infeasible and missing in cv_results_: scikit-learn keeps no such batch.
    """

    _required_parameters = ["estimator", "space"]  # of the checks of scikit-learn

    def __init__(self, estimator: Any, space: Space, *, n_trials: int = 20, scoring: Any = None, n_jobs: int | None = None,
                 refit: Any = True, cv: Any = None, verbose: int = 0, pre_dispatch: Any = "2*n_jobs", error_score: Any = float("nan"),
                 return_train_score: bool = False, algorithm: str | Mapping[str, Any] | None = None, batch_size: int = 1,
                 random_state: Any = None) -> None:
        super().__init__(estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
                         pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score)
        self.space = space
        self.n_trials = n_trials
        self.algorithm = algorithm
        self.batch_size = batch_size
        self.random_state = random_state

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
        for name in ("n_trials", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; found {getattr(self, name)!r}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with fettle.Search(self.space, maximize="score", trials=self.n_trials, seed=seed, algorithm=self.algorithm,
                           parallel=self.batch_size) as search:
            failure = None
            while trials := search.ask_many(self.batch_size):
                try:
                    results = evaluate_candidates([trial.parameters for trial in trials])
                except ValueError as error:
                    if "fits failed" not in str(error):
                        raise
                    failure = error
                    scores = [None] * len(trials)
                else:
                    scores = self._objective(results)[-len(trials):]
                for trial, score in zip(trials, scores):
                    trial.tell(score)
            if search.best is None and failure is not None:
                raise failure

    def _objective(self, results: Mapping[str, Any]) -> Any:
        """The mean score of each candidate. NaN: it could not be fitted."""
        name = self.refit if isinstance(self.refit, str) else "score"
        if f"mean_test_{name}" not in results:
            found = ", ".join(repr(key[10:]) for key in results if key.startswith("mean_test_"))
            raise ValueError(f"there are several metrics ({found}): refit must name the one to search for")
        return results[f"mean_test_{name}"]
