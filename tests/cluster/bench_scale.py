#!/usr/bin/env python3
"""make bench-scale: many trials in one Study, on a real control plane with fake nodes.

1. TRIALS pods that complete at once, PARALLELISM at a time: a plain Indexed Job, then a Study of
   one-pod trials with `random` and one with `tpe`. Afterwards: is any trial lost or doubled, and
   how much memory does the operator hold?
2. A Study with MANY trials that are made by hand, as if they had run: an operator that starts with
   them, and goes on with another hundred.
3. WIDE trials at once, whose pods end at random times: from a pod's end to the successor's Job, and
   how long `kubectl get studies` takes meanwhile.
4. The largest object of all.

Run in the test cluster's network: tests/cluster/in_cluster tests/cluster/bench_scale.py. Prints one
JSON object, which grows on standard error part by part.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "scenarios"))
import cluster  # noqa: E402
from bench import NAMESPACE, Watch, added, ended, latencies, plain_job  # noqa: E402
from cluster import Operator, apply, condition, connection, get, kubectl, study  # noqa: E402
from setup import RELEASE, install, uninstall  # noqa: E402

LONGEST = 3600  # seconds that a Study may take
STUDIES = f"/apis/fettle.dev/v1alpha1/namespaces/{NAMESPACE}/studies"
TRIALS = f"/apis/fettle.dev/v1alpha1/namespaces/{NAMESPACE}/trials"


def every(path, page=200):
    """All objects of a collection, page by page, as text and value."""
    token = ""
    while True:
        answer = cluster.reader.ask(f"{path}?limit={page}&continue={token}")
        yield from answer["items"]
        token = answer["metadata"].get("continue")
        if not token:
            return


def wait_until(done, seconds=LONGEST):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def run_to_end(document):
    """Seconds from its creation until it has succeeded."""
    name = document["metadata"]["name"]
    start = time.monotonic()
    apply(document)
    wait_until(lambda: condition(get("studies", name, NAMESPACE), "Succeeded"))
    return time.monotonic() - start


def check(name, trials):
    """None is lost and none is doubled."""
    found = [t for t in every(TRIALS) if t["spec"]["study"] == name]
    assert sorted(t["spec"]["index"] for t in found) == list(range(trials)), "trials are lost"
    assert {t["status"]["phase"] for t in found} == {"Completed"}
    assert all([r["run"] for r in t["status"]["runs"]] == [0] for t in found), "a trial ran twice"
    assert len({json.dumps(t["spec"]["parameters"]) for t in found}) == trials
    seqs = sorted(f["seq"] for t in found for f in t["status"]["facts"])
    assert seqs == list(range(1, trials + 1)), "facts are lost or doubled"


def largest():
    """Bytes of the largest Study, Trial and Job."""
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    return {
        path.rsplit("/", 1)[1]: max((len(json.dumps(o, separators=(",", ":"))) for o in every(path)), default=0)
        for path in (STUDIES, TRIALS, jobs)
    }


def remove(name):
    kubectl("delete", "study", name, "-n", NAMESPACE, "--cascade=foreground", "--wait=true", f"--timeout={LONGEST}s")


def mib(operator):
    return round(operator.resident_bytes() / 2**20, 1)


def new_operator():
    return Operator(RELEASE).start().wait_until_ready().wait_until_leader()


def measure_long(options, algorithm):
    operator = new_operator()
    budget = {"trials": options.trials, "parallelism": options.parallelism, "failures": options.trials}
    seconds = run_to_end(study("long", NAMESPACE, algorithm={"name": algorithm, "seed": 1}, budget=budget))
    result = {"seconds": round(seconds, 1), "mib": mib(operator), "bytes": largest()}
    check("long", options.trials)
    operator.stop()
    remove("long")
    return result


class Writer(threading.local):
    """A connection a thread, with the account of an operator: only that may create Trials."""

    connection = None

    def send(self, method, path, body, content_type):
        if self.connection is None:
            self.connection, _ = connection()
            token = kubectl("create", "token", f"{RELEASE}-operator", "-n", cluster.SYSTEM, "--duration=2h").strip()
            self.headers = {"Authorization": f"Bearer {token}"}
        self.connection.request(method, path, json.dumps(body), self.headers | {"Content-Type": content_type})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text


def ended_trial(owner, index):
    """As the operator leaves it; the curve has ten points."""
    name, at = f"{owner['metadata']['name']}-{index}", "2026-11-21T10:00:00Z"
    uid = owner["metadata"]["uid"]
    trial = {
        "apiVersion": "fettle.dev/v1alpha1",
        "kind": "Trial",
        "metadata": {
            "name": name,
            "labels": {"fettle.dev/study": owner["metadata"]["name"], "fettle.dev/study-uid": uid},
            "ownerReferences": [{"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "name": owner["metadata"]["name"],
                                 "uid": uid, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"study": owner["metadata"]["name"], "index": index, "parameters": {"x": index / 1e6}, "seed": index,
                 "untilStep": 1, "workers": 1},
    }  # fmt: skip
    history = [{"step": step, "metrics": {"value": 0.5, "trainLoss": 0.25}} for step in range(1, 11)]
    status = {
        "phase": "Completed",
        "conditions": [{"type": "Complete", "status": "True", "reason": "Finished", "message": "",
                        "lastTransitionTime": at}],
        "runs": [{"run": 0, "podUID": uid, "workers": 1, "untilStep": 1, "startTime": at, "runningTime": at,
                  "endTime": at, "lastStep": 1, "outcome": "Succeeded"}],
        "facts": [{"seq": index + 1, "kind": "Result", "step": 1, "values": [0.5], "time": at}],
        "report": {"step": 1, "metrics": {"value": 0.5, "trainLoss": 0.25}, "time": at, "history": history},
    }  # fmt: skip
    return trial, status


def make_trials(owner, count):
    writer = Writer()

    def make(index):
        trial, status = ended_trial(owner, index)
        writer.send("POST", TRIALS, trial, "application/json")
        path = f"{TRIALS}/{trial['metadata']['name']}/status"
        writer.send("PATCH", path, {"status": status}, "application/merge-patch+json")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(make, range(count)):
            pass


def measure_many(options):
    """The operator with that number of trials in its caches: after its start, and after a hundred more."""
    budget = {"trials": options.many + 100, "parallelism": options.parallelism}
    apply(study("many", NAMESPACE, budget=budget, suspend=True))
    make_trials(get("studies", "many", NAMESPACE), options.many)
    start = time.monotonic()
    operator = new_operator()
    result = {"trials": options.many, "start_seconds": round(time.monotonic() - start, 1)}
    wait_until(lambda: get("studies", "many", NAMESPACE).get("status", {}).get("trials", {}).get("completed") == options.many)
    result["mib_after_start"] = mib(operator)
    kubectl("patch", "study", "many", "-n", NAMESPACE, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    wait_until(lambda: condition(get("studies", "many", NAMESPACE), "Succeeded"))
    result["mib_after_100_more"] = mib(operator)
    operator.stop()
    remove("many")
    return result


def measure_wide(options):
    """That number at once; their pods take 60 to 180 s."""
    operator = new_operator()
    jobs = Watch(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", added)
    ends = Watch(f"/api/v1/namespaces/{NAMESPACE}/pods", ended)
    annotations = {"fake.fettle.dev/duration": "60s", "fake.fettle.dev/duration-most": "180s"}
    budget = {"trials": 2 * options.wide, "parallelism": options.wide, "failures": options.wide}
    apply(study("wide", NAMESPACE, budget=budget, annotations=annotations))
    wait_until(lambda: len(jobs.seen) >= options.wide)
    listings = []
    while len(jobs.seen) < 2 * options.wide:
        start = time.monotonic()
        kubectl("get", "studies", "-n", NAMESPACE)
        listings.append(time.monotonic() - start)
        time.sleep(2)
    waits = latencies(ends.times(), jobs.times(), options.wide)
    result = {
        "trials": options.wide,
        "successor_ms": {"median": round(statistics.median(waits), 1), "p99": round(waits[int(0.99 * (len(waits) - 1))], 1)},
        "kubectl_get_studies_ms": {"median": round(1000 * statistics.median(listings)), "most": round(1000 * max(listings))},
        "mib": mib(operator),
        "bytes": largest(),
    }
    wait_until(lambda: condition(get("studies", "wide", NAMESPACE), "Succeeded"))
    check("wide", 2 * options.wide)
    operator.stop()
    remove("wide")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=6000)
    parser.add_argument("--parallelism", type=int, default=30)
    parser.add_argument("--algorithms", default="random,tpe", help="of the long Studies")
    parser.add_argument("--many", type=int, default=20000)
    parser.add_argument("--wide", type=int, default=1000)
    options = parser.parse_args()
    install()
    result = {"trials": options.trials, "parallelism": options.parallelism}

    def keep(name, value):
        result[name] = value
        print(json.dumps({name: value}), file=sys.stderr, flush=True)

    with cluster.namespace(NAMESPACE):
        if options.trials:
            keep("plain_job_seconds", round(plain_job(options.trials, options.parallelism), 1))
        for algorithm in options.algorithms.split(",") if options.trials else ():
            keep(algorithm, measure_long(options, algorithm))
            keep(f"{algorithm}_over_plain_job", round(result[algorithm]["seconds"] / result["plain_job_seconds"], 2))
        if options.wide:
            keep("wide", measure_wide(options))
        if options.many:
            keep("many", measure_many(options))
    uninstall()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
