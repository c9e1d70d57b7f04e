#!/usr/bin/env python3
"""The schema in crds/ and the readers in api/ accept and refuse the same documents.

Asks a real API server (dry runs) and fettle-judge about the same documents: the examples,
api/testdata/bad, random valid ones, and each field of some valid ones removed or replaced by values
of every kind. What only api/ can refuse is listed below (ONLY_API): the operator puts it into the
Study's condition. The API server may refuse nothing that api/ accepts.

Usage: tests/cluster/in_cluster tests/schema/schema_test.py build/bin/fettle-judge
Needs kubectl and the kubeconfig of an administrator; leaves the definitions, and nothing else.
"""

import concurrent.futures
import copy
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = "schema-test"
API = f"/apis/fettle.dev/v1alpha1/namespaces/{NAMESPACE}"
RANDOM_DOCUMENTS = 40
# Documents are put to the API server side by side: on one connection, both sides mostly wait.
POOL = concurrent.futures.ThreadPoolExecutor(4)
IDLE = 30  # seconds; the API server closes a connection that was idle for 90

# What api/ refuses and a schema cannot: a pattern of api/'s message, and why.
ONLY_API = [
    (r"which parameter .* cannot be", "rules cannot read values of any type"),
    (r"again, which is entry \d+ already", "rules cannot read values of any type"),
    (r"could not tell them apart", "rules cannot read values of any type"),
    (r"quantize\.method qat (and|takes)|found qat with", "parameters may set each of these fields"),
    (r"so no epoch would compute with rounded numbers", "parameters may set each of these fields"),
    (r"found nothing, expected a text, a number, true or false", "null in a list without a type"),
    (r"(nodeSelector|labels|annotations)\..*: found nothing, expected", "the API server drops null from maps"),
    (r"constraints.*found -?1(\.5)?e\+30", "the API server compares such bounds as int64"),
    (r"constraints\[\d+\]\.min: found .* expected at most max", "rules cannot read 0.5 or a text"),
    (r"model\.layers.*(outside of a block|after residual|in one block|does not end)",
     "rules cannot match brackets"),
    (r"with a batchNorm layer and a batch of", "values of Categorical parameters"),
    (r"parameters\[\d+\]\.sets: .*: found .*, expected", "bounds of the field that is set"),
    (r"parameters\[\d+\]\.sets: .*: only makes sense", "the type of the layer that is set"),
    (r"parameters\[\d+\]\.sets: .*: is a list (of|without)", "how many layers there are"),
    (r"sets already; give both a `when`", "whether conditions exclude each other"),
    (r"warmStart\.map\..*no parameter of this Study", "rules do not see the keys of a map"),
    (r"warmStart\.(points|known)\[", "rules cannot read values of any type"),
    (r"found beside globalBatch", "a parameter may set either"),
    (r"found \d+ bytes, expected at most", "the size of a template"),
    (r"spec\.(parameters\.\w+|trial\.pod\..*): was (nothing, now .*|.*, now nothing); (it )?may not change",
     "the API server overlooks fields without a schema that one side lacks"),
    (r"found a text of \d+ bytes .* bytes$", "api/ counts bytes, the API server characters"),
]

# Changes of a Study that api/ allows and the API server does not, and why.
ONLY_SERVER = [
    (r"^change .*reductionFactor = (nothing|null)$", "defaults of some rules only are not stored"),
]


