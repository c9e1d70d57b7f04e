#!/usr/bin/env python3
"""Tests of Study: the file that it writes, and its runs by the program."""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

from program import PROGRAM, InAFolder

import fettle
from fettle import Study, boolean, choice, integer, loguniform, uniform
from fettle._yaml import to_yaml

SPACE = {"rate": loguniform(1e-5, 1), "kind": choice("sgd", "on", 2, 0.5), "flag": boolean(),
         "momentum": uniform(0, 1, step=0.25, when={"kind": ["sgd"]}), "layers": integer(1, 8)}
PROGRAM_TEXT = """
import os
for step in range(1, 4):
    print('{"step": %d, "loss": %s}' % (step, float(os.environ["FETTLE_PARAM_RATE"]) / step), flush=True)
"""


class TheFile(InAFolder):
    def test_all_of_it(self):
        study = Study("digits", minimize="loss", maximize="accuracy", space=SPACE, command=["python3", "train.py", "--fast"],
                      trials=60, parallelism=4, resource=("epoch", 1, 27), algorithm={"name": "gp", "cost_aware": True},
                      seed=7, early_stopping="asha", constraints=[{"metric": "size", "max": 1e6}], warm=True,
                      environment={"DATA": "/data"}, image="train:1", spec={"budget": {"failures": 3}})
        self.assertEqual(study.to_yaml(), textwrap.dedent("""\
            apiVersion: fettle.dev/v1alpha1
            kind: Study
            metadata: {name: digits}
            spec:
              objectives:
              - {metric: loss, direction: Minimize}
              - {metric: accuracy, direction: Maximize}
              constraints:
              - {metric: size, max: 1000000.0}
              parameters:
              - {name: rate, type: Double, min: 1.0e-05, max: 1.0, scale: Log}
              - {name: kind, type: Categorical, values: [sgd, "on", 2, 0.5]}
              - {name: flag, type: Boolean}
              - {name: layers, type: Integer, min: 1, max: 8}
              - {name: momentum, type: Double, min: 0.0, max: 1.0, step: 0.25, when: {parameter: kind, in: [sgd]}}
              resource: {unit: epoch, min: 1, max: 27}
              algorithm: {name: gp, costAware: true, seed: 7}
              earlyStopping: {name: asha}
              budget: {trials: 60, parallelism: 4, failures: 3}
              trial:
                execution: Warm
                template:
                  spec:
                    containers:
                    - name: train
                      image: "train:1"
                      command: [python3, train.py, "--fast"]
                      env:
                      - {name: DATA, value: /data}
            """))

    def test_the_program_accepts_it(self):
        pathlib.Path("train.py").touch()
        Study("digits", minimize="loss", space=SPACE, command=["python3", "train.py", "$(FETTLE_PARAM_RATE)"], trials=3,
              seed=1, early_stopping={"name": "asha", "reduction_factor": 3}, resource=(1, 9)).validate()

    def test_mistakes(self):
        with self.assertRaisesRegex(fettle.FettleError, "magic"):
            Study("digits", minimize="loss", space=SPACE, command=["true"], algorithm="magic").validate()
        with self.assertRaisesRegex(TypeError, "list of words"):
            Study("digits", minimize="loss", space=SPACE, command="python3 train.py")
        with self.assertRaisesRegex(ValueError, "name the objective"):
            Study("digits", space=SPACE, command=["true"])
        with self.assertRaisesRegex(ValueError, "resource: expected"):
            Study("digits", minimize="loss", space=SPACE, command=["true"], resource=(1,))

    def test_texts_that_yaml_would_misread(self):
        texts = ["yes", "y", "null", "1", "1e3", "a: b", "- a", "", "a\nb", "#", "é", "'", '"', "~", "0x1", "*a", "&a", "{a", ".inf"]
        text = to_yaml({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "words"}, "spec": {
            "objectives": [{"metric": "loss", "direction": "Minimize"}],
            "parameters": [{"name": "word", "type": "Categorical", "values": texts}], "budget": {"trials": len(texts)},
            "algorithm": {"name": "grid"}, "trial": {"template": {"spec": {"containers": [
                {"name": "train", "command": ["sh", "-c", "echo '{\"loss\": 1}'"]}]}}}}})
        pathlib.Path("words.yaml").write_text(text)
        subprocess.run([PROGRAM, "run", "words.yaml"], check=True, capture_output=True)
        found = Study("words", minimize="loss", space=SPACE, command=["true"]).result()
        self.assertEqual(sorted(one.parameters["word"] for one in found.trials), sorted(texts))


class Runs(InAFolder):
    def study(self, command=(sys.executable, "train.py"), **options):
        pathlib.Path("train.py").write_text(PROGRAM_TEXT)
        return Study("digits", **{"minimize": "loss", "space": {"rate": loguniform(1e-3, 1)}, "command": list(command),
                                  "trials": 4, "parallelism": 2, "resource": (1, 3), "seed": 1, **options})

    def test_a_run_and_its_result(self):
        run = self.study().run()
        kinds = {event["event"] for event in run.events()}
        self.assertLessEqual({"trialStarted", "trialCompleted"}, kinds)
        result = run.wait()
        self.assertEqual([one.state for one in result.trials], ["completed"] * 4)
        self.assertEqual(result.best.value, min(one.value for one in result.trials))
        self.assertEqual(result.best.value, result.best.params["rate"] / 3)
        self.assertEqual([step for step, _ in result.trials[0].curve], [1, 2, 3])
        self.assertTrue(pathlib.Path("digits.yaml").exists())

    def test_a_run_that_fails(self):
        with self.assertRaisesRegex(fettle.FettleError, "exit code 1"):
            self.study(command=["false"], spec={"trial": {"retries": 0}}).run().wait()
        states = {one.state for one in self.study().result().trials}
        self.assertEqual(states, {"failed"})

    def test_a_run_that_is_stopped_is_resumed(self):
        study = self.study(trials=40)
        with study.run() as run:
            next(event for event in run.events() if event["event"] == "trialCompleted")
        before = len(study.result().trials)
        self.assertTrue(1 <= before < 40)
        self.assertEqual(len(study.run().wait().trials), 40)

    def test_a_study_that_does_not_exist(self):
        with self.assertRaisesRegex(fettle.FettleError, "no study 'digits'"):
            self.study().result()

    def test_apply(self):
        kubectl = self.folder / "kubectl"
        kubectl.write_text('#!/bin/sh\necho "$@" > said; cat > manifest; echo study.fettle.dev/digits created\n')
        kubectl.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}):
            self.assertEqual(self.study().apply(namespace="team"), "study.fettle.dev/digits created")
        self.assertEqual(pathlib.Path("said").read_text(), "--namespace team apply -f -\n")
        self.assertEqual(pathlib.Path("manifest").read_text(), self.study().to_yaml())
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(fettle.FettleError, "kubectl was not found"):
            self.study().apply()


if __name__ == "__main__":
    unittest.main()
