#!/usr/bin/env python3
"""Runs the parts of `make test` and ends with a table: each part, its time, and what it ran.

Parts are in lanes. The parts of a lane run one after the other, the lanes run side by side: the lane
that compiles keeps the cores busy, at low priority, while the lane of the cluster mostly waits. A part
that needs another one's result names it in `after`. The output of a part goes to
BUILD/test-logs/PART.log; its end is shown when the part fails.

Exit codes of a part: 0 passed, 77 could not run here (its last line says why), anything else failed.
A part that fails stops only those that need it. FETTLE_REQUIRE turns 77 into a failure
(scripts/not_run.sh).

Usage: run_tests.py BUILD   (the build folder, as `make BUILD=...` knows it)
"""
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

CANNOT_RUN = 77
TAIL = 80  # lines of a failed part's log that are shown
FAILURE = re.compile(r"\bFAILED\b|\*\*\*")  # a line of ours, or of CTest's, that names what failed
# A line that may say why: an assertion of GoogleTest with the lines after it, a compiler's error, an
# exception of Python. Components of a cluster complain of passing errors in the middle of a line.
GTEST_FAILURE = re.compile(r": Failure$")
COMPLAINT = re.compile(rf"{FAILURE.pattern}|{GTEST_FAILURE.pattern}|^\S+: (?:fatal )?error:|^[\w.]*Error:|^schema: \D")
GTEST_LINES = 4  # of an assertion: the value, what was expected, and what it was
COMPLAINTS = 12  # of each failed part, said again below the table
COMPLAINT_LENGTH = 900
HEARTBEAT = 60  # seconds between two lines that say what is running


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    command: str  # split at spaces
    ran: str = ""  # a regular expression whose group counts what was run; matches are added together
    unit: str = ""  # what is counted
    after: tuple = ()  # parts that must have passed


@dataclasses.dataclass(frozen=True)
class Lane:
    parts: list
    niceness: int = 0


def lanes(build):
    """What `make test` runs. The second lane calls the scripts behind the make targets: the programs are
    there, and two builds in one folder would disturb each other."""
    return [
        Lane(niceness=10, parts=[
            Part("style", "make style", r"clang-format over (\d+) files", "files"),
            Part("programs", f"make cluster-programs BUILD={build}"),
            Part("unit tests", f"make unit-unsanitized BUILD={build}", r"tests failed out of (\d+)", "tests"),
            Part("fault matrix", f"tests/matrix/count.sh {build}", r"(\d+) rows, 0 violations", "rows", after=("unit tests",)),
            Part("sanitized tests", f"make sanitize BUILD={build}", r"tests failed out of (\d+)", "tests"),
            Part("clang-tidy", f"make tidy BUILD={build} SAMPLE=--sample", r"clang-tidy: (\d+) files", "files"),
        ]),
        Lane(parts=[
            Part("cluster tools", "tests/cluster/build_tools.sh"),
            Part("chart", "helm/tests/test.sh", r"helm: (\d+) sets of values", "sets of values", after=("cluster tools",)),
            Part("cluster tests", f"tests/cluster/test.sh {build}", r"scenarios: (\d+) of \d+ passed", "scenarios",
                 after=("cluster tools", "programs")),
            Part("ends of a run", f"{build}/tests/matrix_ends_test", r"(\d+) rows, 0 violations", "rows, 0 violations",
                 after=("programs",)),
            Part("journey", f"tests/journey.sh {build}/bin/fettle examples/fashion-mnist.yaml", r"resumed, (\d+) trials", "trials",
                 after=("programs",)),
            Part("rude programs", f"tests/rude_programs/run.py {build}/bin/fettle",
                 r"rude programs: (\d+) of \d+ passed", "Studies", after=("programs",)),
            Part("rude workers", f"tests/warm/rude.py {build}/bin/fettle", r"rude workers: (\d+) of \d+ passed", "Studies",
                 after=("programs",)),
            Part("kills", f"tests/warm/kills.py {build}/bin/fettle", r"kills: (\d+) of \d+ survived", "kills",
                 after=("programs",)),
            Part("Python", f"python/tests/test.sh {build}", r"Ran (\d+) tests", "tests", after=("programs",)),
            Part("integrations", f"tests/integrations/test.sh {build}/bin/fettle sample", r"Ran (\d+) tests", "tests",
                 after=("programs",)),
            Part("own programs", f"tests/own_program/run.py {build}/bin/fettle",
                 r"own program: (\d+) of \d+ passed", "Studies", after=("programs",)),
            Part("export", f"tests/export/run.sh {build}/bin/fettle", r"export: (\d+) of \d+ passed", "peers' interfaces",
                 after=("programs",)),
            Part("exported models", f"tests/interop/run.sh {build}/bin/fettle-trainer sample",
                 r"interop: (\d+) networks agree", "networks", after=("programs",)),
            Part("report page", f"tests/report_page.sh {build}/bin/fettle", r"(is drawn without errors)", "pages",
                 after=("programs",)),
            Part("page types", "tests/page/types.sh", r"page types: (\d+) scripts", "scripts"),
            Part("page by hand", f"tests/page/run.sh {build}/bin/fettle", r"Ran (\d+) tests", "tests", after=("programs",)),
            Part("CUDA code", f"scripts/cuda_check.sh {build}-cuda", r"tests failed out of (\d+)", "tests"),
        ]),
    ]  # fmt: skip


