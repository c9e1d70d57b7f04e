#!/usr/bin/env python3
"""make bench-cluster: what Fettle costs on a real control plane with fake nodes, against Kubernetes alone.

1. 600 pods that complete at once, 30 at a time: one plain Indexed Job, then a Study of one-pod trials.
2. From a pod's terminal state to the Job of the successor, and from `kubectl apply` to the first pod.
3. Memory, and writes while nothing changes.

Run in the test cluster's network: tests/cluster/in_cluster tests/cluster/bench.py. Prints one JSON object.
All times are taken in this process, from watches that run beside each other.
"""
import argparse
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "scenarios"))
import cluster  # noqa: E402
from cluster import Operator, apply, connection, kubectl, study, wait_for  # noqa: E402
from setup import RELEASE, install, uninstall  # noqa: E402

NAMESPACE = "bench"


class Watch(threading.Thread):
    """Notes when objects of one resource first show something: key(object) -> seconds."""

    def __init__(self, path, key):
        super().__init__(daemon=True)
        self.seen = {}
        self._key = key
        self._connection, headers = connection()
        self._connection.request("GET", f"{path}?watch=1", headers=headers)
        self._answer = self._connection.getresponse()
        self.start()

    def run(self):
        for line in self._answer:
            now = time.monotonic()
            key = self._key(json.loads(line))
            if key is not None:
                self.seen.setdefault(key, now)

    def times(self):
        return sorted(self.seen.values())


def added(event):
    return event["object"]["metadata"]["uid"] if event["type"] == "ADDED" else None


def ended(event):
    done = event["object"].get("status", {}).get("phase") in ("Succeeded", "Failed")
    return event["object"]["metadata"]["uid"] if done else None


def plain_job(pods, parallelism):
    """Seconds of an Indexed Job of the same pods."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "plain", "namespace": NAMESPACE},
        "spec": {
            "completions": pods,
            "parallelism": parallelism,
            "completionMode": "Indexed",
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "tolerations": cluster.TOLERATIONS,
                    "containers": [{"name": "trial", "image": "fake"}],
                }
            },
        },
    }
    start = time.monotonic()
    apply(job)
    kubectl("wait", "--for=condition=Complete", "job/plain", "-n", NAMESPACE, "--timeout=3600s")
    seconds = time.monotonic() - start
    kubectl("delete", "job", "plain", "-n", NAMESPACE, "--cascade=foreground", "--wait=true", "--timeout=3600s")
    return seconds


def run_study(name, trials, parallelism, annotations=None):
    """(seconds from apply to Succeeded, moments of pods' ends, moments of Jobs' creation, seconds to the first pod)"""
    base = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"/api/v1/namespaces/{NAMESPACE}/pods"
    jobs, first_pods, ends = Watch(base[0], added), Watch(base[1], added), Watch(base[1], ended)
    document = study(name, NAMESPACE, budget={"trials": trials, "parallelism": parallelism}, annotations=annotations or {})
    conn, headers = connection()
    conn.connect()
    start = time.monotonic()
    conn.request("POST", f"/apis/fettle.dev/v1alpha1/namespaces/{NAMESPACE}/studies", json.dumps(document),
                 headers | {"Content-Type": "application/json"})  # fmt: skip
    answer = conn.getresponse()
    assert answer.status == 201, answer.read()
    kubectl("wait", "--for=condition=Succeeded", f"study/{name}", "-n", NAMESPACE, "--timeout=600s")
    seconds = time.monotonic() - start
    return seconds, ends.times(), jobs.times(), first_pods.times()[0] - start


def latencies(ends, jobs, parallelism):
    """From the k-th end to the Job that could start because of it, in milliseconds."""
    return sorted(1000 * (job - end) for end, job in zip(ends, jobs[parallelism:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--parallelism", type=int, default=30)
    options = parser.parse_args()
    install()
    result = {"trials": options.trials, "parallelism": options.parallelism}
    with cluster.namespace(NAMESPACE):
        result["plain_job_seconds"] = round(plain_job(options.trials, options.parallelism), 2)
        operator = Operator(RELEASE).start().wait_until_ready()
        operator.wait_until_leader()
        time.sleep(2)
        result["idle_mib"] = round(operator.resident_bytes() / 2**20, 1)
        before = sum(operator.writes().values())
        seconds, _, _, first_pod = run_study("throughput", options.trials, options.parallelism)
        wait_for("Jobs to be deleted", lambda: not cluster.items("jobs", NAMESPACE))
        result["study_seconds"] = round(seconds, 2)
        result["study_over_plain_job"] = round(seconds / result["plain_job_seconds"], 2)
        result["writes_a_trial"] = round((sum(operator.writes().values()) - before) / options.trials, 2)
        result["writes"] = {" ".join(key): count for key, count in sorted(operator.writes().items())}
        result["loaded_mib"] = round(operator.resident_bytes() / 2**20, 1)
        result["apply_to_first_pod_ms"] = round(1000 * first_pod)
        waits = []
        _, ends, jobs, _ = run_study("latency", 100, 10, {"fake.fettle.dev/duration": "2s"})
        waits = latencies(ends, jobs, 10)
        result["end_to_next_job_ms"] = {
            "median": round(statistics.median(waits), 1),
            "p99": round(waits[int(0.99 * (len(waits) - 1))], 1),
        }
        time.sleep(5)
        before = operator.writes()
        time.sleep(60)
        quiet = operator.writes()
        result["writes_in_a_quiet_minute"] = sum(quiet.values()) - sum(before.values())
        operator.stop()
    uninstall()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
