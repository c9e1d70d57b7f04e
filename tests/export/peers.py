#!/usr/bin/env python3
"""`fettle export` and `fettle import` against the real peers: Optuna and TensorBoard, or with --trackers MLflow,
optuna-dashboard and W&B, or with --ray Ray Tune, each asked by its own interface what has arrived or what it holds.

Usage: peers.py FETTLE --python PYTHON [--trackers | --ray]   (PYTHON: scripts/export_python.sh)
"""
import argparse
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 900  # seconds after which a missing answer never comes
STATES = {"Completed": "COMPLETE", "Stopped": "PRUNED", "Failed": "FAIL"}
STATUSES = {"Completed": "FINISHED", "Stopped": "KILLED", "Failed": "FAILED"}
# A curve that falls with the steps; depth 7 does not fit into memory.
PROGRAM = r"""
[ "$FETTLE_PARAM_DEPTH" != 7 ] || { echo "depth 7 does not fit" >&2; exit 1; }
awk -v lr="$FETTLE_PARAM_LR" -v depth="$FETTLE_PARAM_DEPTH" -v steps="$FETTLE_UNTIL_STEP" 'BEGIN {
  for (s = 1; s <= steps; s++)
    printf "{\"step\": %d, \"loss\": %.6f, \"size\": %d}\n", s, (log(lr) / log(10) + 2) ^ 2 + 1 / s, depth * 10 }'
"""
PARAMETERS = [
    {"name": "lr", "type": "Double", "min": 0.0001, "max": 1, "scale": "Log"},
    {"name": "depth", "type": "Integer", "min": 1, "max": 7, "step": 2},
    {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam"]},
    {"name": "momentum", "type": "Double", "min": 0, "max": 0.9, "step": 0.1, "when": {"parameter": "optimizer", "in": ["sgd"]}},
    {"name": "mixed", "type": "Categorical", "values": [1, True, "x"]},
    {"name": "flag", "type": "Boolean"},
]  # fmt: skip


def study(name, command, **spec):
    container = {"name": "trial", "command": command, "resources": {"requests": {"cpu": "1m"}}}
    default = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": PARAMETERS,
        "budget": {"trials": 18, "parallelism": 2, "failures": 18},
        "trial": {"retries": 0, "template": {"spec": {"containers": [container]}}},
    }
    return {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name}, "spec": default | spec}


class Failure(Exception):
    pass


def expect(found, wanted, about):
    if found != wanted:
        raise Failure(f"{about}: found {found!r}, expected {wanted!r}")


