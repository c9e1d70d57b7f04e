"""The runner's side of the worker protocol (docs/worker-protocol.md), as small as it can be."""

import json
import os
import pathlib
import secrets
import subprocess
import tempfile

RS = b"\x1e"


class Driver:
    """A worker process, its assignments and its answers. `folder` is the worker's."""

    def __init__(self, command, folder, environment):
        self.folder, self.nonce, self._unread = pathlib.Path(folder), secrets.token_hex(16), b""
        self.command = list(command)
        reading, self._assignments = os.pipe()
        environment = os.environ | environment | {
            "FETTLE_WORKER_FD": str(reading), "FETTLE_WORKER_NONCE": self.nonce, "FETTLE_WORKER_VERSION": "1",
            "FETTLE_WORKER_SLOTS": "1"}
        self.process = subprocess.Popen(self.command, cwd=folder, env=environment, pass_fds=[reading],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.close(reading)

    def assign(self, run):
        trial = self.folder / (run + ".json")
        trial.write_text(json.dumps({"study": "s", "trial": run, "seed": 7, "parameters": {"lr": 0.1}, "untilStep": 1,
                                     "checkpoints": {"directory": str(self.folder)}}))
        message = {"run": run, "environment": {"FETTLE_TRIAL": str(trial)}, "arguments": self.command}
        os.write(self._assignments, json.dumps(message).encode() + b"\n")

    def frame(self):
        """The next frame's words; text between frames is passed over. Empty: the worker has ended."""
        opening = RS + self.nonce.encode() + b" "
        while True:
            place = self._unread.find(opening)
            end = self._unread.find(b"\n", place) if place >= 0 else -1
            if end >= 0:
                words = self._unread[place + len(opening):end].decode().split(" ")
                self._unread = self._unread[end + 1:]
                return words
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                return []
            self._unread += some

    def finish(self):
        os.close(self._assignments)
        self.process.stdout.close()
        return self.process.wait(60)


def train_one_ahead(command, trials, environment):
    """Gives a worker one run after another, always one more than it trains."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(command, folder, environment)
        runs = [f"s-{number}-r0" for number in range(trials)]
        for run in runs[:2]:
            driver.assign(run)
        ended = 0
        while ended < trials:
            words = driver.frame()
            if words[:1] not in (["ready"], ["begin"], ["end"]):
                raise RuntimeError(f"{command}: {words}")
            if words[0] == "end":
                ended += 1
                if ended + 1 < trials:
                    driver.assign(runs[ended + 1])
        driver.finish()
