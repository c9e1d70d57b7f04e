"""Studies whose trials a queue admits, and PodGroups: trial.queue, trial.gang."""
import json
import re

import cluster
from cluster import condition, get, items, kubectl, wait_for
from gangs_test import GangScenario
from kueue import PRIORITY, QUEUE, Kueue
from scenario import Scenario


class QueueScenario(Scenario):
    """A Study in the queue `team` of a stand-in for Kueue, with a quota of two pods."""

    def setUp(self):
        super().setUp()
        self.kueue = Kueue(self.ns, "team", quota=2).start()
        self.addCleanup(self.kueue.stop)

    def apply_queued(self, trials=4, parallelism=4, annotations=None, **trial):
        study = cluster.study("s", self.ns, annotations=annotations or {},
                              budget={"trials": trials, "parallelism": parallelism, "failures": 0})  # fmt: skip
        study["spec"]["trial"] |= {"queue": "team", "queuePriorityClass": "low", "retries": 0} | trial
        cluster.apply(study)

    def suspend(self, whether):
        patch = '{"spec": {"suspend": %s}}' % ("true" if whether else "false")
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", patch)

    def assert_at_peace(self):
        self.assertEqual((self.kueue.refused, self.kueue.fought), ([], []))

    def phase(self):
        return (get("trials", "s-0", self.ns) or {}).get("status", {}).get("phase")

    def runs(self):
        return get("trials", "s-0", self.ns).get("status", {}).get("runs", [])

    def waits(self, trial):
        return (condition(get("trials", trial, self.ns), "Waiting") or {}).get("message", "")

    def study_waits(self):
        running = condition(self.study(), "Running") or {}
        return running["message"] if running.get("reason") == "Waiting" else ""


