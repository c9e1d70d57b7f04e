"""A study of `fettle suggest --study` that is killed at 20 random moments, with its client, has the
trials of an undisturbed one, and its decisions replay: suggest_kill_test.py FETTLE [SEED]"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

FETTLE = str(pathlib.Path(sys.argv[1]).resolve())
SHELL = pathlib.Path(__file__).resolve().parents[2] / "examples" / "shell.yaml"
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 7
KILLS = 20
PARALLEL = 2
SPACE = [{"name": "x", "type": "float", "low": 0, "high": 1},
         {"name": "n", "type": "int", "low": 1, "high": 64, "log": True},
         {"name": "o", "type": "categorical", "choices": ["a", "b", "c"]}]
STUDIES = {
    "stops": {"max_trials": 30, "resource": {"min": 1, "max": 9},
              "algorithm": {"name": "tpe", "startup_trials": 5},
              "early_stopping": {"name": "asha"}, "first": [{"x": 0.5}, {"o": "c"}]},
    "pauses": {"max_trials": 24, "resource": {"min": 1, "max": 9}, "algorithm": {"name": "bohb"}},
    "constrained": {"max_trials": 24, "algorithm": {"name": "gp"},
                    "constraints": [{"metric": "ms", "max": 40}],
                    "known": [{"params": {"x": 0.25, "n": 8, "o": "a"}, "value": 0.5}]},
    "grows": {"max_trials": 24, "grows_from": 8, "resource": {"min": 1, "max": 9},
              "algorithm": {"name": "bohb"}},
    "population": {"max_trials": 6, "resource": {"min": 1, "max": 8},
                   "algorithm": {"name": "pbt", "interval": 2}},
}


class Killed(Exception):
    """The process was killed: replies that it had not written are lost, and so is the client."""


class Client:
    """Runs one trial after the other, two handed out at a time; knows nothing of earlier lives."""

    def __init__(self, directory, name, kill_at, delay):
        self.process = subprocess.Popen([FETTLE, "-C", directory, "suggest", "--study", name],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines_left = kill_at
        self.delay = delay
        self.params = {}  # known to this life: a resumed trial comes without them
        self.sent = 0

    def send(self, line):
        print(json.dumps(line | {"ack": True}), file=self.process.stdin, flush=True)
        self.sent += 1
        if self.lines_left is not None:
            self.lines_left -= 1
            if self.lines_left <= 0:
                time.sleep(self.delay)
                self.process.kill()
                self.process.communicate()
                raise Killed
        reply = json.loads(self.process.stdout.readline())
        assert "error" not in reply, (line, reply)
        return reply

    def tune(self, study):
        self.send({"study": study | {"space": SPACE, "seed": 3, "parallel": PARALLEL}})
        running = []
        while True:
            if len(running) < PARALLEL:
                asked = self.send({"ask": PARALLEL - len(running)})
                running += asked["trials"]
                if not running:
                    break
            running.sort(key=lambda trial: trial["id"])
            self.evaluate(study, running.pop(0))
        self.process.stdin.close()
        assert self.process.wait() == 0

    def evaluate(self, study, trial):
        params = self.params.setdefault(trial["id"], trial.get("params"))
        value = (params["x"] - 0.3) ** 2 + abs(params["n"] - 9) / 64 + "abc".index(params["o"]) / 9
        last = study.get("resource", {}).get("max", 1)
        for step in range(1, last):
            reply = self.send({"report": {"id": trial["id"], "step": step, "value": value / step}})
            if reply["decision"] != "continue":
                return
        if trial["id"] % 5 == 4 and last == 1:
            return self.send({"tell": {"id": trial["id"], "value": None}})
        self.send({"tell": {"id": trial["id"], "value": value / last,
                            "metrics": {"ms": params["n"]}}})


def trials_of(directory, name):
    out = subprocess.run([FETTLE, "-C", directory, "trials", name, "--output", "json"], check=True,
                         capture_output=True, text=True).stdout
    trials = json.loads(out)
    for trial in trials:
        facts = trial["status"].get("facts", [])
        for fact in facts:
            fact.pop("time", None)
    return [(trial["spec"]["parameters"], trial["spec"].get("untilStep"),
             trial["spec"].get("search"), trial["status"]["phase"],
             trial["status"].get("facts", [])) for trial in trials]


def check(name, study, moments, directory):
    killed = name + "-killed"
    grows_from = study.pop("grows_from", None)
    if grows_from:  # both were done once, and go on with more trials
        for one in (name, killed):
            Client(directory, one, None, 0).tune(study | {"max_trials": grows_from})
    undisturbed = Client(directory, name, None, 0)
    undisturbed.tune(study)
    lines = undisturbed.sent
    kills = 0
    while True:
        # A life gets some way beyond the lines that every life begins with.
        at = moments.randint(1, 3 + lines // 25) if kills < KILLS else None
        try:
            Client(directory, killed, at, moments.random() * 0.004).tune(study)
            break
        except Killed:
            kills += 1
    expected, found = trials_of(directory, name), trials_of(directory, killed)
    rename = json.loads(json.dumps(found).replace(killed, name))
    assert json.loads(json.dumps(expected)) == rename, (name, *[
        pair for pair in zip(expected, found) if pair[0] != pair[1]][:1])
    for study_name in (name, killed):
        replay = subprocess.run([FETTLE, "-C", directory, "replay", study_name],
                                capture_output=True, text=True)
        assert replay.returncode == 0, replay.stdout + replay.stderr
    print(f"{name}: {len(found)} trials, {lines} lines, {kills} kills")
    return kills


def check_one_session():
    """A study that another session has is refused, and free again after its death. fettle run
    refuses it at any time: there is no program to run."""
    line = json.dumps({"study": {"space": SPACE}, "ack": True}) + "\n"
    with tempfile.TemporaryDirectory() as directory:
        command = [FETTLE, "-C", directory, "suggest", "--study", "one"]
        holder = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        print(line, file=holder.stdin, flush=True)
        assert json.loads(holder.stdout.readline()) == {"ok": True, "trials": 0}
        other = subprocess.run(command, input=line, text=True, capture_output=True)
        assert f"(process {holder.pid})" in json.loads(other.stdout)["error"], other.stdout
        holder.kill()
        holder.communicate()
        other = subprocess.run(command, input=line, text=True, capture_output=True)
        assert json.loads(other.stdout) == {"ok": True, "trials": 0}, other.stdout
        file = pathlib.Path(directory, "one.yaml")
        file.write_text(re.sub(r"(?m)^  name: .*$", "  name: one", SHELL.read_text(), count=1))
        run = subprocess.run([FETTLE, "-C", directory, "run", str(file)], text=True,
                             capture_output=True)
        assert run.returncode == 2 and "fettle suggest --study one" in run.stderr, run.stderr


def check_stop():
    """fettle stop ends a session and says what resumes it. A study without a limit has no total."""
    lines = [{"study": {"space": SPACE}, "ack": True}, {"ask": 2},
             {"tell": {"id": 0, "value": 1}, "ack": True}]
    with tempfile.TemporaryDirectory() as directory:
        command = [FETTLE, "-C", directory, "suggest", "--study", "one"]
        holder = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        for line in lines:
            print(json.dumps(line), file=holder.stdin, flush=True)
            assert "error" not in json.loads(holder.stdout.readline())
        stop = subprocess.run([FETTLE, "-C", directory, "stop", "one"], text=True,
                              capture_output=True)
        assert "resumes it with fettle suggest --study one" in stop.stdout, stop
        holder.communicate()
        status = subprocess.run([FETTLE, "-C", directory, "status", "one"], text=True,
                                capture_output=True)
        assert "1 trial ended" in status.stdout and "of 1" not in status.stdout, status.stdout


def main():
    check_one_session()
    check_stop()
    moments = random.Random(SEED)
    for name, study in STUDIES.items():
        with tempfile.TemporaryDirectory() as directory:
            kills = check(name, study, moments, directory)
            assert kills == KILLS, f"{name} was done after {kills} kills"


main()
