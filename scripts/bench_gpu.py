#!/usr/bin/env python3
"""fettle-trainer on this GPU against PyTorch: same shapes, same precision, in one run.

    python3 scripts/bench_gpu.py --trainer build-gpu/bin/fettle-trainer --results DIRECTORY [--budget 330]
                                 [--parts steps,trial,curves] [--rounds default,max-autotune] [--only resnet9]
                                 [--rehearse]

steps: `fettle-trainer --bench`, the whole loop with its loader, against a step of PyTorch's with its data on the device
already, which favours it. Of its ways (bench_pytorch_gpu.py) the fastest counts; eager and graph come first, then a
round over all workloads for each of the --rounds, which compile for long.
trial: a whole training that takes PyTorch 30 seconds, from the start of the process.
curves: losses from the same weights, epoch by epoch, with a picture of each (curve-*.svg).

Writes benchmarks.json, and benchmarks.md as tables, after each measurement. What does not fit into the budget of
seconds is left out, and said to be. A benchmarks.json of the same device, sources and scripts that lies in the results
is continued: only what it lacks of the steps is measured. --rehearse tries all of this out on a CPU, small.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys
import time

import bench_gpu_trials
from bench_gpu_run import lines_of, run_of

SCRIPTS = pathlib.Path(__file__).resolve().parent
# Name and batch, and what ours should be of PyTorch's best. Time may run out: what says most comes first.
WORKLOADS = (("gpt2", 32, 1.0), ("resnet9", 512, 1.2), ("resnet50", 256, 1.0), ("chargpt", 64, 1.2),
             ("mlp", 128, 1.5), ("resnet9", 64, 1.2), ("resnet50", 64, 1.0))
# Without a compiler, in one process, and seconds for it; then a round each of torch.compile's modes. "default" is run
# as it is, and inside a CUDA graph of the whole step.
FIRST_ROUND = ("eager,graph", 60)
COMPILED = {"default": 110, "reduce-overhead": 90, "max-autotune": 150}
IN_ROUND = {"default": "default,default+graph"}
# Of networks with attention, in the first round: by cuDNN's, and with the residual stream in bf16, as ours is.
ATTENTION_WAYS = "graph+cudnn-attention,graph+cudnn-attention+bf16-residual"
# No kernel of ours in place of a library's that has no plan: such a number would mean something else.
STRICT = ["env", "FETTLE_CUDA_STRICT=1"]
# Ours once more with the same bits each time, which PyTorch's attention does not give, where there is any.
DETERMINISTIC = ["--deterministic"]
# A first run makes the plans of its libraries and times them. It has a limit of its own, and its time counts for nothing.
PLANNING_SECONDS, PLANNED_FOR = 150, 0.05
WITH_ATTENTION = ("gpt2", "chargpt")
CURVES = (("mlp", "bf16"), ("resnet9", "bf16"), ("resnet9", "fp32"))
PARTS = ("steps", "trial", "curves")
# What decides about the numbers. Not the program's own bytes: nvcc makes others each time.
SOURCES = ("api", "base", "cmake", "kernels", "scripts", "trainer")


def per_second(line):
    return line.get("images_per_second") or line.get("tokens_per_second")


class Benchmark:
    def __init__(self, options):
        self.options, self.deadline = options, time.monotonic() + options.budget
        self.file = options.results / "benchmarks.json"
        earlier = read_report(self.file)
        of_this = {"device": device_name(options), "sources": sources_hash(SCRIPTS.parent)}
        self.report = earlier if of_this.items() <= earlier.items() else of_this
        self.report["date"] = datetime.date.today().isoformat()

    def left(self, most):
        """Seconds for the next measurement; 0: there is no time for it."""
        seconds = min(most, self.deadline - time.monotonic())
        # A few seconds of a long measurement would only be its start.
        return seconds if seconds >= min(most, 10) else 0

    def write(self):
        part = self.file.with_suffix(".part")  # a run that is killed leaves the report as it was
        part.write_text(json.dumps(self.report, indent=1) + "\n")
        part.replace(self.file)
        (self.options.results / "benchmarks.md").write_text(text_of(self.report))

    def leave_out(self, what):
        self.report.setdefault("left_out", []).append(what)

    def curves(self):
        rows = self.report["curves"] = []
        for model, precision in self.options.curves:
            if not self.left(40):
                self.leave_out(f"curve of {model}, {precision}")
                continue
            rows.append(bench_gpu_trials.curves(self.options, model, precision, self.left))
            self.write()

    def trial(self):
        needed = 2.5 * self.options.trial_seconds
        if self.left(needed) == needed:  # all of it, or it would be ended before its result
            self.report["trial"] = bench_gpu_trials.whole_trial(self.options, self.left)
        else:
            self.leave_out("trial")

    def steps(self):
        rows = self.rows()
        for number, (ways, most) in enumerate(self.options.rounds):
            for row in rows:
                if number == 0:
                    self.measure_ours(row, "ours")
                if number == 0 and row["model"] in WITH_ATTENTION:
                    self.measure_ours(row, "ours_deterministic")
                self.measure_theirs(row, ways_of(row["model"], ways, number == 0), most)
                self.write()

    def rows(self):
        """Those to measure: as far as an earlier call came, without what went wrong there."""
        earlier = {(row["model"], row["batch"]): row for row in self.report.get("steps", [])}
        asked = []
        for name, batch, goal in self.options.workloads:
            new = {"model": name, "batch": batch, "goal": goal, "ours": None, "pytorch": []}
            asked.append(earlier.pop((name, batch), new))
            asked[-1]["errors"] = []
        self.report["steps"] = [*asked, *earlier.values()]
        return asked

    def measure_ours(self, row, name):
        """`name`: where in the row the result belongs, "ours" or "ours_deterministic"."""
        if row.get(name):
            return None
        if not self.left(40):
            return self.leave_out(f"{row['model']} {row['batch']}, {name}")
        options = self.options
        setting = DETERMINISTIC if name == "ours_deterministic" else []
        command = [*STRICT, options.trainer, "--bench", row["model"], "--batch", str(row["batch"]), "--backend",
                   options.backend, "--precision", options.precision, *setting, "--seconds"]
        if not self.plan_ours(row, name, command):
            return None
        limit = self.left(40)
        if not limit:
            return self.leave_out(f"{row['model']} {row['batch']}, {name}")
        run = run_of([*command, str(options.seconds)], limit)
        row[name] = run.lines[0] if run.lines else None
        row["errors"] += [f"fettle, {name}: {run.wrong}"] if run.wrong else []
        row["notes"] = sorted({*row.get("notes", []), *run.notes})
        note_ratio(row)
        return None

    def plan_ours(self, row, name, command):
        """Whether the plans are made by now. On a CPU there are none."""
        if self.options.backend != "cuda":
            return True
        limit = self.left(PLANNING_SECONDS)
        if not limit:
            self.leave_out(f"{row['model']} {row['batch']}, {name}")
            return False
        began = time.monotonic()
        run = run_of([*command, str(PLANNED_FOR)], limit)
        row[f"{name}_planning_seconds"] = round(time.monotonic() - began, 1)
        row["errors"] += [f"fettle, plans of {name}: {run.wrong}"] if run.wrong else []
        return not run.wrong

    def measure_theirs(self, row, ways, most):
        """Those of the ways, separated by commas, that the row lacks; in `most` seconds for all of them."""
        measured = {line["way"] for line in row["pytorch"]}
        ways = ",".join(way for way in ways.split(",") if way not in measured)
        if not ways:
            return None
        limit = self.left(most)
        if not limit:
            return self.leave_out(f"{row['model']} {row['batch']}, PyTorch, {ways}")
        command = [sys.executable, str(SCRIPTS / "bench_pytorch_gpu.py"), "--model", row["model"], "--batch",
                   str(row["batch"]), "--seconds", str(self.options.seconds), "--ways", ways, "--device",
                   self.options.device]
        lines, wrong = lines_of(command, limit)
        row["pytorch"] += lines
        row["errors"] += [f"PyTorch, {ways}: {wrong}"] if wrong else []
        note_ratio(row)
        return None


def read_report(file):
    """Of an earlier run; {}: there is none, or it was cut short on its way here."""
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def ways_of(model, ways, first):
    """PyTorch's ways of a round, for this network."""
    ways = ",".join(IN_ROUND.get(way, way) for way in ways.split(","))
    return f"{ways},{ATTENTION_WAYS}" if first and model in WITH_ATTENTION and "graph" in ways else ways


