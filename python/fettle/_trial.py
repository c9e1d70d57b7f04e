"""Trial: one run of one trial, as its program sees it. Used by one thread."""

import json
import os
import sys


class Stopped(Exception):
    """The trial is to end: it was judged not worth continuing, or its Study ends. `with trial:` ends with it."""


class Trial:
    """A trial to train. Attributes: name, study, seed, parameters, until_step, checkpoints, parent, parent_step."""

    def __init__(self, environment, stop_requested=lambda: False):
        """`environment`: the FETTLE_ variables of the run. `stop_requested`: asked at each report."""
        self._environment = environment
        self._stop_requested = stop_requested
        self._is_entered = False
        self.exit_code = 0
        with open(environment["FETTLE_TRIAL"], encoding="utf-8") as file:
            self.file = json.load(file)
        self.name = self.file["trial"]
        self.study = self.file["study"]
        self.seed = self.file["seed"]
        self.parameters = self.file["parameters"]
        self.until_step = self.file["untilStep"]
        self.checkpoints = self.file["checkpoints"]["directory"]
        parent = self.file.get("parent")
        self.parent = parent["directory"] if parent else None
        self.parent_step = parent["step"] if parent else 0

    def __getitem__(self, parameter):
        return self.parameters[parameter]

    def steps(self, first=1):
        """The steps to train, ascending: range(first, until_step + 1). `first`: one above the step that was restored."""
        return range(first, self.until_step + 1)

    @property
    def should_stop(self):
        """Whether the trial is to end now."""
        return self._stop_requested()

    def report(self, step, **metrics):
        """Reports the metrics of a step. Returns whether to continue; inside `with trial:` it raises Stopped if not."""
        line = {"step": step}
        for name, value in metrics.items():
            line[name] = value if isinstance(value, (str, bool)) else float(value)
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if not self.should_stop:
            return True
        if self._is_entered:
            raise Stopped(self.name)
        return False

    def __enter__(self):
        self._is_entered = True
        return self

    def __exit__(self, kind, error, trace):
        self._is_entered = False
        if kind is not None and issubclass(kind, Stopped):
            self.exit_code = os.EX_OK if not self._stop_requested() else 143
            return True
        return False
