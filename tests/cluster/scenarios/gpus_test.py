"""GPUs, whole and in parts, given out by the real scheduler: nodes and devices are there on paper."""
import json
import os
import tempfile

import cluster
from cluster import TOLERATIONS, condition, items, kubectl, wait_for
from scenario import Scenario


def profile(name, sharing, offers, put, enforces="Hardware", **more):
    return {"name": name, "sharing": sharing, "offers": offers, "enforces": enforces, "put": put} | more


def claim(**exactly):
    return {"claim": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}


QUARTER = {"fraction": {"step": 0.25, "max": 0.25}}
SLICES = [
    profile("mig", "MIG", QUARTER, {"limits": {"nvidia.com/mig-1g.20gb": 1}}, models=["H100"]),
    profile("mps", "MPS", QUARTER, {"limits": {"nvidia.com/gpu.shared": 1}}, "Memory", models=["A100"]),
    profile("hami", "HAMi", {"fraction": {"step": 0.01}}, {"limits": {
        "nvidia.com/gpu": "{count}", "nvidia.com/gpumem-percentage": "{percent}", "nvidia.com/gpucores": "{percent}",
    }}, "Memory", models=["L40S"]),  # fmt: skip
]


class GpuScenario(Scenario):
    """Each test has a node of its own, and an operator with the profiles of its class."""

    profiles = []
    capacity = {}  # of the node, besides processors and memory

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="fettle-gpus-"))
        self.file = os.path.join(self.folder, "gpu-profiles.json")
        self.write_profiles(self.profiles)
        self.arguments = (f"--gpu-profiles={self.file}",)
        self.values = {"gpuProfiles": self.profiles}
        super().setUp()
        self.node = f"{self.ns}-node"
        self.labels = {"fettle-test": self.ns}
        self.add_node()

    def write_profiles(self, profiles):
        """In one step, as the kubelet replaces what it mounts."""
        with open(self.file + ".new", "w") as out:
            json.dump(profiles, out)
        os.replace(self.file + ".new", self.file)

    def add_node(self):
        self.make_node(self.node, self.capacity)

    def make_node(self, name, capacity, labels=None, annotations=None):
        room = {"cpu": "64", "memory": "512Gi", "pods": "250"} | capacity
        self.addCleanup(kubectl, "delete", "node", name, "--wait=false")
        cluster.apply({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": self.labels | {"kubernetes.io/hostname": name} | (labels or {}),
                "annotations": {"kwok.x-k8s.io/node": "fake"} | (annotations or {}),
            },
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room},
        })

    def apply_study(self, name, gpu, trials=3, **trial):
        """All its trials at once; each runs until it is told to end."""
        pod = {
            "metadata": {"annotations": {"fake.fettle.dev/message": '{"step": 1, "value": 0.5}',
                                         "fake.fettle.dev/forever": "yes"}},
            "spec": {"tolerations": TOLERATIONS, "nodeSelector": self.labels,
                     "containers": [{"name": "trial", "image": "fake"}]},
        }  # fmt: skip
        self.apply(name, trial={"gpu": gpu, "template": pod, "retries": 0} | trial,
                   budget={"trials": trials, "parallelism": trials, "failures": 0})  # fmt: skip

    def running(self, name):
        return [p for p in items("pods", self.ns, f"fettle.dev/study={name}") if p["status"]["phase"] == "Running"]

    def waiting(self, name):
        """What the trials that have no GPU say."""
        found = [condition(t, "Waiting") for t in self.trials(name)]
        return [c["message"] for c in found if c]

    def wait_to_hear(self, name, words):
        """Waits until a trial of the Study waits with these words. Another reason may come first: a
        new node is not ready at once."""
        wait_for(f"a trial of {name} to say: {words}", lambda: any(words in said for said in self.waiting(name)))

    def wait_for_two_and_one(self, name, words):
        """Of three trials two run, and the third waits with these words."""
        wait_for(f"two trials of {name}", lambda: len(self.running(name)) == 2)
        wait_for("the runs to be recorded", lambda: len(self.shares(name)) == 2)
        self.wait_to_hear(name, words)
        said = self.waiting(name)
        self.assertEqual(len(said), 1, said)

    def profile_of(self, name):
        """What the Study's status says of the profile that was chosen for it."""
        return wait_for(f"the profile of {name}", lambda: self.study(name).get("status", {}).get("gpu"))

    def shares(self, name):
        """GPUs of the workers of all runs that have run."""
        runs = [r for t in self.trials(name) for r in t.get("status", {}).get("runs", []) if "runningTime" in r]
        return [r.get("gpus") for r in runs]

    def finish(self, name, trials=3):
        self.let_all_end(name)
        self.assertEqual({t["status"]["phase"] for t in self.trials(name)}, {"Completed"})


