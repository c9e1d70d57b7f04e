"""Exports a Study to an MLflow tracking server by REST: a parent run, and a child run for each trial.

Standard library only. The target is the URI of the server (http, https); without one, MLFLOW_TRACKING_URI. The
experiment is the Study's name, or --name. Runs are found again by the tag fettle.uid, so exporting again, also while
the Study runs, changes only what is new. MLFLOW_TRACKING_USERNAME, _PASSWORD, _TOKEN and _INSECURE_TLS are heeded.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fettle.export import _document as document

UID = "fettle.uid"
PHASE = "fettle.phase"  # written with the last metrics: a run that has it has them
OF_STUDY = "fettle.study.uid"
MOST_METRICS = 1000  # MLflow's limits for one log-batch
MOST_PARAMETERS = 100
LONGEST_PARAMETER = 500
AT_ONCE = 4  # requests: a server answers one in tenths of a second
SECONDS = 60
STATUS = {"Completed": "FINISHED", "Failed": "FAILED", "Stopped": "KILLED", "Running": "RUNNING"}  # else SCHEDULED
OF_STATE = {"succeeded": "FINISHED", "failed": "FAILED"}  # else RUNNING
ENDED = {"FINISHED", "FAILED", "KILLED"}
Point = tuple[str, float, int, int]  # name of the metric, value, step, ms
NOT_IN_NAMES = re.compile(r"[^\w./ :-]")  # MLflow refuses them in names of metrics and parameters


class Server:
    """The REST interface of a tracking server. Usable from several threads."""

    def __init__(self, uri: str, environment: Mapping[str, str]) -> None:
        self.uri = uri.rstrip("/")
        self.headers = {"Content-Type": "application/json"} | authorization(environment)
        insecure = environment.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("1", "true")
        self.tls = ssl._create_unverified_context() if insecure else None

    def call(self, path: str, body: Mapping[str, Any] | None = None, **query: str) -> Any:
        """The answer to a request; None where the object does not exist."""
        url = f"{self.uri}/api/2.0/mlflow/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data, self.headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read(2000).decode(errors="replace")
            if error.code == 404 and "RESOURCE_DOES_NOT_EXIST" in text:
                return None
            raise document.ExportError(f"{self.uri} answers {path} with {error.code}: {message_of(text)}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise document.ExportError(f"no MLflow server answers at {self.uri}: {reason}") from error


def message_of(text: str) -> str:
    try:
        return str(json.loads(text).get("message", text))
    except ValueError:
        return text[:200]


def authorization(environment: Mapping[str, str]) -> dict[str, str]:
    if token := environment.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := environment.get("MLFLOW_TRACKING_USERNAME"):
        pair = f"{user}:{environment.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def name_of(text: str) -> str:
    return NOT_IN_NAMES.sub("_", text)


def tags_of(tags: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": str(value)[:5000]} for key, value in tags.items()]


class Run:
    """A run of the server, and what of it is known to be there."""

    def __init__(self, run_id: str, status: str = "", tags: dict[str, str] | None = None, is_new: bool = False) -> None:
        self.run_id = run_id
        self.status = status
        self.tags = tags or {}
        self.is_new = is_new
        self.sent: set[tuple[str, float, int]] = set()  # metric, value, step

    @staticmethod
    def from_json(run: Mapping[str, Any]) -> Run:
        tags = {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])}
        return Run(run["info"]["run_id"], run["info"]["status"], tags)


class Experiment:
    """The experiment of one Study. Kept from document to document while the Study is followed."""

    def __init__(self, server: Server, study: document.Study, name: str) -> None:
        self.server = server
        self.study_uid = study.uid
        self.id = self._open(name)
        self.runs = {run.tags[UID]: run for run in self._search() if UID in run.tags}

    def _open(self, name: str) -> str:
        there = self.server.call("experiments/get-by-name", experiment_name=name)
        if there is None:
            return str(self.server.call("experiments/create", {"name": name})["experiment_id"])
        if there["experiment"].get("lifecycle_stage") == "deleted":
            raise document.ExportError(f"the experiment {name} was deleted there; restore it, or choose another name with --name",
                                       document.EXIT_INVALID)
        return str(there["experiment"]["experiment_id"])

    def _search(self) -> Iterator[Run]:
        body = {"experiment_ids": [self.id], "filter": f"tags.`{OF_STUDY}` = '{self.study_uid}'", "max_results": 1000}
        while True:
            answer = self.server.call("runs/search", body)
            yield from map(Run.from_json, answer.get("runs", []))
            if not answer.get("next_page_token"):
                return
            body["page_token"] = answer["next_page_token"]

    def run_of(self, uid: str, name: str, started_ms: int | None, tags: Mapping[str, Any]) -> Run:
        """The run of that uid, made where there is none."""
        if uid not in self.runs:
            everything = {UID: uid, OF_STUDY: self.study_uid, "mlflow.source.name": "fettle", **tags}
            made = self.server.call("runs/create", {"experiment_id": self.id, "run_name": name, "start_time": started_ms,
                                                    "tags": tags_of(everything)})
            self.runs[uid] = Run(made["run"]["info"]["run_id"], "RUNNING", everything, is_new=True)
        return self.runs[uid]

    def log(self, run: Run, parameters: Mapping[str, Any], metrics: Iterable[Point], tags: Mapping[str, Any]) -> None:
        """Writes what is new, in batches; the tags come with the last one. `metrics`: (name, value, step, ms)."""
        new = [metric for metric in metrics if metric[:3] not in run.sent]
        pairs = [{"key": name_of(name), "value": document.text(value)[:LONGEST_PARAMETER]} for name, value in parameters.items()] if run.is_new else []
        changed = {key: value for key, value in tags.items() if run.tags.get(key) != str(value)}
        while new or pairs or changed:
            # At most 1000 items in all.
            batch, rest = new[:MOST_METRICS - 2 * MOST_PARAMETERS], new[MOST_METRICS - 2 * MOST_PARAMETERS:]
            is_last = not rest and len(pairs) <= MOST_PARAMETERS
            self.server.call("runs/log-batch", {
                "run_id": run.run_id,
                "metrics": [{"key": name_of(name), "value": value, "step": step, "timestamp": at_ms}
                            for name, value, step, at_ms in batch],
                "params": pairs[:MOST_PARAMETERS],
                "tags": tags_of(changed) if is_last else [],
            })
            run.sent.update(metric[:3] for metric in batch)
            new, pairs = rest, pairs[MOST_PARAMETERS:]
            if is_last:
                run.tags.update({key: str(value) for key, value in changed.items()})
                break
        run.is_new = False

    def set_status(self, run: Run, status: str, ended_ms: int | None) -> None:
        if run.status == status:
            return
        body: dict[str, Any] = {"run_id": run.run_id, "status": status}
        if status in ENDED and ended_ms:
            body["end_time"] = ended_ms
        self.server.call("runs/update", body)
        run.status = status


def curve_of(study: document.Study, trial: document.Trial) -> list[Point]:
    """(name, value, step, ms) of each point. MLflow wants times, which a curve has not: they follow from the step, so that
    they are the same in each export, and the server keeps a point that is sent twice once."""
    began = trial.started_ms or study.created_ms or 0
    points = [(name, value, step, began + step) for step, metrics in trial.curve for name, value in metrics.items()]
    last = trial.curve[-1][0] if trial.curve else 0
    if trial.has_result:  # the result, where the best point counts, or where a program without steps has no curve
        points += [(f"result.{metric}", value, last, began + last) for metric, value in zip(study.metrics, trial.values)]
    return points


def export_trial(experiment: Experiment, study: document.Study, trial: document.Trial, parent: Run) -> bool:
    """Returns whether anything was written."""
    uid = trial.uid
    status = STATUS.get(trial.phase, "SCHEDULED")
    known = experiment.runs.get(uid)
    if known and trial.has_ended and known.status == status and known.tags.get(PHASE) == trial.phase:
        return False
    run = experiment.run_of(uid, trial.name, trial.started_ms,
                            {"mlflow.parentRunId": parent.run_id, "fettle.trial": trial.name})
    # A run that was made before a crash may lack its parameters, which may be written twice with one value.
    run.is_new = run.is_new or PHASE not in run.tags
    tags: dict[str, str] = {PHASE: trial.phase}
    if trial.message:
        tags["fettle.message"] = trial.message
    if trial.infeasible:
        tags["fettle.infeasible"] = "true"
    experiment.log(run, trial.parameters, curve_of(study, trial), tags)
    experiment.set_status(run, status, trial.ended_ms)
    return True


def export_parent(experiment: Experiment, study: document.Study) -> Run:
    best = (study.status.get("best") or [None])[0]
    tags = {"fettle.study": study.name, "fettle.algorithm": study.spec.get("algorithm", {}).get("name", "auto"),
            "fettle.objectives": ", ".join(f"{objective['direction']} {objective['metric']}" for objective in study.objectives)}
    run = experiment.run_of(study.uid, study.name, study.created_ms, tags)
    metrics: list[Point] = []
    if best:
        tags["fettle.best"] = best["trial"]
        step = study.status.get("trials", {}).get("completed", 0)
        metrics = [(f"best.{metric}", value, step, (study.created_ms or 0) + step)
                   for metric, value in zip(study.metrics, best["objectives"])]
    experiment.log(run, {}, metrics, tags)
    return run


def experiment_of(options: argparse.Namespace, study: document.Study) -> Experiment:
    uri = options.target or os.environ.get("MLFLOW_TRACKING_URI", "")
    if urllib.parse.urlsplit(uri).scheme not in ("http", "https"):
        raise document.ExportError(f"'{uri}' is no URI of an MLflow server: expected one such as http://127.0.0.1:5000, as the "
                                   "target or in MLFLOW_TRACKING_URI", document.EXIT_INVALID)
    known: Experiment | None = options.state.get("experiment")
    if known is None:
        known = options.state["experiment"] = Experiment(Server(uri, os.environ), study, options.name or study.name)
    return known


def export(options: argparse.Namespace, study: document.Study) -> str:
    experiment = experiment_of(options, study)
    parent = export_parent(experiment, study)
    begun = [trial for trial in study.trials if trial.started_ms]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        written = sum(pool.map(lambda trial: export_trial(experiment, study, trial, parent), begun))
    # Last: a parent that has ended has all its children.
    experiment.set_status(parent, OF_STATE.get(study.state, "RUNNING"), study.ended_ms)
    options.state["written"] = options.state.get("written", 0) + written
    return f"Exported {document.plural(len(begun), 'trial')} of {study.name} to experiment {experiment.id} of {experiment.server.uri}"


if __name__ == "__main__":
    document.main("mlflow", export)