def note_ratio(row):
    best = max(row["pytorch"], key=per_second, default=None)
    if row["ours"] and best:
        row["ratio"] = round(per_second(row["ours"]) / per_second(best), 3)
        row["best_of_pytorch"] = best["way"]
        if "mfu" in row["ours"]:  # the same work for each sample, so theirs is in proportion
            row["mfu_of_pytorch"] = round(row["ours"]["mfu"] / row["ratio"], 4)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def deterministic_rows(rows):
    """As rows of their own: the same with deterministic attention."""
    rows = [row for row in rows if row.get("ours_deterministic")]
    rows = [{**row, "model": f"{row['model']}, deterministic", "ours": row["ours_deterministic"]} for row in rows]
    for row in rows:
        note_ratio(row)
    return rows


def step_row(row):
    ours, best = row["ours"], max(row["pytorch"], key=per_second, default=None)
    return [row["model"], row["batch"], f"{per_second(ours):.0f}" if ours else "failed",
            f"{ours['step_ms_median']:.3f}, {ours['step_ms_p99']:.3f}" if ours else "",
            f"{per_second(best):.0f}" if best else "failed", best["way"] if best else "", row.get("ratio", ""),
            row["goal"], f"{ours['mfu']:.3f}" if ours and "mfu" in ours else "", row.get("mfu_of_pytorch", "")]


