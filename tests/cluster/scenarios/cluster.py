"""What scenarios need of a cluster: kubectl, waiting, namespaces, and operators as plain processes.

Everything runs in the test cluster's network (tests/cluster/in_cluster), as its administrator; the
operators run with the account and the role that the chart gives them.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("FETTLE_BUILD", "build")
LOGS = BUILD / "scenario-logs"
SYSTEM = "fettle-system"
TOLERATIONS = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]


class Refused(Exception):
    """kubectl failed; the text is what it said."""


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


def get(kind, name, namespace):
    """The object, or None."""
    found = kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
    return json.loads(found) if found.strip() else None


def items(kind, namespace, selector=""):
    return json.loads(kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json"))["items"]


def apply(document):
    return kubectl("apply", "-f", "-", document=document)


def wait_for(what, condition, seconds=60):
    """Until condition() is true, which it returns; raises with the last value otherwise."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for: {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def namespace(name):
    """A namespace where Studies may run; gone afterwards, with all that is in it."""
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true")
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false", check=False)


def wait_for_namespaces_to_go():
    """Those of earlier scenarios: while they are taken apart, their Studies still try to go on."""
    wait_for("namespaces to go", lambda: "Terminating" not in kubectl("get", "namespaces"))


def study(name, ns, **changes):
    """A Study whose trials are fake pods that end at once with the result 0.5.

    `changes` replace members of spec; `annotations` go to the pods (config/stages.yaml).
    """
    annotations = {"fake.fettle.dev/message": '{"step": 1, "value": 0.5}'} | changes.pop("annotations", {})
    pod = {
        "metadata": {"annotations": annotations},
        "spec": {
            "tolerations": TOLERATIONS,
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


def wait_for_condition(name, ns, kind, seconds=90):
    return wait_for(
        f"condition {kind} of Study {name}", lambda: condition(get("study", name, ns), kind), seconds
    )


def events(ns, about):
    return [e for e in items("events.events.k8s.io", ns) if e["regarding"]["name"] == about]


class Operator:
    """One fettle-operator process, with the chart's ServiceAccount; its log is in LOGS."""

    def __init__(self, name="operator", metrics_port=18080, health_port=18081, arguments=()):
        self.metrics_port = metrics_port
        self.health_port = health_port
        self.folder = tempfile.TemporaryDirectory(prefix="fettle-operator-")
        LOGS.mkdir(exist_ok=True)
        self.log = open(LOGS / f"{name}.log", "wb")
        self.arguments = [
            str(BUILD / "bin/fettle-operator"),
            f"--kubeconfig={self._kubeconfig()}",
            "--trainer-image=fettle-trainer:0.1.0",
            f"--lease-namespace={SYSTEM}",
            f"--metrics-port={metrics_port}",
            f"--health-port={health_port}",
            *arguments,
        ]
        self.process = None

    def _kubeconfig(self):
        config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        token = kubectl("create", "token", "fettle-operator", "-n", SYSTEM, "--duration=2h").strip()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        path = os.path.join(self.folder.name, "kubeconfig")
        with open(path, "w") as out:
            json.dump(config, out)
        return path

    def start(self):
        self.process = subprocess.Popen(self.arguments, stdout=self.log, stderr=self.log)
        return self

    def wait_until_ready(self):
        wait_for("the operator to be ready", lambda: self.ask(self.health_port, "readyz"), 30)
        return self

    def wait_until_leader(self, seconds=40):
        wait_for("the operator to lead", lambda: self.metric("fettle_leader") == 1, seconds)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; the exit code."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def clean_up(self):
        """Stops it if it runs, and forgets its token."""
        code = self.stop()
        self.log.close()
        self.folder.cleanup()
        return code

    def ask(self, port, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
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
