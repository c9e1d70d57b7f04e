"""A job of Hydra whose result is best at x = 1, n = 5 and adam."""
from dataclasses import dataclass, field

import hydra
from hydra.core.config_store import ConfigStore


@dataclass
class Optimizer:
    name: str = "sgd"


@dataclass
class Config:
    x: float = 0.0
    n: int = 5
    opt: Optimizer = field(default_factory=Optimizer)
    several: bool = False
    fails: bool = False
    text: bool = False


ConfigStore.instance().store(name="config", node=Config)


@hydra.main(version_base=None, config_name="config")
def main(config):
    if config.fails and config.x > 0:
        raise RuntimeError("x is above 0")
    if config.text:
        return "no number"
    value = (config.x - 1) ** 2 + abs(config.n - 5) + (config.opt.name != "adam")
    return (value, config.x) if config.several else value


if __name__ == "__main__":
    main()
