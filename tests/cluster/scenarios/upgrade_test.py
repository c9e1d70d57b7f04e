"""The CRDs are upgraded and downgraded while Studies run."""
import copy
import json
import subprocess
import unittest

import cluster
from cluster import ROOT, get, kubectl, wait_for
from scenario import FOREVER, Scenario
from setup import install_definitions, wait_until_established

# The last commit that changed the definitions of the previous release. Update it with each release.
RELEASE_BEFORE = "4bf521748a13b484bdebe83304a3c1900daa321c"
FILES = ("studies.yaml", "trials.yaml")


def from_yaml(text):
    done = subprocess.run(["kubectl", "create", "--dry-run=client", "-o", "json", "-f", "-"],
                          input=text, capture_output=True, text=True, check=True)  # fmt: skip
    return json.loads(done.stdout)


def definitions_now():
    return [from_yaml((ROOT / "crds" / name).read_text()) for name in FILES]


def definitions_before():
    """From the history, which a shallow clone does not have."""
    texts = []
    for name in FILES:
        done = subprocess.run(["git", "-C", str(ROOT), "show", f"{RELEASE_BEFORE}:crds/{name}"], capture_output=True, text=True)
        if done.returncode != 0:
            raise unittest.SkipTest(f"it needs the history of the repository (git fetch --unshallow): {done.stderr}")
        texts.append(done.stdout)
    return [from_yaml(text) for text in texts]


def schema_of(definition):
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def definitions_of_the_future():
    """With new defaulted fields everywhere, which the API server adds to what it stores and returns."""
    future = copy.deepcopy(definitions_now())
    text = {"type": "string", "default": "tomorrow"}
    for definition in future:
        schema = schema_of(definition)
        schema["spec"]["properties"]["future"] = text
        schema["status"]["properties"]["future"] = text
    studies, trials = map(schema_of, future)
    studies["spec"]["properties"]["budget"]["properties"]["future"] = text
    studies["spec"]["properties"]["budget"].setdefault("default", {})["future"] = "tomorrow"
    studies["status"]["properties"]["trials"]["properties"]["future"] = text
    trials["status"]["properties"]["runs"]["items"]["properties"]["future"] = text
    return future


def install(definitions):
    for definition in definitions:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", document=definition)
    wait_until_established()


class UpgradeTest(Scenario):
    alone = True  # the definitions are the cluster's

    def setUp(self):
        super().setUp()
        self.addCleanup(install_definitions)
        self.addCleanup(lambda: install(definitions_now()))

    def begin(self, name):
        """Its trials end when they are told to: a slow step finds it in the midst of them."""
        self.apply(name, budget={"trials": 30, "parallelism": 3}, annotations={FOREVER: "yes"})
        self.complete(2, name)

    def go_on(self, name="s"):
        self.complete(4, name)
        self.assertFalse({"Failed", "Readable"} & {c["type"] for c in self.study(name)["status"]["conditions"] if c["status"] == "True"})

    def stored(self, name="s"):
        return get("studies", name, self.ns)["spec"]

    def test_new_defaulted_fields_and_back(self):
        self.begin("s")
        install(definitions_of_the_future())
        wait_for("the new field to be filled in", lambda: self.stored().get("future") == "tomorrow")
        self.go_on()
        self.apply("late", budget={"trials": 3, "parallelism": 3})
        kubectl("patch", "study", "s", "-n", self.ns, "--type=merge", "-p", '{"spec":{"future":"mine"}}')
        self.go_on()
        self.assertEqual(self.stored()["future"], "mine", "what we do not know is kept")
        self.assert_succeeded("late", trials=3)
        self.assertIsNone(cluster.condition(self.study(), "Succeeded"), "it is in the midst of its trials")
        install(definitions_now())
        self.let_all_end()
        self.assert_succeeded("s", trials=30)
        self.assert_one_run_each()

    def test_definitions_of_the_release_before_and_back(self):
        install(definitions_before())
        self.begin("s")
        install(definitions_now())
        self.go_on()
        install(definitions_before())
        self.go_on()
        self.let_all_end()
        self.assert_succeeded("s", trials=30)
        self.assert_one_run_each()
