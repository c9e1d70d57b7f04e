"""gpu: {memory: auto}: trials get what their training needs of a card, and cards hold more of them."""
import cluster
from cluster import TOLERATIONS, condition, get, items, kubectl, wait_for
from gpus_test import ClaimScenario, GpuScenario, profile

GIB = 1 << 30
CARD = 80 * GIB
MIB_PER_WIDTH = 48
HAMI = profile("hami-memory", "HAMi", {"memory": {"step": "1Mi"}},
               {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "{mib}"}}, "Memory", memory="80Gi")  # fmt: skip
TRAINER = {
    "data": {"trainImages": "images", "trainLabels": "labels"},
    "model": {"layers": [{"type": "linear", "units": 64}, {"type": "linear", "units": 10}]},
}


def needs(width):
    """Bytes of a card that the training of such a model takes."""
    return width * MIB_PER_WIDTH << 20


def amount(quantity):
    for unit, factor in (("Gi", GIB), ("Mi", 1 << 20)):
        if str(quantity).endswith(unit):
            return float(quantity.removesuffix(unit)) * factor
    return float(quantity)


def width_of(trial):
    return trial["spec"]["parameters"]["width"]


class AutoMemory:
    """Trials of the built-in trainer; its pods are fakes that end as it does for want of memory."""

    def apply_auto(self, widths, rates, parallelism):
        """Each width with each learning rate. Nothing may fail: what runs out of memory is no failure."""
        self.apply(
            objectives=[{"metric": "loss", "direction": "Minimize"}],
            parameters=[
                {"name": "rate", "type": "Categorical", "values": rates, "sets": "training.learningRate"},
                {"name": "width", "type": "Categorical", "values": widths, "sets": "model.layers[0].units"},
            ],
            resource={"unit": "epoch", "max": 1},
            algorithm={"name": "grid"},
            budget={"trials": len(rates) * len(widths), "parallelism": parallelism, "failures": 0},
            trial={
                "template": None,
                "gpu": {"memory": "auto"},
                "retries": 0,
                "trainer": TRAINER,
                "pod": {
                    "annotations": {
                        "fake.fettle.dev/forever": "yes",
                        "fake.fettle.dev/message": '{"step": 1, "loss": 0.5}',
                        "fake.fettle.dev/mib-per-width": str(MIB_PER_WIDTH),
                    },
                    "nodeSelector": self.labels,
                    "tolerations": TOLERATIONS,
                },
            },
        )

    def training(self):
        """Trials that have enough and train, by name, with their pods."""
        # In this order: the pod is of a run that began with what the trial has, or with more.
        trials = {t["metadata"]["name"]: t for t in self.trials()}
        pods = {p["metadata"]["labels"]["fettle.dev/trial"]: p for p in self.running("s")}
        return {name: pod for name, pod in pods.items() if name in trials
                and amount(trials[name]["spec"]["gpuMemory"]) >= needs(width_of(trials[name]))}  # fmt: skip

    def runs(self, trial):
        """As far as they are recorded, which is a moment after a pod runs."""
        runs = get("trials", trial, self.ns).get("status", {}).get("runs", [])
        return [(r.get("outcome"), amount(r["gpuMemory"])) for r in runs]


