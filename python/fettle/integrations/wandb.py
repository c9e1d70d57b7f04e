"""W&B in the program of a trial.

    import fettle.integrations.wandb

    run = fettle.integrations.wandb.init(project="digits")

gives the run the group (the Study), the name (the trial), the parameters as configuration, and an id that stays the
same when the trial is resumed, so that W&B continues the run. Outside of Fettle it is wandb.init().
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def init(**options: Any) -> Any:
    """wandb.init() with the names of the trial; what is given here comes first. On ranks above 0 the run is disabled."""
    import wandb

    path = os.environ.get("FETTLE_TRIAL")
    if not path:
        return wandb.init(**options)
    if os.environ.get("RANK", "0") not in ("", "0"):
        return wandb.init(mode="disabled")
    with open(path, encoding="utf-8") as file:
        trial = json.load(file)
    defaults = {
        "group": trial["study"],
        "name": trial["trial"],
        "id": run_id(trial),
        "resume": "allow",
        "job_type": "trial",
        "config": trial["parameters"],
    }
    return wandb.init(**(defaults | options))


def run_id(trial: Mapping[str, Any]) -> str:
    """The id that `fettle export --to wandb` gives the trial, too. `trial`: the trial file."""
    return f"{trial['studyUid']}-{trial['trial'].rpartition('-')[2]}"
