"""Trials of several workers: gang scheduling, its timeout, and who is at fault when a worker ends."""
import time

import cluster
from cluster import TOLERATIONS, condition, get, items, kubectl, wait_for
from scenario import FOREVER, QUIET_SECONDS, Scenario
from setup import SCENARIO, install_in

GPU = "nvidia.com/gpu"
GANG = "fettle.dev/gang"
# How long a gang without a node may hold up others (kGatherMs in runtime/kubernetes/job/gang.h).
MOMENT_SECONDS = 10


class GangScenario(Scenario):
    """Each test has a node of its own with six GPUs."""

    # No gang must be returned that gathers: a slow machine may take seconds to schedule four pods.
    arguments = ("--gang-timeout=120",)

    def setUp(self):
        super().setUp()
        self.labels = {"fettle-test": self.ns}
        self.add_node()

    def add_node(self):
        name = f"{self.ns}-node"
        room = {"cpu": "64", "memory": "512Gi", "pods": "250", GPU: "6"}
        self.addCleanup(kubectl, "delete", "node", name, "--wait=false")
        cluster.apply({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": self.labels | {"kubernetes.io/hostname": name},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room},
        })

    def apply_gangs(self, name="s", workers=4, trials=2, annotations=None, ns=None, parallelism=None, **trial):
        annotations = {"fake.fettle.dev/message": '{"step": 1, "value": 0.5}'} | (annotations or {})
        pod = {
            "metadata": {"annotations": annotations},
            "spec": {
                "tolerations": TOLERATIONS,
                "nodeSelector": self.labels,
                "containers": [{"name": "trial", "image": "fake"}],
            },
        }
        cluster.apply(cluster.study(
            name,
            ns or self.ns,
            trial={"workers": {"min": workers, "max": workers}, "gpu": {"count": 1}, "template": pod, "retries": 0} | trial,
            budget={"trials": trials, "parallelism": parallelism or trials, "failures": 0},
        ))

    def take_gpus(self, count):
        """Another pod holds them until it is deleted."""
        cluster.apply({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "other", "namespace": self.ns},
            "spec": {
                "tolerations": TOLERATIONS,
                "nodeSelector": self.labels,
                "containers": [{"name": "c", "image": "fake", "resources": {"limits": {GPU: str(count)}}}],
            },
        })
        wait_for("the other pod to run", lambda: get("pods", "other", self.ns)["status"]["phase"] == "Running")

    def give_gpus_back(self):
        kubectl("delete", "pod", "other", "-n", self.ns)

    def pods(self, run="s-0-r0"):
        return items("pods", self.ns, f"batch.kubernetes.io/job-name={run}")

    def runs(self, trial="s-0"):
        return get("trials", trial, self.ns).get("status", {}).get("runs", [])

    def waits(self, trial="s-0"):
        """The message of the Trial's condition Waiting."""
        return (condition(get("trials", trial, self.ns), "Waiting") or {}).get("message", "")


class GangsThatGather(GangScenario):
    def test_two_trials_of_four_workers_share_six_gpus(self):
        # A name that a Service could not have.
        self.apply_gangs("7gangs", annotations={FOREVER: "yes"})
        first = wait_for("the first gang", self.whole_gang)
        jobs = items("jobs", self.ns)
        states = sorted(job["metadata"]["annotations"][GANG] for job in jobs)
        self.assertNotIn("returned", states, "it is not even the second one's turn")
        self.assertTrue(items("pods", self.ns)[0]["spec"]["subdomain"].startswith("w-7gangs-"))
        self.let_end(first)
        self.let_end(wait_for("the second gang", self.whole_gang))
        self.assert_succeeded("7gangs", trials=2)
        for trial in ("7gangs-0", "7gangs-1"):
            self.assertEqual([(r["run"], r["outcome"]) for r in self.runs(trial)], [(0, "Succeeded")])
        self.assert_quiet()

    def whole_gang(self):
        """The held pods of a trial all of whose four workers run."""
        held = self.held("7gangs")
        gangs = ({p["metadata"]["name"] for p in self.pods(f"7gangs-{i}-r0")} & held for i in (0, 1))
        return next((gang for gang in gangs if len(gang) == 4), None)

    def test_many_gangs_gather_one_after_the_other_whoever_leads(self):
        self.apply_gangs(workers=3, trials=6, annotations={"fake.fettle.dev/duration": "1s"})
        wait_for("the first of them", self.completed)
        self.operator.kill()
        self.operator.start().wait_until_leader()
        self.assert_succeeded(trials=6)
        self.assert_one_run_each()