def difference(row, name):
    return f"{row[name]['max_difference']:.2g}" if name in row else "failed"


def text_of(report):
    lines = [f"{report['device']}, {report['date']}", ""]
    if report.get("steps"):
        lines += table(["workload", "batch", "fettle /s", "step ms (p50, p99)", "PyTorch's best /s", "by", "ratio",
                        "goal", "MFU", "PyTorch's"], map(step_row, [*report["steps"], *deterministic_rows(report["steps"])]))
    if "trial" in report:
        trial = report["trial"]
        lines += table(["whole trial", "fettle s", "PyTorch s", "by", "ratio", "goal", "validation loss of both"],
                       [[f"mlp, {trial['epochs']} epochs", trial.get("ours_seconds", "failed"),
                         trial.get("pytorch_seconds", "failed"), trial["way"], trial.get("ratio", ""), trial["goal"],
                         f"{trial['ours_loss']:.4f}, {trial['pytorch_loss']:.4f}" if "ratio" in trial else ""]])
    if report.get("curves"):
        lines += table(["loss curves", "epochs", "most between them: training", "validation", "picture"],
                       [[f"{row['model']}, {row['precision']}", row["epochs"], difference(row, "loss"),
                         difference(row, "validation_loss"), row.get("picture", "")] for row in report["curves"]])
    lines += [f"{row['model']} {row['batch']}: {note}" for row in report.get("steps", []) for note in row.get("notes", [])]
    lines += [f"Left out for want of time: {what}." for what in report.get("left_out", [])]
    lines += [f"Error: {error.splitlines()[-1]}" for error in errors_of(report)]
    return "\n".join(lines) + "\n"


def errors_of(report):
    rows = [*report.get("steps", []), *report.get("curves", []), *([report["trial"]] if "trial" in report else [])]
    return [error for row in rows for error in row["errors"]]


def device_name(options):
    if options.rehearse:
        return "a rehearsal on a CPU, whose numbers mean nothing"
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "no GPU"


def sources_hash(root):
    files = [root / "CMakeLists.txt"]
    for folder in SOURCES:
        files += [file for file in (root / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    of_all = hashlib.sha256()
    for file in sorted(files):
        of_all.update(f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return of_all.hexdigest()[:12]


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=2, help="of a measurement of steps")
    parser.add_argument("--budget", type=float, default=330, help="seconds for everything")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", default=",".join(COMPILED), help="modes of torch.compile; \"\": none")
    parser.add_argument("--scratch", type=pathlib.Path, default=SCRIPTS.parent / "build-gpu" / "bench",
                        help="for data sets, configurations and checkpoints")
    parser.add_argument("--only", help="of the workloads, for example resnet9")
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    options.results, options.scratch = options.results.resolve(), options.scratch.resolve()
    options.backend, options.device, options.precision = "cuda", "cuda", "bf16"
    options.ways = ("eager", "graph")
    modes = [mode for mode in options.rounds.split(",") if mode]
    for name, chosen, known in (("round", modes, COMPILED), ("part", options.parts.split(","), PARTS)):
        unknown = [word for word in chosen if word not in known]
        if unknown:
            sys.exit(f"bench_gpu: there is no {name} \"{unknown[0]}\", expected some of {','.join(known)}")
    options.rounds = (FIRST_ROUND, *((mode, COMPILED[mode]) for mode in modes))
    options.workloads, options.curves = WORKLOADS, CURVES
    options.samples, options.trial_seconds = 60000, 30
    options.curve_samples, options.curve_epochs = 4920, 30
    if options.rehearse:
        options.backend, options.device, options.precision = "onednn", "cpu", "fp32"
        options.ways, options.rounds, options.seconds = ("eager",), (("eager", 60),), 0.1
        options.workloads = (("resnet9", 2, 1.2), ("chargpt", 2, 1.2), ("mlp", 32, 1.5))  # the others take minutes
        options.curves = (("mlp", "fp32"), ("resnet9", "fp32"))
        options.samples, options.trial_seconds = 600, 15
        options.curve_samples, options.curve_epochs = 240, 4
    options.workloads = [workload for workload in options.workloads if options.only in (None, workload[0])]
    return options


def main():
    options = read_options()
    options.results.mkdir(parents=True, exist_ok=True)
    benchmark = Benchmark(options)
    benchmark.report.pop("left_out", None)
    for part in options.parts.split(","):
        getattr(benchmark, part)()
        benchmark.write()
    print(text_of(benchmark.report))
    sys.exit(1 if errors_of(benchmark.report) else 0)


if __name__ == "__main__":
    main()
