"""A Study that names a queue before Kueue is installed."""
import cluster
from cluster import wait_for
from real_kueue import KueueScenario, install
from scenario import Scenario


class BeforeKueueTest(KueueScenario):
    alone = True  # and the first of all: nothing has installed Kueue yet

    def setUp(self):
        Scenario.setUp(self)

    def test_a_study_waits_for_kueue_to_be_installed(self):
        self.begin(trials=2)
        wait_for("the reason", lambda: self.waits())
        self.assertIn("queue team has not admitted it", self.waits())
        install()
        self.make_cluster_queue()
        self.make_queue("team")
        self.assert_done(trials=2)
        self.assertIsNone(cluster.condition(self.study(), "Blocked"))
