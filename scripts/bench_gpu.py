#!/usr/bin/env python3
"""The training step on this GPU against PyTorch's: same shapes, same precision, in one run.

    python3 scripts/bench_gpu.py --trainer build-gpu/bin/fettle-trainer --results DIRECTORY [--seconds 2]

Ours is `fettle-trainer --bench`, the whole loop with its loader; PyTorch's is scripts/bench_pytorch_gpu.py, with
its data on the device already, which favours it. Of its ways the fastest counts. Writes benchmarks.json, and
benchmarks.md as a table.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Name and batch, and what ours should be of PyTorch's best.
WORKLOADS = (("mlp", 128, 2.0), ("resnet9", 64, 1.2), ("resnet9", 512, 1.2), ("resnet50", 64, 1.0),
             ("resnet50", 256, 1.0), ("chargpt", 64, 1.3), ("gpt2", 32, 1.0))


def lines_of(command, seconds):
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return [], f"took more than {seconds} s"
    found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return found, "" if run.returncode == 0 else run.stderr.strip()[-300:]


def per_second(line):
    return line.get("images_per_second") or line.get("tokens_per_second")


def measure(options, name, batch, goal):
    ours, wrong = lines_of([options.trainer, "--bench", name, "--batch", str(batch), "--backend", "cuda",
                            "--precision", "bf16", "--seconds", str(options.seconds)], 60)
    theirs, also_wrong = lines_of([sys.executable, str(ROOT / "scripts/bench_pytorch_gpu.py"), "--model", name,
                                   "--batch", str(batch), "--seconds", str(options.seconds)], 90)
    best = max(theirs, key=per_second, default=None)
    row = {"model": name, "batch": batch, "goal": goal, "ours": ours[0] if ours else None, "pytorch": theirs,
           "errors": [error for error in (wrong, also_wrong) if error]}
    if ours and best:
        row["ratio"] = round(per_second(ours[0]) / per_second(best), 3)
        row["best_of_pytorch"] = best["way"]
    return row


def table_of(report):
    lines = [f"{report['device']}, {report['date']}, bf16", "",
             "| workload | batch | fettle /s | step ms (p50, p99) | PyTorch's best /s | by | ratio | goal |",
             "|---|---|---|---|---|---|---|---|"]
    for row in report["rows"]:
        ours, best = row["ours"], max(row["pytorch"], key=per_second, default=None)
        cells = [row["model"], row["batch"],
                 f"{per_second(ours):.0f}" if ours else "failed",
                 f"{ours['step_ms_median']:.3f}, {ours['step_ms_p99']:.3f}" if ours else "",
                 f"{per_second(best):.0f}" if best else "failed", best["way"] if best else "",
                 row.get("ratio", ""), row["goal"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
        lines += [f"| | | {error.splitlines()[-1]} | | | | | |" for error in row["errors"] if error]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", help="for example resnet9")
    options = parser.parse_args()
    device = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True, check=False).stdout.strip() or "no GPU"
    report = {"device": device, "date": datetime.date.today().isoformat(), "rows": []}
    for name, batch, goal in WORKLOADS:
        if options.only in (None, name):
            report["rows"].append(measure(options, name, batch, goal))
            # What there is so far stays if the time is up.
            (options.results / "benchmarks.json").write_text(json.dumps(report, indent=1) + "\n")
            (options.results / "benchmarks.md").write_text(table_of(report))
    print(table_of(report))
    sys.exit(1 if any(row["errors"] for row in report["rows"]) else 0)


if __name__ == "__main__":
    main()
