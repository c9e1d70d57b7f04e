"""The elastic policy (core/study/elastic.h): trials take the GPUs that are free, and give them back."""
import datetime
import itertools
import math
import time

import cluster
from cluster import TOLERATIONS, events, get, items, kubectl, wait_for
from poller import Poller
from scenario import FOREVER, QUIET_SECONDS, Scenario

GPU = "nvidia.com/gpu"
ELASTIC = ("elastic-0", "elastic-1")
# Of the policy (core/study/elastic.h): between two changes of a trial, and after it found no room.
SETTLE_SECONDS, TRY_AGAIN_SECONDS = 60, 300
SEEN_SECONDS = 10  # within this time the operator sees that a pod waits


def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def worker_seconds(run):
    """What the run's record says that its workers have cost together."""
    begun = [(seconds(run["runningTime"]), run["workers"])]
    changes = begun + [(seconds(r["time"]), r["workers"]) for r in run.get("resizes", [])]
    ends = [at for at, _ in changes[1:]] + [seconds(run["endTime"])]
    return sum((end - at) * workers for (at, workers), end in zip(changes, ends))


def has_no_node(pod):
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", []))


def decided(sizing):
    return seconds(sizing["time"])


class Watcher(Poller):
    """Sees which sizes trials were given, how long their pods have run, and when others waited."""

    PAUSE = 0.2

    def __init__(self, namespace):
        super().__init__()
        self.namespace, self.pod_seconds = namespace, 0.0
        self.changes = {name: [] for name in ELASTIC}  # spec.sizing, each as long as it held
        self.waits = {}  # pod of another Study: when it was first and last seen without a node
        self.looked = time.monotonic()

    def look(self):
        pods = items("pods", self.namespace, "fettle.dev/study=elastic")
        now = time.monotonic()
        self.pod_seconds += (now - self.looked) * sum(p["status"]["phase"] == "Running" for p in pods)
        self.looked = now
        for trial in items("trials", self.namespace, "fettle.dev/study=elastic"):
            seen, sizing = self.changes[trial["metadata"]["name"]], trial["spec"].get("sizing")
            if sizing and sizing not in seen:
                seen.append(sizing)
        for pod in items("pods", self.namespace, "fettle.dev/study,fettle.dev/study!=elastic"):
            if has_no_node(pod):
                self.waits.setdefault(pod["metadata"]["uid"], [time.time(), 0])[1] = time.time()

    def growths(self):
        """When trials were grown."""
        return [decided(after) for changes in self.changes.values()
                for before, after in itertools.pairwise([{"workers": 1}, *changes]) if after["workers"] > before["workers"]]  # fmt: skip


