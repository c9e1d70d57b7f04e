"""Studies in queues of Kueue itself: what it admits, preempts and gives up, and what Fettle makes of it."""
import json
import re
import time

import cluster
from cluster import events, get, items, kubectl, wait_for, wait_for_event
from real_kueue import QUEUE, KueueScenario
from scenario import FOREVER

SLOW = {FOREVER: "yes"}
SHORT = {"fake.fettle.dev/duration": "1s"}


class QuotaTest(KueueScenario):
    def test_trials_run_as_the_quota_allows(self):
        self.begin(trials=6, annotations=SHORT)
        self.assert_done(trials=6)
        self.assertLessEqual(self.watch.most, 2)

    def test_a_gang_has_all_workers_or_none(self):
        self.set_quota(3)
        self.begin(parallelism=3, annotations=SHORT, workers={"min": 2, "max": 2})
        self.assert_done()
        self.assertLessEqual(self.watch.most, 2, "half a gang was admitted")

    def test_many_short_trials_keep_the_quota_busy(self):
        self.set_quota(5)
        plain = self.seconds_of_plain_jobs(30)
        started = time.monotonic()
        self.begin(trials=30, parallelism=15, annotations=SHORT)
        self.assert_done(trials=30)
        self.assertLessEqual(self.watch.most, 5)
        print(f"Kueue: 30 trials of 1 s on a quota of 5: {time.monotonic() - started:.1f} s as a Study, "
              f"{plain:.1f} s as Jobs that were all made at once", flush=True)  # fmt: skip

    def seconds_of_plain_jobs(self, count):
        jobs = [self.plain_job(f"plain-{i}", pods=1, annotations=SHORT) for i in range(count)]
        started = time.monotonic()
        cluster.apply({"apiVersion": "v1", "kind": "List", "items": jobs})
        wait_for("all of them to end", lambda: all(
            job.get("status", {}).get("succeeded") for job in items("jobs", self.ns)))  # fmt: skip
        return time.monotonic() - started

    def test_what_runs_stays_when_the_quota_is_gone(self):
        self.begin(trials=3, parallelism=2, annotations=SLOW)
        wait_for("two to run", lambda: len(self.held()) == 2)
        self.set_quota(0)
        self.complete(2)
        wait_for("the third to say what it waits for", lambda: "has not admitted it" in self.waits("s-2"))
        self.set_quota(2)
        self.let_all_end()
        self.assert_done(trials=3)

    def test_a_quota_that_is_full_is_explained_in_kueues_words(self):
        self.set_quota(0)
        self.begin(trials=1)
        self.assertIn("insufficient", wait_for("the reason", lambda: self.waits()))
        self.set_quota(1)
        self.assert_done(trials=1)
        self.assert_no_false_warning()


class PreemptionTest(KueueScenario):
    def test_preempted_trials_go_on_in_the_same_run(self):
        self.begin(trials=2, parallelism=2, annotations=SLOW)
        wait_for("both to run", lambda: self.phases() == ["Running"] * 2)
        self.take_quota("urgent", pods=2)
        wait_for("both to wait", lambda: all("took its nodes back" in self.waits(f"s-{i}") for i in (0, 1)))
        wait_for_event(self.ns, "s-0", "Preempted")
        self.give_quota_back("urgent")
        self.let_all_end()
        self.assert_done(trials=2)
        self.assert_no_false_warning()

    def test_a_gang_that_is_preempted_comes_back_as_a_whole(self):
        self.begin(trials=1, annotations=SLOW, workers={"min": 2, "max": 2})
        wait_for("it to run", lambda: self.phases() == ["Running"])
        self.take_quota("urgent", pods=1)
        wait_for("it to wait", lambda: "took its nodes back" in self.waits())
        self.give_quota_back("urgent")
        self.let_all_end()
        self.assert_done(trials=1)

    def test_the_operator_is_killed_around_a_preemption(self):
        study = self.queued_study(trials=6, parallelism=3, annotations=SLOW)
        cluster.apply(study)
        wait_for("two to run", lambda: len(self.held()) == 2)
        self.operator.kill()
        self.take_quota("urgent", pods=2)
        self.operator.start().wait_until_leader()
        wait_for("nothing to run", lambda: not self.held())
        self.operator.kill()
        self.give_quota_back("urgent")
        self.operator.start().wait_until_leader()
        self.let_all_end()
        self.assert_done(trials=6)

    def test_an_evicted_workload_is_admitted_again(self):
        self.begin(trials=1, annotations=SLOW)
        wait_for("it to run", lambda: self.phases() == ["Running"])
        self.stop_queue("HoldAndDrain")
        wait_for("it to wait", lambda: "took its nodes back" in self.waits())
        self.stop_queue("None")
        self.let_all_end()
        self.assert_done(trials=1)