class MemoryOfHami(AutoMemory, GpuScenario):
    """Two cards, each in a node of its own: the scheduler knows an amount for a node only."""

    profiles = [HAMI]
    capacity = {"nvidia.com/gpu": "10", "nvidia.com/gpumem": str(CARD >> 20)}
    widths = [64, 128, 256, 512]  # 3 to 24 GiB
    too_wide = 2048  # 96 GiB

    def setUp(self):
        super().setUp()
        self.node += "-2"
        self.add_node()

    def test_trials_of_mixed_sizes_share_cards_and_what_no_card_holds_is_infeasible(self):
        self.apply_auto([*self.widths, self.too_wide], rates=[1, 0.5, 0.25], parallelism=8)
        infeasible = wait_for("a trial that no card holds", lambda: [t for t in self.trials() if "stop" in t["spec"]])[0]
        most = wait_for("eight trials to train at once on two cards", lambda: self.enough_at_once(8))
        for node in {pod["spec"]["nodeName"] for pod in most.values()}:
            held = [amount(get("trials", name, self.ns)["spec"]["gpuMemory"])
                    for name, pod in most.items() if pod["spec"]["nodeName"] == node]  # fmt: skip
            self.assertGreater(len(held), 1)
            self.assertLessEqual(sum(held), CARD)
        self.finish("s", trials=15)
        self.check_results(infeasible["metadata"]["name"])

    def enough_at_once(self, count):
        found = self.training()
        return found if len(found) == count else None

    def check_results(self, infeasible):
        status = self.study()["status"]
        self.assertEqual(status["trials"]["completed"], 15)
        self.assertEqual(status["trials"]["infeasible"], 3)
        self.assertEqual(status["trials"].get("failed", 0), 0)
        ended = condition(get("trials", infeasible, self.ns), "Complete")
        self.assertEqual(ended["reason"], "NoSuchGpuMemory")
        self.assertEqual(ended["message"], "it needs 96Gi of a GPU's memory; 80Gi is the most that one has here")
        for reason in ("MoreGpuMemory", "NoSuchGpuMemory"):
            cluster.wait_for_event(self.ns, "s", reason)
        asked_twice = {}
        for trial in self.trials():
            width = width_of(trial)
            if width == self.too_wide:
                continue
            got = amount(trial["spec"]["gpuMemory"])
            self.assertTrue(needs(width) <= got <= 1.2 * needs(width) + GIB, trial["spec"])
            *short, last = trial["status"]["runs"]
            self.assertEqual([r["outcome"] for r in short], ["OutOfMemory"] * len(short))
            self.assertEqual(last["outcome"], "Succeeded")
            self.assertAlmostEqual(last["gpus"], got / CARD, places=6)
            asked_twice.setdefault(width, []).append(len(short))
        for width, refusals in asked_twice.items():
            self.assertEqual(len(refusals), 3)
            self.assertLess(sum(refusals), 3, f"of three alike of width {width} the last one knows")


class MemoryByClaim(AutoMemory, ClaimScenario):
    """One card whose memory the scheduler gives out by claims of any size (consumable capacity)."""

    def test_out_of_memory_in_the_middle_gets_half_as_much_again_and_those_alike_know(self):
        self.add_slice("gpus", devices=[
            {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}])  # fmt: skip
        self.apply_auto([64], rates=[1, 0.5], parallelism=1)  # 3 GiB
        told = ("OutOfMemory", 1 * GIB)
        wait_for("a run on what it says it needs", lambda: self.train_with("s-0", [told, (None, 4 * GIB)]))
        self.end("s-0", 1, "out of memory: this trial's part of the GPU has no 64 MB more")
        died = ("OutOfMemory", 4 * GIB)
        wait_for("a run on half as much again", lambda: self.train_with("s-0", [told, died, (None, 6 * GIB)]))
        wait_for("the claims of earlier runs to be given back", lambda: self.claimed() == ["6Gi"])
        self.end("s-0", 0, '{"step": 1, "loss": 0.5}')
        wait_for("one alike to begin with as much", lambda: self.train_with("s-1", [(None, 6 * GIB)]))
        self.end("s-1", 0, '{"step": 1, "loss": 0.5}')
        cluster.wait_for_condition("s", self.ns, "Succeeded")
        self.assertEqual(self.runs("s-0"), [told, died, ("Succeeded", 6 * GIB)])
        self.assertEqual(self.runs("s-1"), [("Succeeded", 6 * GIB)])
        self.assertEqual(self.study()["status"]["trials"].get("failed", 0), 0)
        self.assertEqual(self.shares("s")[-1], 6 / 80)
        kubectl("delete", "study", "s", "-n", self.ns, "--wait=false")
        for kind in ("resourceclaimtemplates", "resourceclaims"):
            wait_for(f"all {kind} to be gone", lambda kind=kind: not items(kind, self.ns))

    def train_with(self, trial, runs):
        return trial in self.training() and self.runs(trial) == runs

    def claimed(self):
        """What allocated claims have of a card."""
        found = [c.get("status", {}).get("allocation", {}).get("devices", {}) for c in items("resourceclaims", self.ns)]
        return [r["consumedCapacity"]["memory"] for devices in found for r in devices.get("results", [])]

    def end(self, trial, code, message):
        pod = self.training()[trial]["metadata"]["name"]
        kubectl("annotate", "pod", pod, "-n", self.ns, "fake.fettle.dev/forever-", "--overwrite",
                f"fake.fettle.dev/exit-code={code}", f"fake.fettle.dev/message={message}")  # fmt: skip
