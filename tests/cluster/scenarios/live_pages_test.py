"""`kubectl fettle serve` against a real API server: what each kind of person sees, and the manifest of docs/serve.md."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from cluster import BUILD, PATIENCE, ROOT, items, kubectl, kubeconfig_of, wait_for
from scenario import Scenario
from setup import people_roles

FAKE_LOG = pathlib.Path(os.environ.get("FETTLE_CLUSTER_DIR", "/tmp/fettle-cluster")) / "fake-pods.log"
TEAM = "team"  # the namespace of the document


class Pages:
    """A running `fettle serve`, which asks the API server as the kubeconfig says, and those who have its token."""

    def __init__(self, command, kubeconfig, bearer=None):
        self.process = subprocess.Popen(
            command, env=os.environ | {"KUBECONFIG": kubeconfig}, text=True, stdout=subprocess.PIPE)  # fmt: skip
        said = ""
        while "Ctrl-C" not in said:
            line = self.process.stdout.readline()
            if line == "":
                raise AssertionError(f"fettle serve ended: {said}")
            said += line
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", said).group(1))
        self.headers = {"Authorization": bearer or "Bearer " + re.search(r"\?token=(\S+)", said).group(1)}

    def close(self):
        """Its exit code."""
        self.process.send_signal(signal.SIGINT)
        with self.process.stdout:
            return self.process.wait(PATIENCE)

    @contextlib.contextmanager
    def answer(self, path):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path, headers=self.headers)
            yield connection.getresponse()

    def ask(self, path):
        """The status, and the text."""
        with self.answer(path) as answer:
            return answer.status, answer.read().decode()

    def json(self, path):
        status, text = self.ask(path)
        return status, json.loads(text)

    def events(self, path):
        """Name and data of event after event, on one connection."""
        with self.answer(path) as answer:
            name = ""
            for line in answer:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, json.loads(value)

    def first(self, path, wanted):
        """The data of the first event of that name."""
        with contextlib.closing(self.events(path)) as events:
            return next(data for name, data in events if name == wanted)


class LivePagesTest(Scenario):
    alone = True  # the roles for people exist once, and a release of another scenario would take them with it
    namespace = TEAM

    def setUp(self):
        super().setUp()
        self.enterContext(people_roles())
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.pod = self.run_for_ever()

    def serve(self, command, kubeconfig, bearer=None):
        pages = Pages(command, kubeconfig, bearer)
        self.addCleanup(lambda: self.assertEqual(pages.close(), 0))
        return pages

    def serve_for(self, person, role=None):
        """The pages of a new person, who has that ClusterRole in the namespace."""
        kubectl("create", "serviceaccount", person, "-n", TEAM)
        if role:
            kubectl("create", "rolebinding", person, "-n", TEAM, f"--serviceaccount={TEAM}:{person}",
                    f"--clusterrole={role}")  # fmt: skip
        command = [str(BUILD / "bin/kubectl-fettle"), "serve", "-n", TEAM, "--port", "0"]
        return self.serve(command, kubeconfig_of(person, TEAM, self.folder))

    def assert_shows_the_study(self, pages):
        status, found = pages.json("/api/studies")
        self.assertEqual((status, [row["name"] for row in found["studies"]]), (200, ["s"]), found)
        self.assertEqual(found["studies"][0]["trials"]["running"], 1)
        self.assertEqual([row["name"] for row in pages.first("/events", "document")["studies"]], ["s"])
        status, document = pages.json("/api/study/s")
        self.assertEqual((status, [trial["name"] for trial in document["trials"]]), (200, ["s-0"]), document)
        status, why = pages.json("/api/trial/s-0/why")
        self.assertEqual(status, 200, why)
        self.assertIn("s-0", why["text"])

    def assert_follows_the_log(self, pages):
        """One line of it that was there before, and one that is written after that."""
        lines = [f"{number} for {self.id()}" for number in (1, 2)]
        with contextlib.closing(pages.events("/api/trial/s-0/log?follow=1")) as events:
            for line in lines:
                with open(FAKE_LOG, "a") as log:  # all fake pods share it
                    log.write(f"2026-01-01T00:00:00Z stdout F {line}\n")
                name, said = next(one for one in events if one[0] == "end" or line in one[1]["text"])
                self.assertEqual(name, "log", said)
        status, text = pages.ask("/api/trial/s-0/log")
        self.assertEqual((status, [line in text for line in lines]), (200, [True, True]), text)

    def test_pages_show_what_their_reader_may_see(self):
        with self.subTest("of fettle-view alone"):
            self.check_viewer(self.serve_for("viewer", "fettle-view"))
        with self.subTest("without a role"):
            self.check_nobody(self.serve_for("nobody"))
        with self.subTest("of edit, to which the chart adds its rights"):
            self.check_editor(self.serve_for("editor", "edit"))

    def check_viewer(self, pages):
        self.assert_shows_the_study(pages)
        status, told = pages.json("/api/trial/s-0/log")
        self.assertEqual(status, 403)
        self.assertRegex(told["error"], "pods is forbidden: .*:viewer.* cannot list")
        self.assertEqual(pages.first("/api/trial/s-0/log?follow=1", "end")["message"], told["error"])

    def check_nobody(self, pages):
        forbidden = r"(studies|trials|pods).* is forbidden: .*:nobody.* cannot (get|list)"
        for path in ("/api/studies", "/api/study/s", "/api/trial/s-0/why", "/api/trial/s-0/log", "/metrics"):
            status, told = pages.json(path)
            self.assertEqual(status, 403, path)
            self.assertRegex(told["error"], forbidden)
        for path in ("/events", "/events?study=s"):
            with contextlib.closing(pages.events(path)) as events:
                name, told = next(events)
            self.assertEqual((name, told["code"]), ("trouble", "forbidden"), told)  # You may not see this: ...
            self.assertRegex(told["message"], forbidden)

    def check_editor(self, pages):
        """To the end of the Study."""
        self.assert_shows_the_study(pages)
        self.assert_follows_the_log(pages)
        with contextlib.closing(pages.events("/events")) as of_all, \
             contextlib.closing(pages.events("/events?study=s")) as of_one:  # fmt: skip
            self.assertEqual(next(of_all)[1]["studies"][0]["state"], "running")
            self.assertEqual(next(of_one)[1]["study"]["state"], "running")
            self.let_end([self.pod])
            changes = (data["study"]["state"] for name, data in of_one if name == "change" and "study" in data)
            self.assertIn("succeeded", changes)
            changes = (row["state"] for name, data in of_all if name == "change" for row in data["studies"])
            self.assertIn("succeeded", changes)

    def test_manifest_of_the_document_suffices(self):
        self.restrict_pods()
        page = (ROOT / "docs/serve.md").read_text()
        manifest = re.search(r"^### A page for a team\n.*?^```yaml\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE).group(1)
        applied = subprocess.run(["kubectl", "apply", "--server-side", "-f", "-"], input=manifest, text=True,
                                 capture_output=True)  # fmt: skip
        self.assertEqual((applied.returncode, applied.stderr), (0, ""))
        self.assertEqual(applied.stdout.count("serverside-applied"), len(manifest.split("\n---\n")))
        # It waits: no node of this cluster has its images. What it would run runs here.
        pod = wait_for("the pod of the pages", lambda: items("pods", TEAM, "app=fettle-pages"))[0]["spec"]
        container = pod["containers"][0]
        secret = json.loads(kubectl("get", "secret", "fettle-pages", "-n", TEAM, "-o", "json"))["data"]
        files = {key: base64.b64decode(value).decode() for key, value in secret.items()}
        for name, text in files.items():
            pathlib.Path(self.folder, name).write_text(text)
        mounted = container["volumeMounts"][0]["mountPath"] + "/"
        program, *arguments = (word.replace(mounted, self.folder + "/") for word in container["command"])
        pages = self.serve([str(BUILD / "bin" / program), *arguments],
                           kubeconfig_of(pod["serviceAccountName"], TEAM, self.folder), files["bearer"])  # fmt: skip
        self.assertIn(f'uri: "http://127.0.0.1:{pages.port}"', files["oauth2-proxy.yaml"])
        self.assert_shows_the_study(pages)
        self.assert_follows_the_log(pages)
        kubectl("delete", "rolebinding", "fettle-pages-logs", "-n", TEAM)
        wait_for("logs to be forbidden", lambda: pages.ask("/api/trial/s-0/log")[0] == 403)
        self.assert_shows_the_study(pages)
