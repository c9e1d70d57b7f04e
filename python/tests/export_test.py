#!/usr/bin/env python3
"""Exporters and importers, as far as they need nothing but Python. tests/export runs them against the real peers."""

import contextlib
import http.server
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock
from urllib.parse import parse_qs, urlsplit

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

from fettle.export import _document as document  # noqa: E402
from fettle.export import mlflow, optuna, tensorboard  # noqa: E402
from fettle.importers import _lines, ray  # noqa: E402
from fettle.importers import csv as table  # noqa: E402
from fettle.importers import wandb as wandb_table  # noqa: E402
from fettle.integrations import wandb as integration  # noqa: E402


def trial(index, phase="Completed", loss=0.5, steps=3, **more):
    curve = [{"step": step, "metrics": {"loss": loss + 3 - step, "nothing": None}} for step in range(1, steps + 1)]
    ended = 2000 + index if phase in document.ENDED else None
    return {"name": f"digits-{index}", "uid": f"t{index}", "index": index, "phase": phase, "parameters": {"lr": 0.1, "deep": True},
            "values": {"loss": loss}, "infeasible": False, "step": steps, "startedMs": 1000 + index, "endedMs": ended, "seconds": 1.0,
            "message": "", "curve": curve, "spec": {}, "status": {}} | more  # fmt: skip


def study(*trials, state="running"):
    parameters = [{"name": "lr", "type": "Double", "min": 0.001, "max": 1, "scale": "Log"}, {"name": "deep", "type": "Boolean"}]
    spec = {"objectives": [{"metric": "loss", "direction": "Minimize"}], "parameters": parameters, "algorithm": {"name": "gp"}}
    best = [{"trial": "digits-0", "objectives": [0.5]}] if trials else []
    return {"version": 1, "program": "fettle 0.1.0", "exportedMs": 5000, "name": "digits", "namespace": "", "uid": "u", "createdMs": 900,
            "state": state, "startedMs": 950, "endedMs": 4000 if state == "succeeded" else None, "spec": spec,
            "status": {"best": best, "trials": {"completed": len(trials)}}, "trials": list(trials), "events": []}  # fmt: skip


