"""Studies that go by themselves, and what is left of them."""
import time

import cluster
from cluster import get, items, wait_for
from scenario import Scenario

# Seconds. A slow machine must see the end of a Study, and change it, well within.
TIME_TO_LIVE = 45


class Scale(Scenario):
    def test_a_study_goes_when_its_time_to_live_has_passed(self):
        self.apply("kept")
        self.apply("short", ttlAfterFinished=f"{TIME_TO_LIVE}s")
        cluster.wait_for_condition("short", self.ns, "Succeeded")
        succeeded = time.monotonic()
        wait_for("the Study to go", lambda: get("studies", "short", self.ns) is None)
        # A poll sees the condition after it was written, and the deletion after it happened.
        self.assertGreater(time.monotonic() - succeeded, TIME_TO_LIVE / 2, "it went too early")
        wait_for("its trials to go", lambda: not self.trials("short"))
        self.assert_succeeded("kept")
        self.assertFalse([j for j in items("jobs", self.ns) if j["metadata"]["name"].startswith("short")])

    def test_a_time_to_live_that_is_taken_back_counts_no_more(self):
        self.apply(ttlAfterFinished=f"{TIME_TO_LIVE}s")
        cluster.wait_for_condition("s", self.ns, "Succeeded")
        cluster.kubectl("patch", "study", "s", "-n", self.ns, "--type=json",
                        "-p", '[{"op": "remove", "path": "/spec/ttlAfterFinished"}]')  # fmt: skip
        time.sleep(TIME_TO_LIVE + 5)
        self.assert_succeeded()
