"""SweptSpace: the search space that overrides of a sweep describe, read as Hydra's Optuna sweeper reads them. Pure.

    lr=interval(1e-5,1e-1)           real, or whole if both ends are; tag(log, interval(...)) for a logarithmic scale
    depth=range(1,9) or (1,9,2)      whole, or real if an end or the step is; the end is included
    optimizer=sgd,adam               a choice, also as choice(sgd,adam) and shuffle(range(...))
    seed=3, ~db, +new=1              handed to every job as it is
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer

import fettle


class SweptSpace:
    def __init__(self, overrides: list[Override]) -> None:
        """A later override of a key replaces an earlier one."""
        self.space: dict[str, fettle.Parameter] = {}
        self._choices: dict[str, list[Any]] = {}  # the search knows a choice by its index: null may be one
        self._fixed: dict[str, str] = {}
        for override in overrides:
            key = override.get_key_element()
            for known in (self.space, self._choices, self._fixed):
                known.pop(key, None)
            if not override.is_sweep_override():
                self._fixed[key] = override.input_line or f"{key}={override.get_value_element_as_str()}"
            else:
                try:
                    self.space[key] = self._parameter(key, override)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{override.input_line}: {error}") from None
        if not self.space:
            raise ValueError("nothing to sweep over: give an override such as lr=interval(0.001,0.1) or depth=range(1,9)")

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of the search as values of the overrides."""
        return {key: self._choices[key][int(value)] if key in self._choices else value for key, value in parameters.items()}

    def overrides(self, parameters: Mapping[str, Any]) -> list[str]:
        """The overrides of one job."""
        return [f"{key}={value}" for key, value in self.values(parameters).items()] + list(self._fixed.values())

    def _parameter(self, key: str, override: Override) -> fettle.Parameter:
        sweep = override.value()
        if isinstance(sweep, IntervalSweep):
            if isinstance(sweep.start, int) and isinstance(sweep.end, int):
                return fettle.integer(sweep.start, sweep.end, log="log" in sweep.tags)
            return (fettle.loguniform if "log" in sweep.tags else fettle.uniform)(sweep.start, sweep.end)
        if isinstance(sweep, RangeSweep) and not sweep.shuffle:
            if all(isinstance(one, int) for one in (sweep.start, sweep.stop, sweep.step)):
                return fettle.integer(sweep.start, sweep.stop, step=sweep.step)
            return fettle.uniform(sweep.start, sweep.stop, step=sweep.step)
        if not override.is_discrete_sweep():
            raise ValueError("Fettle has no such sweep; use interval(), range() or choice()")
        self._choices[key] = list(override.sweep_iterator(transformer=Transformer.encode))
        return fettle.choice([str(index) for index in range(len(self._choices[key]))])
