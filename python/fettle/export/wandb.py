"""Exports a Study to Weights & Biases: a run for each trial, in the group of the Study.

Takes no target: wandb itself knows the server (WANDB_BASE_URL, WANDB_ENTITY) and the mode; with WANDB_MODE=offline the
runs lie in WANDB_DIR until `wandb sync`. The project is --name, WANDB_PROJECT or the Study's name. The id of a run is
that which fettle.integrations.wandb.init() gives it in the program of the trial: an export completes its run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
from typing import Any

from fettle.export import _document as document

PHASE = "fettle.phase"


def export_trial(wandb: Any, options: argparse.Namespace, study: document.Study, trial: document.Trial) -> None:
    run = wandb.init(
        project=options.name or os.environ.get("WANDB_PROJECT") or study.name,
        group=study.name,
        name=trial.name,
        id=trial.uid,
        resume="allow",
        job_type="trial",
        config=trial.parameters,
        settings=wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True),
    )
    if run.summary.get(PHASE) != trial.phase:
        for step, metrics in trial.curve:
            if step >= run.step:  # W&B takes steps in ascending order only
                run.log(metrics, step=step)
        run.summary.update({metric: value for metric, value in zip(study.metrics, trial.values) if value is not None})
        run.summary.update({PHASE: trial.phase, "fettle.infeasible": trial.infeasible, "fettle.message": trial.message})
    run.finish(exit_code=1 if trial.phase == "Failed" else 0)


def exported_file(study: document.Study) -> pathlib.Path:
    """The names of trials that an offline export has written already: there is no server to ask."""
    return pathlib.Path(os.environ.get("WANDB_DIR", "."), "wandb", f"fettle-{study.uid}.txt")


def export(options: argparse.Namespace, study: document.Study) -> str:
    wandb = document.need("wandb", "wandb")
    is_offline = os.environ.get("WANDB_MODE") == "offline"
    known = exported_file(study)
    done = set(known.read_text(encoding="utf-8").split()) if is_offline and known.exists() else set()
    new = [trial for trial in study.trials if trial.has_ended and trial.uid not in done]
    for trial in new:
        try:
            export_trial(wandb, options, study, trial)
        except wandb.Error as error:
            raise document.ExportError(f"W&B refuses {trial.name}: {error}; without a network set WANDB_MODE=offline") from error
        if is_offline:
            known.parent.mkdir(parents=True, exist_ok=True)
            with open(known, "a", encoding="utf-8") as file:
                file.write(trial.uid + "\n")
    return f"Exported {document.plural(len(new), 'trial')} of {study.name} to W&B" + (", offline; wandb sync sends them" if is_offline else "")


if __name__ == "__main__":
    document.main("wandb", export, takes_target=False)