class QueueTest(QueueScenario):
    def test_a_quota_that_is_full_is_waiting(self):
        self.apply_queued(trials=5, annotations={"fake.fettle.dev/duration": "2s"})
        jobs = wait_for("Jobs in the queue", lambda: items("jobs", self.ns, f"{QUEUE}=team"))
        self.assertEqual(jobs[0]["metadata"]["labels"][PRIORITY], "low")
        self.assert_succeeded(trials=5)
        self.assert_one_run_each()
        self.assertEqual(self.kueue.most, 2)
        self.assert_at_peace()

    def test_a_queue_that_never_admits_is_told(self):
        self.kueue.quota = 0
        self.apply_queued(trials=2)
        self.assertIn("queue team has not admitted it", wait_for("the reason", lambda: self.waits("s-0")))
        words = wait_for("the Study to say so", self.study_waits)
        self.assertIn("all 2 trials wait; s-0: queue team has not admitted it", words)
        self.suspend(True)
        cluster.wait_for_condition("s", self.ns, "Suspended")
        self.assert_quiet()
        self.kueue.quota = 2
        self.suspend(False)
        self.assert_succeeded(trials=2)
        self.assert_at_peace()

    def preempt(self, times, **annotations):
        """A trial whose nodes are taken so often, and which succeeds in the end."""
        self.apply_queued(trials=1, parallelism=1, annotations={"fake.fettle.dev/forever": "yes"} | annotations)
        seen = set()
        for _ in range(times):
            seen |= wait_for("a new pod to run", lambda: self.running_pods() - seen)
            wait_for("the trial to run", lambda: self.phase() == "Running")
            [job] = [j for j in items("jobs", self.ns) if not j["metadata"].get("deletionTimestamp")]
            self.kueue.evict(job["metadata"]["name"])
            wait_for("the pod to go", lambda: not self.running_pods() & seen)
        pod = wait_for("the last pod", lambda: self.running_pods() - seen).pop()
        kubectl("annotate", "pod", pod, "-n", self.ns, "fake.fettle.dev/forever-")
        self.assert_succeeded(trials=1)
        self.assert_at_peace()

    def test_a_preempted_trial_keeps_its_job(self):
        self.preempt(times=3)
        self.assertEqual([(r["run"], r["outcome"]) for r in self.runs()], [(0, "Succeeded")])

    def test_a_stopped_trial_keeps_its_quota_until_its_pods_have_ended(self):
        slow = {"fake.fettle.dev/forever": "yes", "fake.fettle.dev/terminating": "3s"}
        self.apply_queued(trials=2, parallelism=2, annotations=slow)
        wait_for("two pods", lambda: len(self.running_pods()) == 2)
        other = cluster.study("other", self.ns, budget={"trials": 2, "parallelism": 2, "failures": 0})
        other["spec"]["trial"] |= {"queue": "team"}
        cluster.apply(other)
        wait_for("the other Study to wait", lambda: len(items("jobs", self.ns, f"{QUEUE}=team")) == 4)
        self.suspend(True)
        self.assert_succeeded("other", trials=2)
        self.assertEqual(self.kueue.most_alive, 2, "pods of the other Study began beside those that still ended")
        self.assertEqual([r["outcome"] for t in self.trials() for r in t["status"]["runs"]], ["Stopped"] * 2)
        self.assert_at_peace()

    def test_a_trial_does_not_grow_where_its_queue_would_preempt_it(self):
        self.kueue.quota = 1
        self.apply_queued(trials=1, parallelism=1, annotations={"fake.fettle.dev/forever": "yes"},
                          workers={"min": 1, "max": 2, "sizing": "Auto"})  # fmt: skip
        wait_for("the trial to run", lambda: self.phase() == "Running")
        cluster.wait_for_event(self.ns, "s", "FixedSize")
        self.let_all_end()
        self.assert_one_run_each()
        self.assert_at_peace()

    def test_a_trial_that_grew_and_was_preempted_begins_with_min(self):
        self.apply_queued(trials=1, parallelism=1, annotations={"fake.fettle.dev/forever": "yes"},
                          workers={"min": 1, "max": 2, "sizing": "Auto"})  # fmt: skip
        wait_for("the trial to run", lambda: self.phase() == "Running")
        self.kueue.quota = 1
        sizing = {"sizing": {"time": "2026-01-01T00:00:00Z", "workers": 2}, "workers": 2}  # as one that grew
        kubectl("patch", "trial", "s-0", "-n", self.ns, "--type=merge", "-p", json.dumps({"spec": sizing}))
        wait_for("the trial to wait", lambda: "took its nodes back" in self.waits("s-0"))
        wait_for("the trial to run again", lambda: self.phase() == "Running" and self.running_pods())
        self.assertEqual(get("trials", "s-0", self.ns)["spec"]["workers"], 1)
        self.let_all_end()
        self.assert_one_run_each()

    def test_a_preemption_and_an_admission_are_told_as_what_they_are(self):
        self.preempt(times=1)
        cluster.wait_for_event(self.ns, "s-0", "Preempted")
        notes = [e.get("note", "") for e in cluster.events(self.ns, "s-0")]
        self.assertEqual([n for n in notes if "no pod could be created" in n], [])

    def test_a_workload_that_is_finished_before_its_job_costs_a_run(self):
        self.kueue.quota = 0
        self.apply_queued(trials=1, parallelism=1)
        wait_for("its Job", lambda: items("jobs", self.ns, f"{QUEUE}=team"))
        self.kueue.finish("s-0-r0", "conflict for annotations")
        wait_for("the run to end", lambda: self.runs() and self.runs()[0].get("outcome") == "Disrupted")
        self.assertIn("conflict for annotations", self.runs()[0]["message"])
        self.kueue.quota = 1
        self.assert_succeeded(trials=1)
        self.assertEqual([r["outcome"] for r in self.runs()], ["Disrupted", "Succeeded"])

    def test_a_missing_priority_class_is_named(self):
        self.kueue.classes = ()
        self.apply_queued(trials=1, parallelism=1)
        self.assertIn("is there a WorkloadPriorityClass low", wait_for("the reason", lambda: self.waits("s-0")))
        self.kueue.classes = ("high",)
        patch = '{"spec": {"trial": {"queuePriorityClass": "high"}}}'
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", patch)
        self.assert_succeeded(trials=1)
        self.assert_one_run_each()
        self.assert_at_peace()

    def test_a_waiting_study_moves_to_another_queue(self):
        self.apply_queued(trials=2, parallelism=2)
        cluster.wait_for_condition("s", self.ns, "Succeeded")
        other = cluster.study("late", self.ns, budget={"trials": 2, "parallelism": 2, "failures": 0})
        other["spec"]["trial"] |= {"queue": "temo"}
        cluster.apply(other)
        wait_for("a Job in the wrong queue", lambda: items("jobs", self.ns, f"{QUEUE}=temo"))
        patch = '{"spec": {"trial": {"queue": "team"}}}'
        kubectl("patch", "study", "late", "-n", self.ns, "--type=merge", "-p", patch)
        self.assert_succeeded("late", trials=2)
        self.assert_one_run_each()
        self.assert_at_peace()

    def test_a_stopped_trial_is_not_resumed_by_the_queue(self):
        self.apply_queued(trials=2, parallelism=2, annotations={"fake.fettle.dev/forever": "yes"})
        wait_for("two pods", lambda: len(self.running_pods()) == 2)
        self.suspend(True)
        wait_for("both to pause", lambda: {t.get("status", {}).get("phase") for t in self.trials()} == {"Paused"})
        self.assert_quiet()
        self.assertEqual([r["outcome"] for t in self.trials() for r in t["status"]["runs"]], ["Stopped"] * 2)
        self.assert_at_peace()