@dataclasses.dataclass
class Outcome:
    """The result of a part: passed, failed, skipped, or not begun."""

    state: str
    wall: float = 0
    cpu: float = 0  # of the processes that ended with it
    note: str = ""  # what it ran, or why it did not
    complaints: list = dataclasses.field(default_factory=list)  # why it failed


def counted(part, log):
    """What the log of a part says that it ran, as text."""
    if not part.ran:
        return ""
    found = re.findall(part.ran, log)
    numbers = [int(one) if one.isdigit() else 1 for one in found]
    return f"{sum(numbers)} {part.unit}" if numbers else ""


def complaints(log):
    """Lines that may say why it failed, then those that name what failed: where only the end of all output is kept,
    they are in it."""
    lines, found = log.splitlines(), {}
    for i, line in enumerate(lines):
        if COMPLAINT.search(line):
            words = lines[i : i + GTEST_LINES] if GTEST_FAILURE.search(line) else [line]
            found[" ".join(" ".join(words).split())[:COMPLAINT_LENGTH]] = True
    return sorted(found, key=lambda line: bool(FAILURE.search(line)))[-COMPLAINTS:]


def reason(log):
    """Why a part could not run: what follows NOT RUN in its last line."""
    last = log.strip().rpartition("\n")[2]
    return last.partition("NOT RUN: ")[2] or last


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Run:
    """One run of all lanes. Each lane has a thread; `lock` guards everything they share."""

    def __init__(self, lanes, logs, say=print):
        self.lanes = lanes
        self.logs = pathlib.Path(logs)
        self.say = lambda text: say(text, flush=True)
        self.lock = threading.Condition()
        self.outcomes = {}
        self.running = {}  # name: (process, when it began)
        self.stopped = False
        self.began = time.monotonic()

    def run(self):
        """All parts to their end; True if none failed."""
        self.logs.mkdir(parents=True, exist_ok=True)
        threads = [threading.Thread(target=self._lane, args=(lane,)) for lane in self.lanes]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                self._heartbeat()
        except KeyboardInterrupt:
            self.stop()
            for thread in threads:
                thread.join()
        return all(self.outcomes[p.name].state in ("passed", "skipped") for p in self.parts())

    def parts(self):
        return [part for lane in self.lanes for part in lane.parts]

    def stop(self):
        """Ends what is running, with its descendants; nothing else begins."""
        with self.lock:
            self.stopped = True
            for process, _ in self.running.values():
                with contextlib.suppress(ProcessLookupError):  # it has just ended, and its lane waits for the lock
                    os.killpg(process.pid, signal.SIGTERM)
            self.lock.notify_all()

    def table(self):
        """One line a part, then the closing lines."""
        rows = [(p.name, self.outcomes[p.name]) for p in self.parts()]
        lines = [f"{'part':16} {'wall':>6} {'CPU':>6}  what it ran"]
        for name, one in rows:
            words = one.note if one.state == "passed" else f"{one.state.upper()}: {one.note}"
            lines.append(f"{name:16} {clock(one.wall):>6} {clock(one.cpu):>6}  {words}".rstrip())
        total = time.monotonic() - self.began
        cpu = sum(one.cpu for _, one in rows)
        lines.append(f"{'all':16} {clock(total):>6} {clock(cpu):>6}")
        lines += [f"  {name}: {words}" for name, one in rows for words in one.complaints]
        states = [one.state for _, one in rows]
        skipped = [name for name, one in rows if one.state == "skipped"]
        failed = len(states) - states.count("passed") - len(skipped)
        lines.append(f"parts: {states.count('passed')} passed, {failed} failed, {len(skipped)} skipped")
        if failed:
            lines.append("make test: FAILED")
        elif skipped:
            lines.append(f"make test: passed, but NOT RUN: {', '.join(skipped)}")
        else:
            lines.append("make test: all passed")
        return "\n".join(lines)

    def _heartbeat(self):
        """Waits a while, or until all parts have ended; then says what is running."""
        with self.lock:
            self.lock.wait_for(lambda: len(self.outcomes) == len(self.parts()), HEARTBEAT)
            now = time.monotonic()
            busy = [f"{name} for {clock(now - began)}" for name, (_, began) in self.running.items()]
        if busy:
            self.say(f"[{clock(now - self.began):>5}] running: {', '.join(busy)}")

    def _lane(self, lane):
        for part in lane.parts:
            outcome = self._ready(part) or self._execute(part, lane.niceness)
            with self.lock:
                self.outcomes[part.name] = outcome
                self.lock.notify_all()
            words = f" after {clock(outcome.wall)}" if outcome.wall else ""
            note = f": {outcome.note}" if outcome.note else ""
            self.say(f"[{clock(time.monotonic() - self.began):>5}] {part.name}: {outcome.state}{words}{note}")

    def _ready(self, part):
        """Waits for the parts that it needs; an Outcome where it cannot begin."""
        with self.lock:
            self.lock.wait_for(lambda: self.stopped or all(name in self.outcomes for name in part.after))
            if self.stopped:
                return Outcome("not begun", note="interrupted")
            for name in part.after:
                state = self.outcomes[name].state
                if state == "skipped":
                    return Outcome("skipped", note=f"{name} could not run")
                if state != "passed":
                    return Outcome("not begun", note=f"it needs {name}")
        return None

    def _execute(self, part, niceness):
        path = self.logs / (part.name.replace(" ", "-") + ".log")
        # Trials of one part do not wait for those of another.
        environment = os.environ | {"FETTLE_MACHINE_DIR": str(path.resolve().with_suffix(".machine"))}
        began = time.monotonic()
        with open(path, "wb") as log:
            with self.lock:  # so that stop() sees it
                process = subprocess.Popen(
                    ["nice", "-n", str(niceness), *part.command.split()],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env=environment,
                )  # fmt: skip
                self.running[part.name] = (process, began)
            # wait4 also tells the processor time of the descendants that ended.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            del self.running[part.name]
        text = path.read_text(errors="replace")
        outcome = Outcome("passed", time.monotonic() - began, usage.ru_utime + usage.ru_stime, counted(part, text))
        if process.returncode == CANNOT_RUN:
            outcome.state, outcome.note = "skipped", reason(text)
        elif process.returncode != 0:
            outcome.state, outcome.note = "failed", f"see {path}"
            outcome.complaints = complaints(text)
            tail = "\n".join(text.splitlines()[-TAIL:])
            self.say(f"--- the end of {path}\n{tail}\n---")
        return outcome


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: nothing is left running
    build = sys.argv[1]
    run = Run(lanes(build), pathlib.Path(build) / "test-logs")
    passed = run.run()
    print(run.table(), flush=True)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
