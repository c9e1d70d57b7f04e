"""Study: writes the file that `fettle run` and a cluster read, and starts it.

    study = fettle.Study("digits", minimize="loss", space=space, command=["python3", "train.py"], trials=60)
    study.save("study.yaml")
    run = study.run()                        # here, by `fettle run`
    for event in run.events(): ...
    study.apply(namespace="team")            # on the cluster of the kubeconfig

The file is the same YAML as one that was written by hand. A Study is not changed once it is made; a Run belongs to one
thread.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from fettle._errors import FettleError
from fettle._program import find_program
from fettle._stored import stored_result
from fettle._values import objectives_of
from fettle._yaml import to_yaml
from fettle.result import Result
from fettle.search import Names
from fettle.space import Space, variables

__all__ = ["Run", "Study"]

_TYPES = {"float": "Double", "int": "Integer", "categorical": "Categorical", "bool": "Boolean"}


class Study:
    """A study of a program.

    name         also the name of its folder in .fettle
    space, minimize, maximize, algorithm, early_stopping, seed, constraints: see Search
    command      the command line of a trial, ["python3", "train.py"]. `$(FETTLE_PARAM_LR)` stands for a parameter
    trials       trials at most; parallelism: at once
    resource     (first, last) or ("epoch", first, last)
    warm         whether a process trains one trial after another (trials(), fettle.warm)
    image        of the container, on a cluster
    environment  further variables of the program
    spec         any other field of the Study's spec; it is merged, and wins
    """

    def __init__(self, name: str, *, space: Space, command: Sequence[str], minimize: Names = None,
                 maximize: Names = None, trials: int | None = None, parallelism: int | None = None,
                 resource: tuple[int, int] | tuple[str, int, int] | None = None,
                 algorithm: str | Mapping[str, Any] | None = None,
                 early_stopping: str | Mapping[str, Any] | None = None, seed: int | None = None,
                 constraints: Sequence[Mapping[str, Any]] | None = None, warm: bool = False,
                 image: str | None = None, environment: Mapping[str, str] | None = None,
                 spec: Mapping[str, Any] | None = None) -> None:
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise TypeError(f"command: expected a list of words, as in [\"python3\", \"train.py\"]; found {command!r}")
        self.name = name
        self.objectives = objectives_of(minimize, maximize)
        self._file: pathlib.Path | None = None
        container: dict[str, Any] = {"name": "train", "image": image, "command": list(command),
                                     "env": [{"name": key, "value": value} for key, value in (environment or {}).items()]}
        made: dict[str, Any] = {
            "objectives": [{"metric": metric, "direction": direction.capitalize()}
                           for metric, direction in self.objectives.items()],
            "constraints": [dict(one) for one in constraints or ()],
            "parameters": [_parameter(one) for one in variables(space)],
            "resource": _resource(resource),
            "algorithm": {**_rule(algorithm, "auto" if seed is not None else None), **_given(seed=seed)},
            "earlyStopping": _rule(early_stopping, None),
            "budget": _given(trials=trials, parallelism=parallelism),
            "trial": {"execution": "Warm" if warm else None,
                      "template": {"spec": {"containers": [_compact(container)]}}},
        }
        self._manifest = {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name},
                          "spec": _merged(_compact(made), spec or {})}

    def manifest(self) -> dict[str, Any]:
        """The Study as an object."""
        copy: dict[str, Any] = json.loads(json.dumps(self._manifest))
        return copy

    def to_yaml(self) -> str:
        """The text of the file."""
        return to_yaml(self._manifest)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file. Trials start in its folder."""
        self._file = pathlib.Path(path)
        self._file.write_text(self.to_yaml(), encoding="utf-8")

    def validate(self) -> None:
        """FettleError: `fettle validate` finds a mistake."""
        done = subprocess.run([find_program(), "validate", "-"], input=self.to_yaml(), capture_output=True, text=True)
        if done.returncode != 0:
            raise FettleError(done.stderr.strip() or done.stdout.strip())

    def run(self, *, directory: str | os.PathLike[str] | None = None, fresh: bool = False) -> Run:
        """Starts `fettle run` on the file that it was saved to, else on NAME.yaml. A study that was begun is resumed."""
        if self._file is None:
            self.save(f"{self.name}.yaml")
        return Run(self, ["run", str(self._file), *(["--fresh"] if fresh else [])], directory)

    def result(self, *, directory: str | os.PathLike[str] | None = None) -> Result:
        """What `fettle run` has found so far."""
        return stored_result(self.name, self.objectives, directory)

    def apply(self, *, namespace: str | None = None, context: str | None = None) -> str:
        """Creates or changes the Study on the cluster, by kubectl. Returns what kubectl says."""
        options = [*(["--namespace", namespace] if namespace else []), *(["--context", context] if context else [])]
        try:
            done = subprocess.run(["kubectl", *options, "apply", "-f", "-"], input=self.to_yaml(), capture_output=True,
                                  text=True)
        except FileNotFoundError:
            raise FettleError("kubectl was not found on PATH") from None
        if done.returncode != 0:
            raise FettleError(f"kubectl: {done.stderr.strip()}")
        return done.stdout.strip()

    def __repr__(self) -> str:
        return f"<fettle study {self.name}>"