class Document(unittest.TestCase):
    def test_refuses_other_versions(self):
        for other in ({"version": 2}, {}, []):
            with self.assertRaises(document.ExportError) as raised:
                document.Study(other)
            self.assertEqual(raised.exception.code, 2)

    def test_a_paused_trial_of_a_study_that_ended_was_stopped(self):
        self.assertEqual(document.Study(study(trial(0, "Paused"))).trials[0].phase, "Paused")
        self.assertEqual(document.Study(study(trial(0, "Paused"), state="succeeded")).trials[0].phase, "Stopped")

    def test_values_that_are_not_finite_are_left_out(self):
        self.assertEqual(document.Study(study(trial(0))).trials[0].curve[0], (1, {"loss": 2.5}))

    def test_an_infeasible_trial_has_no_result(self):
        self.assertTrue(document.Study(study(trial(0))).trials[0].has_result)
        for other in (trial(0, infeasible=True), trial(0, "Stopped"), trial(0, values={"loss": None})):
            self.assertFalse(document.Study(study(other)).trials[0].has_result)

    def test_a_package_that_is_lacking_is_named(self):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), PYTHONSAFEPATH="1")
        blocked = "import sys; sys.modules['optuna'] = None; import runpy; sys.argv = ['x', '--target', 'sqlite:///x']; " \
                  "runpy.run_module('fettle.export.optuna', run_name='__main__')"  # fmt: skip
        done = subprocess.run([sys.executable, "-c", blocked], input=json.dumps(study()), env=environment, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("-m pip install optuna\n", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_input_that_is_no_document_is_an_error(self):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        for text in ("", "x", "{}"):
            done = subprocess.run([sys.executable, "-m", "fettle.export.mlflow", "--target", "http://127.0.0.1:1"], input=text,
                                  env=environment, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (2 if text else 0, False), done.stderr)


class Choices(unittest.TestCase):
    def test_values_that_are_equal_in_python_become_texts(self):
        mixed = {"name": "x", "type": "Categorical", "values": [1, True, "sgd"]}
        self.assertEqual(optuna.choices_of(mixed), ["1", "true", "sgd"])
        self.assertEqual(optuna.value_of(mixed, True), "true")
        self.assertEqual(optuna.choices_of({"values": [1, 2]}), [1, 2])

    def test_a_domain_of_tensorboard_has_one_type(self):
        mixed = {"name": "x", "type": "Categorical", "values": [1, "sgd"]}
        self.assertEqual(tensorboard.hparam_value(mixed, 1), "1")
        self.assertEqual(tensorboard.hparam_value({"type": "Categorical", "values": [1, 2]}, 1), 1)


class FakeServer(http.server.BaseHTTPRequestHandler):
    """Keeps experiments and runs as an MLflow server does, and refuses what it refuses."""

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        name = parse_qs(urlsplit(self.path).query)["experiment_name"][0]
        if name in self.server.experiments:
            self.answer(200, {"experiment": {"experiment_id": self.server.experiments[name]}})
        else:
            self.answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = urlsplit(self.path).path.removeprefix("/api/2.0/mlflow/")
        with self.server.lock:
            self.server.calls.append(call)
            if self.server.fail_after is not None and len(self.server.calls) > self.server.fail_after:
                return self.answer(500, {"error_code": "INTERNAL_ERROR", "message": "the disk is full"})
            return self.answer(200, getattr(self, call.replace("/", "_").replace("-", "_"))(body))

    def experiments_create(self, body):
        self.server.experiments[body["name"]] = "7"
        return {"experiment_id": "7"}

    def runs_create(self, body):
        run_id = f"run{len(self.server.runs)}"
        self.server.runs[run_id] = {
            "info": {"run_id": run_id, "status": "RUNNING", "run_name": body["run_name"], "start_time": body["start_time"]},
            "data": {"tags": body["tags"], "params": [], "metrics": []},
        }
        return {"run": self.server.runs[run_id]}

    def runs_search(self, body):  # pages of two
        runs = list(self.server.runs.values())
        begin = int(body.get("page_token", 0))
        more = {"next_page_token": str(begin + 2)} if begin + 2 < len(runs) else {}
        return {"runs": runs[begin:begin + 2]} | more

    def runs_log_batch(self, body):
        assert len(body["metrics"]) + len(body["params"]) + len(body["tags"]) <= 1000 and len(body["params"]) <= 100
        data = self.server.runs[body["run_id"]]["data"]
        for name in ("metrics", "params"):
            data[name] += [item for item in body[name] if item not in data[name]]
        tags = {tag["key"]: tag for tag in data["tags"] + body["tags"]}
        data["tags"] = list(tags.values())
        return {}

    def runs_update(self, body):
        self.server.runs[body["run_id"]]["info"].update(body)
        return {}


class MLflow(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeServer)
        self.server.experiments, self.server.runs, self.server.calls = {}, {}, []
        self.server.lock, self.server.fail_after = threading.Lock(), None
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        thread.start()
        self.addCleanup(lambda: (self.server.shutdown(), thread.join(), self.server.server_close()))

    def options(self):
        return types.SimpleNamespace(target=f"http://127.0.0.1:{self.server.server_port}", name="", state={})

    def export(self, json_study, options=None):
        self.server.calls.clear()
        return mlflow.export(options or self.options(), document.Study(json_study))

    def run_called(self, name):
        found = [run for run in self.server.runs.values() if run["info"]["run_name"] == name]
        self.assertEqual(len(found), 1, name)
        tags = {tag["key"]: tag["value"] for tag in found[0]["data"]["tags"]}
        return found[0]["info"], found[0]["data"], tags

    def test_writes_a_parent_and_its_children(self):
        self.export(study(trial(0), trial(1, "Failed"), trial(2, "Stopped"), trial(3, "Running"), state="running"))
        parent, data, tags = self.run_called("digits")
        self.assertEqual((parent["status"], tags["fettle.best"], data["metrics"][0]["key"]), ("RUNNING", "digits-0", "best.loss"))
        statuses = [self.run_called(f"digits-{i}")[0]["status"] for i in range(4)]
        self.assertEqual(statuses, ["FINISHED", "FAILED", "KILLED", "RUNNING"])
        info, data, tags = self.run_called("digits-0")
        self.assertEqual(tags["mlflow.parentRunId"], parent["run_id"])
        self.assertEqual(info["end_time"], 2000)
        self.assertEqual(data["params"], [{"key": "lr", "value": "0.1"}, {"key": "deep", "value": "true"}])
        curve = [(point["step"], point["value"]) for point in data["metrics"] if point["key"] == "loss"]
        self.assertEqual(curve, [(1, 2.5), (2, 1.5), (3, 0.5)])
        self.assertIn({"key": "result.loss", "value": 0.5, "step": 3, "timestamp": 1003}, data["metrics"])

    def test_exporting_again_changes_nothing(self):
        whole = study(trial(0), trial(1, "Stopped"), state="succeeded")
        self.export(whole)
        before = json.dumps(self.server.runs)
        self.export(whole)
        self.assertEqual(json.dumps(self.server.runs), before)
        self.assertEqual([call for call in self.server.calls if call != "runs/search"], ["runs/log-batch"], "of the parent")

    def test_follows_a_study(self):
        options = self.options()
        self.export(study(trial(0, "Running", steps=1)), options)
        self.export(study(trial(0, "Running", steps=2)), options)
        self.assertEqual(self.server.calls, ["runs/log-batch"], "the new point alone")
        self.export(study(trial(0), trial(1), state="succeeded"), options)
        self.assertEqual(self.run_called("digits")[0]["status"], "FINISHED")
        self.assertEqual(len([point for point in self.run_called("digits-0")[1]["metrics"] if point["key"] == "loss"]), 3)

    def test_an_export_that_was_cut_off_is_completed(self):
        whole = study(*[trial(i) for i in range(4)], state="succeeded")
        for calls in range(14):  # a search, two of the parent, three of each child, the parent's end
            self.server.runs.clear()
            self.server.fail_after = calls
            with self.assertRaises(document.ExportError) as raised:
                self.export(whole)
            self.assertIn("the disk is full", str(raised.exception))
            self.server.fail_after = None
            self.export(whole)
            self.assertEqual(self.run_called("digits")[0]["status"], "FINISHED")
            for i in range(4):
                info, data, tags = self.run_called(f"digits-{i}")
                self.assertEqual((info["status"], len(data["params"]), tags["fettle.phase"]), ("FINISHED", 2, "Completed"))
                self.assertEqual(len(data["metrics"]), 4)

    def test_a_trial_that_continues_is_running_again(self):
        self.export(study(trial(0)))
        self.export(study(trial(0, "Running", steps=5)))
        self.assertEqual(self.run_called("digits-0")[0]["status"], "RUNNING")

    def test_long_curves_come_in_batches(self):
        self.export(study(trial(0, steps=1500)))
        self.assertEqual(len(self.run_called("digits-0")[1]["metrics"]), 1501)

    def test_says_that_no_server_answers(self):
        for target, words in (("http://127.0.0.1:9", "no MLflow server answers"), ("sqlite:///x", "is no URI of an MLflow server")):
            with self.assertRaises(document.ExportError) as raised:
                mlflow.export(types.SimpleNamespace(target=target, name="", state={}), document.Study(study()))
            self.assertIn(words, str(raised.exception))

    def test_heeds_the_credentials_of_mlflow(self):
        self.assertEqual(mlflow.authorization({"MLFLOW_TRACKING_TOKEN": "t"}), {"Authorization": "Bearer t"})
        pair = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "secret"}
        self.assertEqual(mlflow.authorization(pair), {"Authorization": "Basic bWU6c2VjcmV0"})


class Importers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def options(self, source, **more):
        defaults = {"source": str(self.folder / source), "objective": ["loss"], "parameter": [], "study": "", "output": ""}
        return types.SimpleNamespace(**defaults | more)

    def csv(self, text, module=table, **more):
        (self.folder / "t.csv").write_text(text, encoding="utf-8")
        return module.read(self.options("t.csv", **more))

    def test_a_table_gives_a_line_a_row(self):
        found = self.csv("lr,opt,wide,loss\n0.1,sgd,true,0.5\n1,adam,,nan\n2,adam,false,0.25\n")
        self.assertEqual(found.lines, [
            {"parameters": {"lr": 0.1, "opt": "sgd", "wide": True}, "values": {"loss": 0.5}, "name": "row-1"},
            {"parameters": {"lr": 2, "opt": "adam", "wide": False}, "values": {"loss": 0.25}, "name": "row-3"},
        ])  # fmt: skip
        self.assertEqual(found.without, 1)

    def test_columns_may_be_chosen(self):
        found = self.csv("lr,other,loss\n0.1,7,0.5\n", parameter=["lr"])
        self.assertEqual(found.lines[0]["parameters"], {"lr": 0.1})

    def test_a_table_of_fettle_keeps_its_phases(self):
        found = self.csv("trial,index,phase,step,loss,infeasible,parameters.lr\na-0,0,Completed,9,0.5,false,0.1\n"
                         "a-1,1,Stopped,3,0.7,false,0.2\na-2,2,Failed,0,,false,0.3\na-3,3,Completed,9,0.1,true,0.4\n")
        self.assertEqual(found.lines, [
            {"parameters": {"lr": 0.1}, "values": {"loss": 0.5}, "step": 9, "name": "a-0"},
            {"parameters": {"lr": 0.2}, "values": {"loss": 0.7}, "step": 3, "stopped": True, "name": "a-1"},
        ])  # fmt: skip
        self.assertEqual(found.without, 2)

    def test_a_table_of_wandb_leaves_its_own_columns_out(self):
        found = self.csv("Name,State,Created,lr,loss\nb,finished,2026-02,0.2,0.5\na,finished,2026-01,0.1,0.6\nc,crashed,2026,0.3,0.1\n",
                         module=wandb_table)
        self.assertEqual([line["name"] for line in found.lines], ["a", "b"], "oldest first")
        self.assertEqual(found.lines[0]["parameters"], {"lr": 0.1})

    def test_says_which_columns_there_are(self):
        for more, words in (({"objective": []}, "--objective NAME"), ({"objective": ["x"]}, "no column x; it has lr, loss")):
            with self.assertRaises(document.ExportError) as raised:
                self.csv("lr,loss\n1,2\n", **more)
            self.assertIn(words, str(raised.exception))

    def ray_trial(self, name, parameters, losses):
        (self.folder / name).mkdir()
        (self.folder / name / "params.json").write_text(json.dumps(parameters))
        lines = [json.dumps({"loss": loss, "training_iteration": i, "timestamp": i}) for i, loss in enumerate(losses, 1)]
        (self.folder / name / "result.json").write_text("\n".join(lines) + '\n{"loss": 0.1, "trai')

    def test_the_longest_trials_of_ray_count_as_results(self):
        self.ray_trial("long", {"lr": 0.1, "train_loop_config": {"wide": True, "callback": None}}, [3, 2, 1])
        self.ray_trial("short", {"lr": 0.2}, [3, 2])
        self.ray_trial("failed", {"lr": 0.3}, [1, 1, 1])
        (self.folder / "failed" / "error.txt").write_text("Traceback")
        found = ray.read(self.options(""))
        self.assertEqual(found.lines, [
            {"parameters": {"lr": 0.2}, "values": {"loss": 2}, "step": 2, "stopped": True, "name": "short"},
            {"parameters": {"lr": 0.1, "train_loop_config/wide": True}, "values": {"loss": 1}, "step": 3, "name": "long"},
        ])  # fmt: skip
        self.assertEqual(found.without, 1)

    def test_says_what_a_folder_of_ray_lacks(self):
        with self.assertRaises(document.ExportError) as raised:
            ray.read(self.options(""))
        self.assertIn("there is no params.json below it", str(raised.exception))
        self.ray_trial("a", {"lr": 1}, [1])
        with self.assertRaises(document.ExportError) as raised:
            ray.read(self.options("", objective=["accuracy"]))
        self.assertIn("has a metric accuracy; the first one has: loss", str(raised.exception))

    def test_a_file_is_replaced_in_one_step(self):
        found = self.csv("lr,loss\n0.1,0.5\n")
        out = self.folder / "out.jsonl"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            _lines.write(self.options("t.csv", output=str(out)), found)
        self.assertEqual(json.loads(out.read_text()), found.lines[0])
        self.assertEqual(said.getvalue(), f"Wrote 1 result to {out}.\n")
        with self.assertRaises(document.ExportError):
            _lines.write(self.options("t.csv", output=str(self.folder / "no" / "out")), found)
        with self.assertRaises(document.ExportError) as raised:
            _lines.write(self.options("t.csv"), self.csv("lr,loss\n0.1,\n"))
        self.assertIn("has a result: 1 trial without one", str(raised.exception))


class Integration(unittest.TestCase):
    def init(self, environment, **options):
        calls = []
        fake = types.SimpleNamespace(init=lambda **given: calls.append(given))
        with mock.patch.dict(sys.modules, wandb=fake), mock.patch.dict(os.environ, environment, clear=True):
            integration.init(**options)
        return calls[0]

    def test_a_run_of_wandb_has_the_names_of_its_trial(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"study": "digits", "studyUid": "u", "trial": "digits-12", "parameters": {"lr": 0.1}}, file)
            file.flush()
            given = self.init({"FETTLE_TRIAL": file.name}, project="mine", name="chosen")
            self.assertEqual(given, {"group": "digits", "name": "chosen", "id": "u-12", "resume": "allow", "job_type": "trial",
                                     "config": {"lr": 0.1}, "project": "mine"})  # fmt: skip
            self.assertEqual(given["id"], document.Study(study(trial(12))).trials[0].uid, "that of the exporter")
            self.assertEqual(self.init({"FETTLE_TRIAL": file.name, "RANK": "1"}), {"mode": "disabled"})

    def test_outside_of_fettle_it_is_wandb_itself(self):
        self.assertEqual(self.init({}, project="mine"), {"project": "mine"})


if __name__ == "__main__":
    unittest.main()
