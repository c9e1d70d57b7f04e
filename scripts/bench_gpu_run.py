"""Runs a program for a limited time and keeps the JSON lines that it wrote; for scripts/bench_gpu.py."""

import collections
import json
import subprocess
import tempfile

# `notes`: lines of its standard error that begin with "note:", as a library that has no plan for a shape.
Run = collections.namedtuple("Run", "lines wrong notes")


def lines_of(command, seconds):
    """Its lines, and what went wrong (its last words), or ""."""
    run = run_of(command, seconds)
    return run.lines, run.wrong


def run_of(command, seconds):
    """Lines before a time-out count."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            code = subprocess.run(command, stdout=out, stderr=err, check=False, timeout=max(1, seconds)).returncode
            out_of_time = False
        except subprocess.TimeoutExpired:
            code, out_of_time = 1, True
        out.seek(0)
        err.seek(0)
        lines = [json.loads(line) for line in out if line.startswith("{") and line.endswith("}\n")]
        words = err.read().strip()
        notes = [line for line in words.splitlines() if line.startswith("note:")]
        if out_of_time:
            return Run(lines, f"was ended after {seconds:.0f} s", notes)
        return Run(lines, "" if code == 0 else words[-300:] or f"ended with exit code {code}", notes)
