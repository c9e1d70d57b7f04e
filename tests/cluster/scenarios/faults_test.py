"""Rows of the fault matrix (tests/matrix/calls) on the real control plane, through a fault proxy.

Each row is one Study of a few trials with a fault of its own; all run side by side in one namespace.
FETTLE_FAULT_ROWS says how many rows are sampled; the seed is fixed, so that they are always the
same ones.
"""
import json
import os
import pathlib
import random

import cluster
from cluster import condition, get, wait_for
from fault_proxy import KINDS, PHASES, Fault, FaultProxy
from scenario import Scenario

ROWS = int(os.environ.get("FETTLE_FAULT_ROWS", "24"))
SEED = 31
TRIALS = 4
# No claims: nothing provisions volumes here.
CALLS = [("create", "trials"), ("get", "trials"), ("apply", "trials/status"), ("apply", "studies/status"),
         ("create", "jobs"), ("delete", "jobs"), ("log", "pods/log"), ("create", "services"),
         ("patch", "jobs")]  # fmt: skip


def sample():
    """(study, verb, resource, kind, phase), each call as often as the others."""
    chance = random.Random(SEED)
    rows = [(*call, kind, phase) for call in CALLS for kind in KINDS for phase in range(len(PHASES))]
    chance.shuffle(rows)
    # While it ends, a Study has all its trials, so nothing would meet such a fault.
    rows = [row for row in rows if row[:2] != ("create", "trials") or row[3] != len(PHASES) - 1]
    return [(f"f{number}", *row) for number, row in enumerate(rows[:ROWS])]


class FaultsTest(Scenario):
    expects_refusals = True

    def start_operator(self, release, namespace=None, name="", arguments=()):
        """Reaches the API server through the proxy alone."""
        proxy = FaultProxy()
        self.proxy = proxy
        self.addCleanup(proxy.close)

        class Proxied(cluster.Operator):
            def _kubeconfig(self):
                path = pathlib.Path(super()._kubeconfig())
                config = json.loads(path.read_text())
                config["clusters"][0]["cluster"] = {"server": proxy.address}
                path.write_text(json.dumps(config))
                return str(path)

        operator = Proxied(release, namespace, self._testMethodName + name, arguments, self.lease)
        self.addCleanup(self.clean_up, operator)
        return operator.start().wait_until_leader()

    def document(self, name, verb, resource):
        changes = {"budget": {"trials": TRIALS, "parallelism": 2, "failures": 0}}
        trial = {}
        if resource in ("services", "jobs") and verb in ("create", "patch"):
            trial["workers"] = {"min": 2, "max": 2}
        return cluster.study(name, self.ns, trial=trial, annotations={"fake.fettle.dev/duration": "1s"}, **changes)

    def test_rows_of_the_fault_matrix(self):
        rows = sample()
        faults = {}
        for name, verb, resource, kind, phase in rows:
            faults[name] = Fault(name, verb, resource, kind, phase)
            self.proxy.add(faults[name], TRIALS)
        self.apply("usual", budget={"trials": TRIALS, "parallelism": 2})
        for name, verb, resource, _, _ in rows:
            cluster.apply(self.document(name, verb, resource))
        cluster.wait_for_condition("usual", self.ns, "Succeeded")
        points = [trial["spec"]["parameters"] for trial in self.trials("usual")]
        wrong = [self.judge(name, fault, points) for name, fault in faults.items()]
        wrong = [what for what in wrong if what]
        hit = sum(fault.hits > 0 for fault in faults.values())
        print(f"API calls on the control plane: {len(rows)} rows, {hit} hit, {len(wrong)} violations", flush=True)
        self.assertEqual(wrong, [])

    def judge(self, name, fault, points):
        """What is wrong with the Study at its end; "" if nothing is."""
        wait_for(f"{name} to end ({fault})", lambda: any(
            condition(get("studies", name, self.ns), kind) for kind in ("Succeeded", "Failed")))  # fmt: skip
        study = get("studies", name, self.ns)
        if condition(study, "Failed"):
            return f"{fault}: {condition(study, 'Failed')['message']}"
        trials = self.trials(name)
        phases = [trial["status"]["phase"] for trial in trials]
        if phases != ["Completed"] * TRIALS:
            return f"{fault}: trials ended as {phases}"
        if [trial["spec"]["parameters"] for trial in trials] != points:
            return f"{fault}: other points than without it"
        bad = [run for trial in trials for run in trial["status"]["runs"]
               if run.get("outcome") not in ("Succeeded", "Disrupted")]  # fmt: skip
        return f"{fault}: runs count as failed: {bad}" if bad else ""
