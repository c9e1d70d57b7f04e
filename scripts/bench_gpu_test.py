#!/usr/bin/env python3
"""What of `make gpu` needs neither a GPU nor PyTorch.      scripts/bench_gpu_test.py FETTLE_TRAINER"""

import json
import math
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock
from xml.etree import ElementTree

import bench_gpu
import bench_gpu_trials
import curve_picture
import fettle_numbers
from bench_gpu_run import Run, lines_of, run_of

TRAINER = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin/fettle-trainer"
CLASSES, RATE, MOMENTUM, EPOCHS, BATCH = 10, 0.5, 0.9, 2, 128


def train_by_hand(config, weights):
    """Softmax regression: the loss of each epoch."""
    data, size = config["data"], 4
    pixels = fettle_numbers.read_npy(data["trainImages"])
    labels = fettle_numbers.read_npy(data["trainLabels"])
    train, _ = fettle_numbers.split(len(labels), data["validationSamples"])
    (w, b), _ = fettle_numbers.blocks([CLASSES * size, CLASSES])
    values, velocity, losses = list(weights), [0.0] * len(weights), []
    for epoch in range(EPOCHS):
        order, loss = fettle_numbers.epoch_order(train, 0, epoch), 0.0
        for begin in range(0, len(order), BATCH):
            chosen, gradient = order[begin:begin + BATCH], [0.0] * len(values)
            for sample in chosen:
                x = [(byte / 255 - 0.5) / 0.25 for byte in pixels[size * sample:size * (sample + 1)]]
                logits = [sum(values[w + size * k + i] * x[i] for i in range(size)) + values[b + k]
                          for k in range(CLASSES)]
                total = math.log(sum(math.exp(logit) for logit in logits))
                loss += total - logits[labels[sample]]
                for k in range(CLASSES):
                    error = (math.exp(logits[k] - total) - (k == labels[sample])) / len(chosen)
                    gradient[b + k] += error
                    for i in range(size):
                        gradient[w + size * k + i] += error * x[i]
            velocity = [MOMENTUM * old + new for old, new in zip(velocity, gradient)]
            values = [value - RATE * step for value, step in zip(values, velocity)]
        losses.append(loss / len(order))
    return losses


class FettlesNumbers(unittest.TestCase):
    def test_philox_is_that_of_its_paper(self):
        self.assertEqual(fettle_numbers.philox((0, 0, 0, 0), (0, 0)), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8))

    def test_a_training_by_hand_from_the_same_weights_is_the_trainers(self):
        """Order of samples, split, weights and data: with any of them wrong the losses differ."""
        bench_gpu_trials.SHAPES["regression"] = (2, 2, 1)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            path = bench_gpu_trials.write_config(folder, "regression", 600, EPOCHS, "fp32", "reference", RATE)
            config = json.loads(path.read_text())
            config["model"]["layers"] = [{"type": "linear", "units": CLASSES}]
            path.write_text(json.dumps(config))
            _, wrong = lines_of([TRAINER, str(path), "--until-epoch", "0", "--checkpoints", str(folder / "c")], 60)
            self.assertEqual(wrong, "")
            reports, wrong = lines_of([TRAINER, str(path)], 60)
            self.assertEqual(wrong, "")
            weights = fettle_numbers.read_weights(*(folder / "c").glob("*.checkpoint"))
            for found, expected in zip([line["loss"] for line in reports], train_by_hand(config, weights), strict=True):
                self.assertAlmostEqual(found, expected, delta=1e-5)


