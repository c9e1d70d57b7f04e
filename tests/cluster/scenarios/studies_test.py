"""The operator against a real control plane: a Study's life, and bad days."""
import subprocess
import time

import cluster
from cluster import ROOT, Operator, Refused, get, items, kubectl, study, wait_for
from scenario import FOREVER, QUIET_SECONDS, Scenario
from setup import RELEASE, SCENARIO, install, uninstall


def job_of_others():
    """A Job with the name of a trial's first run."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "s-1-r0"},
            "spec": {"suspend": True, "template": {"spec": pod}}}  # fmt: skip


class LifeTest(Scenario):
    def test_study_runs_to_its_end(self):
        self.apply(budget={"trials": 12, "parallelism": 3})
        kubectl("wait", "--for=condition=Succeeded", "study/s", "-n", self.ns, f"--timeout={cluster.PATIENCE}s")
        self.assert_succeeded(trials=12)
        status = self.study()["status"]
        self.assertEqual(status["progress"], "12/12")
        self.assertEqual(status["best"][0]["objectives"], [0.5])
        self.assert_quiet()
        for trial in self.trials():
            self.assertEqual(len(trial["status"]["runs"]), 1)

    def test_studies_side_by_side_share_nothing(self):
        for i in range(5):
            self.apply(f"s{i}", budget={"trials": 3, "parallelism": 3})
        for i in range(5):
            self.assert_succeeded(f"s{i}", trials=3)

    def test_suspend_and_resume(self):
        self.apply(annotations={FOREVER: "yes"}, budget={"trials": 2, "parallelism": 2})
        wait_for("a pod to run", self.running_pods)
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec":{"suspend":true}}')
        cluster.wait_for_condition("s", self.ns, "Suspended")
        wait_for("pods to go", lambda: not items("pods", self.ns))
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec":{"suspend":false}}')
        self.let_all_end()
        self.assert_succeeded(trials=2)

    def test_deleted_study_leaves_nothing(self):
        self.apply(annotations={FOREVER: "yes"}, budget={"trials": 20, "parallelism": 8})
        wait_for("trials to be created", lambda: len(self.trials()) >= 3)
        kubectl("delete", "study", "s", "-n", self.ns, "--wait=false")
        for kind in ("trials", "jobs", "pods"):
            wait_for(f"no {kind} to be left", lambda kind=kind: not items(kind, self.ns))
        time.sleep(QUIET_SECONDS)
        self.assertEqual(self.trials(), [])


class BadInputTest(Scenario):
    def test_schema_says_what_is_wrong(self):
        with self.assertRaises(Refused) as refused:
            self.apply(parameters=[{"name": "x", "type": "Double", "min": 2, "max": 1}])
        self.assertIn("min", str(refused.exception))
        self.assertIn("max", str(refused.exception))

    def test_refused_template_is_a_condition_in_the_servers_words(self):
        self.apply("bad", container={"image": "fake", "ports": [{"containerPort": 70000}]})
        self.apply("good")
        failed = cluster.wait_for_condition("bad", self.ns, "Failed")
        self.assertIn("must be between 1 and 65535", failed["message"])
        self.assertEqual(self.trials("bad"), [])
        self.assert_succeeded("good")

    def test_forbidden_pod_is_a_condition(self):
        self.restrict_pods()
        self.apply()
        failed = cluster.wait_for_condition("s", self.ns, "Failed")
        self.assertIn("PodSecurity", failed["message"])

    def test_quota_exceeded_then_freed(self):
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": self.ns},
                 "spec": {"hard": {"count/jobs.batch": "0"}}}  # fmt: skip
        cluster.apply(quota)
        wait_for("the quota to count", lambda: "exceeded quota" in self.refusal_of(job_of_others()))
        self.apply()
        wait_for("an event about the quota", lambda: any(
            "exceeded quota" in e["note"] for t in self.trials() for e in cluster.events(self.ns, t["metadata"]["name"])))  # fmt: skip
        kubectl("delete", "resourcequota", "q", "-n", self.ns)
        self.assert_succeeded()

    def test_unschedulable_gpus_are_explained(self):
        self.apply("greedy", trial={"gpu": {"count": 64}})
        self.apply("modest")

        def explained():
            runs = [r for t in self.trials("greedy") for r in t.get("status", {}).get("runs", [])]
            return any("nvidia.com/gpu" in r.get("message", "") for r in runs)

        wait_for("the scheduler's words in the trial", explained)
        self.assert_succeeded("modest")

    def test_unpullable_image_is_explained(self):
        self.apply(annotations={"fake.fettle.dev/waiting": "ImagePullBackOff",
                                "fake.fettle.dev/message": "no such image"})  # fmt: skip

        def explained():
            runs = [r for t in self.trials() for r in t.get("status", {}).get("runs", [])]
            return any("no such image" in r.get("message", "") for r in runs)

        wait_for("the reason in the trial", explained)

    def test_results_that_are_not_numbers_are_infeasible(self):
        self.apply(annotations={"fake.fettle.dev/message": '{"step": 1, "value": NaN}'})
        failed = cluster.wait_for_condition("s", self.ns, "Failed")
        self.assertEqual(failed["reason"], "NoResult")
        self.assertEqual(self.study()["status"]["trials"]["infeasible"], 4)

    def test_garbage_instead_of_a_result_fails_the_trials(self):
        self.apply(annotations={"fake.fettle.dev/message": "x" * 4000}, budget={"trials": 4, "parallelism": 2, "failures": 1})
        failed = cluster.wait_for_condition("s", self.ns, "Failed")
        self.assertIn("fail", failed["message"])


class BadDaysTest(Scenario):
    def test_operator_killed_again_and_again(self):
        self.operator.stop()
        # With a Lease it would wait after each kill until the Lease has expired.
        operator = self.start_operator(SCENARIO, self.ns, "-again", ["--leader-elect=false"])
        self.slow()
        for created in (1, 4, 7, 10):
            wait_for(f"{created} trials", lambda created=created: len(self.trials()) >= created)
            operator.kill()
            operator.start().wait_until_leader()
        self.assert_succeeded(trials=12)
        self.assert_one_run_each()

    def start_second_operator(self):
        """It waits, while self.operator leads."""
        second = Operator(SCENARIO, self.ns, self._testMethodName + "-second").start()
        self.addCleanup(lambda: self.assertIn(second.clean_up(), (0, None)))
        second.wait_until_ready()
        self.assertEqual(second.metric("fettle_leader"), 0)
        return second

    def begin(self):
        """A Study in the midst of its trials, which end when they are told to."""
        self.apply(budget={"trials": 12, "parallelism": 4}, annotations={FOREVER: "yes"})
        self.complete(2)

    def assert_finished(self):
        self.let_all_end()
        self.assert_succeeded(trials=12)
        self.assert_one_run_each()

    def test_another_operator_takes_over(self):
        second = self.start_second_operator()
        self.begin()
        first_holder = self.operator.lease_holder()
        self.assertEqual(self.operator.stop(), 0)
        self.assertNotEqual(self.operator.lease_holder(), first_holder, "it gave the Lease back")
        second.wait_until_leader()
        self.assert_finished()

    def test_killed_leader_is_replaced(self):
        second = self.start_second_operator()
        self.begin()
        self.operator.kill()
        second.wait_until_leader()
        self.assert_finished()

    def test_foreign_job_with_the_trials_name(self):
        kubectl("apply", "-n", self.ns, "-f", "-", document=job_of_others())
        uid = get("jobs", "s-1-r0", self.ns)["metadata"]["uid"]
        self.apply(budget={"trials": 4, "parallelism": 2, "failures": 4})
        wait_for("an event that names the Job", lambda: any(
            "s-1-r0" in e["note"] and e["type"] == "Warning" for e in cluster.events(self.ns, "s-1")))  # fmt: skip
        self.assertEqual(get("jobs", "s-1-r0", self.ns)["metadata"]["uid"], uid, "it is not ours to touch")

    def test_deleted_trial_does_not_stop_the_study(self):
        self.slow()
        wait_for("trials", lambda: len(self.trials()) >= 2)
        kubectl("delete", "trial", "s-0", "-n", self.ns, "--wait=false")
        cluster.wait_for_condition("s", self.ns, "Succeeded")

    def test_deleted_job_is_a_disruption(self):
        pod = self.run_for_ever()
        kubectl("delete", "job", "s-0-r0", "-n", self.ns)
        self.let_successor_end(pod)
        self.assert_succeeded(trials=1)
        outcomes = [run["outcome"] for run in self.trials()[0]["status"]["runs"]]
        self.assertEqual(outcomes, ["Disrupted", "Succeeded"])

    def test_evicted_pod_is_not_a_failure(self):
        pod = self.run_for_ever()
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.ns}}
        kubectl("create", "--raw", f"/api/v1/namespaces/{self.ns}/pods/{pod}/eviction", "-f", "-", document=eviction)
        self.let_successor_end(pod)
        self.assert_succeeded(trials=1)
        self.assertEqual(self.study()["status"]["trials"].get("failed", 0), 0)

    def test_edits_of_what_may_not_change_are_refused(self):
        self.slow()
        with self.assertRaises(Refused):
            kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec":{"parameters":[]}}')
        wait_for("a trial", self.trials)
        with self.assertRaises(Refused):
            kubectl("patch", "trial", "s-0", "-n", self.ns, "--type=merge", "-p", '{"spec":{"parameters":{"x":0.1}}}')


class ClusterTest(Scenario):
    """Disturbs whatever else runs in the cluster; its operator works in all namespaces."""

    alone = True
    expects_refusals = True  # while there is no API server
    lease = ("--lease-duration=120", "--lease-renew=100")  # the leader must outlast the restart

    def setUp(self):
        install()
        self.addCleanup(uninstall)
        self.ns = self.enterContext(cluster.namespace("restarted"))
        self.operator = self.start_operator(RELEASE)

    def test_api_server_restarted(self):
        self.apply(budget={"trials": 12, "parallelism": 4}, annotations={FOREVER: "yes"})
        self.complete(2)
        subprocess.run([str(ROOT / "tests/cluster/cluster"), "restart", "kube-apiserver"], check=True, capture_output=True)
        wait_for("the API server", lambda: kubectl("get", "--raw", "/readyz", check=False) == "ok")
        self.let_all_end()
        self.assert_succeeded(trials=12)
        self.assert_one_run_each()
        self.assertIsNone(self.operator.process.poll(), "the operator survived")