class Server(threading.local):
    """The API server of the kubeconfig, asked directly, on one connection a thread: a kubectl for
    each document is slow."""

    def __init__(self):
        config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
        address = urllib.parse.urlparse(config["clusters"][0]["cluster"]["server"])
        self.token = config["users"][0]["user"]["token"]
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection(address.hostname, address.port, context=context)
        self.used = 0.0  # when the connection was used last

    def send(self, method, path, body, dry_run=True):
        """The answer's code and JSON."""
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if time.monotonic() - self.used > IDLE:
            self.connection.close()  # the next request opens it again
        self.connection.request(method, path + query, json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = response.read()
        self.used = time.monotonic()
        return response.status, json.loads(answer)


def kubectl(*arguments, check=True):
    return subprocess.run(["kubectl", *arguments], check=check, capture_output=True, text=True)


class Judge:
    def __init__(self, program):
        self.program = program

    def run(self, *arguments, lines=()):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        answer = subprocess.run(
            [self.program, *arguments], input=text, check=True, capture_output=True, text=True
        )
        return [json.loads(line) for line in answer.stdout.splitlines()]


class Comparison:
    def __init__(self):
        self.compared = 0
        self.failures = []
        self.used = set()

    def known(self, error):
        """Whether only api/ can refuse for this reason."""
        text = f"{error['path']}: {error['message']}"
        for pattern, _ in ONLY_API:
            if re.search(pattern, text, re.DOTALL):
                self.used.add(pattern)
                return True
        return False

    def compare(self, what, refused_by_server, errors):
        """`refused_by_server`: its message, or ""."""
        self.compared += 1
        if refused_by_server and not errors:
            if any(re.search(pattern, what) for pattern, _ in ONLY_SERVER):
                return
            self.failures.append(f"{what}: refused by the API server only: {refused_by_server}")
        elif errors and not refused_by_server:
            surprising = [error for error in errors if not self.known(error)]
            if surprising:
                self.failures.append(f"{what}: refused by api/ only: {surprising[0]}")


NUMBERS = [-1, 0, 0.5, 1, 2, 3, 64, 4096, 10**9, 2**53, 2**60, 1e300, 1.5e300, -1e301]
TEXTS = ["A b", "x-1", "x_1", "90s", "1h30m", "0s", "-1h", "1.5d", "3651d", "20Gi", "-3", "1e3"]
TEXTS += ["2026-01-31T12:00:00Z", "2026-01-31", "True", "\u0000", "ü" * 40, "x" * 5000]
NAMES = ["Log", "Double", "Integer", "Categorical", "Boolean", "grid", "tpe", "asha", "median"]
NAMES += ["conv", "linear", "dropout", "flatten", "training.learningRate", "model.layers[0].units"]
OTHERS = [None, True, 1, 0.5, "", "a", "7", [], {}, [1], ["a", "a"], [None], {"a": 1}, [[]], [{}]]


def values_instead_of(value):
    """Of every type, and more of the type that it has; `...` is none. Numbers as kubectl sends
    them: 1.0 as 1."""
    return [..., *OTHERS, *(TEXTS + NAMES if isinstance(value, str) else NUMBERS)]


def places(value, path=()):
    """The path of every field and list entry in a document, with what is there."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in entries:
        yield path + (key,), member
        if isinstance(member, (dict, list)):
            yield from places(member, path + (key,))


def changed(document, path, value):
    """A copy with the value at `path` replaced; `...` removes it."""
    copied = copy.deepcopy(document)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copied


def variants(document, root):
    """The document with each field below `root` removed or replaced."""
    for path, there in places(document[root], (root,)):
        for value in values_instead_of(there):
            shown = "nothing" if value is ... else json.dumps(value)[:60]
            yield f"{'.'.join(map(str, path))} = {shown}", changed(document, path, value)


def without_nulls(value):
    """The API server does not keep them."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def message_of(code, answer):
    return "" if code < 300 else answer.get("message", str(code))


def ask_create(server, document):
    path = f"{API}/{'studies' if document['kind'] == 'Study' else 'trials'}"
    document = copy.deepcopy(document)
    document["metadata"] = {"name": document["metadata"]["name"]}
    return server.send("POST", path, document)


def side_by_side(ask, cases):
    """ask(what, document) for each of the cases, in their order."""
    return POOL.map(lambda case: ask(*case), cases)


def compare_specs(server, judge, comparison, cases):
    """Also that both fill in the same defaults."""
    cases = list(cases)
    accepted = []
    verdicts = judge.run(lines=[c[1] for c in cases])
    answers = side_by_side(lambda _, document: ask_create(server, document), cases)
    for (what, _), verdict, (code, answer) in zip(cases, verdicts, answers):
        comparison.compare(what, message_of(code, answer), verdict["errors"])
        if code < 300 and not verdict["errors"]:
            accepted.append((what, answer, verdict["read"]["spec"]))
    for (what, _, spec), verdict in zip(accepted, judge.run(lines=[a[1] for a in accepted])):
        if verdict["errors"] or without_nulls(verdict["read"]["spec"]) != without_nulls(spec):
            comparison.failures.append(f"{what}: other defaults: {verdict['errors']}")


def compare_statuses(server, judge, comparison, document, cases):
    path = f"{API}/{'studies' if document['kind'] == 'Study' else 'trials'}"
    code, stored = server.send("POST", path, document, dry_run=False)
    assert code == 201, stored
    place = f"{path}/{document['metadata']['name']}/status"
    cases = list(cases)

    def ask(_, case):
        return message_of(*server.send("PUT", place, {**stored, "status": case["status"]}))

    verdicts = judge.run(lines=[c[1] for c in cases])
    for (what, _), verdict, answer in zip(cases, verdicts, side_by_side(ask, cases)):
        comparison.compare(what, answer, verdict["errors"])


def compare_changes(server, judge, comparison, before, cases):
    """Of a Study or a Trial that exists."""
    path = f"{API}/{'studies' if before['kind'] == 'Study' else 'trials'}"
    code, stored = server.send("POST", path, before, dry_run=False)
    assert code == 201, stored
    place = f"{path}/{before['metadata']['name']}"
    cases = list(cases)

    def ask(_, after):
        return message_of(*server.send("PUT", place, {**stored, "spec": after["spec"]}))

    verdicts = judge.run(lines=[{"before": before, "after": after} for _, after in cases])
    for (what, _), verdict, answer in zip(cases, verdicts, side_by_side(ask, cases)):
        comparison.compare(f"change {what}", answer, verdict["errors"])


def written_by_core(trial):
    """Each change of Trial.spec that the planner makes: every one must be accepted."""

    def spec(**members):
        return {**trial, "spec": {**trial["spec"], **members}}

    search = trial["spec"]["search"]
    promotion = {"basis": 9, "untilStep": 9}
    yield "stop", spec(stop={"reason": "EarlyStopped", "message": "so", "basis": 9})
    yield "stop with a basis alone", spec(stop={"basis": 9})
    yield "suspend", spec(suspend=True)
    yield "resize", spec(workers=1)
    yield "more memory of a GPU", spec(gpuMemory="34Gi")
    yield "promote", spec(untilStep=9, search={**search, "rung": 2, "promotions": search["promotions"] + [promotion]})
    yield "promote twice", spec(untilStep=9, search={**search, "rung": 2, "promotions": search["promotions"] + [promotion] * 2})


def assert_written_by_core(comparison, server, before):
    place = f"{API}/trials/{before['metadata']['name']}"
    code, stored = server.send("GET", place, None)
    assert code == 200, stored
    for what, after in written_by_core(before):
        comparison.compared += 1
        code, answer = server.send("PUT", place, {**stored, "spec": after["spec"]})
        if code != 200:
            comparison.failures.append(f"what core writes: {what}: {answer.get('message')}")


def reordered(trial):
    """Promotions that are no continuation of those there were."""
    search = trial["spec"]["search"]
    other = {"basis": 9, "untilStep": 9}
    for what, promotions in (
        ("before the others", [other, *search["promotions"]]),
        ("between", [search["promotions"][0], other, *search["promotions"][1:]]),
        ("in another order", search["promotions"][::-1]),
        ("fewer", search["promotions"][:-1]),
        ("none", []),
        ("as many as there may be", search["promotions"] + [other] * 98),
        ("too many", search["promotions"] + [other] * 99),
    ):
        yield f"promotions {what}", {**trial, "spec": {**trial["spec"], "search": {**search, "promotions": promotions}}}


def compare_files(comparison):
    """As users apply them, with what kubectl makes of YAML."""
    for path in sorted((ROOT / "api/testdata/bad").glob("*.yaml")):
        marked = re.findall(r"^# error: (?:\d+:\d+: )?(?:(\S+): )?(.*)$", path.read_text(), re.M)
        errors = [{"path": place, "message": message} for place, message in marked]
        created = kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", str(path), check=False)
        if "study" in created.stdout or created.returncode != 0:
            comparison.compare(path.name, created.stderr, errors)
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        created = kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-f", str(path), check=False)
        comparison.compare(path.name, created.stderr, [])


def base_documents():
    kind = {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study"}
    parameters = [
        {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam", 1, 0.5, True]},
        {"name": "rate", "type": "Double", "min": 0.1, "max": 1, "scale": "Log"},
        {"name": "batch", "type": "Integer", "min": 32, "max": 96, "step": 32},
        {"name": "momentum", "type": "Double", "min": 0, "max": 0.9, "step": 0.1},
        {"name": "deep", "type": "Boolean", "when": {"parameter": "optimizer", "in": ["sgd", 1]}},
    ]
    search = {
        "objectives": [{"metric": "loss", "direction": "Minimize", "goal": 0.5, "take": "Best"}],
        "constraints": [{"metric": "memory", "min": 0.5, "max": "20Gi"}],
        "budget": {"trials": 9, "parallelism": 3, "failures": 1, "wallTime": "2h", "gpuHours": 1.5},
        "warmStart": {"studies": ["pilot"], "results": "old.jsonl", "known": [{"parameters": {"x": 1}, "values": {"loss": 0.5}}]},
        "replicates": {"leaders": 2, "runs": 5},
        "suspend": False,
    }
    container = {
        "name": "trial",
        "image": "mine",
        "command": ["train"],
        "args": ["--x"],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"cpu": 0.5, "memory": "4Gi"}},
    }
    trial = {
        "metrics": {"regex": "(.*)=(.*)"},
        "timeout": "10m",
        "heartbeat": 60,
        "retries": 1,
        "gracePeriod": "1m30s",
        "checkpoints": {"claim": "disk", "keep": 3},
        "gpu": {"memory": "20Gi", "model": "H100"},
        "workers": {"min": 1, "max": 1},
        "queue": "team-a",
        "queuePriorityClass": "low",
        "gang": "none",
        "template": {"spec": {"containers": [container]}},
    }
    templated = {
        **search,
        "parameters": parameters,
        "resource": {"unit": "step", "min": 1, "max": 9},
        "algorithm": {"name": "tpe", "seed": 3, "startupTrials": 5, "candidates": 9},
        "earlyStopping": {"name": "asha", "reductionFactor": 3},
        "trial": trial,
    }
    layers = [
        {"type": "conv", "channels": 8, "kernel": 3, "stride": 1, "padding": 1, "bias": True},
        {"type": "maxPool", "kernel": 2},
        {"type": "flatten"},
        {"type": "dropout", "rate": 0.3},
        {"type": "linear", "units": 10},
    ]
    trainer = {
        "data": {"trainImages": "a", "trainLabels": "b", "testImages": "c", "testLabels": "d"},
        "model": {"kernel": 3, "dropout": 0.1, "layers": layers},
        "training": {"globalBatch": 64, "epochs": 9, "schedule": {"name": "step", "gamma": 0.5}},
    }
    pod = {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "spot", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
        "runtimeClassName": "nvidia",
        "priorityClassName": "low.batch",
        "labels": {"team": "vision"},
        "annotations": {"example.com/cost": "any text"},
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "schedulerName": "default-scheduler",
        "serviceAccountName": "reporter",
        "securityContext": {"runAsUser": 1000},
        "imagePullPolicy": "Always",
        "containerSecurityContext": {"privileged": False},
        "resources": {"requests": {"cpu": 2}, "limits": {"memory": "4Gi"}},
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "more"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        "env": [{"name": "A", "value": "b"}],
        "envFrom": [{"secretRef": {"name": "tokens"}}],
    }
    trained = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [
            {"name": "rate", "type": "Double", "min": 0.1, "max": 1, "sets": "training.learningRate"},
            {"name": "kernel", "type": "Integer", "min": 3, "max": 7, "step": 2, "sets": "model.kernel"},
        ],
        "resource": {"max": 9},
        "algorithm": {"name": "grid", "points": 5, "shuffle": True},
        "earlyStopping": {"name": "median", "minTrials": 3, "startStep": 2},
        "trial": {
            "gpu": {"memory": "auto"},
            "trainer": trainer,
            "checkpoints": {"size": "10Gi", "storageClass": "fast", "accessMode": "ReadWriteMany"},
            "pod": pod,
        },
    }
    written = {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [
            {"name": "layers", "type": "Integer", "min": 1, "max": 4, "sets": "model.gpt.layers"},
        ],
        "trial": {
            "trainer": {
                "data": {"format": "tokens", "trainText": "a", "context": 64, "vocabulary": 65},
                "model": {"gpt": {"layers": 2, "heads": 4, "width": 64}},
            },
        },
    }
    trial_spec = {
        "study": "templated",
        "index": 3,
        "parameters": {"rate": 0.5},
        "seed": 7,
        "untilStep": 3,
        "workers": 2,
        "parent": {"trial": "templated-1", "step": 3},
        "search": {
            "basis": 4,
            "bracket": 0,
            "rung": 1,
            "promotions": [{"basis": 5, "untilStep": 2}, {"basis": 6, "untilStep": 3}],
            "replaces": "templated-0",
            "replicates": "templated-1",
        },
        "stop": {"reason": "GoalReached", "message": "so", "basis": 5},
        "suspend": False,
    }
    return [
        {**kind, "metadata": {"name": "templated"}, "spec": templated},
        {**kind, "metadata": {"name": "trained"}, "spec": trained},
        {**kind, "metadata": {"name": "written"}, "spec": written},
        {**kind, "kind": "Trial", "metadata": {"name": "templated-3"}, "spec": trial_spec},
    ]


