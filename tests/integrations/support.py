"""What these tests share: the reports that a call makes, and Studies of `fettle run`.

FETTLE_PROGRAM is the program under test. A test of a library that is not installed is skipped, unless
FETTLE_INTEGRATIONS=all says that each one must be there.
"""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"
SWEEPER = PACKAGE / "hydra-sweeper"
PATIENCE = 600  # seconds after which a program or Study that has not ended never will


def needs(library):
    """Skips a class of tests where the library is missing."""
    missing = importlib.util.find_spec(library) is None and os.environ.get("FETTLE_INTEGRATIONS") != "all"
    return unittest.skipIf(missing, f"{library} is not installed")


def reports(action, inside=True):
    """The reports that `action()` prints, as a program that Fettle started, or outside."""
    before = os.environ.pop("FETTLE_TRIAL", None)
    if inside:
        os.environ["FETTLE_TRIAL"] = os.devnull  # who only reports does not read it
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            action()
    finally:
        os.environ.pop("FETTLE_TRIAL", None)
        if before is not None:
            os.environ["FETTLE_TRIAL"] = before
    return reports_in(out.getvalue())


def reports_in(text):
    """The lines of a program's output that Fettle would take for reports."""
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"step"')]


def environment(**more):
    path = os.pathsep.join(map(str, (PACKAGE, SWEEPER)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", **more}


def run_program(path, *arguments, cwd=None, **variables):
    """A program by the Python of the tests: its output. It must end well."""
    done = subprocess.run([sys.executable, str(path), *arguments], cwd=cwd, env=environment(**variables), text=True,
                          capture_output=True, timeout=PATIENCE)  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-2000:]} {done.stderr[-4000:]}"
    return done.stdout


def run_study(command, metric, **spec):
    """The trials of a Study with one parameter, `lr`; each as in the document of `fettle export`, and with its `log`."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        variables = {"PYTHONPATH": environment()["PYTHONPATH"], "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                     "KERAS_BACKEND": "jax", "FETTLE_PROGRAM": os.environ["FETTLE_PROGRAM"]}
        container = {"name": "train", "command": command, "resources": {"requests": {"cpu": "1m"}},
                     "env": [{"name": name, "value": value} for name, value in variables.items()]}
        document = {
            "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "peer"},
            "spec": {
                "objectives": [{"metric": metric, "direction": "Minimize"}],
                "parameters": [{"name": "lr", "type": "Double", "min": 0.01, "max": 1, "scale": "Log"}],
                "resource": {"unit": "epoch", "max": 3},
                "algorithm": {"name": "random", "seed": 1},
                "budget": {"trials": 2, "parallelism": 1},
                "trial": {"retries": 0, "template": {"spec": {"containers": [container]}}},
                **spec,
            },
        }  # fmt: skip
        (folder / "study.yaml").write_text(json.dumps(document))
        fettle = os.environ["FETTLE_PROGRAM"]
        done = subprocess.run([fettle, "run", "study.yaml", "--output", "json"], cwd=folder, text=True, capture_output=True,
                              timeout=PATIENCE)  # fmt: skip
        logs = {log.parts[-3]: log.read_text() for log in folder.glob(".fettle/peer/peer-*/r0/output.log")}
        assert done.returncode == 0, f"{done.stdout[-2000:]} {done.stderr} {logs}"
        said = subprocess.run([fettle, "export", "peer"], cwd=folder, text=True, capture_output=True, check=True)
        return [{**trial, "log": logs[trial["name"]]} for trial in json.loads(said.stdout)["trials"]]


class FettleTest(unittest.TestCase):
    def assert_steps(self, found, *steps):
        self.assertEqual([line["step"] for line in found], list(steps))
