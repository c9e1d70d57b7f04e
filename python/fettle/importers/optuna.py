"""Imports a study of Optuna from any storage, through Optuna's public API."""

from __future__ import annotations

import argparse
from typing import Any

from fettle.export import _document as document
from fettle.export import optuna as exporter
from fettle.importers import _lines


def load(optuna: Any, options: argparse.Namespace) -> Any:
    storage = exporter.storage_of(optuna, options.source)
    try:
        names = optuna.get_all_study_names(storage)
        if options.study in names:
            return optuna.load_study(study_name=options.study, storage=storage)
        if not options.study and len(names) == 1:
            return optuna.load_study(study_name=names[0], storage=storage)
    except Exception as error:  # of the storage: SQLAlchemy's, the file system's, the driver's
        raise document.ExportError(f"Optuna cannot open {options.source}: {error}") from error
    there = ", ".join(names[:10]) or "none"
    if options.study:
        raise _lines.invalid(f"{options.source} has no study {options.study}; there are: {there}")
    raise _lines.invalid(f"{options.source} has {document.plural(len(names), 'study').replace('studys', 'studies')}: {there}; "
                         "name one with --study")


def metrics_of(study: Any, options: argparse.Namespace) -> list[str]:
    count = len(study.directions)
    names = options.objective or getattr(study, "metric_names", None) or []
    if len(names) != count:
        raise _lines.invalid(f"the study {study.study_name} has {document.plural(count, 'objective')} without names; say, in their "
                             "order, what the new Study calls them: " + " ".join(["--objective NAME"] * count))
    return names


def read(options: argparse.Namespace) -> _lines.Lines:
    optuna = document.need("optuna", "optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = load(optuna, options)
    metrics = metrics_of(study, options)
    states = optuna.trial.TrialState
    found = _lines.Lines()
    # By their ends; in a Study the newest results matter.
    for trial in sorted(study.get_trials(deepcopy=False), key=lambda trial: (trial.datetime_complete is None,
                                                                             str(trial.datetime_complete))):
        name = f"optuna-{trial.number}"
        if trial.state == states.COMPLETE:
            found.add(name, trial.params, dict(zip(metrics, trial.values)))
        elif trial.state == states.PRUNED and trial.intermediate_values and len(metrics) == 1:
            step = max(trial.intermediate_values)
            found.add(name, trial.params, {metrics[0]: trial.intermediate_values[step]}, step=step, stopped=True)
        elif trial.state.is_finished():
            found.without += 1
    return found


if __name__ == "__main__":
    _lines.main("optuna", read)
