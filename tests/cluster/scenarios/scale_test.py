"""Studies that go by themselves, and what is left of them."""
import time

import cluster
from cluster import get, items, wait_for
from scenario import Scenario


class Scale(Scenario):
    def test_a_study_goes_when_its_time_to_live_has_passed(self):
        self.apply("kept")
        self.apply("short", ttlAfterFinished="10s")
        cluster.wait_for_condition("short", self.ns, "Succeeded")
        time.sleep(3)
        self.assertEqual(len(self.trials("short")), 4, "it went too early")
        wait_for("the Study to go", lambda: get("studies", "short", self.ns) is None)
        wait_for("its trials to go", lambda: not self.trials("short"))
        self.assert_succeeded("kept")
        self.assertFalse([j for j in items("jobs", self.ns) if j["metadata"]["name"].startswith("short")])

    def test_a_time_to_live_that_is_taken_back_counts_no_more(self):
        self.apply(ttlAfterFinished="15s")
        cluster.wait_for_condition("s", self.ns, "Succeeded")
        cluster.kubectl("patch", "study", "s", "-n", self.ns, "--type=json",
                        "-p", '[{"op": "remove", "path": "/spec/ttlAfterFinished"}]')  # fmt: skip
        time.sleep(20)
        self.assert_succeeded()
