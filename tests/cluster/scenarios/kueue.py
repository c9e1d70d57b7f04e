"""A stand-in for Kueue: it does to Jobs what Kueue's controller does, by the rules of its source.

One namespace, one queue with a quota of pods; the feature gate ElasticJobsViaWorkloadSlices is off,
as in a Kueue that was just installed. Which rules, and from which files of Kueue, is written in
docs/decisions/0044; the numbers in the comments are those there. The table of tests/cluster/kueue,
which runs Kueue itself, holds it to the real one. Its Workloads are objects of the API server, of
which a definition without a schema is enough (setup.py). It is strict: what Kueue's webhook would
refuse is kept in `refused`, and each time it had to suspend a Job that another client had resumed
or resized, in `fought`.
"""
import datetime
import http.client
import json
import threading

from cluster import PATHS, connection, items
from poller import Poller

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
STOPPING = "kueue.x-k8s.io/stopping"
JOB_UID = "kueue.x-k8s.io/job-uid"
# What Kueue merges into the template of a Job that it starts, and takes out when it stops it.
STARTED = {"metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}, "annotations": {"kueue.x-k8s.io/workload": "w"}}}
STOPPED = {"metadata": {"labels": {"kueue.x-k8s.io/podset": None}, "annotations": {"kueue.x-k8s.io/workload": None}}}


class Workload:
    def __init__(self, job):
        self.made = (job["metadata"]["creationTimestamp"], job["metadata"]["name"])
        self.job = {"apiVersion": "batch/v1", "kind": "Job",
                    "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}  # fmt: skip
        self.name = f"job-{self.job['name']}-{self.job['uid'][:5]}"
        self.pods = pods_of(job)
        self.admitted = False
        self.evicted = False
        self.inadmissible = False  # it did not fit when it was tried
        self.active = True
        self.finished = ""
        self.said = None  # the status that was written last

    def status(self):
        """What Kueue writes into its conditions, as far as anybody here reads it."""
        found = {"QuotaReserved": (self.admitted, "Quota reserved" if self.admitted else
                                   f"couldn't assign flavors to pod set main: insufficient quota for {self.pods} pods")}  # fmt: skip
        if self.evicted or not self.active:
            found["Evicted"] = (True, "The workload is deactivated" if not self.active else "Preempted by another workload")
        if self.finished:
            found["Finished"] = (True, self.finished)
        return found


def pods_of(job):
    return min(job["spec"]["parallelism"], job["spec"].get("completions", job["spec"]["parallelism"]))


def is_over(job):
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
               for c in job.get("status", {}).get("conditions", []))  # fmt: skip


def is_suspended(job):
    return job["spec"].get("suspend", False) and job["metadata"].get("annotations", {}).get(STOPPING) != "true"


class Kueue(Poller):
    """`quota` may be changed at any time; 0 admits nothing. `classes`: the WorkloadPriorityClasses that exist.

    `most`: the most pods that were admitted at once. `most_alive`: the most that had not ended, whoever held quota.
    """

    def __init__(self, namespace, queue, quota, classes=("low",)):
        super().__init__()
        self.namespace, self.queue, self.quota, self.classes = namespace, queue, quota, classes
        self.refused, self.fought, self.most, self.most_alive = [], [], 0, 0
        self._workloads, self._labels, self._evict, self._finish = {}, {}, set(), {}
        self._lock = threading.Lock()
        self._connection, self._headers = connection()

    def evict(self, name):
        """Takes the nodes of that Job back, as preemption does."""
        with self._lock:
            self._evict.add(name)

    def finish(self, name, why):
        """Declares the Workload of that Job finished, as after a Job that could not be started."""
        with self._lock:
            self._finish[name] = why

    def look(self):
        jobs = {j["metadata"]["uid"]: j for j in items("jobs", self.namespace, f"{QUEUE}={self.queue}")}
        for uid in list(self._workloads):  # 7: from the deletion on, whether its pods have ended or not
            if uid not in jobs or jobs[uid]["metadata"].get("deletionTimestamp"):
                del self._workloads[uid]
        self._read_activity()
        for job in jobs.values():
            if not job["metadata"].get("deletionTimestamp"):
                self._validate(job)
                self._reconcile(job)
        self._admit()
        for uid, workload in self._workloads.items():
            self._publish(uid, workload)
        used = sum(w.pods for w in self._workloads.values() if w.admitted)
        self.most = max(self.most, used)
        alive = [p for p in items("pods", self.namespace) if p["status"]["phase"] in ("Pending", "Running")]
        self.most_alive = max(self.most_alive, len(alive))

    def _read_activity(self):
        """12: `spec.active` is anybody's to set."""
        active = {w["metadata"]["labels"][JOB_UID]: w["spec"].get("active", True)
                  for w in items("workloads", self.namespace)}  # fmt: skip
        for uid, workload in self._workloads.items():
            workload.active = active.get(uid, True)
            workload.evicted |= workload.admitted and not workload.active

    def _publish(self, uid, workload):
        status = workload.status()
        if workload.said == status:
            return
        base = f"/{PATHS['workloads']}/namespaces/{self.namespace}/workloads"
        if workload.said is None:
            self._ask("POST", base, {
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {"active": True},
                "metadata": {"name": workload.name, "labels": {JOB_UID: uid}, "ownerReferences": [workload.job]}})  # fmt: skip
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [{"type": kind, "status": str(holds), "message": words, "reason": kind, "lastTransitionTime": now}
                      for kind, (holds, words) in status.items()]  # fmt: skip
        answer, _ = self._ask("PATCH", f"{base}/{workload.name}/status", {"status": {"conditions": conditions}})
        if answer.status == 200:
            workload.said = status

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
        if is_over(job):  # 6
            if workload:
                workload.admitted = False
            return
        if workload and workload.finished:  # 13: whatever becomes of the Job
            return
        if workload and workload.pods != pods_of(job):
            if not is_suspended(job):  # 2: no Workload matches what it has become
                self.fought.append(f"{name}: its number of pods was changed")
                self._suspend(job)
                self._remove(workload)
                del self._workloads[uid]
                return
            if not workload.admitted:  # 2: a Workload without quota is made to fit
                workload.pods, workload.inadmissible = pods_of(job), False
        if workload is None:
            # 1, and without its priority class there is none.
            priority = job["metadata"]["labels"].get(PRIORITY)
            if not job.get("status", {}).get("active") and (priority is None or priority in self.classes):
                self._workloads[uid] = Workload(job)
            return
        with self._lock:
            asked = name in self._evict
            self._evict.discard(name)
            workload.finished = self._finish.pop(name, "")
        if workload.finished:
            workload.admitted = False
            return
        workload.evicted |= asked and workload.admitted
        if workload.evicted:  # 5
            if not is_suspended(job):
                self._suspend(job)
            elif not job.get("status", {}).get("active"):
                self._patch(job, {"spec": {"template": STOPPED}})
                workload.admitted = workload.evicted = False
        elif is_suspended(job) and workload.admitted:  # 3
            self._patch(job, {"spec": {"suspend": False, "template": STARTED}})
        elif not is_suspended(job) and not workload.admitted:  # 4
            self.fought.append(f"{name}: it was resumed though it was not admitted")
            self._suspend(job)

    def _admit(self):
        """The oldest first; but one that did not fit is tried again only after those that were never tried."""
        free = self.quota - sum(w.pods for w in self._workloads.values() if w.admitted)
        for workload in sorted(self._workloads.values(), key=lambda w: (w.inadmissible, w.made)):
            if workload.admitted or workload.evicted or workload.finished or not workload.active:
                continue
            workload.admitted = workload.pods <= free
            workload.inadmissible = not workload.admitted
            free -= workload.pods if workload.admitted else 0

    def _suspend(self, job):
        """10: as Stop() of the Job integration does it, in three writes."""
        self._patch(job, {"metadata": {"annotations": {STOPPING: "true"}}, "spec": {"suspend": True}})
        self._patch(job, {"status": {"startTime": None}}, "/status")
        self._patch(job, {"metadata": {"annotations": {STOPPING: None}}})

    def _remove(self, workload):
        self._ask("DELETE", f"/{PATHS['workloads']}/namespaces/{self.namespace}/workloads/{workload.name}")

    def _patch(self, job, patch, part=""):
        patch.setdefault("metadata", {})["uid"] = job["metadata"]["uid"]
        path = f"/{PATHS['jobs']}/namespaces/{self.namespace}/jobs/{job['metadata']['name']}{part}"
        answer, words = self._ask("PATCH", path, patch)
        if answer.status not in (200, 404, 409):  # gone, or made again, meanwhile
            self.refused.append(f"{job['metadata']['name']}: {words}")

    def _ask(self, method, path, document=None):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        arguments = method, path, json.dumps(document) if document else None, self._headers | {"Content-Type": kind}
        try:
            return self._send(*arguments)
        except (http.client.HTTPException, OSError):  # idle for 90 s, it was closed; each may repeat
            self._connection.close()
            return self._send(*arguments)

    def _send(self, method, path, body, headers):
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer, answer.read().decode()
