"""An operator of several namespaces, one of which comes and goes."""
import re

import cluster
from cluster import get, kubectl, study, wait_for
from scenario import Scenario
from setup import SCENARIO, install_in


class NamespacesTest(Scenario):
    expects_refusals = True  # writes into the namespace that goes

    def setUp(self):
        super().setUp()
        self.operator.stop()
        self.other = self.enterContext(cluster.namespace(f"{self.ns}-2"))
        self.grant()
        self.operator = self.start_operator(
            SCENARIO, self.ns, "-two", [f"--namespace={self.other}", "--leader-elect=false"])  # fmt: skip

    def grant(self):
        """The Roles of the operator and of the trainers, in both namespaces."""
        install_in(self.ns, others=[self.other])

    def ready_text(self):
        return self.operator.ask(self.operator.health_port, "readyz")

    def test_namespace_goes_and_comes_back(self):
        for ns in (self.ns, self.other):
            cluster.apply(study("s", ns, budget={"trials": 12, "parallelism": 4}, annotations={"fake.fettle.dev/duration": "1s"}))
        wait_for("trials in both", lambda: all(cluster.items("trials", ns) for ns in (self.ns, self.other)))
        kubectl("delete", "namespace", self.other)
        self.operator.kill()
        self.operator.start().wait_until_leader()
        self.assert_succeeded(trials=12)
        self.apply("next")
        self.assert_succeeded("next")
        words = re.compile(f"namespace {self.other}: .*forbidden", re.DOTALL)
        wait_for("it to say what is missing", lambda: words.search(self.ready_text()))
        kubectl("create", "namespace", self.other)
        self.grant()
        cluster.apply(study("s", self.other))
        cluster.wait_for_condition("s", self.other, "Succeeded")
        self.assertEqual(get("studies", "s", self.other)["status"]["trials"]["completed"], 4)
        wait_for("nothing to be missing", lambda: self.ready_text() == "ok\n")