def beyond_the_schema(templated, trained):
    """What only api/ refuses and changing one field does not bring up."""

    def with_parameters(*parameters):
        spec = {**trained["spec"], "parameters": trained["spec"]["parameters"] + list(parameters)}
        return {**trained, "spec": spec}

    choice = {"name": "o", "type": "Categorical", "values": ["sgd", "adam"]}
    choice["sets"] = "training.optimizer"
    double = {"type": "Double", "min": 0.1, "max": 0.5, "sets": "training.momentum"}
    first = {**double, "name": "a", "when": {"parameter": "o", "in": ["sgd"]}}
    second = {**double, "name": "b", "when": {"parameter": "o", "in": ["sgd", "adam"]}}
    yield "both set momentum", with_parameters(choice, first, second)
    values = ("spec", "parameters", 0, "values")
    yield "1 beside its text", changed(templated, values, ["sgd", "adam", 1, 0.5, True, "1"])
    whole = {"type": "Integer", "min": 8, "max": 16}
    yield "no such layer", with_parameters({**whole, "name": "n", "sets": "model.layers[7].units"})
    yield "two batches", with_parameters({**whole, "name": "n", "sets": "training.batchPerWorker"})
    checkpoints = ("spec", "trial", "checkpoints")
    yield "two claims", changed(trained, checkpoints, {"claim": "disk", "size": "1Gi"})
    yield "a class for nothing", changed(trained, checkpoints, {"storageClass": "fast"})
    words = ("spec", "trial", "template", "spec", "containers", 0, "args")
    yield "a large template", changed(templated, words, ["x" * 50_000] * 3)


