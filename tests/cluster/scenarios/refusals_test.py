"""What an administrator can repair sets the condition Blocked, is retried, and never fails a Study."""
import base64
import http.server
import os
import ssl
import subprocess
import tempfile
import threading

import cluster
from cluster import kubectl, wait_for
from scenario import FOREVER, Scenario

REFUSING = "it breaks down on purpose"


class Broken(http.server.BaseHTTPRequestHandler):
    """Answers every review with 500."""

    def do_POST(self):  # noqa: N802, the library's name
        self.send_response(500)
        self.end_headers()
        self.wfile.write(REFUSING.encode())

    def log_message(self, *_):
        pass


class RefusalsTest(Scenario):
    expects_refusals = True

    def wait_until_blocked(self, words):
        cluster.wait_for_message("s", self.ns, "Blocked", words)

    def assert_goes_on(self, **expected):
        self.assert_succeeded(**expected)
        wait_for("the condition to go", lambda: not cluster.condition(self.study(), "Blocked"))
        cluster.wait_for_event(self.ns, "s", "Blocked: ")
        said = [e for e in cluster.events(self.ns, "s") if e["reason"] == "Blocked"]
        self.assertEqual(len(said), 1, "one event")
        self.assertEqual(said[0]["type"], "Warning")

    def test_quota_on_trials(self):
        cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": self.ns},
                       "spec": {"hard": {"count/trials.fettle.dev": "3"}}})  # fmt: skip
        wait_for("the quota to count", lambda: "used" in kubectl("get", "quota", "q", "-n", self.ns, "-o", "json"))
        self.apply(budget={"trials": 6, "parallelism": 2})
        self.wait_until_blocked("exceeded quota: q")
        wait_for("what is known to be told", lambda: self.completed() == 3)
        self.assertEqual(self.study()["status"]["display"]["state"], "Blocked")
        self.assertGreaterEqual(self.operator.metric("fettle_blocked"), 1)
        kubectl("delete", "quota", "q", "-n", self.ns)
        self.assert_goes_on(trials=6)

    def serve_broken_webhook(self):
        """The clientConfig of a webhook on this machine."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        certificate, key = (os.path.join(folder, name) for name in ("certificate", "key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broken",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)  # fmt: skip
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with open(certificate, "rb") as pem:
            authority = base64.b64encode(pem.read()).decode()
        return {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": authority}

    def refusal_of_a_trial(self):
        """The API server's refusal of a Trial; "" if it is accepted."""
        trial = {"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
                 "metadata": {"name": "probe"}, "spec": {"study": "nobody"}}  # fmt: skip
        return self.refusal_of(trial)

    def test_webhook_that_answers_500(self):
        name = f"{self.ns}-broken"
        webhook = {"name": "broken.fettle.dev", "clientConfig": self.serve_broken_webhook(), "sideEffects": "None",
                   "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                   "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.ns}},
                   "rules": [{"apiGroups": ["fettle.dev"], "apiVersions": ["*"], "resources": ["trials"],
                              "operations": ["CREATE"]}]}  # fmt: skip
        self.addCleanup(kubectl, "delete", "validatingwebhookconfiguration", name, "--ignore-not-found", check=False)
        cluster.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                       "metadata": {"name": name}, "webhooks": [webhook]})  # fmt: skip
        wait_for("the API server to ask the webhook", lambda: "failed calling webhook" in self.refusal_of_a_trial())
        self.apply()
        self.wait_until_blocked("failed calling webhook")
        self.assertIsNone(cluster.condition(self.study(), "Failed"))
        kubectl("delete", "validatingwebhookconfiguration", name)
        self.assert_goes_on()

    def test_policy_that_comes_in_mid_study(self):
        """Denied with 422, as what is wrong with an object is."""
        name = f"{self.ns}-no-jobs"
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                  "metadata": {"name": name},
                  "spec": {"matchConstraints": {
                               "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.ns}},
                               "resourceRules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"],
                                                  "operations": ["CREATE"]}]},
                           "validations": [{"expression": "false", "message": REFUSING}]}}  # fmt: skip
        binding = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                   "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}  # fmt: skip
        kinds = ("validatingadmissionpolicybinding", "validatingadmissionpolicy")
        for kind in kinds:
            self.addCleanup(kubectl, "delete", kind, name, "--ignore-not-found", check=False)
        self.apply(annotations={FOREVER: "yes"}, budget={"trials": 6, "parallelism": 2, "failures": 0})
        self.complete(3)
        for document in (policy, binding):
            cluster.apply(document)
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"},
               "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "fake"}]}}}}  # fmt: skip
        wait_for("the policy to be in force", lambda: REFUSING in self.refusal_of(job))
        self.let_end(self.held())
        self.wait_until_blocked(REFUSING)
        waits = wait_for("a trial to say it", lambda: next(filter(None, (
            cluster.condition(trial, "Waiting") for trial in self.trials())), None))  # fmt: skip
        self.assertIn(REFUSING, waits["message"])
        for kind in kinds:
            kubectl("delete", kind, name)
        self.let_all_end()
        self.assert_goes_on(trials=6)
        self.assert_one_run_each()

    def test_priority_class_that_is_missing(self):
        name = f"{self.ns}-class"
        study = cluster.study("s", self.ns)
        study["spec"]["trial"]["template"]["spec"]["priorityClassName"] = name
        cluster.apply(study)
        self.wait_until_blocked(name)
        self.assertIsNone(cluster.condition(self.study(), "Failed"))
        self.addCleanup(kubectl, "delete", "priorityclass", name, check=False)
        cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7})
        self.assert_goes_on()

    def test_service_account_that_is_missing(self):
        study = cluster.study("s", self.ns)
        study["spec"]["trial"]["template"]["spec"]["serviceAccountName"] = "late"
        cluster.apply(study)
        self.wait_until_blocked('serviceaccount "late" not found')
        kubectl("create", "serviceaccount", "late", "-n", self.ns)
        self.assert_goes_on()