class LocalQueueTest(KueueScenario):
    def test_a_queue_on_hold_lets_what_runs_go_on(self):
        self.begin(trials=3, parallelism=2, annotations=SLOW)
        wait_for("two to run", lambda: len(self.held()) == 2)
        self.stop_queue("Hold")
        self.complete(2)
        wait_for("the third to say what it waits for", lambda: "has not admitted it" in self.waits("s-2"))
        self.stop_queue("None")
        self.let_all_end()
        self.assert_done(trials=3)

    def test_a_queue_that_is_made_later(self):
        self.begin(trials=2, queue="late")
        self.assertIn("LocalQueue late doesn't exist", wait_for("the reason", lambda: self.waits()))
        self.make_queue("late")
        self.assert_done(trials=2)

    def test_a_queue_that_is_deleted_and_made_again(self):
        self.begin(trials=3, parallelism=3, annotations=SLOW)
        wait_for("two to run", lambda: len(self.held()) == 2)
        kubectl("delete", "localqueue", "team", "-n", self.ns)
        self.complete(2)
        self.make_queue("team")
        self.let_all_end()
        self.assert_done(trials=3)

    def test_a_study_moves_to_another_queue_and_class(self):
        self.begin(trials=2, queue="typo", queuePriorityClass="none")
        wait_for("its Jobs", lambda: len(items("jobs", self.ns, f"{QUEUE}=typo")) == 2)
        self.patch("study", "s", {"spec": {"trial": {"queue": "team", "queuePriorityClass": "high"}}})
        self.assert_done(trials=2)

    def test_a_label_changed_by_hand_is_left_alone(self):
        self.begin(trials=1, queue="typo")
        wait_for("its Job", lambda: items("jobs", self.ns, f"{QUEUE}=typo"))
        self.patch("job", "s-0-r0", {"metadata": {"labels": {QUEUE: "team"}}})
        self.assert_done(trials=1)

    def test_a_missing_priority_class_is_named(self):
        self.begin(trials=1, queuePriorityClass="nosuch")
        words = wait_for("the reason", lambda: self.waits())
        self.assertIn("Kueue has made no Workload for it; is there a WorkloadPriorityClass nosuch", words)
        self.patch("study", "s", {"spec": {"trial": {"queuePriorityClass": "low"}}})
        self.assert_done(trials=1)

    def test_the_command_that_is_named_finds_the_workload(self):
        self.set_quota(0)
        role = json.loads(kubectl("get", "role", "fettle-scenario-operator", "-n", self.ns, "-o", "json"))
        rule = next(i for i, rule in enumerate(role["rules"]) if "workloads" in rule["resources"])
        kubectl("patch", "role", "fettle-scenario-operator", "-n", self.ns, "--type=json", "-p",
                json.dumps([{"op": "remove", "path": f"/rules/{rule}"}]))  # fmt: skip
        self.begin(trials=1)
        words = wait_for("the reason", lambda: self.waits())
        command = re.search(r"kubectl (describe workloads\S* -n \S+ -l \S+) says why", words)
        self.assertTrue(command, words)
        self.assertIn("insufficient", kubectl(*command.group(1).split()))


class DefaultQueueTest(KueueScenario):
    local_queue = "default"

    def test_a_default_queue_takes_a_study_that_names_none(self):
        self.begin(trials=2, parallelism=2, annotations=SLOW, workers={"min": 2, "max": 2}, queue=None,
                   queuePriorityClass=None)  # fmt: skip
        wait_for("a gang to run", lambda: len(self.held()) == 2)
        self.let_all_end()
        self.assert_done(trials=2)
        self.assertLessEqual(self.watch.most, 2)