class ElasticTest(Scenario):
    def test_workers_follow_the_gpus_that_are_free(self):
        """It takes three minutes, which the policy itself waits."""
        watcher = Watcher(self.ns).start()
        self.addCleanup(watcher.stop)
        self.begin_with_min_while_something_waits()
        self.grow_while_nothing_waits()
        self.shrink_for_another_study()
        self.lose_a_node_and_get_it_back()
        self.inherit_what_the_other_had()
        self.end_all()
        watcher.stop()
        self.check_what_was_spent(watcher)
        self.check_that_nothing_flapped(watcher)

    def begin_with_min_while_something_waits(self):
        self.add_node("one", gpus=2)
        self.apply_study("blocked", node="two")
        wait_for("a trial to wait for a node", lambda: self.unschedulable("blocked"))
        self.apply_study("elastic", trials=2, workers={"min": 1, "max": 4, "sizing": "Auto"})
        wait_for("both trials to run", lambda: self.running("elastic") == 2 and self.recorded() == [1, 1])
        time.sleep(QUIET_SECONDS)
        self.assertEqual(self.wanted(), [1, 1], "nothing grows while another Study waits")

    def grow_while_nothing_waits(self):
        self.add_node("two", gpus=3)
        wait_for("both to have two workers", lambda: self.recorded() == [2, 2])
        self.assertEqual(self.running("blocked"), 1)

    def shrink_for_another_study(self):
        """One of the two gives up a worker; which one, depends on who has been longer as it is."""
        self.apply_study("more")
        wait_for("one to shrink", lambda: 1 in self.wanted())
        self.small = self.wanted().index(1)
        self.large = 1 - self.small
        wait_for("the trial that waited to run", lambda: self.running("more") == 1)
        wait_for("its end to be recorded", lambda: self.recorded()[self.small] == 1)

    def lose_a_node_and_get_it_back(self):
        node = self.node("two")
        kubectl("drain", node, "--force", "--delete-emptydir-data", f"--timeout={cluster.PATIENCE}s")
        kubectl("delete", "node", node)
        wait_for("what has no place to be given back", lambda: self.wanted() == [1, 1])
        self.assertEqual(self.running("elastic"), 2, "they train on")
        self.add_node("two", gpus=3)
        wait_for("what was on it to run again", lambda: self.running("blocked") == self.running("more") == 1)
        time.sleep(QUIET_SECONDS)  # nothing grows: it has just found no room

    def inherit_what_the_other_had(self):
        self.let_trial_end(ELASTIC[self.small])
        wait_for("the one that is left to grow", lambda: self.recorded()[self.large] == 2)

    def end_all(self):
        for name in (ELASTIC[self.large], "blocked-0", "more-0"):
            self.let_trial_end(name)
        for name in ("elastic", "blocked", "more"):
            cluster.wait_for_condition(name, self.ns, "Succeeded")

    def check_what_was_spent(self, watcher):
        runs = [run for name in ELASTIC for run in get("trials", name, self.ns)["status"]["runs"]]
        self.assertEqual([r["outcome"] for r in runs], ["Succeeded"] * 2, "each trains in one run")
        recorded = sum(worker_seconds(run) for run in runs)
        self.assertAlmostEqual(float(self.study("elastic")["status"]["gpuHours"]) * 3600, recorded, delta=0.01)
        # Watched from outside, each change is seen a moment sooner or later.
        self.assertAlmostEqual(recorded, watcher.pod_seconds, delta=10 + 0.1 * recorded)

    def check_that_nothing_flapped(self, watcher):
        """By the policy's own times: a slow cluster leaves it time for more changes than a fast one."""
        for name, changes in watcher.changes.items():
            for before, after in itertools.pairwise(changes):
                if "noRoomAfter" not in after:  # to give back, it waits for nothing
                    self.assertGreater(decided(after) - decided(before), SETTLE_SECONDS - 1, (name, changes))
        growths = watcher.growths()
        self.assertGreaterEqual(len(growths), 3, watcher.changes)
        for first_seen, last_seen in watcher.waits.values():
            until = min(last_seen - SEEN_SECONDS, first_seen + TRY_AGAIN_SECONDS)
            self.assert_none_between(growths, first_seen + SEEN_SECONDS, until, "another Study waited")
        one_ended = seconds(get("trials", ELASTIC[self.small], self.ns)["status"]["runs"][-1]["endTime"])
        for found in (c for changes in watcher.changes.values() for c in changes if "noRoomAfter" in c):
            until = one_ended if decided(found) < one_ended else math.inf
            until = min(until, decided(found) + TRY_AGAIN_SECONDS)
            self.assert_none_between(growths, decided(found), until - 1, "it had found no room")

    def assert_none_between(self, times, begin, end, why):
        self.assertEqual([at for at in times if begin < at < end], [], why)

    def node(self, which):
        return f"{self.ns}-{which}"

    def add_node(self, which, gpus):
        name = self.node(which)
        room = {"cpu": "64", "memory": "512Gi", "pods": "250", GPU: str(gpus)}
        self.addCleanup(kubectl, "delete", "node", name, "--ignore-not-found", "--wait=false")
        cluster.apply({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"fettle-test": self.ns, "kubernetes.io/hostname": name},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room},
        })  # fmt: skip

    def apply_study(self, name, trials=1, node=None, **trial):
        """Its trials run until they are told to end."""
        where = {"fettle-test": self.ns} | ({"kubernetes.io/hostname": self.node(node)} if node else {})
        pod = {
            "metadata": {"annotations": {"fake.fettle.dev/message": '{"step": 1, "value": 0.5}',
                                         FOREVER: "yes"}},
            "spec": {"tolerations": TOLERATIONS, "nodeSelector": where,
                     "containers": [{"name": "trial", "image": "fake"}]},
        }  # fmt: skip
        self.apply(name, trial={"gpu": {"count": 1}, "template": pod, "retries": 0} | trial,
                   budget={"trials": trials, "parallelism": trials, "failures": 0})  # fmt: skip

    def pods(self, label):
        return items("pods", self.ns, label)

    def running(self, study):
        return sum(p["status"]["phase"] == "Running" for p in self.pods(f"fettle.dev/study={study}"))

    def unschedulable(self, study):
        return [pod for pod in self.pods(f"fettle.dev/study={study}") if has_no_node(pod)]

    def wanted(self):
        return [t["spec"]["workers"] for t in self.trials("elastic")]

    def recorded(self):
        """How many workers their records say that run now."""
        runs = [t.get("status", {}).get("runs", [{}])[-1] for t in self.trials("elastic")]
        return [([{"workers": r["workers"]}] + r.get("resizes", []))[-1]["workers"] if "runningTime" in r else 0
                for r in runs]  # fmt: skip

    def let_trial_end(self, trial):
        self.let_end([pod["metadata"]["name"] for pod in self.pods(f"fettle.dev/trial={trial}")])