class DeactivatedTest(QueueScenario):
    expects_refusals = True  # the condition Blocked is one

    def test_a_deactivated_workload_blocks_its_study(self):
        self.kueue.quota = 0
        self.apply_queued(trials=1, parallelism=1)
        name = wait_for("its Workload", lambda: items("workloads", self.ns))[0]["metadata"]["name"]
        self.activate(name, False)
        words = "Kueue has deactivated its Workload (The workload is deactivated)"
        cluster.wait_for_message("s", self.ns, "Blocked", words)
        self.kueue.quota = 1
        self.activate(name, True)
        self.assert_succeeded(trials=1)
        wait_for("the condition to go", lambda: not condition(self.study(), "Blocked"))
        self.assert_one_run_each()

    def activate(self, workload, whether):
        patch = '{"spec": {"active": %s}}' % ("true" if whether else "false")
        kubectl("patch", "workloads.kueue.x-k8s.io", workload, "-n", self.ns, "--type=merge", "-p", patch)

    def test_the_command_that_is_named_finds_the_workload(self):
        """Where the operator may not read Workloads; kubectl knows other objects of the short name."""
        self.kueue.quota = 0
        kubectl("patch", "role", "fettle-scenario-operator", "-n", self.ns, "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": f"/rules/{self.rule_of_workloads()}"}]))  # fmt: skip
        self.apply_queued(trials=1, parallelism=1)
        words = wait_for("the reason", lambda: self.waits("s-0"))
        command = re.search(r"kubectl (describe workloads\S* -n \S+ -l \S+) says why", words)
        self.assertTrue(command, words)
        self.assertIn("insufficient quota for 1 pods", kubectl(*command.group(1).split()))

    def rule_of_workloads(self):
        role = json.loads(kubectl("get", "role", "fettle-scenario-operator", "-n", self.ns, "-o", "json"))
        return next(i for i, rule in enumerate(role["rules"]) if "workloads" in rule["resources"])


class PodGroupTest(GangScenario):
    def test_a_native_group_is_placed_at_once(self):
        self.take_gpus(3)
        self.apply_gangs(trials=1, gang="native", annotations={"fake.fettle.dev/forever": "yes"})
        wait_for("the group", self.groups)
        wait_for("all of its pods", lambda: len(self.pods()) == 4)
        wait_for("the reason", lambda: "0 of 4 workers have a node" in self.waits())
        self.assertEqual([p for p in self.pods() if p["spec"].get("nodeName")], [], "three of four had room")
        self.give_gpus_back()
        for name in wait_for("all four", lambda: len(self.running_pods()) == 4 and self.running_pods()):
            kubectl("annotate", "pod", name, "-n", self.ns, "fake.fettle.dev/forever-")
        self.assert_succeeded(trials=1)
        self.assert_one_run_each()
        wait_for("the group to go with its Job", lambda: not self.groups())

    def groups(self):
        return cluster.reader.ask(f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{self.ns}/podgroups")["items"]


class MissingGroupsTest(Scenario):
    expects_refusals = True

    def test_a_cluster_without_the_scheduler_says_so(self):
        study = cluster.study("s", self.ns)
        study["spec"]["trial"] |= {"gang": "volcano", "workers": {"min": 2, "max": 2}}
        cluster.apply(study)
        cluster.wait_for_message("s", self.ns, "Blocked", "this cluster has no PodGroups of scheduling.volcano.sh")
        self.assertIsNone(cluster.condition(self.study(), "Failed"))
