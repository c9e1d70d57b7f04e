"""Every algorithm on a real control plane, through the death of the operator."""
import cluster
from cluster import get, get_of_cluster, items, kubectl, wait_for
from scenario import Scenario
from setup import SCENARIO

# What an algorithm needs beside its name; one that is not here needs nothing.
TWO = [{"metric": "x", "direction": "Minimize"}, {"metric": "y", "direction": "Maximize"}]
NEEDS = {
    "grid": {"algorithm": {"points": 2}},
    "ehvi": {"objectives": TWO},
    "nsga2": {"objectives": TWO},
    "pbt": {"algorithm": {"interval": 3}},
    "pb2": {"algorithm": {"interval": 3}},
    "schedule": {"algorithm": {"legs": [{"untilStep": 4, "parameters": {"x": 0.25, "y": 0.5}}, {"untilStep": 9, "parameters": {"x": 0.5, "y": 0.5}}]}},
}
# What `auto` becomes, and the Studies of which it does (search/auto.cpp).
WORK = {"trials": 26, "parallelism": 13, "wallTime": "1h"}
CHOICES = [{"name": "c", "type": "Categorical", "values": [1, 2]}]
MANY = [{"name": f"x{i}", "type": "Double", "min": 0, "max": 1} for i in range(51)]
BRANCHES = {
    "grid": {"parameters": CHOICES, "objectives": [{"metric": "c", "direction": "Minimize"}]},
    "sobol": {"budget": {"trials": 4, "parallelism": 4}},
    "ehvi": {"objectives": TWO},
    "tpe": {"parameters": MANY, "objectives": [{"metric": "x0", "direction": "Minimize"}]},
    "gp": {"algorithm": {"costAware": True}},
    "portfolio": {},
    "bohb": {"budget": WORK, "trial": {"checkpoints": {"claim": "checkpoints"}}},
    "asha": {"budget": WORK},
}
# Studies whose trials are sent on from a rung, or give their place to others.
PROMOTING = {"hyperband", "bohb", "asha-promote", "auto-bohb", "pbt", "pb2"}
REPLACING = {"pbt", "pb2", "schedule"}
FIRST_FOREVER = "fake.fettle.dev/first-forever"
PARAMETERS = [{"name": name, "type": "Double", "min": 0.1, "max": 1} for name in ("x", "y")]


class AlgorithmsTest(Scenario):
    def setUp(self):
        super().setUp()
        self.operator.stop()
        self.bind_claim("checkpoints")

    def bind_claim(self, name):
        """A claim that fake pods can be scheduled with."""
        volume = f"{self.ns}-{name}"
        spec = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                       "spec": {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"},
                                "claimRef": {"namespace": self.ns, "name": name}}})  # fmt: skip
        self.addCleanup(kubectl, "delete", "pv", volume, "--wait=false", check=False)
        cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": self.ns},
                       "spec": {**spec, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip

    def train(self, name, algorithm, *, trial=None, **changes):
        """A Study whose pods train as they are told; the first one runs until let_first_end()."""
        trials = 6 if name in PROMOTING else 4
        changes = {"parameters": PARAMETERS, "objectives": TWO[:1], "resource": {"min": 1, "max": 9},
                   "budget": {"trials": trials, "parallelism": trials // 2}} | changes  # fmt: skip
        annotations = {"fake.fettle.dev/trains": "yes", "fake.fettle.dev/duration": "2s", FIRST_FOREVER: "yes"}
        return cluster.study(name, self.ns, algorithm={"seed": 1} | algorithm, trial=trial or {}, annotations=annotations, **changes)

    def apply_all(self):
        """A Study for each name in the schema, asha with promote, and each branch of auto; what their status is to say."""
        studies = []
        definition = get_of_cluster("customresourcedefinitions", "studies.fettle.dev")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        name_of_algorithm = schema["properties"]["spec"]["properties"]["algorithm"]["properties"]["name"]
        expected = {}
        for name in name_of_algorithm["enum"]:
            needs = dict(NEEDS.get(name, {}))
            algorithm = {"name": name} | needs.pop("algorithm", {})
            trial = {"checkpoints": {"claim": "checkpoints"}} if name in ("pbt", "pb2", "schedule") else None
            studies.append(self.train(name, algorithm, trial=trial, **needs))
            expected[name] = name
        studies.append(self.train("asha-promote", {"name": "random"}, earlyStopping={"name": "asha", "promote": True}))
        expected["asha-promote"] = "random"
        for branch, needs in BRANCHES.items():
            needs = dict(needs)
            studies.append(self.train(f"auto-{branch}", {"name": "auto"} | needs.pop("algorithm", {}), **needs))
            expected[f"auto-{branch}"] = branch
        cluster.apply({"apiVersion": "v1", "kind": "List", "items": studies})
        return expected

    def ended(self, name):
        status = self.study(name).get("status", {})
        return any(c["type"] in ("Succeeded", "Failed") and c["status"] == "True" for c in status.get("conditions", []))

    def first_runs(self, name):
        pods = items("pods", self.ns, f"batch.kubernetes.io/job-name={name}-0-r0")
        return any(pod["status"]["phase"] == "Running" for pod in pods)

    def let_first_end(self):
        """Later pods of these trials run no longer than others."""
        kubectl("annotate", "pods", "--all", "-n", self.ns, f"{FIRST_FOREVER}-")

    def test_every_algorithm_survives_the_operators_death(self):
        expected = self.apply_all()
        operator = self.start_operator(SCENARIO, self.ns, "-killed", ["--leader-elect=false"])
        for name in expected:
            wait_for(f"the first trial of {name}", lambda name=name: self.first_runs(name) or self.ended(name))
        operator.kill()
        self.assertEqual([name for name in expected if self.ended(name)], [], "all are killed in the midst")
        self.let_first_end()
        operator.start().wait_until_leader()
        wait_for("half of them to end", lambda: sum(map(self.ended, expected)) >= len(expected) / 2)
        operator.kill()
        operator.start().wait_until_leader()
        for name, algorithm in expected.items():
            with self.subTest(name):
                wait_for(f"the end of {name}", lambda name=name: self.ended(name))
                self.assert_search_succeeded(name, algorithm)
        for field, studies in (("promotions", PROMOTING), ("replaces", REPLACING)):
            with self.subTest(field):
                found = {t["spec"]["study"] for t in items("trials", self.ns) if t["spec"]["search"].get(field)}
                self.assertLessEqual(studies, found)

    def assert_search_succeeded(self, name, algorithm):
        study = get("studies", name, self.ns)
        self.assertIsNotNone(cluster.condition(study, "Succeeded"), study["status"])
        self.assertIn(algorithm, study["status"]["algorithm"])
        self.assertTrue(study["status"]["best"], "it found something")
        self.assertEqual(study["status"]["trials"].get("failed", 0), 0)
        self.assertEqual({t["status"]["phase"] for t in self.trials(name)} - {"Completed", "Stopped"}, set())
