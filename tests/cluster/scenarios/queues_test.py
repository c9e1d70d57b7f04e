"""Studies whose trials a queue admits, and PodGroups: trial.queue, trial.gang."""
import cluster
from cluster import condition, get, items, kubectl, wait_for
from gangs_test import GangScenario
from kueue import PRIORITY, QUEUE, Kueue
from scenario import Scenario


class QueueTest(Scenario):
    def setUp(self):
        super().setUp()
        self.kueue = Kueue(self.ns, "team", quota=2)
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
        return get("trials", "s-0", self.ns).get("status", {}).get("phase")

    def runs(self):
        return get("trials", "s-0", self.ns).get("status", {}).get("runs", [])

    def waits(self, trial):
        return (condition(get("trials", trial, self.ns), "Waiting") or {}).get("message", "")

    def study_waits(self):
        running = condition(self.study(), "Running") or {}
        return running["message"] if running.get("reason") == "Waiting" else ""

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

    def test_a_stopped_trial_is_not_resumed_by_the_queue(self):
        self.apply_queued(trials=2, parallelism=2, annotations={"fake.fettle.dev/forever": "yes"})
        wait_for("two pods", lambda: len(self.running_pods()) == 2)
        self.suspend(True)
        wait_for("both to pause", lambda: {t.get("status", {}).get("phase") for t in self.trials()} == {"Paused"})
        self.assert_quiet()
        self.assertEqual([r["outcome"] for t in self.trials() for r in t["status"]["runs"]], ["Stopped"] * 2)
        self.assert_at_peace()


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
        words = cluster.wait_for_condition("s", self.ns, "Blocked")["message"]
        self.assertIn("this cluster has no PodGroups of scheduling.volcano.sh", words)
        self.assertIsNone(cluster.condition(self.study(), "Failed"))