class Running(unittest.TestCase):
    def test_lines_before_a_timeout_count(self):
        command = ["sh", "-c", "echo '{\"a\": 1}'; exec sleep 1000"]
        self.assertEqual(lines_of(command, 1), ([{"a": 1}], "was ended after 1 s"))

    def test_what_failed_says_why(self):
        self.assertEqual(lines_of([sys.executable, "-c", "import sys; sys.exit('no GPU')"], 20), ([], "no GPU"))

    def test_notes_come_back_from_a_program_that_went_well(self):
        run = run_of(["sh", "-c", "echo note: no plan >&2; echo chatter >&2; echo '{\"a\": 1}'"], 20)
        self.assertEqual(run, Run([{"a": 1}], "", ["note: no plan"]))

    def test_what_there_is_no_time_for_is_left_out_and_said_to_be(self):
        with tempfile.TemporaryDirectory() as folder:
            options = types.SimpleNamespace(
                results=pathlib.Path(folder), budget=0, rehearse=True, curves=(("mlp", "bf16"),), trial_seconds=30,
                workloads=(("mlp", 128, 2.0),), rounds=(("eager", 60),))
            benchmark = bench_gpu.Benchmark(options)
            for part in bench_gpu.PARTS:
                getattr(benchmark, part)()
            benchmark.write()
            self.assertEqual(benchmark.report["left_out"], ["mlp 128, ours", "mlp 128, PyTorch, eager", "trial",
                                                            "curve of mlp, bf16"])
            self.assertIn("Left out for want of time: trial.", (options.results / "benchmarks.md").read_text())

    def test_a_trial_is_as_long_as_its_start_leaves_time_for(self):
        lines = [{"seconds": 0.5}, {"seconds": 0.25}, {"seconds": 0.25}]
        self.assertEqual(bench_gpu_trials.epochs_in(30, 6, lines), 3 + 24 * 4)
        self.assertEqual(bench_gpu_trials.epochs_in(3, 6, lines), 3)


