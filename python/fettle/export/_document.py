"""The document of `fettle export` as exporters see it, and what all of them share: options, errors, exit codes.

Exit codes are those of fettle: 2 for wrong input, 3 for an environment that lacks something.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

VERSION = 1
EXIT_INVALID = 2
EXIT_ENVIRONMENT = 3
EXIT_INTERRUPTED = 130
Exporter = Callable[[argparse.Namespace, "Study"], str]
# Phases in which a trial has ended. A trial that paused at a rung may continue while its Study searches.
ENDED = {"Completed", "Stopped", "Failed"}


class ExportError(Exception):
    """A sentence for the user. `code`: the exit code."""

    def __init__(self, sentence: str, code: int = EXIT_ENVIRONMENT) -> None:
        super().__init__(sentence)
        self.code = code


class Trial:
    """A trial of a document. `values`: of the objectives, in their order; None where one is not known."""

    def __init__(self, study: Study, json_trial: Mapping[str, Any]) -> None:
        self.name = json_trial["name"]
        self.index = json_trial["index"]
        # The id of the run in a tracker. A program knows it, too (fettle.integrations.wandb): studyUid is in its trial file.
        self.uid = f"{study.uid}-{self.index}"
        self.phase = json_trial["phase"]
        self.parameters = json_trial["parameters"]
        self.values = [json_trial["values"].get(metric) for metric in study.metrics]
        self.infeasible = json_trial["infeasible"]
        self.message = json_trial["message"]
        self.started_ms = json_trial["startedMs"]
        self.ended_ms = json_trial["endedMs"]
        self.curve = [(point["step"], finite(point["metrics"])) for point in json_trial["curve"]]
        if self.phase == "Paused" and study.has_ended:  # it waits for a promotion that will not come
            self.phase = "Stopped"

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED

    @property
    def has_result(self) -> bool:
        """Whether it completed with a feasible result."""
        return self.phase == "Completed" and not self.infeasible and None not in self.values


class Study:
    """A document. Raises ExportError where it is none, or of a version that this package does not know."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict) or "version" not in document:
            raise ExportError("standard input is no document of `fettle export --to json`", EXIT_INVALID)
        if document["version"] != VERSION:
            raise ExportError(f"the document has version {document['version']}, but this package reads version {VERSION}; "
                              "use the package and the program of one release", EXIT_INVALID)
        self.name = document["name"]
        self.uid = document["uid"]
        self.state = document["state"]
        self.has_ended = self.state in ("succeeded", "failed")
        self.spec = document["spec"]
        self.status = document["status"]
        self.created_ms = document["createdMs"]
        self.ended_ms = document["endedMs"]
        self.objectives = self.spec["objectives"]
        self.metrics = [objective["metric"] for objective in self.objectives]
        self.maximizes = [objective["direction"] == "Maximize" for objective in self.objectives]
        self.parameters = {parameter["name"]: parameter for parameter in self.spec["parameters"]}
        self.trials = [Trial(self, trial) for trial in document["trials"]]


def finite(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None and math.isfinite(value)}


def text(value: Any) -> str:
    """A scalar of JSON as text: true, 1, sgd."""
    return value if isinstance(value, str) else json.dumps(value)


def studies(lines: Iterable[str]) -> Iterator[Study]:
    """The Studies on standard input: one, or with --follow one after another."""
    for line in lines:
        try:
            document = json.loads(line)
        except ValueError as error:
            raise ExportError(f"standard input is no document of `fettle export --to json`: {error}", EXIT_INVALID) from error
        yield Study(document)


def need(module: str, package: str) -> Any:
    """Imports a module of the peer; raises ExportError with the command that installs its package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExportError(f"{sys.executable} has no package {package} ({error}); install it with\n"
                          f"  {sys.executable} -m pip install {package}\n"
                          "or name a Python that has it with FETTLE_PYTHON") from error


def main(name: str, export: Exporter, takes_target: bool = True) -> None:
    """The command line of an exporter. `export(options, study)` is called for each document and returns a sentence;
    options.state is a dict that lives as long as the process."""
    parser = argparse.ArgumentParser(prog=f"fettle.export.{name}")
    if takes_target:
        parser.add_argument("--target", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--follow", action="store_true")
    options = parser.parse_args()
    options.state = {}
    if options.follow:  # Ctrl-C is for fettle, which then ends this input
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(run(name, lambda: follow(options, export)))


def follow(options: argparse.Namespace, export: Exporter) -> None:
    said = ""
    for study in studies(sys.stdin):
        sentence = export(options, study)
        if sentence != said:
            print(sentence, flush=True)
        said = sentence


def run(name: str, action: Callable[[], None]) -> int:
    """Runs the action; returns the exit code. Errors become a sentence on standard error."""
    try:
        action()
    except ExportError as error:
        print(f"fettle: {name}: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_ENVIRONMENT
    return 0


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
