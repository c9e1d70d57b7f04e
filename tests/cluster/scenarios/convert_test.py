"""Scenario: an Experiment of Katib, converted by fettle convert, runs to its end."""
import json
import subprocess

import cluster
from cluster import BUILD, TOLERATIONS, condition, wait_for
from logs_and_nodes_test import FAKE_LOG, now, utc
from scenario import Scenario


def experiment(ns):
    """It prints its loss as Katib reads it by default, so its trials end without a message."""
    pod = {
        "metadata": {"annotations": {"fake.fettle.dev/duration": "3s"}},
        "spec": {
            "tolerations": TOLERATIONS,
            "nodeSelector": {"type": "kwok"},
            "restartPolicy": "Never",
            "containers": [
                {"name": "proxy", "image": "fake"},
                {"name": "train", "image": "fake", "args": ["--lr=${trialParameters.rate}"]},
            ],
        },
    }
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "s", "namespace": ns},
        "spec": {
            "objective": {"type": "minimize", "objectiveMetricName": "katib-loss"},
            "algorithm": {"algorithmName": "tpe", "algorithmSettings": [{"name": "random_state", "value": "3"}]},
            "parallelTrialCount": 2,
            "maxTrialCount": 4,
            "maxFailedTrialCount": 1,
            "parameters": [
                {"name": "l-r", "parameterType": "double", "feasibleSpace": {"min": "0.01", "max": "0.1"}}
            ],
            "trialTemplate": {
                "primaryContainerName": "train",
                "trialParameters": [{"name": "rate", "reference": "l-r"}],
                "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod}},
            },
        },
    }


class ConvertTest(Scenario):
    def test_converted_experiment_runs_to_its_end(self):
        converted = subprocess.run([str(BUILD / "bin/fettle"), "convert", "-"], input=json.dumps(experiment(self.ns)),
                                   capture_output=True, text=True)  # fmt: skip
        self.assertEqual((converted.returncode, converted.stderr), (0, ""))
        subprocess.run(["kubectl", "apply", "-f", "-"], input=converted.stdout, text=True, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        wait_for("the Study to succeed", self.print_and_look)
        self.assert_succeeded(trials=4)
        for trial in self.trials():
            self.assertEqual(trial["status"]["report"]["metrics"]["katib-loss"], 0.25)
            self.assertLessEqual(0.01, trial["spec"]["parameters"]["l-r"])
        self.assertEqual(self.study()["status"]["best"][0]["objectives"], [0.25])

    def print_and_look(self):
        """All fake pods share one log, and another scenario may empty it."""
        with open(FAKE_LOG, "a") as log:
            log.write(f"{utc(now())} stdout F epoch 1: katib-loss=0.25\n")
        for pod in cluster.items("pods", self.ns):
            self.assertEqual(pod["spec"]["containers"][0]["name"], "train")
        return condition(self.study(), "Succeeded")
