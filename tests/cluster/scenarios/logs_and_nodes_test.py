"""Scenarios: metrics from logs, wrong clocks, lost nodes, deleted volumes."""
import datetime
import json
import os
import pathlib
import time

import cluster
from cluster import condition, items, kubectl, wait_for
from scenario import FOREVER, Scenario

FAKE_LOG = pathlib.Path(os.environ.get("FETTLE_CLUSTER_DIR", "/tmp/fettle-cluster")) / "fake-pods.log"
MANY = 200


def utc(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def template_of(annotations):
    """The pods of cluster.study, with these annotations."""
    return cluster.study("", "", annotations=annotations)["spec"]["trial"]["template"]


def phase(trial):
    return trial.get("status", {}).get("phase")


class LogsTest(Scenario):
    def test_two_hundred_trials_report_while_they_run(self):
        """All fake pods share one log. Other scenarios ignore its lines, which are not JSON."""
        heartbeat = 150  # on a slow machine a step may need a minute to show in all trials
        FAKE_LOG.write_text("")
        self.apply(
            budget={"trials": MANY, "parallelism": MANY},
            trial={
                "template": template_of({FOREVER: "yes"}),
                "metrics": {"regex": r"polled (?P<step>\d+) (?P<name>\w+)=(?P<value>\S+)"},
                "heartbeat": f"{heartbeat}s",
            },
        )
        started = time.monotonic()
        wait_for("all trials to report", lambda: self.print_step() and all(self.steps()))
        while time.monotonic() - started < 1.2 * heartbeat:
            step = self.print_step()
            wait_for(f"step {step} of all trials", lambda: self.steps() == [step] * MANY)
        self.assertEqual({phase(t) for t in self.trials()}, {"Running"})
        self.assert_one_run_each()
        calls = self.operator.metric("fettle_api_calls_total", verb="log")
        self.assertLess(calls, 100 * (time.monotonic() - started + 1), "calls are bounded")

    def test_report_read_from_a_log_outlives_its_study(self):
        """The operator owns this report, so an apply without it would delete it."""
        self.apply(
            budget={"trials": 1, "parallelism": 1},
            trial={
                "template": template_of({FOREVER: "yes"}),
                "metrics": {"regex": r"outlives (?P<step>\d+) (?P<name>\w+)=(?P<value>\S+)"},
            },
        )
        wait_for("a running pod", self.running_pods)

        def report():
            if "outlives" not in FAKE_LOG.read_text():  # another scenario may empty the log
                with open(FAKE_LOG, "a") as log:
                    log.write(f"{utc(now())} stdout F outlives 3 value=0.25\n")
            return self.trials()[0].get("status", {}).get("report")

        wait_for("a report", report)
        self.delete_study_without_trials()
        wait_for("the trial to end", lambda: [phase(t) for t in self.trials()] == ["Stopped"])
        self.assertEqual(self.trials()[0]["status"]["report"]["metrics"], {"value": 0.25})

    def print_step(self):
        """The number of the step that all trials print now."""
        step = len(FAKE_LOG.read_text().splitlines()) + 1
        with open(FAKE_LOG, "a") as log:
            log.write(f"{utc(now())} stdout F polled {step} value=0.5\n")
        return step

    def steps(self):
        time.sleep(5)  # a list of many trials takes long to read
        steps = [t.get("status", {}).get("report", {}).get("step", 0) for t in self.trials()]
        return steps if len(steps) == MANY else [0]


class ClocksTest(Scenario):
    def test_nodes_clock_ten_minutes_off(self):
        """One trial on a node that is behind, one on a node that is ahead; both have a minute."""
        self.apply(
            budget={"trials": 2, "parallelism": 2},
            trial={
                "template": template_of(
                    {"fake.fettle.dev/waiting": "ContainerCreating", FOREVER: "yes"}
                ),
                "timeout": "60s",
                "retries": 0,
            },
        )
        pods = wait_for("two pods that wait", self.waiting_pods)
        began = time.monotonic()
        for pod, off in zip(pods, (-10, 10)):
            self.run_since(pod, now() + datetime.timedelta(minutes=off))
        wait_for("both to time out", lambda: [phase(t) for t in self.trials()] == ["Failed"] * 2)
        # The minute begins when the operator last saw the pod wait, which is seconds earlier.
        self.assertGreater(time.monotonic() - began, 30, "a clock that is behind ends nothing early")
        for trial in self.trials():
            self.assertEqual([r["outcome"] for r in trial["status"]["runs"]], ["TimedOut"])
            self.assertIn("runningTime", trial["status"]["runs"][0])

    def waiting_pods(self):
        found = [p["metadata"]["name"] for p in items("pods", self.ns) if p["status"].get("containerStatuses")]
        return sorted(found) if len(found) == 2 else None

    def run_since(self, pod, when):
        status = {
            "phase": "Running",
            "containerStatuses": [
                {
                    "name": "trial",
                    "image": "fake",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": utc(when)}},
                }
            ],
        }
        kubectl("patch", "pod", pod, "-n", self.ns, "--subresource=status", "--type=merge", "-p",
                json.dumps({"status": status}))  # fmt: skip


class NodesTest(Scenario):
    def test_pod_that_does_not_end_is_given_up(self):
        """As on a lost node: the pod is deleted and its end is never reported."""
        pod = self.run_for_ever()
        kubectl("annotate", "pod", pod, "-n", self.ns, "fake.fettle.dev/terminating=1h")
        kubectl("delete", "pod", pod, "-n", self.ns, "--wait=false", "--grace-period=1")
        wait_for("the trial to say so", lambda: "does not answer" in self.waits())
        wait_for("the next run", lambda: len(self.trials()[0]["status"]["runs"]) == 2)
        self.let_successor_end(pod)
        self.assert_succeeded(trials=1)
        outcomes = [r["outcome"] for r in self.trials()[0]["status"]["runs"]]
        self.assertEqual(outcomes, ["Disrupted", "Succeeded"])
        kubectl("delete", "pod", pod, "-n", self.ns, "--force", "--grace-period=0")  # or the namespace stays

    def test_job_that_a_queue_suspends_waits(self):
        """As Kueue does for a workload of higher priority: no run is spent."""
        pod = self.run_for_ever()
        job = items("jobs", self.ns)[0]["metadata"]["name"]
        self.suspend(job, True)
        wait_for("the trial to wait", lambda: "queue" in self.waits())
        wait_for("the pod to go", lambda: not items("pods", self.ns))
        self.assertEqual(phase(self.trials()[0]), "Pending")
        self.suspend(job, False)
        self.let_successor_end(pod)
        self.assert_succeeded(trials=1)
        self.assert_one_run_each()

    def waits(self):
        """The message of the Trial's condition Waiting."""
        return (condition(self.trials()[0], "Waiting") or {}).get("message", "")

    def suspend(self, job, suspended):
        kubectl("patch", "job", job, "-n", self.ns, "--type=merge", "-p", json.dumps({"spec": {"suspend": suspended}}))

    def test_trials_that_a_deleted_study_leaves_behind_end(self):
        self.run_for_ever()
        self.delete_study_without_trials()
        wait_for("the trial to end", lambda: [phase(t) for t in self.trials()] == ["Stopped"])
        wait_for("its Job and pod to go", lambda: not items("jobs", self.ns) + items("pods", self.ns))


class VolumesTest(Scenario):
    def test_claim_deleted_under_a_running_study(self):
        for name in ("first", "second"):
            self.make_volume(f"{self.ns}-{name}")
        self.apply(
            budget={"trials": 4, "parallelism": 2},
            trial={
                "template": template_of({FOREVER: "yes"}),  # the claim goes before any trial ends
                "checkpoints": {"size": "1Mi", "storageClass": self.ns},
            },
        )
        wait_for("a running pod", self.running_pods)
        cluster.wait_for_event(self.ns, "s", "OneNodeVolume")
        claim = kubectl("get", "pvc", "-n", self.ns, "-o", "name").strip()
        kubectl("delete", claim, "-n", self.ns, "--wait=false")
        self.let_all_end()
        self.assert_succeeded(trials=4)
        cluster.wait_for_event(self.ns, "s", "ClaimMadeAgain")

    def make_volume(self, name):
        """A volume of a class that only this scenario's claims ask for."""
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": self.ns,
                    "capacity": {"storage": "1Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": f"/run/{name}"},
                },
            }
        )
        self.addCleanup(kubectl, "delete", "pv", name, "--wait=false", check=False)
