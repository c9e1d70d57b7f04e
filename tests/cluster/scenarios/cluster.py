"""The scenarios' access to a cluster: kubectl, waiting, namespaces, and operators as plain processes.

Everything runs in the test cluster's network (tests/cluster/in_cluster), as its administrator; the
operators run with the account and the role that the chart gives them. Scenarios run beside each
other on threads of one process. They share nothing but the cluster: each has a namespace, a release
of the chart there with a Lease of its own, and ports of its own.
"""
import base64
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("FETTLE_BUILD", "build")
LOGS = BUILD / "scenario-logs"
SYSTEM = "fettle-system"
TOLERATIONS = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
PATHS = {
    "configmaps": "api/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "events": "apis/events.k8s.io/v1",
    "jobs": "apis/batch/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "namespaces": "api/v1",
    "pods": "api/v1",
    "resourceclaims": "apis/resource.k8s.io/v1",
    "resourceclaimtemplates": "apis/resource.k8s.io/v1",
    "serviceaccounts": "api/v1",
    "services": "api/v1",
    "studies": "apis/fettle.dev/v1alpha1",
    "trials": "apis/fettle.dev/v1alpha1",
    "workloads": "apis/kueue.x-k8s.io/v1beta2",
}
# Seconds until a wait fails. Only a failure takes that long; the machine may be slow or busy.
PATIENCE = 900
# On a busy machine a renewal of the Lease may take longer than the 10 s that the default allows.
PATIENT_LEASE = ("--lease-duration=40", "--lease-renew=30")


class Refused(Exception):
    """kubectl failed; the text is its standard error."""


def kubectl(*arguments, document=None, check=True):
    done = subprocess.run(
        ["kubectl", *arguments],
        input=None if document is None else json.dumps(document),
        capture_output=True,
        text=True,
    )
    if check and done.returncode != 0:
        raise Refused(done.stderr.strip())
    return done.stdout


def connection():
    """A connection to the API server, and the headers that requests need."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    cluster = config["clusters"][0]["cluster"]
    server = urllib.parse.urlparse(cluster["server"])
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cadata=authority)
    return http.client.HTTPSConnection(server.hostname, server.port, timeout=PATIENCE, context=context), headers


class Reader(threading.local):
    """Reads from the API server on one connection per thread: a kubectl process for each poll would
    keep the processors busy."""

    connection = None
    headers = None

    def ask(self, path):
        """The JSON at that path, or None if there is nothing."""
        try:
            return self._ask(path)
        except (http.client.HTTPException, OSError):  # the server was restarted since the last one
            self.connection.close()
            return self._ask(path)

    def _ask(self, path):
        if self.connection is None:
            self.connection, self.headers = connection()
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status == 404:
            return None
        if answer.status == 429:  # so a definition that has just been made is answered for a moment
            time.sleep(int(answer.headers.get("Retry-After", 1)))
            return self._ask(path)
        if answer.status != 200:
            raise Refused(body.decode())
        return json.loads(body)


reader = Reader()


def get(resource, name, namespace):
    """The object, or None."""
    return reader.ask(f"/{PATHS[resource]}/namespaces/{namespace}/{resource}/{name}")


def get_of_cluster(resource, name):
    """An object without a namespace, or None."""
    return reader.ask(f"/{PATHS[resource]}/{resource}/{name}")


def items(resource, namespace, selector=""):
    query = urllib.parse.urlencode({"labelSelector": selector})
    return reader.ask(f"/{PATHS[resource]}/namespaces/{namespace}/{resource}?{query}")["items"]


def apply(document):
    return kubectl("apply", "-f", "-", document=document)


def wait_for(what, condition):
    """Polls condition() until it is true; returns its value."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def namespace(name):
    """A namespace where Studies may run; gone afterwards, with all that is in it."""
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true")
    kubectl("create", "namespace", name)
    try:
        # Before there is one, pods are refused.
        wait_for("the default account", lambda: get("serviceaccounts", "default", name))
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false", check=False)


def study(name, ns, **changes):
    """A Study whose trials are fake pods that end at once with the result 0.5.

    `changes` replace members of spec; `annotations` go to the pods (config/stages.yaml).
    """
    annotations = {"fake.fettle.dev/message": '{"step": 1, "value": 0.5}'} | changes.pop("annotations", {})
    pod = {
        "metadata": {"annotations": annotations},
        "spec": {
            "tolerations": TOLERATIONS,
            "nodeSelector": {"type": "kwok"},  # a real node, where there is one, knows no such image
            "containers": [{"name": "trial", "image": "fake"} | changes.pop("container", {})],
        },
    }
    spec = {
        "objectives": [{"metric": "value", "direction": "Minimize"}],
        "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
        "algorithm": {"name": "random", "seed": 1},
        "budget": {"trials": 4, "parallelism": 2},
        "trial": {"template": pod} | changes.pop("trial", {}),
    } | changes
    return {
        "apiVersion": "fettle.dev/v1alpha1",
        "kind": "Study",
        "metadata": {"name": name, "namespace": ns},
        "spec": spec,
    }