class GangsThatCannotMeet(GangScenario):
    def quota(self, services):
        """Of Services beside the one of the operator's metrics, which is in the same namespace."""
        services += 1
        cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": self.ns},
                       "spec": {"hard": {"services": str(services)}}})  # fmt: skip
        wait_for("the quota to count", lambda: f'"services": "{services}"' in kubectl(
            "get", "quota", "q", "-n", self.ns, "-o", "jsonpath={.status.hard}").replace(":", ": "))  # fmt: skip

    def test_one_service_serves_all_trials_and_none_holds_gpus_without_it(self):
        self.quota(0)
        self.apply_gangs(workers=2, trials=3)
        wait_for("the trials to say it", lambda: "exceeded quota: q" in self.waits())
        wait_for("the Study to say it", lambda: "exceeded quota: q" in (
            condition(self.study(), "Running") or {}).get("message", ""))  # fmt: skip
        self.assertEqual(items("jobs", self.ns), [])
        self.quota(1)
        self.assert_succeeded(trials=3)
        self.assert_one_run_each()
        self.assertEqual(len([one for one in items("services", self.ns) if one["metadata"]["name"].startswith("w-")]), 1)

    def test_a_full_quota_does_not_hide_the_service_that_is_there(self):
        self.quota(1)
        self.apply_gangs(workers=2, trials=2, annotations={FOREVER: "yes"})
        wait_for("the first gang", lambda: len(self.held()) >= 2)
        self.operator.kill()
        self.operator.start().wait_until_leader()
        self.let_all_end()
        self.assert_succeeded(trials=2)
        self.assert_one_run_each()


class GangsThatDoNotGather(GangScenario):
    # How far a gang is shows from 5 s on, for as long as this allows.
    arguments = ("--gang-timeout=30",)

    def test_an_incomplete_gang_gives_way_and_comes_back(self):
        self.take_gpus(3)
        self.apply_gangs(trials=1, annotations={FOREVER: "yes"})
        first = wait_for("all of its pods", lambda: len(self.pods()) == 4 and self.uids())
        # Its condition and its pods give way to the next attempt: events stay, and uids differ.
        cluster.wait_for_event(self.ns, "s-0", "3 of 4 workers have a node; ")
        cluster.wait_for_event(self.ns, "s-0", "they give way to others")
        wait_for("its GPUs to be free", lambda: not self.uids() & first)
        self.assertEqual(get("trials", "s-0", self.ns)["status"]["phase"], "Pending")
        self.give_gpus_back()
        wait_for("all four to run and to end", self.all_four_succeed)
        self.assert_succeeded(trials=1)
        self.assert_one_run_each()

    def all_four_succeed(self):
        """They end when all run; an attempt that gave way as the last one got its node is repeated."""
        held = self.held()
        if len(held) == 4:
            self.let_end(held)
        return condition(self.study(), "Succeeded")

    def uids(self):
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def test_a_gang_that_waits_can_be_stopped(self):
        self.take_gpus(6)
        self.apply_gangs(trials=2)
        wait_for("Jobs", lambda: len(items("jobs", self.ns)) == 2)
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec": {"suspend": true}}')
        cluster.wait_for_condition("s", self.ns, "Suspended")
        self.give_gpus_back()
        self.assert_quiet()
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec": {"suspend": false}}')
        self.assert_succeeded(trials=2)


