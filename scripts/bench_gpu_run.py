"""Runs a program for a limited time and keeps the JSON lines that it wrote; for scripts/bench_gpu.py."""

import json
import subprocess
import tempfile


def lines_of(command, seconds):
    """Its lines, and what went wrong (its last words), or "". Lines before a time-out count."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            code = subprocess.run(command, stdout=out, stderr=err, check=False, timeout=max(1, seconds)).returncode
            out_of_time = False
        except subprocess.TimeoutExpired:
            code, out_of_time = 1, True
        out.seek(0)
        err.seek(0)
        lines = [json.loads(line) for line in out if line.startswith("{") and line.endswith("}\n")]
        if out_of_time:
            return lines, f"was ended after {seconds:.0f} s"
        return lines, "" if code == 0 else err.read().strip()[-300:] or f"ended with exit code {code}"