class FlavorTest(KueueScenario):
    flavor = "fake"

    def test_a_flavor_sends_trials_to_its_nodes(self):
        self.begin(trials=2, annotations=SLOW, tolerate=False)
        wait_for("both to run", lambda: self.phases() == ["Running"] * 2)
        self.take_quota("urgent", pods=2)
        wait_for("both to wait", lambda: len(self.suspended()) == 2)
        selector = get("jobs", "s-0-r0", self.ns)["spec"]["template"]["spec"].get("nodeSelector", {})
        self.assertNotIn("type", selector, "taken out again")
        self.give_quota_back("urgent")
        self.let_all_end()
        self.assert_done(trials=2)


class TopologyTest(KueueScenario):
    flavor, resource, quota = "hosts", "nvidia.com/gpu", 12

    def test_workers_that_need_one_host_get_it(self):
        study = self.queued_study(trials=2, parallelism=2, annotations=SLOW, workers={"min": 2, "max": 2})
        pod = study["spec"]["trial"]["template"]
        pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = "kubernetes.io/hostname"
        pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 3}}
        cluster.apply(study)
        wait_for("both gangs to run", lambda: len(self.held()) == 4)
        for trial in ("s-0", "s-1"):
            pods = items("pods", self.ns, f"fettle.dev/trial={trial}")
            self.assertEqual(len({p["spec"]["nodeName"] for p in pods}), 1, trial)
        self.let_all_end()
        self.assert_done(trials=2)


class StoppingTest(KueueScenario):
    def test_a_stopped_trial_keeps_its_quota_until_its_pods_have_ended(self):
        self.begin(trials=2, parallelism=2, annotations=SLOW | {"fake.fettle.dev/terminating": "5s"})
        wait_for("both to run", lambda: self.phases() == ["Running"] * 2)
        self.begin(name="other", trials=2)
        wait_for("the other Study to wait", lambda: len(self.suspended()) == 2)
        self.patch("study", "s", {"spec": {"suspend": True}})
        self.assert_done("other", trials=2)
        self.assertEqual(self.watch.most, 2, "pods of the other Study began beside those that still ended")
        wait_for("both to pause", lambda: self.phases() == ["Paused"] * 2)
        self.assertEqual([self.runs(f"s-{i}")[0]["outcome"] for i in (0, 1)], ["Stopped"] * 2)
        self.patch("study", "s", {"spec": {"suspend": False}})
        self.let_all_end()
        self.assert_succeeded(trials=2)

    def test_nothing_is_left_of_a_study_that_is_deleted(self):
        self.begin(trials=4, annotations=SLOW)
        wait_for("two to run and two to wait", lambda: len(self.held()) == 2 and len(self.suspended()) == 2)
        kubectl("delete", "study", "s", "-n", self.ns)
        for kind in ("trials", "jobs", "workloads", "pods"):
            wait_for(f"no {kind}", lambda kind=kind: not items(kind, self.ns))


class FixedSizeTest(KueueScenario):
    """The gate ElasticJobsViaWorkloadSlices is off, as in a Kueue that was just installed."""

    def elastic(self, quota):
        self.set_quota(quota)
        self.begin(trials=1, annotations=SLOW, workers={"min": 1, "max": 2, "sizing": "Auto"})
        wait_for("it to run", lambda: self.phases() == ["Running"])
        wait_for_event(self.ns, "s", "FixedSize")

    def test_a_trial_keeps_its_size_where_the_quota_is_for_min(self):
        self.elastic(quota=1)
        self.let_all_end()
        self.assert_done(trials=1)

    def test_a_trial_keeps_its_size_where_there_is_quota_for_more(self):
        self.elastic(quota=2)
        self.let_all_end()
        self.assert_done(trials=1)
        self.assertEqual(self.watch.most, 1)
        self.assertEqual([e for e in events(self.ns, "s-0") if e["reason"] == "Preempted"], [])

    def test_a_trial_that_grew_begins_with_min_when_that_alone_has_room(self):
        self.elastic(quota=1)
        grown = {"sizing": {"time": "2026-01-01T00:00:00Z", "workers": 2}, "workers": 2}
        self.patch("trial", "s-0", {"spec": grown})
        wait_for("it to be preempted", lambda: "took its nodes back" in self.waits())
        wait_for("it to run again", lambda: self.phases() == ["Running"] and self.held())
        self.assertEqual(get("trials", "s-0", self.ns)["spec"]["workers"], 1)
        self.let_all_end()
        self.assert_done(trials=1)
