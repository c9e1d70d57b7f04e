"""kubectl fettle gpus: what it shows of nodes and devices on paper, and that what it proposes works."""
import json
import os
import subprocess

import cluster
from cluster import BUILD, ROOT, TOLERATIONS, get, items, kubectl, wait_for
from gpus_test import GpuScenario
from setup import install_in

DRIVER = "gpu.nvidia.com"
H100 = "NVIDIA-H100-80GB-HBM3"


def labels(product, mib, cards, **more):
    """As NVIDIA's GPU feature discovery writes them."""
    found = {"gpu.product": product, "gpu.memory": str(mib), "gpu.count": str(cards)} | more.pop("others", {})
    return {f"nvidia.com/{key}": value for key, value in found.items()}


def device(name, kind, mib, **more):
    attributes = {"type": kind, "productName": "NVIDIA B200"} | more
    return {"name": name, "attributes": {key: {"string": value} for key, value in attributes.items()},
            "capacity": {"memory": {"value": f"{mib}Mi"}}}  # fmt: skip


class GpusCommandTest(GpuScenario):
    def setUp(self):
        super().setUp()
        self.make_node(f"{self.ns}-whole", {"nvidia.com/gpu": "8"}, labels(H100, 81559, 8))
        mig = {"mig.strategy": "mixed", "mig-1g.20gb.memory": "20096", "mig-3g.40gb.memory": "40448"}
        self.make_node(f"{self.ns}-mig", {"nvidia.com/mig-1g.20gb": "4", "nvidia.com/mig-3g.40gb": "2"},
                       labels(H100, 81559, 2, others=mig))  # fmt: skip
        shared = {"gpu.replicas": "4", "gpu.sharing-strategy": "mps"}
        self.make_node(f"{self.ns}-mps", {"nvidia.com/gpu.shared": "8"},
                       labels("NVIDIA-A100-SXM4-80GB-SHARED", 81920, 2, others=shared))  # fmt: skip
        shared = shared | {"gpu.sharing-strategy": "time-slicing"}
        self.make_node(f"{self.ns}-slow", {"nvidia.com/gpu": "4"}, labels("Tesla-T4-SHARED", 15360, 1, others=shared))
        self.make_node(f"{self.ns}-hami", {"nvidia.com/gpu": "40"}, labels("NVIDIA-L40S", 46068, 4),
                       {"hami.io/node-nvidia-register": "GPU-1,10,46068,100,NVIDIA-L40S,0,true:"})  # fmt: skip
        self.make_node(f"{self.ns}-dra", {})
        self.make_devices()

    def make_devices(self):
        for name, kind in ((DRIVER, "gpu"), ("mig.nvidia.com", "mig")):
            expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
            cluster.apply({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                           "spec": {"selectors": [{"cel": {"expression": expression}}]}})  # fmt: skip
            self.addCleanup(kubectl, "delete", "deviceclass", name, "--ignore-not-found")
        node = f"{self.ns}-dra"
        devices = [device(f"gpu-{i}", "gpu", 183359) for i in range(2)]
        devices += [device(f"gpu-2-mig-{i}", "mig", 45312, profile="1g.45gb") for i in range(4)]
        cluster.apply({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
                     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
        })  # fmt: skip
        self.addCleanup(kubectl, "delete", "resourceslice", node, "--ignore-not-found")

    def gpus(self, *arguments, kubeconfig=None):
        environment = os.environ | ({"KUBECONFIG": kubeconfig} if kubeconfig else {})
        command = [str(BUILD / "bin/kubectl-fettle"), "gpus", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def test_what_an_administrator_sees_can_be_installed_and_places_trials(self):
        self.check_the_tables()
        self.check_who_may_not_look()
        self.install_what_is_proposed()
        self.run_the_example()
        self.place_others()

    def place_others(self):
        """All at once; on which profile each comes, and the GPUs of its worker."""
        studies = {
            "whole": ({"count": 8, "model": "H100"}, "whole-nvidia-h100-80gb-hbm3", 8),
            "half": ({"memory": "40000Mi", "model": "H100"}, "mig-3g-40gb-nvidia-h100-80gb-hbm3", 0.5),
            "mps": ({"fraction": 0.25, "model": "A100"}, "mps-nvidia-a100-sxm4-80gb", 0.25),
            "slow": ({"fraction": 0.25, "model": "T4"}, "time-slicing-tesla-t4", 0.25),
            "claimed": ({"count": 2, "model": "B200"}, "dra-nvidia-b200", 2),
            "slice": ({"memory": "40Gi", "model": "B200"}, "dra-mig-1g-45gb-nvidia-b200", 0.25),
        }
        for name, (gpu, _, _) in studies.items():
            self.apply_study(name, gpu, trials=1)
        for name, (_, profile, share) in studies.items():
            wait_for(f"the trial of {name}", lambda name=name: self.running(name))
            wait_for("its record", lambda name=name, share=share: self.shares(name) == [share])
            self.assertEqual(self.profile_of(name)["profile"], profile)
        used = {row[4]: row[6] for row in self.rows() if row[0] in (f"{self.ns}-whole", f"{self.ns}-mig")}
        self.assertEqual(used, {"nvidia.com/gpu": "8", "nvidia.com/mig-1g.20gb": "0", "nvidia.com/mig-3g.40gb": "1"})
        for name in studies:
            self.finish(name, trials=1)

    def rows(self):
        shown = self.gpus()
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        return [line.split() for line in shown.stdout.splitlines() if line.startswith("  ")]

    def check_the_tables(self):
        rows = self.rows()
        self.assertIn([f"{self.ns}-mig", H100, "81559Mi", "-", "nvidia.com/mig-1g.20gb", "4", "0", "4"], rows)
        self.assertIn([f"{self.ns}-mps", "NVIDIA-A100-SXM4-80GB", "80Gi", "mps", "nvidia.com/gpu.shared", "8", "0", "8"], rows)
        self.assertIn([f"{self.ns}-hami", "NVIDIA-L40S", "46068Mi", "HAMi", "nvidia.com/gpu", "40", "0", "40"], rows)
        self.assertIn([DRIVER, "NVIDIA", "B200", "45312Mi", "MIG", "1g.45gb", "4"], rows)

    def check_who_may_not_look(self):
        """No list of profiles comes out, which would take away those that are installed."""
        poor = cluster.kubeconfig_of("default", self.ns, self.folder)
        for arguments in ((), ("--output", "values"), ("--output", "json")):
            shown = self.gpus(*arguments, kubeconfig=poor)
            self.assertEqual((shown.returncode, shown.stdout), (3, ""))
            self.assertIn("you may not list nodes", shown.stderr)
            self.assertIn("ask an administrator", shown.stderr)

    def install_what_is_proposed(self):
        values = self.gpus("--output", "values")
        self.assertEqual((values.returncode, values.stderr), (0, ""))
        install_in(self.ns, self.settings, values=values.stdout)
        [mounted] = [m["data"]["gpu-profiles.json"] for m in items("configmaps", self.ns)
                     if m["metadata"]["name"].endswith("-gpu-profiles")]  # fmt: skip
        proposed = json.loads(self.gpus("--output", "json").stdout)["gpuProfiles"]
        self.assertEqual([p["name"] for p in json.loads(mounted)], [p["name"] for p in proposed])
        self.write_profiles(json.loads(mounted))  # as the kubelet does
        self.operator.stop()  # it begins again where the first list is mounted
        self.operator.start().wait_until_leader()

    def run_the_example(self):
        """examples/fraction.yaml, but for what lets its pods land on nodes on paper and end."""
        example = str(ROOT / "examples/fraction.yaml")
        study = json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-n", self.ns, "-f", example))
        study["spec"]["trial"]["pod"] = {
            "annotations": {"fake.fettle.dev/forever": "yes",
                            "fake.fettle.dev/message": '{"step": 9, "validation_accuracy": 0.5}'},
            "tolerations": TOLERATIONS,
            "nodeSelector": self.labels,
        }  # fmt: skip
        study["spec"]["budget"]["trials"] = 5
        cluster.apply(study)
        wait_for("four trials at once", lambda: len(self.running("fraction")) == 4)
        pods = self.running("fraction")
        self.assertEqual({p["spec"]["nodeName"] for p in pods}, {f"{self.ns}-mig"})
        self.assertEqual({env["value"] for p in pods for env in p["spec"]["containers"][0]["env"]
                          if env["name"] == "FETTLE_GPU_MEMORY"}, {"20096"})  # fmt: skip
        chosen = self.profile_of("fraction")
        self.assertEqual((chosen["profile"], chosen["enforces"]), ("mig-1g-20gb-nvidia-h100-80gb-hbm3", "Hardware"))
        self.finish("fraction", trials=5)