class Shop:
    """A folder in which fettle runs, with the Python of the peers."""

    def __init__(self, fettle, python, folder):
        self.fettle_path, self.python, self.folder = fettle, python, pathlib.Path(folder)
        self.environment = dict(os.environ, FETTLE_PYTHON=python, FETTLE_MACHINE_DIR=str(self.folder / "machine"),
                                PYTHONDONTWRITEBYTECODE="1", WANDB_MODE="offline", WANDB_SILENT="true")

    def command(self, *arguments, code=0, **variables):
        done = subprocess.run(arguments, cwd=self.folder, env=self.environment | variables, capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        if done.returncode != code:
            raise Failure(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def fettle(self, *arguments, **more):
        return self.command(self.fettle_path, *arguments, **more)

    def ask(self, script):
        """What a script in the Python of the peers prints as JSON."""
        return json.loads(self.command(self.python, "-W", "ignore", "-c", "import json\n" + script))

    def run(self, json_study):
        path = self.folder / (json_study["metadata"]["name"] + ".yaml")
        path.write_text(json.dumps(json_study))
        self.fettle("run", path.name)
        return json.loads(self.fettle("export", json_study["metadata"]["name"]))

    def server(self, *arguments):
        log = open(self.folder / "server.log", "ab")
        return subprocess.Popen(arguments, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True)


class Server:
    """A server of a peer on loopback, for a `with` block."""

    def __init__(self, shop, ready, arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.shop, self.ready = shop, ready
        self.arguments = [argument.replace("PORT", str(self.port)) for argument in arguments]

    def __enter__(self):
        self.process = self.shop.server(*self.arguments)
        began = time.monotonic()
        while True:
            try:
                self.get(self.ready)
                return self
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() - began > PATIENCE:
                    self.__exit__()
                    tail = (self.shop.folder / "server.log").read_text()[-2000:]
                    raise Failure(f"{' '.join(self.arguments)} does not answer: {error}\n{tail}") from error
                time.sleep(0.2)

    def __exit__(self, *_):
        with_group = os.getpgid(self.process.pid) if self.process.poll() is None else None
        if with_group:
            os.killpg(with_group, 15)
        self.process.wait(PATIENCE)

    def get(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read().decode()
            return json.loads(text) if text[:1] in "[{" else text


def single(shop):
    """A Study with completed, stopped and failed trials, and its document."""
    path = shop.folder / "single.json"
    if not path.exists():
        search = {"algorithm": {"name": "hyperband", "seed": 3, "reductionFactor": 3}, "resource": {"min": 1, "max": 9}}
        made = shop.run(study("single", ["sh", "-c", PROGRAM], **search))
        path.write_text(json.dumps(made))
    document = json.loads(path.read_text())
    for trial in document["trials"]:  # hyperband pauses them; the Study has ended
        trial["phase"] = "Stopped" if trial["phase"] == "Paused" else trial["phase"]
    phases = collections.Counter(trial["phase"] for trial in document["trials"])
    expect(set(phases), set(STATES), "phases of the test's own Study")
    return document


OPEN = "import optuna\nstudy = optuna.load_study(study_name={name!r}, storage='sqlite:///optuna.db')\n"


def optuna(shop):
    document = single(shop)
    for _ in range(2):  # a second export adds nothing
        shop.fettle("export", "single", "sqlite:///optuna.db", "--to", "optuna")
    found = shop.ask(OPEN.format(name="single") + """
print(json.dumps([study.metric_names, [d.name for d in study.directions], study.best_value, [
    [t.user_attrs["fettle.trial"], t.state.name, t.values, t.params, t.intermediate_values, sorted(t.distributions)] for t in study.trials],
    {name: repr(d) for name, d in study.trials[0].distributions.items()}]))""")  # fmt: skip
    names, directions, best, trials, distributions = found
    expect((names, directions), (["loss"], ["MINIMIZE"]), "objectives")
    expect(best, min(t["values"]["loss"] for t in document["trials"] if t["phase"] == "Completed"), "best value")
    expect(len(trials), len(document["trials"]), "trials")
    expect(distributions["lr"], "FloatDistribution(high=1.0, log=True, low=0.0001, step=None)", "a logarithmic scale")
    expect(distributions["depth"], "IntDistribution(high=7, log=False, low=1, step=2)", "a step")
    expect(distributions["mixed"], "CategoricalDistribution(choices=('1', 'true', 'x'))", "choices")
    for ours, (name, state, _values, params, curve, known) in zip(document["trials"], trials):
        expect((name, state), (ours["name"], STATES[ours["phase"]]), "trial")
        expect(params["lr"], ours["parameters"]["lr"], f"lr of {name}")
        expect(known, sorted(ours["parameters"]), f"parameters of {name}, conditional ones too")
        wanted = {str(point["step"]): point["metrics"]["loss"] for point in ours["curve"]}
        expect(curve, wanted, f"curve of {name}")


def optuna_front(shop):
    """Several objectives, and a journal in place of a database."""
    objectives = [{"metric": "loss", "direction": "Minimize"}, {"metric": "size", "direction": "Maximize"}]
    document = shop.run(study("front", ["sh", "-c", PROGRAM], objectives=objectives, algorithm={"name": "random", "seed": 2},
                              budget={"trials": 8, "parallelism": 2, "failures": 8}))
    shop.fettle("export", "front", "journal:optuna.log", "--to", "optuna", "--name", "other")
    found = shop.ask("""
import optuna
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("optuna.log"))
study = optuna.load_study(study_name="other", storage=storage)
print(json.dumps([[d.name for d in study.directions], sorted(t.user_attrs["fettle.trial"] for t in study.best_trials)]))""")
    expect(found, [["MINIMIZE", "MAXIMIZE"], sorted(best["trial"] for best in document["status"]["best"])], "front")


def optuna_owner(shop):
    """A study of that name that is another one is not written to."""
    single(shop)
    shop.command(shop.python, "-c", "import optuna; optuna.create_study(study_name='single', storage='sqlite:///taken.db')"
                 ".add_trial(optuna.trial.create_trial(value=1.0))")  # fmt: skip
    shop.fettle("export", "single", "sqlite:///taken.db", "--to", "optuna", code=2)


def tensorboard(shop):
    document = single(shop)
    for _ in range(2):
        shop.fettle("export", "single", "runs", "--to", "tensorboard")
    files = list((shop.folder / "runs").rglob("events.*"))
    expect(len(files), len(document["trials"]) + 1, "event files after two exports")
    with Server(shop, "/data/runs", [shop.python, "-m", "tensorboard.main", "--logdir", "runs", "--port", "PORT", "--host", "127.0.0.1",
                                     "--load_fast", "false"]) as server:
        began = time.monotonic()
        while len(server.get("/data/runs")) < len(files) and time.monotonic() - began < PATIENCE:
            time.sleep(0.2)  # it reads the folder while it answers
        experiment = server.get("/data/plugin/hparams/experiment", {"experimentName": ""})
        kinds = {info["name"]: info.get("domainInterval") or info.get("domainDiscrete") for info in experiment["hparamInfos"]}
        expect(kinds["lr"], {"minValue": 0.0001, "maxValue": 1.0}, "domain")
        expect(sorted(kinds["optimizer"]), ["adam", "sgd"], "choices")
        ask = {"experimentName": "", "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE"],
               "colParams": [{"metric": {"tag": "loss", "group": ""}}], "startIndex": 0, "sliceSize": 100}  # fmt: skip
        groups = server.get("/data/plugin/hparams/session_groups", ask)["sessionGroups"]
        names = sorted(group["name"] for group in groups)
        expect(names, sorted(trial["name"] for trial in document["trials"]), "rows of the HParams table")
        failed = sum(group["sessions"][0]["status"] == "STATUS_FAILURE" for group in groups)
        expect(failed, sum(trial["phase"] == "Failed" for trial in document["trials"]), "failed sessions")
        ours = next(trial for trial in document["trials"] if trial["phase"] == "Completed")
        curve = server.get(f"/data/plugin/scalars/scalars?tag=loss&run=single/{ours['name']}")
        expect([point[1] for point in curve], [point["step"] for point in ours["curve"]], "steps of the curve")


def imported(shop):
    """Optuna's results begin a Study: a completed trial as an observation, a pruned one not."""
    single(shop)
    shop.command(shop.python, "-c", """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
def objective(trial):
    lr = trial.suggest_float("rate", 1e-5, 10, log=True)
    trial.suggest_categorical("optimizer", ["sgd", "adam"])
    if trial.number % 5 == 0:
        trial.report(1.0, 3)
        raise optuna.TrialPruned
    if trial.number % 7 == 0:
        raise ValueError
    return abs(lr - 0.01)
optuna.create_study(study_name="old", storage="sqlite:///old.db").optimize(objective, 20, catch=ValueError)""")
    said = shop.fettle("import", "--from", "optuna", "sqlite:///old.db", "--objective", "loss", "-o", "old.jsonl")
    expect(said, "Wrote 18 results to old.jsonl; 2 trials had no result.\n", "sentence")
    lines = [json.loads(line) for line in (shop.folder / "old.jsonl").read_text().splitlines()]
    outside = sum(not 0.0001 <= line["parameters"]["rate"] <= 1 for line in lines if not line.get("stopped"))
    expect(sum(line.get("stopped", False) for line in lines), 4, "pruned trials")
    document = shop.run(study("warm", ["sh", "-c", PROGRAM], algorithm={"name": "tpe", "seed": 1}, budget={"trials": 2, "failures": 2},
                              warmStart={"results": "old.jsonl", "map": {"lr": "rate"}}))
    expect(len(document["status"]["priorObservations"]), 14 - outside, "observations")
    condition = next(one for one in document["status"]["conditions"] if one["type"] == "WarmStarted")
    expect(condition["message"].startswith(f"begins with results of trials: {14 - outside} of old.jsonl"), True, condition["message"])


def ray(shop):
    """An experiment that a scheduler of Ray Tune has cut short, as Ray tells it and as lines; then a Study begins with it."""
    script = str(pathlib.Path(__file__).with_name("tune_with_ray.py"))
    told = json.loads(shop.command(shop.python, "-W", "ignore", script, str(shop.folder / "ray"), "old").splitlines()[-1])
    expect((len(told["rows"]), told["errors"]), (4, 1), "trials of Ray with and without a result")
    longest = max(row["training_iteration"] for row in told["rows"])
    wanted = [{"parameters": {name.removeprefix("config/"): value for name, value in row.items() if name.startswith("config/")},
               "values": {"loss": row["loss"]}, "step": row["training_iteration"],
               **({"stopped": True} if row["training_iteration"] < longest else {})} for row in told["rows"]]  # fmt: skip
    expect(sum("stopped" in line for line in wanted), 2, "trials that Ray has stopped")
    said = shop.fettle("import", "--from", "ray", "ray/old", "--objective", "loss", "-o", "old.jsonl")
    expect(said, "Wrote 4 results to old.jsonl; 1 trial had no result.\n", "sentence")
    lines = [json.loads(line) for line in (shop.folder / "old.jsonl").read_text().splitlines()]
    names = [line.pop("name") for line in lines]
    expect(lines, wanted, "lines, oldest first")
    for name, row in zip(names, told["rows"]):
        expect(row["trial_id"] in name, True, f"{row['trial_id']} in {name}")
    space = [PARAMETERS[0], {"name": "kind", "type": "Categorical", "values": ["a", "b"]}]
    document = shop.run(study("warm", ["sh", "-c", PROGRAM.replace("$FETTLE_PARAM_DEPTH", "1")], parameters=space,
                              algorithm={"name": "tpe", "seed": 1}, budget={"trials": 2, "failures": 2},
                              warmStart={"results": "old.jsonl", "map": {"lr": "rate", "kind": "net/kind"}}))  # fmt: skip
    whole = [({"lr": line["parameters"]["rate"], "kind": line["parameters"]["net/kind"]}, [line["values"]["loss"]])
             for line in wanted if "stopped" not in line]  # fmt: skip
    expect([(one["parameters"], one["values"]) for one in document["status"]["priorObservations"]], whole, "observations")


def dashboard(shop):
    document = single(shop)
    shop.fettle("export", "single", "sqlite:///optuna.db", "--to", "optuna")
    program = str(pathlib.Path(shop.python).with_name("optuna-dashboard"))
    with Server(shop, "/api/studies", [program, "sqlite:///optuna.db", "--host", "127.0.0.1", "--port", "PORT"]) as server:
        study_id = server.get("/api/studies")["study_summaries"][0]["study_id"]
        trials = server.get(f"/api/studies/{study_id}")["trials"]
        wanted = collections.Counter(STATES[trial["phase"]].capitalize() for trial in document["trials"])
        expect(collections.Counter(trial["state"] for trial in trials), wanted, "states on the dashboard")


class MLflowServer(Server):
    def __init__(self, shop):
        super().__init__(shop, "/health", [shop.python, "-m", "mlflow", "server", "--backend-store-uri", "sqlite:///mlflow.db",
                                           "--default-artifact-root", "artifacts", "--host", "127.0.0.1", "--port", "PORT",
                                           "--workers", "1"])

    def runs(self, experiment):
        found = self.get(f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={experiment}")["experiment"]
        body = {"experiment_ids": [found["experiment_id"]], "max_results": 1000}
        runs = self.get("/api/2.0/mlflow/runs/search", body)["runs"]
        return {run["info"]["run_name"]: run for run in runs}, len(runs)


def mlflow(shop):
    document = single(shop)
    with MLflowServer(shop) as server:
        for _ in range(2):
            shop.fettle("export", "single", server.url, "--to", "mlflow")
        runs, count = server.runs("single")
        expect(count, len(document["trials"]) + 1, "runs after two exports")
        parent = runs.pop("single")
        expect(parent["info"]["status"], "FINISHED", "status of the parent")
        for trial in document["trials"]:
            run = runs[trial["name"]]
            tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
            expect(tags["mlflow.parentRunId"], parent["info"]["run_id"], "parent")
            expect(run["info"]["status"], STATUSES[trial["phase"]], f"status of {trial['name']}")
            expect(len(run["data"]["params"]), len(trial["parameters"]), f"parameters of {trial['name']}")
            if trial["curve"]:
                path = f"/api/2.0/mlflow/metrics/get-history?run_id={run['info']['run_id']}&metric_key=loss"
                curve = [(point["step"], point["value"]) for point in server.get(path)["metrics"]]
                expect(curve, [(point["step"], point["metrics"]["loss"]) for point in trial["curve"]], "curve")
        follow(shop, server)


def follow(shop, server):
    """A Study is exported while it runs, and to its end."""
    waits = 'echo "{\\"step\\": 1, \\"loss\\": 1}"; while [ ! -e go ]; do sleep 0.1; done; echo "{\\"step\\": 2, \\"loss\\": 0.5}"'
    path = shop.folder / "slow.yaml"
    path.write_text(json.dumps(study("slow", ["sh", "-c", waits], resource={"max": 2}, budget={"trials": 2, "parallelism": 2})))
    run = shop.server(shop.fettle_path, "run", "slow.yaml", "--output", "json")
    exporter = None
    try:
        began = time.monotonic()
        while "Running" not in shop.fettle("trials", "slow", "--output", "csv") if (shop.folder / ".fettle/slow.db").exists() else True:
            if time.monotonic() - began > PATIENCE:
                raise Failure("the slow Study does not begin")
            time.sleep(0.2)
        exporter = shop.server(shop.fettle_path, "export", "slow", server.url, "--to", "mlflow", "--follow")
        while True:
            try:
                runs, _ = server.runs("slow")
                if any(run["info"]["run_name"] != "slow" and run["data"].get("metrics") for run in runs.values()):
                    break
            except (OSError, KeyError):
                pass
            if time.monotonic() - began > PATIENCE:
                raise Failure("no trial arrives while the Study runs")
            time.sleep(0.5)
        expect({run["info"]["status"] for run in runs.values()}, {"RUNNING"}, "statuses while it runs")
        (shop.folder / "go").touch()
        expect((run.wait(PATIENCE), exporter.wait(PATIENCE)), (0, 0), "exit codes")
    finally:
        for process in (run, exporter):
            if process and process.poll() is None:
                os.killpg(process.pid, 15)
                process.wait()
    runs, count = server.runs("slow")
    expect((count, {run["info"]["status"] for run in runs.values()}), (3, {"FINISHED"}), "statuses at the end")


# A run's file is a log of LevelDB: blocks of 32 KiB with records, whose header is a checksum, a length and a type.
WANDB_FILE = """
import struct
from wandb.proto import wandb_internal_pb2
data, at, parts, out = open(PATH, "rb").read(), 7, b"", {"steps": 0, "config": {}}
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:  # too short for a header: filled with zeros
        at += 32768 - at % 32768
        continue
    _, size, kind = struct.unpack("<IHB", data[at:at + 7])
    parts += data[at + 7:at + 7 + size]
    at += 7 + size
    if kind not in (1, 4):  # whole, or the last part
        continue
    record, parts = wandb_internal_pb2.Record.FromString(parts), b""
    kind = record.WhichOneof("record_type")
    out["steps"] += kind == "history"
    if kind == "run":
        out |= {"group": record.run.run_group, "name": record.run.display_name, "id": record.run.run_id}
        out["config"] |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
    if kind == "exit":
        out["exit"] = record.exit.exit_code
print(json.dumps(out))
"""


def wandb(shop):
    document = single(shop)
    shop.fettle("export", "single", "--to", "wandb", WANDB_DIR=str(shop.folder))
    folders = list((shop.folder / "wandb").glob("offline-run-*"))
    expect(len(folders), len(document["trials"]), "run folders")
    shop.fettle("export", "single", "--to", "wandb", WANDB_DIR=str(shop.folder))
    expect(len(list((shop.folder / "wandb").glob("offline-run-*"))), len(folders), "run folders after two exports")
    ours = next(trial for trial in document["trials"] if trial["phase"] == "Completed")
    folder = next(one for one in folders if one.name.endswith(f"{document['uid']}-{ours['index']}"))
    found = shop.ask(f"PATH = {str(next(folder.glob('*.wandb')))!r}\n" + WANDB_FILE)
    expect((found["group"], found["name"], found["id"]), ("single", ours["name"], f"{document['uid']}-{ours['index']}"), "names")
    expect((found["steps"], found["exit"]), (len(ours["curve"]), 0), "points and exit code")
    expect(found["config"]["lr"], ours["parameters"]["lr"], "lr")


def wandb_in_program(shop):
    """The helper gives the run of a program the id that the exporter would."""
    package = str(pathlib.Path(__file__).resolve().parents[2] / "python")
    (shop.folder / "train.py").write_text(f"""
import sys
sys.path.insert(0, {package!r})
import fettle.integrations.wandb
run = fettle.integrations.wandb.init(project="p", dir="own")
run.log({{"loss": 0.5}})
run.finish()
print('{{"loss": 0.5}}')
""")
    (shop.folder / "own").mkdir()
    document = shop.run(study("helped", [shop.python, "train.py"], budget={"trials": 1},
                              trial={"retries": 0, "passEnvironment": ["WANDB_MODE", "WANDB_SILENT"], "template": {"spec": {"containers": [
                                  {"name": "t", "command": [shop.python, str(shop.folder / "train.py")]}]}}}))  # fmt: skip
    expect([trial["phase"] for trial in document["trials"]], ["Completed"], "phase")
    folders = list((shop.folder).rglob(f"offline-run-*-{document['uid']}-0"))
    expect(len(folders), 1, "run folders")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fettle")
    parser.add_argument("--python", required=True)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--trackers", action="store_const", const=[dashboard, mlflow, wandb, wandb_in_program], dest="checks")
    group.add_argument("--ray", action="store_const", const=[ray], dest="checks")
    options = parser.parse_args()
    checks = options.checks or [optuna, optuna_front, optuna_owner, tensorboard, imported]
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(str(pathlib.Path(options.fettle).resolve()), options.python, folder)
        for check in checks:
            began = time.monotonic()
            try:
                check(shop)
                passed += 1
                print(f"export: {check.__name__}: passed after {time.monotonic() - began:.0f} s", flush=True)
            except (Failure, OSError, KeyError, subprocess.TimeoutExpired) as error:
                print(f"export: {check.__name__}: FAILED: {type(error).__name__}: {error}", flush=True)
    print(f"export: {passed} of {len(checks)} passed")
    sys.exit(0 if passed == len(checks) else 1)


if __name__ == "__main__":
    main()