class GpusOfDevicePlugins(GpuScenario):
    profiles = SLICES
    capacity = {
        "nvidia.com/mig-1g.20gb": "2",
        "nvidia.com/gpu.shared": "2",
        "nvidia.com/gpu": "2",
        "nvidia.com/gpumem-percentage": "50",
        "nvidia.com/gpucores": "50",
    }

    def test_mig_slices_replicas_and_hami_hold_as_many_trials_as_they_are(self):
        for name, model in (("mig", "H100"), ("mps", "A100"), ("hami", "L40S")):
            self.apply_study(name, {"fraction": 0.25, "model": model})
        for name in ("mig", "mps", "hami"):
            self.wait_for_two_and_one(name, "Insufficient nvidia.com/")
            self.assertEqual(self.shares(name), [0.25, 0.25])
            self.assertEqual(self.profile_of(name)["profile"], name)
        limits = self.running("hami")[0]["spec"]["containers"][0]["resources"]["limits"]
        self.assertEqual(limits, {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "25", "nvidia.com/gpucores": "25"})
        chosen = cluster.wait_for_event(self.ns, "mig", "GpuProfileChosen")
        self.assertIn("profile mig gives fraction 0.25 of model H100", chosen["note"])
        for name in ("mig", "mps", "hami"):
            self.finish(name)

    def test_what_no_profile_offers_is_refused_with_what_could_be_had(self):
        self.apply_study("s", {"fraction": 0.3, "model": "A100"})
        failed = cluster.wait_for_condition("s", self.ns, "Failed")
        self.assertIn("found fraction 0.3 of model A100", failed["message"])
        self.assertIn("fraction 0.25 (profile mps, A100)", failed["message"])

    def test_a_device_that_vanishes_is_a_disruption_and_is_waited_for(self):
        self.apply_study("s", {"fraction": 0.25, "model": "H100"}, trials=1)
        wait_for("the trial", lambda: self.running("s"))
        wait_for("its record", lambda: self.shares("s"))
        self.set_capacity("nvidia.com~1mig-1g.20gb", "0")
        kubectl("delete", "pod", self.running("s")[0]["metadata"]["name"], "-n", self.ns, "--wait=false")
        self.wait_to_hear("s", "Insufficient nvidia.com/mig-1g.20gb")
        self.set_capacity("nvidia.com~1mig-1g.20gb", "2")
        self.finish("s", trials=1)

    def set_capacity(self, resource, amount):
        patch = [{"op": "replace", "path": f"/status/{kind}/{resource}", "value": amount}
                 for kind in ("capacity", "allocatable")]  # fmt: skip
        kubectl("patch", "node", self.node, "--subresource=status", "--type=json", "-p", json.dumps(patch))


