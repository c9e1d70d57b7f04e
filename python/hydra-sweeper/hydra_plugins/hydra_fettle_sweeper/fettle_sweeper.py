"""FettleSweeper: jobs of Hydra whose parameters Fettle's search proposes.

Jobs are launched `n_jobs` at a time by whichever launcher is configured. A job's return value is its result; a job
that fails, or returns nothing that is a finite number, is infeasible. One thread.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

import fettle
from hydra_plugins.hydra_fettle_sweeper._overrides import SweptSpace

log = logging.getLogger(__name__)


class FettleSweeper(Sweeper):
    def __init__(self, direction: Any, n_trials: int, n_jobs: int, max_failure_rate: float, seed: int | None,
                 algorithm: Any, params: Any) -> None:
        self.directions = [direction] if isinstance(direction, str) else list(direction)
        for one in self.directions:
            if one not in ("minimize", "maximize"):
                raise ValueError(f"direction must be minimize or maximize; found {one!r}")
        self.n_trials = n_trials
        self.n_jobs = n_jobs
        self.max_failure_rate = max_failure_rate
        self.seed = secrets.randbits(31) if seed is None else seed
        self.algorithm = OmegaConf.to_container(algorithm) if isinstance(algorithm, DictConfig) else algorithm
        self.params = dict(params or {})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> None:
        overrides = [f"{name}={value}" for name, value in self.params.items()] + list(arguments)
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        swept = SweptSpace(parser.parse_overrides(overrides))
        names = [f"value{index}" for index in range(len(self.directions))]
        wanted = dict(zip(names, self.directions))
        with fettle.Search(swept.space, minimize=[name for name in names if wanted[name] == "minimize"],
                           maximize=[name for name in names if wanted[name] == "maximize"], trials=self.n_trials,
                           parallel=self.n_jobs, seed=self.seed, algorithm=self.algorithm) as search:
            first_job = 0
            while trials := search.ask_many(self.n_jobs):
                jobs = [swept.overrides(trial.parameters) for trial in trials]
                returns = self.launcher.launch(jobs, initial_job_idx=first_job)
                first_job += len(jobs)
                self._tell(names, trials, returns)
            self._save(search, swept)

    def _tell(self, names: list[str], trials: Sequence[fettle.SearchTrial], returns: Sequence[JobReturn]) -> None:
        failures = []
        for trial, job in zip(trials, returns):
            try:
                value = job.return_value
                values = [float(one) for one in (value if len(names) > 1 else [value])]
                if len(values) != len(names):
                    raise ValueError(f"the job returned {len(values)} values, and there are {len(names)} directions")
            except Exception as error:  # of the job
                failures.append(error)
                log.warning("Job %s has no result: %s", trial.id, error)
                trial.tell(None)
            else:
                trial.tell(dict(zip(names, values)))
        if len(failures) > self.max_failure_rate * len(returns):
            log.error("%s of %s jobs failed; max_failure_rate is %s", len(failures), len(returns), self.max_failure_rate)
            raise failures[0]

    def _save(self, search: fettle.Search, swept: SweptSpace) -> None:
        """Writes optimization_results.yaml, as Hydra's other sweepers do."""
        front = [{"params": swept.values(one.parameters), "values": list(one.values)} for one in search.front]
        results: dict[str, Any] = {"name": "fettle", "solutions": front}
        if len(self.directions) == 1 and front:
            results = {"name": "fettle", "best_params": front[0]["params"], "best_value": front[0]["values"][0]}
        log.info("Best: %s", results)
        OmegaConf.save(OmegaConf.create(results), f"{self.config.hydra.sweep.dir}/optimization_results.yaml")
