"""Scenario: the base class of the operator's tests on a real control plane."""
import json
import time
import unittest

import cluster
from cluster import Operator, Refused, condition, get, items, kubectl, study, wait_for
from setup import SCENARIO, install_in

# A fake pod that has this annotation runs until it is taken away.
FOREVER = "fake.fettle.dev/forever"
# How long nothing may happen: the operator retries, and reacts to events, well within.
QUIET_SECONDS = 5


class Scenario(unittest.TestCase):
    """A namespace and a running operator for each test; run.py runs them in parallel."""

    alone = False
    namespace = ""  # if not one that is called as the test
    settings = ""  # further values of the chart, as --set takes them
    values = None  # and as a document, or as the text of one
    # Whether an action is refused three times in a row for the same reason. Otherwise that is a
    # retry which never ends, and fails the test.
    expects_refusals = False
    arguments = ()  # of the operator
    lease = cluster.PATIENT_LEASE

    def setUp(self):
        name = self._testMethodName.removeprefix("test_").replace("_", "-")
        self.ns = self.enterContext(cluster.namespace(self.namespace or name[:40]))
        install_in(self.ns, self.settings, values=self.values)
        self.operator = self.start_operator(SCENARIO, self.ns, arguments=self.arguments)

    def start_operator(self, release, namespace=None, name="", arguments=()):
        """It leads, and is stopped at the end of the test."""
        operator = Operator(release, namespace, self._testMethodName + name, arguments, self.lease)
        self.addCleanup(self.clean_up, operator)
        return operator.start().wait_until_leader()

    def clean_up(self, operator):
        self.assertIn(operator.clean_up(), (0, None))
        if not self.expects_refusals:
            self.assertEqual(operator.refusals(), [])

    def apply(self, name="s", **changes):
        cluster.apply(study(name, self.ns, **changes))
        return name

    def study(self, name="s"):
        return get("studies", name, self.ns)

    def completed(self, name="s"):
        """How many of its trials are; none before the operator has seen it."""
        return self.study(name).get("status", {}).get("trials", {}).get("completed", 0)

    def trials(self, name="s"):
        return sorted(
            items("trials", self.ns, f"fettle.dev/study={name}"), key=lambda t: t["spec"]["index"]
        )

    def assert_succeeded(self, name="s", trials=4):
        cluster.wait_for_condition(name, self.ns, "Succeeded")
        found = self.trials(name)
        self.assertEqual([t["spec"]["index"] for t in found], list(range(trials)))
        self.assertEqual({t["status"]["phase"] for t in found}, {"Completed"})
        points = {json.dumps(t["spec"]["parameters"]) for t in found}
        self.assertEqual(len(points), trials, "every trial has a point of its own")

    def assert_quiet(self):
        """Waits until no Job is left and the operator writes nothing more."""
        wait_for("all Jobs to be deleted", lambda: not items("jobs", self.ns))
        wait_for("the operator to be quiet", self.is_quiet)

    def is_quiet(self):
        before = self.operator.writes()
        time.sleep(QUIET_SECONDS)
        return bool(before) and self.operator.writes() == before

    def slow(self, name="s"):
        self.apply(name, budget={"trials": 12, "parallelism": 4}, annotations={"fake.fettle.dev/duration": "1s"})

    def assert_one_run_each(self):
        for trial in self.trials():
            self.assertEqual([r["run"] for r in trial["status"]["runs"]], [0], trial["metadata"]["name"])

    def run_for_ever(self):
        """A Study of one trial, which no failure is forgiven; the name of its running pod."""
        self.apply(annotations={FOREVER: "yes"}, budget={"trials": 1, "parallelism": 1, "failures": 0})
        # A run that is lost before it is recorded has never been: the same one starts again.
        wait_for("the run to be recorded", lambda: any(
            "runningTime" in run for trial in self.trials() for run in trial.get("status", {}).get("runs", [])))  # fmt: skip
        return wait_for("a running pod", self.running_pods).pop()

    def running_pods(self):
        return {p["metadata"]["name"] for p in items("pods", self.ns) if p["status"]["phase"] == "Running"}

    def held(self, name="s"):
        """The Study's running pods that have not been told to end."""
        found = items("pods", self.ns, f"fettle.dev/study={name}")
        return {p["metadata"]["name"] for p in found
                if p["status"]["phase"] == "Running" and FOREVER in p["metadata"]["annotations"]}  # fmt: skip

    def let_end(self, pods):
        """Lets these pods end, which run until then."""
        if not pods:
            return
        try:
            kubectl("annotate", "pod", *pods, "-n", self.ns, f"{FOREVER}-")
        except Refused as refused:  # one that is gone has ended
            if not all("not found" in line for line in str(refused).splitlines()):
                raise

    def let_successor_end(self, pod):
        self.let_end([wait_for(f"the successor of {pod}", lambda: self.running_pods() - {pod}).pop()])

    def complete(self, count, name="s"):
        """Lets that many held trials end, and waits until they are counted: no other one ends."""
        before = self.completed(name)
        for _ in range(count):
            self.let_end([wait_for(f"a trial of {name} to run", lambda: self.held(name)).pop()])
        wait_for(f"{count} trials of {name} to be completed", lambda: self.completed(name) == before + count)

    def let_all_end(self, name="s"):
        """Lets held trials end until the Study has succeeded."""

        def has_succeeded():
            self.let_end(self.held(name))
            return condition(self.study(name), "Succeeded")

        wait_for(f"{name} to succeed", has_succeeded)

    def delete_study_without_trials(self):
        """Once the garbage collector knows Trials. It learns of new definitions up to half a minute
        late; before, it lets the Study go with the trials' owner references still in place."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
        cluster.apply({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial", "spec": {"study": "nobody"},
                       "metadata": {"name": "of-nobody", "namespace": self.ns, "ownerReferences": [owner]}})  # fmt: skip
        wait_for("the garbage collector to know Trials", lambda: not get("trials", "of-nobody", self.ns))
        kubectl("delete", "study", "s", "-n", self.ns, "--cascade=orphan")

    def refusal_of(self, document):
        """Why the API server refuses to create the object; "" if it would accept it."""
        try:
            kubectl("create", "--dry-run=server", "-f", "-", "-n", self.ns, document=document)
        except Refused as refused:
            return str(refused)
        return ""

    def restrict_pods(self):
        """The namespace enforces the restricted Pod Security Standard; it counts a moment later."""
        kubectl("label", "namespace", self.ns, "pod-security.kubernetes.io/enforce=restricted")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
        wait_for("pods to be restricted", lambda: "PodSecurity" in self.refusal_of(pod))
