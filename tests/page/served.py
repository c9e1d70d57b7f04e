"""Studies of a folder, runners that tests kill, and `fettle serve` of them."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

FETTLE = os.environ["FETTLE"]

# Reports step 1, then writes to its log until the test lets it end (Folder.release).
WAITS = r"""
loss=$(awk -v d="$FETTLE_PARAM_DEPTH" -v m="$FETTLE_PARAM_MOMENTUM" 'BEGIN { print 0.1 + (d - 6)^2 / 50 + (m - 0.9)^2 }')
report() { echo "{\"step\": $1, \"loss\": $2, \"seconds\": $FETTLE_PARAM_DEPTH}"; }
report 1 "1$loss"
lines=0
until [ -e "$GATES/$FETTLE_TRIAL_NAME" ] || [ -e "$GATES/all" ]; do
  lines=$((lines + 1))
  echo "waits $lines"
  sleep 0.05
done
for step in 2 3 4; do report $step "$loss"; done
"""

LOSS = {"metric": "loss", "direction": "Minimize"}
SECONDS = {"metric": "seconds", "direction": "Minimize"}


def study(name, trials, gates, objectives=(LOSS,), seed=3, at_once=4):
    template = {"spec": {"containers": [{
        "name": "trial", "image": "busybox", "command": ["/bin/sh", "-c", WAITS],
        "env": [{"name": "GATES", "value": str(gates)}], "resources": {"requests": {"cpu": "10m"}}}]}}  # fmt: skip
    return {
        "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name},
        "spec": {
            "objectives": list(objectives),
            "parameters": [
                {"name": "learning_rate", "type": "Double", "min": 1e-5, "max": 1, "scale": "Log"},
                {"name": "depth", "type": "Integer", "min": 1, "max": 9},
                {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam", "lamb"]},
                {"name": "momentum", "type": "Double", "min": 0, "max": 1},
            ],
            "resource": {"unit": "epoch", "min": 1, "max": 4},
            "algorithm": {"name": "random", "seed": seed},
            "budget": {"trials": trials, "parallelism": at_once},
            "trial": {"template": template},
        },
    }  # fmt: skip


class Folder:
    """A folder with Studies; close() ends what was started in it and deletes it."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fettle-live-"))
        self.gates = self.path / "gates"
        self.gates.mkdir()
        self._runners = {}

    def start(self, name, trials, **options):
        """Starts `fettle run`; its trials wait for release()."""
        return self.run(study(name, trials, self.gates, **options))

    def run(self, document):
        name = document["metadata"]["name"]
        (self.path / f"{name}.yaml").write_text(json.dumps(document))
        return self.resume(name)

    def resume(self, name):
        with (self.path / f"{name}.txt").open("a") as output:
            self._runners[name] = subprocess.Popen(
                [FETTLE, "run", f"{name}.yaml"], cwd=self.path, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self._runners[name]

    def release(self, *trials):
        """Lets trials end, `all` every one."""
        for trial in trials:
            (self.gates / trial).touch()

    def finish(self, *names):
        for name in names:
            if self._runners[name].wait() != 0:
                raise RuntimeError((self.path / f"{name}.txt").read_text())

    def kill(self, name):
        """Kills the runner as a machine's crash does: without a chance to say so."""
        self._runners[name].kill()
        self._runners[name].wait()

    def spoil(self, name):
        """Makes a Study that does not run unreadable."""
        for end in ("-wal", "-shm", ""):
            (self.path / ".fettle" / f"{name}.db{end}").unlink(missing_ok=True)
        (self.path / ".fettle" / f"{name}.db").write_text("no database")

    def fettle(self, *arguments):
        done = subprocess.run([FETTLE, *arguments], cwd=self.path, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"fettle {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        self.release("all")
        for runner in self._runners.values():
            if runner.poll() is None:
                runner.send_signal(signal.SIGINT)
            runner.wait()
        shutil.rmtree(self.path, ignore_errors=True)


class Server:
    """`fettle serve` of a folder."""

    def __init__(self, folder, port=0):
        self.process = subprocess.Popen(
            [FETTLE, "serve", "--port", str(port)], cwd=folder.path, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/\?(token=\S+)\n", said)):
            line = self.process.stdout.readline()
            if line == "":
                raise RuntimeError(f"fettle serve ended: {said}")
            said += line
        self.port, self._query = int(found[1]), found[2]

    def address(self, path="/", port=None):
        """As a person opens it: with the token."""
        return f"http://127.0.0.1:{port or self.port}{path}?{self._query}"

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.process.stdout.close()


class Proxy:
    """Passes connections on to a server until they are cut, as those of a laptop that sleeps. Keeps the ids by which
    streams were resumed."""

    def __init__(self, port):
        self._server = port
        self._sockets = set()
        self._lock = threading.Lock()
        self.port = 0
        self.resumed = []
        self.restore()

    def restore(self):
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def cut(self):
        """Ends all connections, and takes no other one."""
        self._end(self._listener)
        with self._lock:
            for one in self._sockets:
                self._end(one)

    def _accept(self, listener):
        with listener, contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                with self._lock:
                    self._sockets |= {client, server}
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.resumed += re.findall(rb"(?i)last-event-id: *(\S+)", data)
                sink.sendall(data)
        with self._lock:
            for one in (source, sink):
                self._end(one)
                self._sockets.discard(one)

    @staticmethod
    def _end(one):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
