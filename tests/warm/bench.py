#!/usr/bin/env python3
"""make bench-warm: what a trial costs besides itself in a warm worker, against a process for each and Ray Tune.

1. Many short trials, many at a time, of a stub worker that only waits: `execution: Process` and Warm, and fettle.trials().
2. Idle time of a worker between two trials, with one assigned ahead and without.
3. Trials of a second in PyTorch: processes, fettle.trials(), fettle.warm, Ray Tune with reuse_actors.
4. The built-in trainer on the emulated GPU (BUILD/tests/emulated): four slots of one process, and a process for each.

Each row names its ideal time, trials × seconds / at once, and the ratio to it. The results of 3 and of 4 must be the
same bits in all ways. The last line is one JSON object with everything.

Usage: bench.py FETTLE STUB_WORKER [--torch PYTHON] [--ray PYTHON] [--trials N] [--torch-trials N]
                [--torch-ways NAMES] [--slot-trials N] [--parts LETTERS]
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
PACKAGE = HERE.parents[1] / "python"
SECOND = 1.0

import slots  # noqa: E402
from driver import train_one_ahead  # noqa: E402


def study(name, command, trials, at_once, execution):
    return {
        "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name},
        "spec": {
            "objectives": [{"metric": "loss", "direction": "Minimize"}],
            "parameters": [{"name": "lr", "type": "Double", "min": 0.01, "max": 0.3}],
            "algorithm": {"name": "random", "seed": 1},
            "budget": {"trials": trials, "parallelism": at_once},
            "trial": {
                "execution": execution,
                "template": {"spec": {"containers": [{
                    "name": "trial", "image": "none", "command": command,
                    "env": [{"name": "PYTHONPATH", "value": f"{PACKAGE}:{HERE}"}, {"name": "OMP_NUM_THREADS", "value": "1"}],
                    "resources": {"requests": {"cpu": "10m"}}}]}}},
        },
    }  # fmt: skip


class Bench:
    def __init__(self, options, root):
        self.options, self.root = options, pathlib.Path(root)
        self.numbers = {}

    def run(self, name, command, trials, at_once, execution):
        """Seconds of `fettle run` from start to exit, those of all its processes on a core, and lr -> loss of its trials."""
        seconds, busy, done = self.run_study(study(name, command, trials, at_once, execution))
        return seconds, busy, {t["spec"]["parameters"]["lr"]: t["status"]["report"]["metrics"]["loss"] for t in done}

    def run_study(self, document):
        """The same seconds, and its trials, all of which have completed."""
        name, trials = document["metadata"]["name"], document["spec"]["budget"]["trials"]
        folder = self.root / name
        folder.mkdir()
        (folder / "study.yaml").write_text(json.dumps(document))
        began, before = time.monotonic(), processor_seconds()
        ran = subprocess.run([self.options.fettle, "run", "study.yaml"], cwd=folder, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL)
        seconds, busy = time.monotonic() - began, processor_seconds() - before
        listed = subprocess.run([self.options.fettle, "trials", name, "--output", "json"], cwd=folder, capture_output=True,
                                text=True)
        done = [trial for trial in json.loads(listed.stdout) if trial["status"]["phase"] == "Completed"]
        if ran.returncode != 0 or len(done) != trials:
            sys.exit(f"bench-warm: {name}: {len(done)} of {trials} trials completed\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return seconds, busy, done

    def row(self, key, what, seconds, ideal, busy=None, note=""):
        self.numbers[key] = round(seconds, 3)
        if busy is not None:
            self.numbers[key + "_busy"] = round(busy, 3)
            note = f", {busy:.1f} s of a core"
        print(f"  {what:34} {seconds:8.2f} s  {seconds / ideal:6.3f} x ideal{note}", flush=True)

    def short_trials(self):
        trials, at_once, each = self.options.trials, 30, 0.1
        ideal = trials * each / at_once
        print(f"{trials} trials of {each} s, {at_once} at a time; ideal {ideal:.2f} s")
        stub = [self.options.stub, str(each)]
        loop = [sys.executable, str(HERE / "sleeping_loop.py"), str(each)]
        for key, what, command, execution in (("short_process", "stub, execution: Process", stub, "Process"),
                                              ("short_warm", "stub, execution: Warm", stub, "Warm"),
                                              ("short_trials", "fettle.trials()", loop, "Warm")):
            seconds, busy, _ = self.run(key.replace("_", "-"), command, trials, at_once, execution)
            self.row(key, what, seconds, ideal, busy)

    def idle(self):
        print("idle time of a worker between two trials, median (90 % below)")
        loop = [sys.executable, str(HERE / "sleeping_loop.py")]
        for key, what, command in (("stub", "stub", [self.options.stub]), ("python", "fettle.trials()", loop)):
            for is_ahead in (True, False):
                logs = self.root / f"idle-{key}-{is_ahead}-logs"
                logs.mkdir()
                command_line = [*command, "0.01", str(logs)]
                if is_ahead:
                    train_one_ahead(command_line, 300, {"PYTHONPATH": str(PACKAGE)})
                else:
                    self.run(f"idle-{key}", command_line, 300, 2, "Warm")
                self.idle_row(f"{'ahead' if is_ahead else 'idle'}_{key}",
                              f"{what}, {'one ahead' if is_ahead else 'fettle run'}",
                              [gap for log in logs.iterdir() for gap in gaps(log)])

    def idle_row(self, key, what, found):
        median, most = statistics.median(found), statistics.quantiles(found, n=10)[-1]
        self.numbers[key] = round(1e3 * median, 3)
        print(f"  {what:34} {1e3 * median:8.3f} ms ({1e3 * most:.3f} ms), {len(found)} gaps", flush=True)

    def torch_trials(self):
        trials, at_once = self.options.torch_trials, 2
        ideal = trials * SECOND / at_once
        print(f"{trials} trials of {SECOND:.0f} s in PyTorch, {at_once} at a time; ideal {ideal:.2f} s")
        python, script = self.options.torch, [str(HERE / "torch_script.py"), "--lr", "$(FETTLE_PARAM_LR)",
                                              "--seconds", str(SECOND)]
        ways = [("torch_trials", "fettle.trials()", [python, str(HERE / "torch_loop.py"), str(SECOND)], "Warm"),
                ("torch_warm", "fettle.warm, the script as it is",
                 [python, "-m", "fettle.warm", "--preload", "torch", *script], "Warm"),
                ("torch_process", "the script in a process a trial", [python, *script], "Process")]
        all_losses = []
        for key, what, command, execution in ways:
            if key.removeprefix("torch_") not in self.options.torch_ways:
                continue
            seconds, busy, losses = self.run(key.replace("_", "-"), command, trials, at_once, execution)
            self.row(key, what, seconds, ideal, busy)
            all_losses.append(losses)
        if any(losses != all_losses[0] for losses in all_losses):
            sys.exit("bench-warm: the ways differ in their results")
        print(f"  all {trials} results are the same bits in {len(all_losses)} ways")
        if "ray" in self.options.torch_ways:
            self.ray(trials, at_once, ideal)

    def ray(self, trials, at_once, ideal):
        if not self.options.ray:
            print("  Ray Tune: not installed")
            return
        ran = subprocess.run([self.options.ray, str(HERE / "ray_peer.py"), str(trials), str(at_once), str(SECOND)],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            sys.exit(f"bench-warm: Ray Tune failed\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")
        found = json.loads(ran.stdout.strip().rpartition("\n")[2])
        if found["trials"] != trials:
            sys.exit(f"bench-warm: Ray Tune completed {found['trials']} of {trials} trials")
        self.row("ray", "Ray Tune, reuse_actors", found["fit_seconds"], ideal,
                 note=f" ({found['seconds']:.2f} s with its own start; {found['processes']} processes)")


    def slots(self):
        trials = self.options.slot_trials
        os.environ.setdefault("FETTLE_CUDA_LIBRARY", str(pathlib.Path(self.options.fettle).parents[1] / "tests/emulated/libfettle_cuda.so"))
        print(f"{trials} trials of a small MLP by the built-in trainer, four at a time")
        slots.write_images(self.root)
        found = []
        for key, what, how in (("slots_process", "a process a trial", {"execution": "Process"}),
                               ("slots_four", "four slots of one process", {"execution": "Warm", "slots": 4})):
            seconds, _, done = self.run_study(slots.study(key.replace("_", "-"), self.root, trials, how))
            self.numbers[key] = round(seconds, 3)
            print(f"  {what:34} {seconds:8.2f} s", flush=True)
            found.append(slots.results(done))
        if found[0] != found[1]:
            sys.exit("bench-warm: slots differ from processes in their results")
        print(f"  all {trials} results are the same bits in both")


def processor_seconds():
    """Of all processes that have ended below this one: also tells the cost where others keep the machine busy."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def gaps(log):
    """Seconds from each end to the next begin, of one worker, by its own clock."""
    lines = [line.split() for line in log.read_text().splitlines()]
    times = [(what, float(at)) for what, _, at in lines]
    return [begin - end for (ended, end), (begun, begin) in zip(times, times[1:]) if (ended, begun) == ("end", "begin")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=os.path.abspath)
    parser.add_argument("stub", type=os.path.abspath)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--ray", help="a Python that has Ray Tune and torch")
    parser.add_argument("--trials", type=int, default=3000, help="short trials")
    parser.add_argument("--torch-trials", type=int, default=300)
    parser.add_argument("--torch-ways", type=lambda names: names.split(","), default=["trials", "warm", "process", "ray"],
                        metavar="NAMES", help="of trials, warm, process and ray")
    parser.add_argument("--slot-trials", type=int, default=200)
    parser.add_argument("--parts", default="abcd", help="a: short trials, b: idle times, c: PyTorch, d: slots")
    options = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # as in bench_overhead.sh
    with tempfile.TemporaryDirectory(dir=memory, prefix="fettle-bench-") as root:
        bench = Bench(options, root)
        for letter, part in (("a", bench.short_trials), ("b", bench.idle), ("c", bench.torch_trials), ("d", bench.slots)):
            if letter in options.parts and (letter != "c" or options.torch):
                part()
    print(json.dumps(bench.numbers))


if __name__ == "__main__":
    main()
