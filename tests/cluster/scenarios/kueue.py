"""A stand-in for Kueue: it does to Jobs what Kueue's controller does, by the rules of its source.

One namespace, one queue with a quota of pods, first come first served. Which rules, and from which
files of Kueue, is written in docs/decisions/0044; the numbers in the comments are those there. It
holds its Workloads in memory, and it is strict: what Kueue's webhook would refuse is kept in
`refused`, and each time it had to suspend a Job that another client had resumed, in `fought`.
"""
import http.client
import json
import threading
import time

from cluster import PATHS, connection, items

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
ELASTIC = "kueue.x-k8s.io/elastic-job"
STOPPING = "kueue.x-k8s.io/stopping"


class Workload:
    def __init__(self, job):
        self.made = (job["metadata"]["creationTimestamp"], job["metadata"]["name"])
        self.pods = pods_of(job)
        self.admitted = False
        self.evicted = False


def pods_of(job):
    return min(job["spec"]["parallelism"], job["spec"].get("completions", job["spec"]["parallelism"]))


def is_over(job):
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
               for c in job.get("status", {}).get("conditions", []))  # fmt: skip


def is_suspended(job):
    return job["spec"].get("suspend", False) and job["metadata"].get("annotations", {}).get(STOPPING) != "true"


class Kueue:
    """`quota` may be changed at any time; 0 admits nothing."""

    def __init__(self, namespace, queue, quota):
        self.namespace, self.queue, self.quota = namespace, queue, quota
        self.refused, self.fought, self.most = [], [], 0
        self._workloads, self._labels, self._evict = {}, {}, set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._connection, self._headers = connection()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()

    def evict(self, name):
        """Takes the nodes of that Job back, as preemption does."""
        with self._lock:
            self._evict.add(name)

    def _run(self):
        while not self._stopped.is_set():
            self._look()
            time.sleep(0.1)

    def _look(self):
        jobs = {j["metadata"]["uid"]: j for j in items("jobs", self.namespace, f"{QUEUE}={self.queue}")}
        for uid in self._workloads.keys() - jobs.keys():  # 7: the Job is gone, and its Workload with it
            del self._workloads[uid]
        for job in jobs.values():
            self._validate(job)
            self._reconcile(job)
        self._admit()
        used = sum(w.pods for w in self._workloads.values() if w.admitted)
        self.most = max(self.most, used)

    def _validate(self, job):
        """8, 9: what the webhook demands of a Job that is made or changed."""
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        labels = {key: job["metadata"]["labels"].get(key) for key in (QUEUE, PRIORITY)}
        before = self._labels.setdefault(uid, labels)
        if uid not in self._workloads and not job["spec"].get("suspend") and not is_over(job):
            self.refused.append(f"{name}: made without suspend")
        if before != labels and not is_suspended(job):
            self.refused.append(f"{name}: its queue or priority was changed while it runs")
        self._labels[uid] = labels

    def _reconcile(self, job):
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        workload = self._workloads.get(uid)
        if job["metadata"].get("deletionTimestamp") or is_over(job):  # 6
            if workload and is_over(job):
                workload.admitted = False
            return
        if workload and workload.pods != pods_of(job):
            if job["metadata"].get("annotations", {}).get(ELASTIC) == "true":
                workload.pods = pods_of(job)
            elif not is_suspended(job):  # 2: no Workload matches what it has become
                self.fought.append(f"{name}: its number of pods was changed")
                self._suspend(job)
                del self._workloads[uid]
                return
        if workload is None:
            if not job.get("status", {}).get("active"):  # 1
                self._workloads[uid] = Workload(job)
            return
        with self._lock:
            asked = name in self._evict
            self._evict.discard(name)
        workload.evicted |= asked and workload.admitted
        if workload.evicted:  # 5
            if not is_suspended(job):
                self._suspend(job)
            elif not job.get("status", {}).get("active"):
                workload.admitted = workload.evicted = False
        elif is_suspended(job) and workload.admitted:  # 3
            self._patch(job, {"spec": {"suspend": False}})
        elif not is_suspended(job) and not workload.admitted:  # 4
            self.fought.append(f"{name}: it was resumed though it was not admitted")
            self._suspend(job)

    def _admit(self):
        free = self.quota - sum(w.pods for w in self._workloads.values() if w.admitted)
        for workload in sorted(self._workloads.values(), key=lambda w: w.made):
            if not workload.admitted and not workload.evicted and workload.pods <= free:
                workload.admitted = True
                free -= workload.pods

    def _suspend(self, job):
        """10: as Stop() of the Job integration does it, in three writes."""
        self._patch(job, {"metadata": {"annotations": {STOPPING: "true"}}, "spec": {"suspend": True}})
        self._patch(job, {"status": {"startTime": None}}, "/status")
        self._patch(job, {"metadata": {"annotations": {STOPPING: None}}})

    def _patch(self, job, patch, part=""):
        patch.setdefault("metadata", {})["uid"] = job["metadata"]["uid"]
        path = f"/{PATHS['jobs']}/namespaces/{self.namespace}/jobs/{job['metadata']['name']}{part}"
        headers = self._headers | {"Content-Type": "application/merge-patch+json"}
        try:
            answer, words = self._send(path, json.dumps(patch), headers)
        except (http.client.HTTPException, OSError):  # idle for 90 s, it was closed; a patch may repeat
            self._connection.close()
            answer, words = self._send(path, json.dumps(patch), headers)
        if answer.status not in (200, 404, 409):  # gone, or made again, meanwhile
            self.refused.append(f"{job['metadata']['name']}: {words}")

    def _send(self, path, body, headers):
        self._connection.request("PATCH", path, body, headers)
        answer = self._connection.getresponse()
        return answer, answer.read().decode()