class GoingOn(unittest.TestCase):
    """A second call, in the folder with the results of a first one that came only so far."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.options = types.SimpleNamespace(
            results=pathlib.Path(folder.name), budget=600, rehearse=True, trainer="fettle", backend="cuda",
            precision="bf16", seconds=2, device="cuda", workloads=(("resnet9", 64, 1.0), ("mlp", 128, 2.0)),
            rounds=(("eager,graph", 60), ("default", 90)))
        self.commands = []

    def steps(self, most=100):
        """As if each program took so long that there is time for `most` of them; returns the report."""
        def run(command, _):
            self.commands.append(" ".join(map(str, command)))
            ways = command[command.index("--ways") + 1].split(",") if "--ways" in command else [""]
            line = {"tokens_per_second": 100.0, "mfu": 0.4, "step_ms_median": 1, "step_ms_p99": 2}
            return [line | {"way": way} for way in ways], ""

        benchmark = bench_gpu.Benchmark(self.options)
        benchmark.left = lambda seconds: seconds if len(self.commands) < most else 0
        with (mock.patch.object(bench_gpu, "lines_of", run),
              mock.patch.object(bench_gpu, "run_of", lambda *args: Run(*run(*args), ["note: no plan"]))):
            benchmark.steps()
        return benchmark.report

    def test_only_what_is_lacking_is_measured(self):
        self.steps(most=5)
        first, self.commands = self.commands, []
        report = self.steps()
        self.assertEqual(["--bench" in command for command in first], [True, True, False, True, True])
        self.assertEqual([command.split("--ways ")[-1].split(" --")[0] for command in self.commands],
                         ["eager,graph", "default,default+graph", "default,default+graph"])
        self.assertEqual([[line["way"] for line in row["pytorch"]] for row in report["steps"]],
                         2 * [["eager", "graph", "default", "default+graph"]])
        self.assertEqual([row["ratio"] for row in report["steps"]], [1.0, 1.0])

    def test_what_was_not_asked_for_stays(self):
        self.steps()
        self.options.workloads, self.commands = (("mlp", 128, 2.0), ("chargpt", 64, 1.3)), []
        self.assertEqual([row["model"] for row in self.steps()["steps"]], ["mlp", "chargpt", "resnet9"])
        self.assertTrue(all("chargpt" in command for command in self.commands))
        self.assertEqual(["--deterministic" in command for command in self.commands],
                         [False, False, True, True, False, False])

    def test_plans_are_made_before_what_is_timed(self):
        """In a run of their own, with a limit of its own: they may take minutes."""
        report = self.steps(most=2)
        self.assertEqual([command.split("--seconds ")[1] for command in self.commands], ["0.05", "2"])
        self.assertIn("ours_planning_seconds", report["steps"][0])
        self.assertIn("mlp 128, ours", report["left_out"])

    def test_attention_is_also_measured_as_cudnn_has_it(self):
        self.options.workloads = (("gpt2", 32, 1.0), ("mlp", 128, 2.0))
        report = self.steps()
        ways = [[line["way"] for line in row["pytorch"]] for row in report["steps"]]
        self.assertIn("graph+cudnn-attention", ways[0])
        self.assertIn("graph+cudnn-attention+bf16-residual", ways[0])
        self.assertNotIn("graph+cudnn-attention", ways[1])
        self.assertEqual(report["steps"][0]["notes"], ["note: no plan"])
        self.assertIn("gpt2 32: note: no plan", bench_gpu.text_of(report))

    def test_other_sources_begin_anew(self):
        self.steps()
        self.commands = []
        with mock.patch.object(bench_gpu, "sources_hash", lambda _: "of other sources"):
            self.steps()
        self.assertEqual(len(self.commands), 8)

    def test_a_report_that_was_cut_short_begins_anew(self):
        self.steps()
        file = self.options.results / "benchmarks.json"
        self.assertEqual([path.name for path in file.parent.glob("*.part")], [])
        file.write_text(file.read_text()[:100])
        self.commands = []
        self.steps()
        self.assertEqual(len(self.commands), 8)

    def test_a_source_that_changes_changes_their_hash(self):
        folder = self.options.results
        (folder / "kernels").mkdir()
        (folder / "CMakeLists.txt").write_text("")
        (folder / "kernels" / "a.cu").write_text("a")
        before = bench_gpu.sources_hash(folder)
        (folder / "kernels" / "a.cu").write_text("b")
        self.assertNotEqual(bench_gpu.sources_hash(folder), before)


class Results(unittest.TestCase):
    def test_the_table_has_the_ratio_and_both_mfus(self):
        ours = {"images_per_second": 200, "step_ms_median": 1, "step_ms_p99": 2, "mfu": 0.4}
        row = {"model": "gpt2", "batch": 32, "goal": 1.0, "ours": ours, "ratio": 2.0, "mfu_of_pytorch": 0.2,
               "pytorch": [{"way": "eager", "images_per_second": 90}, {"way": "graph", "images_per_second": 100}],
               "errors": ["PyTorch, default: first\nlast"]}
        text = bench_gpu.text_of({"device": "d", "date": "today", "steps": [row]})
        self.assertIn("| gpt2 | 32 | 200 | 1.000, 2.000 | 100 | graph | 2.0 | 1.0 | 0.400 | 0.2 |", text)
        self.assertIn("Error: last", text)

    def test_deterministic_attention_has_a_row_of_its_own(self):
        ours = {"tokens_per_second": 200, "step_ms_median": 1, "step_ms_p99": 2, "mfu": 0.4}
        row = {"model": "gpt2", "batch": 32, "goal": 1.0, "ours": ours, "ratio": 2.0, "mfu_of_pytorch": 0.2,
               "ours_deterministic": ours | {"tokens_per_second": 300, "mfu": 0.6},
               "pytorch": [{"way": "eager", "tokens_per_second": 100}], "errors": []}
        text = bench_gpu.text_of({"device": "d", "date": "today", "steps": [row]})
        self.assertIn("| gpt2 | 32 | 200 | 1.000, 2.000 | 100 | eager | 2.0 | 1.0 | 0.400 | 0.2 |", text)
        self.assertIn("| gpt2, deterministic | 32 | 300 | 1.000, 2.000 | 100 | eager | 3.0 | 1.0 | 0.600 | 0.2 |",
                      text)

    def test_what_failed_is_in_the_table_too(self):
        curve = {"model": "mlp", "precision": "bf16", "epochs": 3, "errors": []}
        trial = {"epochs": 0, "way": "", "goal": 2.0, "errors": []}
        text = bench_gpu.text_of({"device": "d", "date": "today", "curves": [curve], "trial": trial})
        self.assertIn("| mlp, bf16 | 3 | failed | failed |  |", text)
        self.assertIn("| mlp, 0 epochs | failed | failed |  |  | 2.0 |  |", text)

    def test_the_picture_shows_both_curves_with_the_larger_loss_higher(self):
        root = ElementTree.fromstring(curve_picture.svg("a < b", [("PyTorch", [2.0, 1.0]), ("fettle", [2.0, 1.5])]))
        lines = [line.get("points").split() for line in root.iter("{http://www.w3.org/2000/svg}polyline")]
        heights = [[float(point.split(",")[1]) for point in line] for line in lines]
        self.assertEqual(heights[0][0], heights[1][0])
        self.assertLess(heights[1][1], heights[0][1])


if __name__ == "__main__":
    unittest.main()