def keys_of_labels(trained):
    """Good and bad ones, which changing one value does not bring up."""
    pod = ("spec", "trial", "pod")
    domain = "a." * 126 + "b"
    good = ["x" * 63, "A_b", "a-1.b/C", f"{domain}/x"]
    for key in [*good, "", "x" * 64, "a/", "/a", "A.b/c", "a/b/c", "a b", "-a", f"{domain}c/x"]:
        yield f"selector {key:.20}", changed(trained, (*pod, "nodeSelector"), {key: "x"})
        yield f"toleration {key:.20}", changed(trained, (*pod, "tolerations", 0, "key"), key)


def sizes_of_reports(trial):
    """At the bounds and beyond them."""
    for points, metrics, size in [(8, 32, 64), (9, 32, 64), (50, 5, 9), (50, 6, 9), (1, 33, 9), (1, 1, 65)]:
        values = {f"{i:02}" + "m" * (size - 2): 0.5 for i in range(metrics)}
        history = [{"step": step, "metrics": values} for step in range(points)]
        report = {"step": points, "metrics": values, "history": history}
        yield f"{points} points of {metrics} metrics", {**trial, "status": {"report": report}}


def named(document, name):
    return {**document, "metadata": {"name": name}}


def main():
    judge = Judge(sys.argv[1])
    kubectl("apply", "-f", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "crd/studies.fettle.dev", "crd/trials.fettle.dev")
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
    kubectl("create", "namespace", NAMESPACE)
    server = Server()
    comparison = Comparison()
    templated, trained, written, trial = base_documents()
    random = judge.run("random", str(RANDOM_DOCUMENTS))
    try:
        compare_files(comparison)
        compare_specs(server, judge, comparison, ((f"random {i}", d) for i, d in enumerate(random)))
        compare_specs(server, judge, comparison, beyond_the_schema(templated, trained))
        compare_specs(server, judge, comparison, keys_of_labels(trained))
        for document in (templated, trained, written, trial):
            compare_specs(server, judge, comparison, variants(document, "spec"))
        for base, part in ((templated, "best"), (trial, "report")):
            status = next(d["status"] for d in random if part in d["status"])
            document = {**named(base, f"status-{part}"), "status": status}
            compare_statuses(server, judge, comparison, document, variants(document, "status"))
        document = named(trial, "status-sizes")
        compare_statuses(server, judge, comparison, document, sizes_of_reports(document))
        for document in (templated, trained):
            name = "before-" + document["metadata"]["name"]
            before = named(document, name)
            compare_changes(server, judge, comparison, before, variants(before, "spec"))
        before = named(trial, "before-trial")
        cases = [*variants(before, "spec"), *reordered(before)]
        compare_changes(server, judge, comparison, before, cases)
        assert_written_by_core(comparison, server, before)
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    unused = [pattern for pattern, _ in ONLY_API if pattern not in comparison.used]
    comparison.failures += [f"ONLY_API has what never happens: {pattern}" for pattern in unused]
    for failure in comparison.failures[:200]:
        print(f"schema: {failure}", file=sys.stderr)
    print(f"schema: {comparison.compared} documents, {len(comparison.failures)} differences")
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