class GangsOfTwoTenants(GangScenario):
    def setUp(self):
        super().setUp()
        self.operator.stop()
        self.crowd = self.enterContext(cluster.namespace(f"{self.ns}-2"))
        install_in(self.ns, others=[self.crowd])
        arguments = [f"--namespace={self.crowd}", "--leader-elect=false", *self.arguments]
        self.operator = self.start_operator(SCENARIO, self.ns, "-two", arguments)

    def seconds_of_twelve(self, name):
        """How long twelve trials of two workers take, two at a time."""
        began = time.monotonic()
        self.apply_gangs(name, workers=2, trials=12, parallelism=2, annotations={"fake.fettle.dev/duration": "1s"})
        self.assert_succeeded(name, trials=12)
        return time.monotonic() - began

    def test_a_hundred_gangs_that_can_never_be_placed_delay_nobody(self):
        alone = self.seconds_of_twelve("alone")
        # No node has seven GPUs; the nodes that they would need are those of the others.
        # Two Studies, since none creates more than 50 trials before it hears that they wait.
        for name in ("crowd-a", "crowd-b"):
            self.apply_gangs(name, workers=2, trials=50, ns=self.crowd, gpu={"count": 7})
        wait_for("them to stand in line", lambda: len(items("jobs", self.crowd)) > 90)
        cluster.wait_for_event(self.crowd, "crowd-a-0", "no node has room for it")
        # Oldest first, each of the hundred would have its moment before the first of these.
        beside = self.seconds_of_twelve("beside")
        print(f"twelve trials: {alone:.0f} s alone, {beside:.0f} s beside 100 gangs", flush=True)
        self.assertLess(beside, 2 * alone + 12 * MOMENT_SECONDS, "each waits for one of the hundred at most")
        self.assertGreater(self.operator.metric("fettle_gang_line"), 80)


class GangsThatLoseAWorker(GangScenario):
    def evict(self, pod):
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod["metadata"]["name"], "namespace": self.ns},
        }
        path = f"/api/v1/namespaces/{self.ns}/pods/{pod['metadata']['name']}/eviction"
        kubectl("create", "--raw", path, "-f", "-", document=eviction)

    def of_rank(self, rank, run="s-0-r0"):
        label = "batch.kubernetes.io/job-completion-index"
        found = [p for p in self.pods(run) if p["metadata"]["labels"][label] == str(rank)]
        return max(found, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)

    def end(self, pod, code):
        kubectl("annotate", "pod", pod["metadata"]["name"], "-n", self.ns, f"fake.fettle.dev/exit-code={code}",
                f"{FOREVER}-", "--overwrite")  # fmt: skip

    def test_an_evicted_worker_is_a_disruption_and_the_next_run_waits_for_it(self):
        # The evicted worker does not end before it is told to, within its grace period.
        self.apply_gangs(workers=2, trials=1, gracePeriod="1h",
                         annotations={FOREVER: "yes", "fake.fettle.dev/terminating": "1h"})  # fmt: skip
        wait_for("both workers", lambda: len(self.running_pods()) == 2)
        wait_for("the run to be recorded", lambda: self.runs() and "runningTime" in self.runs()[0])
        evicted = self.of_rank(1)
        self.evict(evicted)
        self.end(self.of_rank(0), 1)
        first = wait_for("the end of the run", lambda: next((r for r in self.runs() if "outcome" in r), None))
        self.assertEqual(first["outcome"], "Disrupted", first)
        self.assertIn("worker 1: its pod", first["message"])
        time.sleep(QUIET_SECONDS)
        self.assertIsNone(get("jobs", "s-0-r1", self.ns), "they would share checkpoints")
        kubectl("annotate", "pod", evicted["metadata"]["name"], "-n", self.ns, "fake.fettle.dev/terminating-")
        wait_for("the next run", lambda: get("jobs", "s-0-r1", self.ns))
        before = get("pods", evicted["metadata"]["name"], self.ns)
        self.assertTrue(before is None or before["status"]["phase"] == "Failed", "they would share checkpoints")
        wait_for("both workers of it", lambda: len([p for p in self.pods("s-0-r1") if p["status"]["phase"] == "Running"]) == 2)
        for rank in (0, 1):
            self.end(self.of_rank(rank, "s-0-r1"), 0)
        self.assert_succeeded(trials=1)
        self.assertEqual([r["outcome"] for r in self.runs()], ["Disrupted", "Succeeded"])

    def test_a_worker_that_fails_is_the_trials_own_fault(self):
        self.apply_gangs(workers=2, trials=1, annotations={FOREVER: "yes"})
        wait_for("both workers", lambda: len(self.running_pods()) == 2)
        wait_for("the run to be recorded", lambda: self.runs() and "runningTime" in self.runs()[0])
        self.end(self.of_rank(1), 3)
        cluster.wait_for_condition("s", self.ns, "Failed")
        self.assertEqual([r["outcome"] for r in self.runs()], ["Failed"])
        self.assertIn("worker 1: exit code 3", self.runs()[0]["message"])
