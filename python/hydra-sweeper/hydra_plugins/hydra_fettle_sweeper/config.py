"""Settings of the sweeper, below hydra.sweeper.

Hydra runs this module at every start, before it is in sys.modules: so annotations must not be postponed.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from hydra.core.config_store import ConfigStore


@dataclass
class FettleSweeperConf:
    _target_: str = "hydra_plugins.hydra_fettle_sweeper.fettle_sweeper.FettleSweeper"
    direction: Any = "minimize"  # or maximize; a list for jobs that return several values
    n_trials: int = 20
    n_jobs: int = 2  # jobs that are launched at the same time
    max_failure_rate: float = 0.0  # of the jobs of one launch; more end the sweep
    seed: Optional[int] = None
    algorithm: Any = None  # a name, or {name: tpe, ...}; automatic if left out
    params: Optional[Dict[str, Any]] = field(default_factory=dict)  # overrides, before those of the command line


ConfigStore.instance().store(group="hydra/sweeper", name="fettle", node=FettleSweeperConf, provider="fettle_sweeper")
