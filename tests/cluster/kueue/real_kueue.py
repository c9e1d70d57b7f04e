"""Kueue itself in the test cluster: installed by its own chart, with queues of a scenario's own."""
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scenarios"))
import cluster  # noqa: E402
from cluster import PATIENCE, get, items, kubectl, reader, wait_for  # noqa: E402
from poller import Poller  # noqa: E402
from scenario import Scenario  # noqa: E402

FOLDER = os.environ.get("FETTLE_KUEUE", "")  # what build.sh printed
IMAGE, _, TAG = os.environ.get("FETTLE_KUEUE_IMAGE", "kueue:test").partition(":")
SYSTEM = "kueue-system"
API = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
cluster.PATHS |= {"localqueues": f"apis/{API}", "clusterqueues": f"apis/{API}"}

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {{healthProbeBindAddress: ":8081"}}
metrics: {{bindAddress: ":8443"}}
webhook: {{port: 9443}}
leaderElection: {{leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}}
clientConnection: {{qps: 50, burst: 100}}
integrations: {{frameworks: [batch/job, pod]}}
managedJobsNamespaceSelector:
  matchExpressions: [{{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}}]
{more}
"""

_install_lock = threading.Lock()
_installed = None  # with which settings


def install(gates=(), more=""):
    """Brings Kueue up with these feature gates and further lines of its configuration."""
    global _installed
    with _install_lock:
        if _installed == (gates, more):
            return
        _helm(gates, more)
        wait_for("Kueue's webhook to answer", _answers)
        if _installed is None:
            _make_what_all_share()
        _installed = (gates, more)


def _helm(gates, more):
    values = {
        "controllerManager": {
            "featureGates": [{"name": gate, "enabled": True} for gate in gates],
            "readinessProbe": {"initialDelaySeconds": 1, "periodSeconds": 1},
            "manager": {
                "image": {"repository": IMAGE, "tag": TAG, "pullPolicy": "IfNotPresent"},
                "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"cpu": "4", "memory": "1Gi"}},
            },
        },
        "managerConfig": {"controllerManagerConfigYaml": CONFIGURATION.format(more=more)},
    }
    subprocess.run(
        ["helm", "upgrade", "--install", "kueue", f"{FOLDER}/chart", "--namespace", SYSTEM, "--create-namespace",
         "--wait", "--timeout", f"{PATIENCE}s", "--values", "-"],
        input=cluster.json.dumps(values), text=True, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    # The cluster's API server has no certificates for servers behind it, and without these no namespace ends.
    kubectl("delete", "apiservice", *(f"{version}.visibility.kueue.x-k8s.io" for version in ("v1beta1", "v1beta2")),
            "--ignore-not-found")  # fmt: skip


def _answers():
    """A Job in a namespace that Kueue looks at passes its webhook."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe", "namespace": "default"},
           "spec": {"suspend": True, "template": {"spec": {
               "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip
    try:
        kubectl("create", "--dry-run=server", "-f", "-", document=job)
    except cluster.Refused:
        return False
    return True


def _make_what_all_share():
    for name, value in (("low", 100), ("high", 1000)):
        cluster.apply({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value})
    cluster.apply(flavor("any"))
    cluster.apply(flavor("fake", {
        "nodeLabels": {"type": "kwok"},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}))  # fmt: skip
    cluster.apply({"apiVersion": API, "kind": "Topology", "metadata": {"name": "hosts"},
                   "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}})  # fmt: skip
    cluster.apply(flavor("hosts", {
        "nodeLabels": {"type": "kwok"}, "topologyName": "hosts",
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}))  # fmt: skip


def flavor(name, spec=None):
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec or {}}


def scale(replicas):
    kubectl("scale", "deployment", "kueue-controller-manager", "-n", SYSTEM, f"--replicas={replicas}")
    if replicas:
        kubectl("rollout", "status", "deployment", "kueue-controller-manager", "-n", SYSTEM, f"--timeout={PATIENCE}s")
        wait_for("Kueue's webhook to answer", _answers)
    else:
        wait_for("Kueue to be gone", lambda: not items("pods", SYSTEM))


class PodWatch(Poller):
    """The most pods of a namespace that had not ended at one time."""

    def __init__(self, namespace):
        super().__init__()
        self.namespace, self.most = namespace, 0

    def look(self):
        # A pod without a node holds none: one that is gated waits for quota.
        alive = [p for p in items("pods", self.namespace)
                 if p["status"]["phase"] in ("Pending", "Running") and p["spec"].get("nodeName")]  # fmt: skip
        self.most = max(self.most, len(alive))


class KueueScenario(Scenario):
    """A ClusterQueue of the scenario's own, which counts pods, and its LocalQueue `team`."""

    quota = 2
    flavor = "any"
    resource = "pods"
    gates = ()
    more = ""
    local_queue = "team"

    def setUp(self):
        install(self.gates, self.more)
        super().setUp()
        self.make_cluster_queue()
        if self.local_queue:
            self.make_queue(self.local_queue)
        self.watch = PodWatch(self.ns).start()
        self.addCleanup(self.watch.stop)

    def make_cluster_queue(self):
        self.addCleanup(kubectl, "delete", "clusterqueue", self.ns, "--wait=false", check=False)
        self.set_quota(self.quota)

    def set_quota(self, quota):
        cluster.apply({
            "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": self.ns},
            "spec": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.ns}},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": [self.resource], "flavors": [
                    {"name": self.flavor, "resources": [{"name": self.resource, "nominalQuota": str(quota)}]}]}],
            }})  # fmt: skip

    def stop_queue(self, policy):
        kubectl("patch", "clusterqueue", self.ns, "--type=merge", "-p", '{"spec": {"stopPolicy": "%s"}}' % policy)

    def make_queue(self, name):
        cluster.apply({"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": name, "namespace": self.ns},
                       "spec": {"clusterQueue": self.ns}})  # fmt: skip

    def queued_study(self, name="s", trials=4, parallelism=4, annotations=None, tolerate=True, **trial):
        study = cluster.study(name, self.ns, annotations=annotations or {},
                              budget={"trials": trials, "parallelism": parallelism, "failures": 0})  # fmt: skip
        study["spec"]["trial"] |= {"queue": "team", "queuePriorityClass": "low", "retries": 0} | trial
        study["spec"]["trial"] = {k: v for k, v in study["spec"]["trial"].items() if v is not None}
        if not tolerate:  # its flavor does
            del study["spec"]["trial"]["template"]["spec"]["tolerations"]
            del study["spec"]["trial"]["template"]["spec"]["nodeSelector"]
        return study

    def begin(self, **about):
        cluster.apply(self.queued_study(**about))

    def take_quota(self, name, pods, priority="high"):
        """A Job of another user, which runs until it is deleted."""
        cluster.apply(self.plain_job(name, pods, {"fake.fettle.dev/forever": "yes"}, priority))
        wait_for("the other user's Job to run", lambda: get("jobs", name, self.ns)["status"].get("active") == pods)

    def plain_job(self, name, pods, annotations, priority="low"):
        return {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": self.ns,
                         "labels": {QUEUE: "team", "kueue.x-k8s.io/priority-class": priority}},
            "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "tolerations": cluster.TOLERATIONS,
                         "nodeSelector": {"type": "kwok"}, "containers": [{"name": "c", "image": "fake"}]}}}}  # fmt: skip

    def give_quota_back(self, name):
        kubectl("delete", "job", name, "-n", self.ns, "--cascade=foreground")

    def patch(self, kind, name, patch):
        kubectl("patch", kind, name, "-n", self.ns, "--type=merge", "-p", cluster.json.dumps(patch))

    def workload_of(self, job):
        uid = get("jobs", job, self.ns)["metadata"]["uid"]
        found = items("workloads", self.ns, f"kueue.x-k8s.io/job-uid={uid}")
        return found[0] if found else None

    def suspended(self):
        return [j["metadata"]["name"] for j in items("jobs", self.ns, "fettle.dev/study") if j["spec"].get("suspend")]

    def phases(self, name="s"):
        return [t.get("status", {}).get("phase") for t in self.trials(name)]

    def runs(self, trial="s-0"):
        return get("trials", trial, self.ns).get("status", {}).get("runs", [])

    def waits(self, trial="s-0"):
        return (cluster.condition(get("trials", trial, self.ns), "Waiting") or {}).get("message", "")

    def assert_done(self, name="s", trials=4):
        """All has succeeded with one run each, and nothing is left in the queue."""
        self.assert_succeeded(name, trials)
        for trial in self.trials(name):
            self.assertEqual([r["run"] for r in trial["status"]["runs"]], [0], trial["metadata"]["name"])

    def assert_no_false_warning(self):
        notes = [e.get("note", "") for e in items("events", self.ns)]
        self.assertEqual([n for n in notes if "no pod could be created" in n], [])
