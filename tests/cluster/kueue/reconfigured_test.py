"""What needs Kueue in another configuration, or down: one scenario at a time."""
import cluster
from cluster import events, get, items, kubectl, wait_for, wait_for_event
from real_kueue import KueueScenario, install, scale
from scenario import FOREVER

SLOW = {FOREVER: "yes"}


class Alone(KueueScenario):
    alone = True


class OutageTest(Alone):
    expects_refusals = True  # by Kueue's webhook, which does not answer

    def setUp(self):
        super().setUp()
        self.addCleanup(scale, 1)

    def test_kueue_is_down_in_the_middle_of_a_study(self):
        self.begin(trials=4, parallelism=4, annotations={"fake.fettle.dev/duration": "5s"})
        wait_for("two to run", lambda: len(self.running_pods()) == 2)
        scale(0)
        wait_for("both to end well", lambda: self.completed() == 2)
        self.begin(name="late", trials=2)
        words = cluster.wait_for_condition("late", self.ns, "Blocked")["message"]
        self.assertIn("kueue", words)
        scale(1)
        self.assert_done(trials=4)
        self.assert_done("late", trials=2)

    def test_a_study_is_suspended_and_deleted_while_kueue_is_down(self):
        self.begin(trials=4, parallelism=4, annotations=SLOW)
        wait_for("two to run and two to wait", lambda: len(self.held()) == 2 and len(self.suspended()) == 2)
        scale(0)
        self.patch("study", "s", {"spec": {"suspend": True}})
        wait_for("those in the queue to pause", lambda: self.phases().count("Paused") >= 2)
        kubectl("delete", "study", "s", "-n", self.ns, "--wait=false")
        scale(1)
        for kind in ("studies", "trials", "jobs", "workloads", "pods"):
            wait_for(f"no {kind}", lambda kind=kind: not items(kind, self.ns))


class GivenUpTest(Alone):
    expects_refusals = True  # the condition Blocked is one
    more = """
waitForPodsReady: {timeout: 5s, requeuingStrategy: {backoffBaseSeconds: 1, backoffLimitCount: 1}}
"""

    def test_a_workload_that_kueue_gave_up_blocks_the_study(self):
        """Until it is deleted: Kueue 0.17 does not queue it again when it is only set active."""
        waiting = {"fake.fettle.dev/waiting": "ImagePullBackOff", "fake.fettle.dev/message": "no such image"}
        self.begin(trials=1, annotations=waiting)
        words = cluster.wait_for_condition("s", self.ns, "Blocked")["message"]
        self.assertIn("Kueue has deactivated its Workload (", words)
        self.assertIn("; before that: its image cannot be pulled: no such image", words)
        wait_for("the trial to say the same", lambda: "deactivated its Workload" in self.waits())
        self.assertIn("no such image", self.waits())
        install()  # pods may take their time again
        name = self.workload_of("s-0-r0")["metadata"]["name"]
        self.assertIn(f"kubectl delete workloads.kueue.x-k8s.io {name} -n {self.ns} queues it again", words)
        kubectl("delete", "workloads.kueue.x-k8s.io", name, "-n", self.ns, "--wait=false")
        wait_for("a pod again", lambda: items("pods", self.ns))
        wait_for("nothing to be blocked", lambda: not cluster.condition(self.study(), "Blocked"))


class SlicesTest(Alone):
    gates = ("ElasticJobsViaWorkloadSlices",)

    def elastic(self, quota):
        self.set_quota(quota)
        self.begin(trials=1, annotations=SLOW, workers={"min": 1, "max": 2, "sizing": "Auto"})
        wait_for("it to run", lambda: self.phases() == ["Running"])

    def test_a_trial_grows_without_interruption(self):
        self.elastic(quota=2)
        wait_for("two workers", lambda: len(self.held()) == 2)
        self.let_all_end()
        self.assert_done(trials=1)
        self.assertEqual([e for e in events(self.ns, "s-0") if e["reason"] == "Preempted"], [])

    def test_a_worker_without_quota_is_given_back(self):
        self.elastic(quota=1)
        wait_for_event(self.ns, "s", "no place was found for 1 more")
        self.assertEqual(get("trials", "s-0", self.ns)["spec"]["workers"], 1)
        self.let_all_end()
        self.assert_done(trials=1)
        self.assertEqual([e for e in events(self.ns, "s-0") if e["reason"] == "Preempted"], [])

    def test_a_trial_that_grew_goes_on_after_a_preemption(self):
        """Kueue before 0.17.8 finishes the Workloads of such a Job: then the trial gets another run."""
        self.elastic(quota=2)
        wait_for("two workers", lambda: len(self.held()) == 2)
        self.take_quota("urgent", pods=2)
        wait_for("it to wait", lambda: not self.held())
        self.give_quota_back("urgent")
        wait_for("it to run again", lambda: self.phases() == ["Running"] and self.held())
        self.let_all_end()
        self.assert_succeeded(trials=1)
        self.assertLessEqual([r["outcome"] for r in self.runs()].count("Disrupted"), 1)


class UnqueuedTest(Alone):
    more = """
manageJobsWithoutQueueName: true
"""
    expects_refusals = True

    def test_a_study_without_a_queue_is_told_that_kueue_holds_its_jobs(self):
        self.begin(trials=1, annotations=SLOW, workers={"min": 2, "max": 2}, queue=None, queuePriorityClass=None)
        wait_for("the reason", lambda: "the Job is suspended" in self.waits())
        self.patch("job", "s-0-r0", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})
        self.let_all_end()
        self.assert_done(trials=1)