def condition(obj, kind):
    """The condition of that type if it is True, or None."""
    for found in (obj or {}).get("status", {}).get("conditions", []):
        if found["type"] == kind and found["status"] == "True":
            return found
    return None


def wait_for_condition(name, ns, kind):
    return wait_for(
        f"condition {kind} of Study {name}", lambda: condition(get("studies", name, ns), kind)
    )


def wait_for_message(name, ns, kind, words):
    """The message of the Study's condition, once it has these words: an earlier message may know less."""

    def message():
        found = (condition(get("studies", name, ns), kind) or {}).get("message", "")
        return words in found and found

    return wait_for(f"condition {kind} of Study {name} with: {words}", message)


def events(ns, about):
    return [e for e in items("events", ns) if e["regarding"]["name"] == about]


def wait_for_event(ns, about, words):
    """The event whose reason or note has these words: events are written after what they tell."""
    found = wait_for(f"an event of {about}: {words}",
                     lambda: [e for e in events(ns, about) if words in f"{e['reason']}: {e.get('note')}"])  # fmt: skip
    return found[0]


def kubeconfig_of(account, namespace, folder):
    """A file with which a program acts as that ServiceAccount."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    token = kubectl("create", "token", account, "-n", namespace, "--duration=2h").strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = os.path.join(folder, f"kubeconfig-{account}")
    with open(path, "w") as out:
        json.dump(config, out)
    return path


class Operator:
    """One fettle-operator process with the ServiceAccount that a release of the chart has made; its
    log is in LOGS. `namespace` is where it works; all of the cluster if none is given."""

    # In the cluster's own network no other process listens below the ephemeral ports.
    _ports = itertools.count(18080)

    def __init__(self, release, namespace=None, name="operator", arguments=(), lease=PATIENT_LEASE):
        self.home = namespace or SYSTEM
        self.account = f"{release}-operator"
        self.metrics_port = next(self._ports)
        self.health_port = next(self._ports)
        self.folder = tempfile.TemporaryDirectory(prefix="fettle-operator-")
        LOGS.mkdir(exist_ok=True)
        self.log_path = LOGS / f"{name}.log"
        self.log = open(self.log_path, "wb")
        self.arguments = [
            str(BUILD / "bin/fettle-operator"),
            f"--kubeconfig={self._kubeconfig()}",
            "--trainer-image=fettle-trainer:0.1.0",
            f"--lease-namespace={self.home}",
            f"--lease-name={self.account}",
            f"--metrics-port={self.metrics_port}",
            f"--health-port={self.health_port}",
            *([f"--namespace={namespace}"] if namespace else []),
            *lease,
            *arguments,
        ]
        self.process = None

    def _kubeconfig(self):
        return kubeconfig_of(self.account, self.home, self.folder.name)

    def start(self):
        self.process = subprocess.Popen(self.arguments, stdout=self.log, stderr=self.log)
        return self

    def wait_until_ready(self):
        wait_for("the operator to be ready", lambda: self.ask(self.health_port, "readyz"))
        return self

    def wait_until_leader(self):
        wait_for("the operator to lead", lambda: self.metric("fettle_leader") == 1)
        return self

    def lease_holder(self):
        """The process that the Lease names; "" or None if the Lease is free."""
        return get("leases", self.account, self.home)["spec"].get("holderIdentity")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """SIGTERM; the exit code, or None if it was killed. One that has ended by itself shows in the code."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def clean_up(self):
        """Stops it if it runs, and forgets its token."""
        code = self.stop()
        self.log.close()
        self.folder.cleanup()
        return code

    def words(self):
        """Its log so far, across restarts."""
        return self.log_path.read_text(errors="replace")

    def refusals(self):
        """Log lines about actions refused three times in a row for the same reason."""
        return [line for line in self.words().splitlines() if "refused repeatedly" in line]

    def ask(self, port, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=PATIENCE) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError):
            return ""

    def metric(self, name, **labels):
        """The sum of the series of that name which have these labels; None without any."""
        total = None
        for line in self.ask(self.metrics_port, "metrics").splitlines():
            found = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line)
            if not found or found.group(1) != name:
                continue
            has = dict(re.findall(r'(\w+)="([^"]*)"', found.group(2) or ""))
            if all(has.get(key) == value for key, value in labels.items()):
                total = (total or 0) + float(found.group(3))
        return total

    def writes(self):
        """API writes so far, by verb and resource."""
        found = {}
        for line in self.ask(self.metrics_port, "metrics").splitlines():
            if line.startswith("fettle_api_calls_total{"):
                has = dict(re.findall(r'(\w+)="([^"]*)"', line))
                if has["verb"] not in ("get", "list", "watch", "log") and has["resource"] != "leases":
                    key = (has["verb"], has["resource"])
                    found[key] = found.get(key, 0) + int(float(line.split()[-1]))
        return found

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024
