"""Ownership of trials: a Study that is recreated at once, and Trials without an owner."""
import json

import cluster
from cluster import Refused, get, items, kubectl, wait_for
from scenario import FOREVER, Scenario


class OwnersTest(Scenario):
    def trial(self, name, **spec):
        return {"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
                "metadata": {"name": name, "namespace": self.ns, "labels": {"fettle.dev/study": "s"}},
                "spec": {"study": "s", "parameters": {"x": 0.5}} | spec}  # fmt: skip

    def set_finalizers(self, trial, finalizers):
        kubectl("patch", "trial", trial, "-n", self.ns, "--type=merge", "-p",
                json.dumps({"metadata": {"finalizers": finalizers}}))  # fmt: skip

    def test_study_made_again_at_once_starts_afresh(self):
        self.apply(budget={"trials": 50, "parallelism": 25})
        cluster.wait_for_condition("s", self.ns, "Succeeded")
        first = self.study()["metadata"]["uid"]
        # Held so that the new Study finds it, however fast the others are deleted.
        self.set_finalizers("s-0", ["test.fettle.dev/hold"])
        kubectl("delete", "study", "s", "-n", self.ns)
        self.apply(budget={"trials": 6, "parallelism": 3})
        said = wait_for("it to say that it waits", lambda: [
            e for e in cluster.events(self.ns, "s") if e["reason"] == "EarlierTrials"])  # fmt: skip
        self.assertRegex(said[0]["note"], r"\d+ trials? of an earlier Study of this name (is|are) still being deleted")
        wait_for("only the held one to be left", lambda: [t["metadata"]["name"] for t in self.trials()] == ["s-0"])
        self.set_finalizers("s-0", [])
        self.assert_succeeded(trials=6)
        study = self.study()
        self.assertNotEqual(study["metadata"]["uid"], first)
        self.assertEqual(study["status"]["trials"]["created"], 6, "nothing is adopted")
        self.assertIsNone(cluster.condition(study, "Waiting"))
        owners = {o["uid"] for t in items("trials", self.ns) for o in t["metadata"]["ownerReferences"]}
        self.assertEqual(owners, {study["metadata"]["uid"]})

    def test_trials_made_by_hand_are_ignored(self):
        with self.assertRaises(Refused) as refused:
            cluster.apply(self.trial("s-9", index=9_000_000_000_000_000))
        self.assertIn("spec.index", str(refused.exception))
        self.apply(budget={"trials": 12, "parallelism": 4}, annotations={FOREVER: "yes"})
        wait_for("a trial", self.trials)
        uid = self.study()["metadata"]["uid"]
        forged = self.trial("s-999999", index=999_999, workers=1024)
        forged["metadata"]["labels"]["fettle.dev/study-uid"] = uid
        for document in (forged, self.trial("of-nobody", study="nobody"), self.trial("s-extra", index=7)):
            cluster.apply(document)
        self.let_all_end()
        self.assertEqual(self.study()["status"]["trials"]["created"], 12)
        for name in ("s-999999", "of-nobody", "s-extra"):
            self.assertNotIn("status", get("trials", name, self.ns), name)
        self.assertIsNone(get("jobs", "s-999999-r0", self.ns))
