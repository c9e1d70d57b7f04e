"""A worker process of tune(): evaluates one trial after another, as lines of JSON on a socket ask it to.

    -> {"id": 3, "parameters": {...}}
    <- {"report": [step, [value]]}        -> {"decision": "continue"}
    <- {"outcome": {...}}

It ends when the socket does, and with the process that started it. One thread.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import signal
import socket
import sys
from typing import IO, Any

from fettle._function import Function, Outcome, Task, Values, evaluate

_PR_SET_PDEATHSIG = 1


class _ParentIsGone(BaseException):
    """The process that called tune() has ended or given this worker up."""


class Worker:
    def __init__(self, connection: socket.socket, lines: IO[bytes], function: Function, task: Task) -> None:
        self._connection = connection
        self._lines = lines
        self._function = function
        self._task = task

    def run(self) -> None:
        """Returns when no more trials come."""
        try:
            while (line := self._hear()).endswith(b"\n"):
                asked = json.loads(line)
                outcome = evaluate(self._function, self._task, asked["id"], asked["parameters"], self._report,
                                   whole_process=True)
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                self._say({"outcome": outcome._asdict()})
        except _ParentIsGone:
            pass

    def _report(self, step: int, values: Values) -> str:
        self._say({"report": [step, values]})
        line = self._hear()
        if not line.endswith(b"\n"):
            raise _ParentIsGone
        decision: str = json.loads(line)["decision"]
        return decision

    def _hear(self) -> bytes:
        """The next line; shorter: no more comes."""
        try:
            return self._lines.readline()
        except ConnectionResetError:
            return b""

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise _ParentIsGone from None


def outcome_of(message: dict[str, Any]) -> Outcome:
    """The outcome that a worker sent."""
    curve = [(step, values) for step, values in message["curve"]]
    return Outcome(**{**message, "curve": curve})


def settle(parent: int) -> None:
    """Sets up a new worker: no terminal, no SIGINT of one, and an end with its parent."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def draw_other_numbers() -> None:
    """After a fork: else each worker draws the same random numbers. (The module `random` sees to it itself.)"""
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.seed()


def main() -> None:
    """A worker that was not forked: `python -c ... FD PARENT`. Its first line has the function."""
    settle(int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    lines = connection.makefile("rb")
    line = lines.readline()
    if not line.endswith(b"\n"):
        return
    setup = json.loads(line)
    sys.path[:] = setup["path"]
    try:
        function, space = pickle.loads(base64.b64decode(setup["function"]))
    except Exception as error:
        connection.sendall(json.dumps({"broken": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        return
    Worker(connection, lines, Function(function, space), Task(**setup["task"])).run()
