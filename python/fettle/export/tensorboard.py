"""Exports a Study to TensorBoard: scalars of each trial, and the HParams plugin's table over all.

The target is a folder; each trial has one of its own below it. Files of an earlier export are replaced. Only the
package tensorboard is needed, not TensorFlow.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fettle.export import _document as document

SUFFIX = ".fettle"  # of event files that this exporter wrote, and may remove
STATUS = {"Completed": "STATUS_SUCCESS", "Stopped": "STATUS_SUCCESS", "Failed": "STATUS_FAILURE"}


class Files:
    """Writes event files. Loads the modules of TensorBoard once."""

    def __init__(self) -> None:
        self.summary = document.need("tensorboard.plugins.hparams.summary_v2", "tensorboard")
        self.status = document.need("tensorboard.plugins.hparams.api_pb2", "tensorboard").Status
        self.plugin = document.need("tensorboard.plugins.hparams.plugin_data_pb2", "tensorboard")
        self.metadata = document.need("tensorboard.plugins.hparams.metadata", "tensorboard")
        self.event_pb2 = document.need("tensorboard.compat.proto.event_pb2", "tensorboard")
        self.summary_pb2 = document.need("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self.writer = document.need("tensorboard.summary.writer.event_file_writer", "tensorboard").EventFileWriter

    def write(self, folder: pathlib.Path, events: Iterable[Any]) -> None:
        """Replaces the exported event file of the folder."""
        try:
            for old in folder.glob(f"*{SUFFIX}"):
                old.unlink()
            writer = self.writer(str(folder), filename_suffix=SUFFIX)
            for event in events:
                writer.add_event(event)
            writer.close()
        except OSError as error:
            raise document.ExportError(f"cannot write to {folder}: {error}") from error

    def scalar(self, name: str, value: Any, step: int, seconds: float) -> Any:
        summary = self.summary_pb2.Summary(value=[self.summary_pb2.Summary.Value(tag=name, simple_value=value)])
        return self.event_pb2.Event(wall_time=seconds, step=step, summary=summary)

    def hparam(self, parameter: Mapping[str, Any]) -> Any:
        """The parameter with its domain, for the table's filters."""
        kind, api = parameter["type"], self.summary
        if kind == "Boolean":
            domain = api.Discrete([False, True])
        elif kind == "Categorical":
            domain = discrete(api, parameter["values"])
        elif kind == "Integer":
            domain = api.IntInterval(int(parameter["min"]), int(parameter["max"]))
        else:
            domain = api.RealInterval(float(parameter["min"]), float(parameter["max"]))
        return api.HParam(parameter["name"], domain)

    def experiment(self, study: document.Study) -> Any:
        parameters = [self.hparam(parameter) for parameter in study.parameters.values()]
        metrics = [self.summary.Metric(metric) for metric in study.metrics]
        summary = self.summary.hparams_config_pb(parameters, metrics, time_created_secs=(study.created_ms or 0) / 1000)
        return self.event_pb2.Event(wall_time=(study.created_ms or 0) / 1000, summary=summary)

    def session(self, study: document.Study, trial: document.Trial, name: str) -> Iterator[Any]:
        """All events of a trial. `name`: the id of its row, unique among the Studies of a folder."""
        began = (trial.started_ms or study.created_ms or 0) / 1000
        ended = (trial.ended_ms or 0) / 1000 or began
        hparams = {name: hparam_value(study.parameters.get(name), value) for name, value in trial.parameters.items()}
        start = self.summary.hparams_pb(hparams, trial_id=name, start_time_secs=began)
        yield self.event_pb2.Event(wall_time=began, summary=start)
        for step, metrics in points_of(study, trial):
            for name, value in metrics.items():
                yield self.scalar(name, value, step, began)
        if trial.has_ended:
            yield self.event_pb2.Event(wall_time=ended, summary=self.session_end(STATUS[trial.phase], ended))

    def session_end(self, status: str, seconds: float) -> Any:
        """summary_v2 has the beginning of a session only."""
        info = self.plugin.SessionEndInfo(status=self.status.Value(status), end_time_secs=seconds)
        data = self.plugin.HParamsPluginData(session_end_info=info)
        value = self.summary_pb2.Summary.Value(tag=self.metadata.SESSION_END_INFO_TAG, tensor=self.metadata.NULL_TENSOR,
                                               metadata=self.metadata.create_summary_metadata(data))
        return self.summary_pb2.Summary(value=[value])


def discrete(api: Any, values: Sequence[Any]) -> Any:
    """A domain has one type: mixed ones become texts."""
    types = {type(value) for value in values}
    return api.Discrete(values if len(types) == 1 else [document.text(value) for value in values])


def hparam_value(parameter: Mapping[str, Any] | None, value: Any) -> Any:
    if parameter and parameter["type"] == "Categorical" and len({type(one) for one in parameter["values"]}) > 1:
        return document.text(value)
    return value


def points_of(study: document.Study, trial: document.Trial) -> list[tuple[int, dict[str, Any]]]:
    """The curve. A result that is on none of its points (the best one counts) is added at the last step."""
    points = [(step, dict(metrics)) for step, metrics in trial.curve]
    for metric, value in zip(study.metrics, trial.values):
        if value is None or any(metric in metrics for _, metrics in points):
            continue
        if not points:
            points.append((0, {}))
        points[-1][1][metric] = value
    return points


def export(options: argparse.Namespace, study: document.Study) -> str:
    files = Files()
    root = pathlib.Path(options.target) / (options.name or study.name)
    files.write(root, [files.experiment(study)])
    begun = [trial for trial in study.trials if trial.started_ms]
    for trial in begun:
        # The table shows the first letters only, so it is the name; a Study exported as another has the folder before it.
        name = trial.name if root.name == study.name else f"{root.name}/{trial.name}"
        files.write(root / trial.name, files.session(study, trial, name))
    return f"Exported {document.plural(len(begun), 'trial')} of {study.name} to {root}; tensorboard --logdir {options.target}"


if __name__ == "__main__":
    document.main("tensorboard", export)
