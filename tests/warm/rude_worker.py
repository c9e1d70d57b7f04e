#!/usr/bin/env python3
"""A worker that is rude in one way: rude_worker.py WAY

It speaks the worker protocol (docs/worker-protocol.md) by itself, apart from what WAY says. For each run it prints its
process and one metric. Without a worker's variables it is a well-behaved program of one trial.
"""

import json
import os
import signal
import subprocess
import sys
import time

WORKER = "FETTLE_WORKER_FD" in os.environ
NONCE = os.environ.get("FETTLE_WORKER_NONCE", "")
WAYS = {}
MANY = 40  # more frames that do not fit than a worker may send


def way(function):
    WAYS[function.__name__] = function
    return function


def write(data):
    data = data if isinstance(data, bytes) else data.encode()
    while data:
        data = data[os.write(1, data):]


def frame(words, nonce=NONCE):
    return f"\x1e{nonce} {words}\n"


def say(words):
    write(frame(words))


def report(loss=1.0, step=1):
    write(json.dumps({"step": step, "loss": loss}) + "\n")


def assignments():
    with open(int(os.environ["FETTLE_WORKER_FD"]), encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            if "run" in message:
                yield message


def runs(first="ready 1 1"):
    """The names of the runs, each between its begin and its end."""
    say(first)
    for message in assignments():
        say(f"begin {message['run']}")
        write(f"process {os.getpid()}\n")
        yield message["run"]
        say(f"end {message['run']} 0")


def train_one():
    """One run by the protocol; reads nothing of what comes after it."""
    say("ready 1 1")
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(int(os.environ["FETTLE_WORKER_FD"]), 1)
    run = json.loads(line)["run"]
    say(f"begin {run}")
    write(f"process {os.getpid()}\n")
    report()
    say(f"end {run} 0")


def index_of(run):
    return int(run.split("-")[-2])


# ---- What it prints ----------------------------------------------------------------------------


@way
def floods():
    for _ in runs():
        write("batch 17 of 1000: grad norm 0.3141\n" * 100_000)
        report()
        write("x" * 5_000_000)


@way
def prints_binary():
    for _ in runs():
        for _ in range(16):
            write(os.urandom(65536) + b"\x1e\x1e" + NONCE.encode()[:7])
        write("\n")
        report()


@way
def half_a_frame():
    for run in runs():
        report()
        write(frame(f"end {run} 0")[:-5])


@way
def forged_nonce():
    for run in runs():
        report(loss=5.0)
        write(frame(f"end {run} 3", nonce="0" * 32))
        report(loss=1.0, step=2)


@way
def answers_for_another():
    for run in runs():
        report()
        say("end rude-99-r0 0")
        say(f"end rude-{index_of(run) + 1}-r7 0")


@way
def answers_for_all_others():
    for run in runs():
        report()
        for other in range(MANY):
            say(f"end rude-{other}-r9 0")
        time.sleep(600)


@way
def too_long_a_frame():
    for run in runs():
        say(f"line {run} " + "x" * 10_000)
        report()


@way
def endless_frames():
    for _ in runs():
        report()
        while True:
            say("nonsense")


@way
def begins_for_ever():
    for run in runs():
        report()
        while True:
            say(f"begin {run}")
            time.sleep(0.0001)


@way
def ends_without_a_begin():
    say("ready 1 1")
    for message in assignments():
        report()
        say(f"end {message['run']} 0")


@way
def ends_twice():
    for run in runs():
        report()
        say(f"end {run} 0")


@way
def ready_twice():
    for _ in runs():
        say("ready 1 1")
        report()


@way
def ready_of_another_version():
    for _ in runs(first="ready 99 1"):
        report()


@way
def more_slots_than_asked():
    for run in runs(first="ready 1 1000"):
        say(f"line {run} " + json.dumps({"step": 1, "loss": 1.0}))


# ---- When it answers ---------------------------------------------------------------------------


@way
def never_ready():
    report()


@way
def never_ready_and_waits():
    report()
    time.sleep(600)


@way
def deaf_after_a_run():
    train_one()
    time.sleep(600)


@way
def closes_its_assignments():
    train_one()
    os.close(int(os.environ["FETTLE_WORKER_FD"]))
    time.sleep(600)


@way
def closes_its_output():
    for _ in runs():
        report()
        os.close(1)
        os.close(2)
        time.sleep(600)


@way
def ignores_a_stop():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for run in runs():
        report()
        time.sleep(600 if index_of(run) % 2 else 0)


# ---- What it does to its process ---------------------------------------------------------------


@way
def exits_in_the_middle():
    for run in runs():
        if index_of(run) % 3 == 1:
            os._exit(0)
        report()


@way
def crashes_in_the_middle():
    for run in runs():
        report()
        if index_of(run) % 3 == 1:
            os.kill(os.getpid(), signal.SIGSEGV)


@way
def leaks():
    kept = []
    for _ in runs():
        kept.append(bytearray(os.urandom(4096)) * (100 * 256))
        report()


@way
def forks_a_daemon():
    for _ in runs():
        subprocess.Popen(["sleep", "300"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.close(1)
                os.close(2)
                time.sleep(300)
            os._exit(0)
        os.wait()
        report()


@way
def changes_everything():
    """With fettle.trials(), which puts the directory right and the variables of the run."""
    import fettle

    for trial in fettle.trials():
        with trial:
            with open("study.yaml", encoding="utf-8"):  # of the folder in which the Study is
                write(f"process {os.getpid()}\n")
            trial.report(1, loss=1.0)
            os.makedirs(f"gone-{trial.name}", exist_ok=True)
            os.chdir(f"gone-{trial.name}")
            os.rmdir(os.getcwd())
            for name in list(os.environ):
                del os.environ[name]


def main():
    if WORKER:
        WAYS[sys.argv[1]]()
    else:
        report()


if __name__ == "__main__":
    main()