class Run:
    """A running `fettle run`. With `with`, it ends at the end of the block: trials are stopped gently."""

    def __init__(self, study: Study, arguments: list[str], directory: str | os.PathLike[str] | None) -> None:
        self._study = study
        self._directory = directory
        where = [] if directory is None else ["-C", os.fspath(directory)]
        self._process = subprocess.Popen([find_program(), *where, *arguments, "--output", "json"],
                                         stdout=subprocess.PIPE, start_new_session=True, text=True, encoding="utf-8")
        self.summary: dict[str, Any] | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        """What happens, as it happens: trialStarted, trialCompleted ... (`fettle run --output json`)."""
        if self._process.stdout is None or self._process.stdout.closed:
            return
        for line in self._process.stdout:
            message = json.loads(line)
            if "result" in message:
                self.summary = message["result"]
            else:
                yield message

    def wait(self) -> Result:
        """Waits for the end. FettleError: the study failed, or could not begin."""
        try:
            for _ in self.events():
                pass
            code = self._process.wait()
            self._close()
        except KeyboardInterrupt:
            self.stop()
            raise
        if code != 0:
            message = (self.summary or {}).get("message", "its last lines on standard error say why")
            raise FettleError(f"`fettle run` ended with exit code {code}: {message}")
        return self._study.result(directory=self._directory)

    def stop(self) -> None:
        """Stops the trials gently, as Ctrl-C does; run() resumes."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        for _ in self.events():
            pass
        self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()


def _parameter(variable: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"name": variable["name"], "type": _TYPES[variable["type"]]}
    if "low" in variable:
        out.update(min=variable["low"], max=variable["high"])
    if variable.get("log"):
        out["scale"] = "Log"
    for ours, theirs in (("step", "step"), ("choices", "values")):
        if ours in variable:
            out[theirs] = variable[ours]
    if "when" in variable:
        out["when"] = {"parameter": variable["when"]["param"], "in": variable["when"]["in"]}
    return out


def _resource(resource: tuple[Any, ...] | None) -> dict[str, Any]:
    if resource is None:
        return {}
    if len(resource) not in (2, 3):
        raise ValueError(f"resource: expected (first, last) or (unit, first, last); found {resource!r}")
    unit, first, last = resource if len(resource) == 3 else ("epoch", *resource)
    return {"unit": unit, "min": first, "max": last}


def _rule(rule: str | Mapping[str, Any] | None, default: str | None) -> dict[str, Any]:
    """The name of a rule, or a dict with its settings, in the spelling of a Study."""
    if rule is None:
        return {} if default is None else {"name": default}
    if isinstance(rule, str):
        return {"name": rule}
    return {_camel(name): value for name, value in rule.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _compact(value: dict[str, Any]) -> dict[str, Any]:
    """Without members that say nothing."""
    out = {}
    for name, one in value.items():
        plain = _compact(one) if isinstance(one, dict) else one
        if plain is not None and plain != {} and plain != []:
            out[name] = plain
    return out


def _merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for name, value in other.items():
        both = isinstance(value, Mapping) and isinstance(out.get(name), Mapping)
        out[name] = _merged(out[name], value) if both else value
    return out