class ClaimScenario(GpuScenario):
    """Devices of a driver that is not there: the scheduler knows them from ResourceSlices."""

    def setUp(self):
        ns = self._testMethodName.removeprefix("test_").replace("_", "-")[:40]
        self.driver = f"{ns}.example.com"
        self.profiles = self.make_profiles()
        super().setUp()
        self.addCleanup(kubectl, "delete", "deviceclass", self.driver, "--ignore-not-found")
        cluster.apply({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": self.driver},
            "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{self.driver}'"}}]},
        })

    def make_profiles(self):
        exactly = {"deviceClassName": self.driver}
        slice_selector = {"cel": {"expression": f"device.attributes['{self.driver}'].profile == '1g.20gb'"}}
        return [
            profile("dra", "DRA", {"count": 8}, claim(**exactly, allocationMode="ExactCount", count="{count}")),
            profile("dra-mig", "DRA", QUARTER, claim(**exactly, selectors=[slice_selector])),
            profile("dra-memory", "DRA", {"memory": {"step": "1Mi"}},
                    claim(**exactly, capacity={"requests": {"memory": "{mib}Mi"}}), "Nothing", memory="80Gi"),
        ]  # fmt: skip

    def add_slice(self, name, slices=1, **spec):
        cluster.apply({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{self.ns}-{name}"},
            "spec": {"driver": self.driver, "nodeName": self.node,
                     "pool": {"name": self.node, "generation": 1, "resourceSliceCount": slices}} | spec,
        })  # fmt: skip
        self.addCleanup(kubectl, "delete", "resourceslice", f"{self.ns}-{name}", "--ignore-not-found")


class GpusByClaim(ClaimScenario):
    def assert_claims_go_with_the_study(self):
        self.assertEqual(len(items("resourceclaimtemplates", self.ns)), 1)
        allocated = [c for c in items("resourceclaims", self.ns) if "allocation" in c.get("status", {})]
        self.assertEqual(len(allocated), 2)
        kubectl("delete", "study", "s", "-n", self.ns, "--wait=false")
        for kind in ("resourceclaimtemplates", "resourceclaims"):
            wait_for(f"all {kind} to be gone", lambda kind=kind: not items(kind, self.ns))

    def check(self, gpu, share):
        self.apply_study("s", gpu)
        self.wait_for_two_and_one("s", "cannot allocate all claims")
        self.assertEqual(self.shares("s"), [share, share])
        self.assert_claims_go_with_the_study()

    def test_whole_cards_are_claimed(self):
        self.add_slice("gpus", devices=[{"name": f"gpu-{i}"} for i in range(2)])
        self.check({"count": 1}, 1)

    def test_partitions_are_claimed_as_far_as_counters_last(self):
        self.add_slice("counters", slices=2, sharedCounters=[
            {"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}])  # fmt: skip
        self.add_slice("devices", slices=2, devices=[
            {"name": f"mig-{i}", "attributes": {"profile": {"string": "1g.20gb"}},
             "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "20Gi"}}}]}
            for i in range(4)])  # fmt: skip
        self.check({"fraction": 0.25}, 0.25)

    def test_memory_of_one_card_is_claimed_by_several(self):
        self.add_slice("gpus", devices=[
            {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}])  # fmt: skip
        self.check({"memory": "32Gi"}, 0.4)


class GpuProfilesThatAreWrong(GpuScenario):
    expects_refusals = True
    profiles = [profile("mps", "MPS", QUARTER, {"limits": {"nvidia.com/gpu.shared": 1}}, "Memory")]
    capacity = {"nvidia.com/gpu.shared": "2"}

    def setUp(self):
        super().setUp()
        self.operator.stop()
        self.write_profiles([{"name": "mps", "sharing": "MPS", "offers": {}, "enforces": "Memory", "put": {}}])
        self.operator.start().wait_until_leader()

    def test_a_list_that_is_wrong_holds_only_gpu_studies_until_it_is_mended(self):
        self.apply_study("s", {"fraction": 0.25}, trials=1)
        blocked = cluster.wait_for_condition("s", self.ns, "Blocked")
        self.assertIn("GPU profile mps: put: asks for nothing", blocked["message"])
        self.apply("cpu", budget={"trials": 1, "parallelism": 1})
        self.assert_succeeded("cpu", trials=1)
        self.write_profiles(self.profiles)
        wait_for("the trial", lambda: self.running("s"))
        self.finish("s", trials=1)
