"""A Study of one program under one search: its document, and what its user sees once it has ended."""
import json
import os
import pathlib
import subprocess

from programs import FOLDER, LAST_EPOCH


def study(name, program, search_spec, more):
    container = {
        "name": "trial",
        "image": "busybox",
        "command": [str(FOLDER / program.file)],
        "resources": {"requests": {"cpu": "1m"}, "limits": program.limits},
    }
    spec = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [{"name": "x", "type": "Integer", "min": 0, "max": 99}],
        "resource": {"unit": "epoch", "min": 1, "max": LAST_EPOCH},
        "budget": {"trials": program.trials, "parallelism": 3, "failures": 100},
        "trial": {
            "retries": 0,
            "gracePeriod": "60s",
            "template": {"spec": {"containers": [container]}},
            **program.trial,
        },
        **program.spec,
        **search_spec,
    }
    spec["trial"].update(more)
    return {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name}, "spec": spec}


class Ended:
    """A Study that has ended, as its user sees it."""

    def __init__(self, fettle, program, search, folder, code, lines, errors):
        self.program, self.search, self.folder, self.code, self.errors = program, search, folder, code, errors
        self.result = next((line["result"] for line in reversed(lines) if "result" in line), {})
        self.trials = json.loads(ask(fettle, folder, "trials", "rude", "--output", "json").stdout or "[]")
        self.replayed = ask(fettle, folder, "replay", "rude")
        self.left = processes_of(folder)

    @property
    def sentence(self):
        return self.result.get("message", "")

    @property
    def succeeded(self):
        return self.result.get("state") == "succeeded"

    def phase(self, phase):
        return [trial for trial in self.trials if trial["status"]["phase"] == phase]


def facts_of(trial):
    return trial["status"].get("facts", [])


def step_of(trial):
    return trial["status"].get("report", {}).get("step", 0)


def x_of(trial):
    return trial["spec"]["parameters"]["x"]


def condition_of(trial, kind):
    """The message of a condition that holds; "" where none does."""
    held = [one for one in trial["status"].get("conditions", []) if one["type"] == kind and one["status"] == "True"]
    return held[0].get("message", "") if held else ""


def reasons_of(trial):
    """Every sentence that says why something of the trial ended."""
    runs = [run.get("message", "") for run in trial["status"].get("runs", [])]
    stop = trial["spec"].get("stop", {}).get("message", "")
    return [*runs, condition_of(trial, "Complete"), condition_of(trial, "Failed"), stop]


def ask(fettle, folder, *arguments):
    return subprocess.run([fettle, *arguments], cwd=folder, capture_output=True, text=True)


def processes_of(folder):
    """The processes that belong to a trial of a Study in the folder: told by their environment."""
    mark = f"FETTLE_TRIAL={folder}/".encode()
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in pathlib.Path(f"/proc/{process}/environ").read_bytes():
                found.append(int(process))
        except OSError:  # ended meanwhile, or another user's
            pass
    return found
