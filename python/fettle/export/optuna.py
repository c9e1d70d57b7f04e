"""Exports a Study to a storage of Optuna, through Optuna's public API. A trial is added once it has ended.

The target is the URL of a storage, or journal:FILE. Trials are known by the user attribute fettle.uid.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from collections.abc import Mapping
from typing import Any

from fettle.export import _document as document

UID = "fettle.uid"


def storage_of(optuna: Any, target: str) -> Any:
    """Optuna's storage for a URL or journal:FILE."""
    kind, _, path = target.partition(":")
    if kind == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    if "://" not in target:
        raise document.ExportError(f"{target} is no storage: expected a URL, such as sqlite:///optuna.db, or journal:FILE",
                                   document.EXIT_INVALID)
    return target


def distribution_of(optuna: Any, parameter: Mapping[str, Any]) -> Any:
    kind, log = parameter["type"], parameter.get("scale") == "Log"
    made = optuna.distributions
    if kind == "Boolean":
        return made.CategoricalDistribution([False, True])
    if kind == "Categorical":
        return made.CategoricalDistribution(choices_of(parameter))
    if kind == "Integer":
        whole = 1 if log else int(parameter.get("step") or 1)  # Optuna has no steps on a logarithmic scale
        return made.IntDistribution(int(parameter["min"]), int(parameter["max"]), log=log, step=whole)
    step = None if log else parameter.get("step")
    return made.FloatDistribution(float(parameter["min"]), float(parameter["max"]), log=log, step=step)


def choices_of(parameter: Mapping[str, Any]) -> list[Any]:
    """Optuna finds a choice by ==, for which 1 and true are one: such lists become texts."""
    values = parameter["values"]
    return values if len(set(values)) == len(values) else [document.text(value) for value in values]


def value_of(parameter: Mapping[str, Any], value: Any) -> Any:
    if parameter["type"] == "Categorical" and value not in choices_of(parameter):
        return document.text(value)
    return float(value) if parameter["type"] == "Double" else value


def time_of(milliseconds: int | None) -> datetime.datetime | None:
    # Optuna keeps local times without a zone.
    return datetime.datetime.fromtimestamp(milliseconds / 1000) if milliseconds else None


def state_of(optuna: Any, trial: document.Trial) -> Any:
    states = optuna.trial.TrialState
    if trial.has_result:
        return states.COMPLETE
    return states.PRUNED if trial.phase == "Stopped" else states.FAIL


def values_of(study: document.Study, trial: document.Trial) -> list[Any] | None:
    """Of a stopped trial of one objective the newest value, as Optuna keeps it for a pruned one."""
    if trial.has_result:
        return trial.values
    return trial.values if trial.phase == "Stopped" and len(trial.values) == 1 and None not in trial.values else None


def frozen_trial(optuna: Any, study: document.Study, trial: document.Trial) -> Any:
    parameters = {name: study.parameters[name] for name in trial.parameters if name in study.parameters}
    frozen = optuna.trial.create_trial(
        state=state_of(optuna, trial),
        values=values_of(study, trial),
        params={name: value_of(parameter, trial.parameters[name]) for name, parameter in parameters.items()},
        distributions={name: distribution_of(optuna, parameter) for name, parameter in parameters.items()},
        user_attrs=attributes_of(trial),
        intermediate_values={step: metrics[study.metrics[0]] for step, metrics in trial.curve if study.metrics[0] in metrics},
    )
    frozen.datetime_start = time_of(trial.started_ms) or frozen.datetime_start
    frozen.datetime_complete = time_of(trial.ended_ms) or frozen.datetime_start
    return frozen


def attributes_of(trial: document.Trial) -> dict[str, Any]:
    attributes = {UID: trial.uid, "fettle.trial": trial.name}
    if trial.message:
        attributes["fettle.message"] = trial.message
    if trial.infeasible:
        attributes["fettle.infeasible"] = True
    return attributes


def open_study(optuna: Any, study: document.Study, options: argparse.Namespace) -> Any:
    name = options.name or study.name
    directions = ["maximize" if maximizes else "minimize" for maximizes in study.maximizes]
    try:
        there = optuna.create_study(storage=storage_of(optuna, options.target), study_name=name, directions=directions,
                                    load_if_exists=True)
    except document.ExportError:
        raise
    except Exception as error:  # of the storage: SQLAlchemy's, the file system's, the driver's
        raise document.ExportError(f"Optuna cannot open {options.target}: {error}") from error
    owner = there.user_attrs.get(UID)
    if owner is None and not there.trials:
        there.set_user_attr(UID, study.uid)
        if hasattr(there, "set_metric_names"):
            there.set_metric_names(study.metrics)
    elif owner != study.uid:
        raise document.ExportError(f"{options.target} has a study {name} already, which is not this one; choose another name "
                                   "with --name", document.EXIT_INVALID)
    return there


def export(options: argparse.Namespace, study: document.Study) -> str:
    optuna = document.need("optuna", "optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # metric names
    there = open_study(optuna, study, options)
    known = {trial.user_attrs.get(UID) for trial in there.get_trials(deepcopy=False)}
    new = [trial for trial in study.trials if trial.has_ended and trial.uid not in known]
    there.add_trials([frozen_trial(optuna, study, trial) for trial in new])
    total = sum(trial.has_ended for trial in study.trials)
    return (f"Exported {document.plural(len(new), 'trial')} of {study.name} to study {there.study_name} in {options.target}"
            f" ({total} have ended).")


if __name__ == "__main__":
    document.main("optuna", export)
