"""fettle.optuna.FettleSampler: see fettle.integrations.optuna."""

from fettle.integrations.optuna import FettleSampler

__all__ = ["FettleSampler"]
