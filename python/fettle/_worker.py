"""trials(): the trials that this process is given, by the worker protocol (docs/worker-protocol.md).

The loop, its body and the frames run on one thread. Assignments are read when a trial ends, and a stop when the trial
asks for it, so no thread of our own ever runs beside the user's program.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fettle._report import current, set_current
from fettle._trial import Trial

VERSION = 1
LONGEST_FRAME = 4096
LONGEST_ASSIGNMENT = 256 * 1024
_VARIABLES = ("FETTLE_WORKER_FD", "FETTLE_WORKER_NONCE", "FETTLE_WORKER_VERSION", "FETTLE_WORKER_SLOTS")


class Assignment(NamedTuple):
    """A run to train. `arguments`: the command line that a process of its own would have."""

    run: str
    environment: dict[str, str]
    arguments: list[str]


class ProtocolError(RuntimeError):
    """The runner sent what this version does not understand."""


class Connection:
    """Both directions of the protocol. Frames are written past Python's buffers, after these were flushed."""

    def __init__(self, descriptor: int, nonce: str, output: int = 1) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._output = output
        self._unread = b""
        self._is_open = True
        self._waiting: deque[Assignment] = deque()
        self._stopped: set[str] = set()

    @classmethod
    def from_environment(cls) -> Connection | None:
        """The connection that this process was started with, or None. Programs that it starts do not inherit it."""
        values = [os.environ.pop(name, None) for name in _VARIABLES]
        if values[0] is None:
            return None
        if values[1] is None or int(values[2] or 1) < VERSION:
            raise ProtocolError(f"the runner speaks version {values[2]} of the worker protocol, this package {VERSION}")
        descriptor = int(values[0])
        os.set_inheritable(descriptor, False)
        return cls(descriptor, values[1])

    def say(self, *words: object) -> None:
        """Writes one frame behind everything that the program has printed so far."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        frame = b"\x1e" + " ".join((self._nonce, *map(str, words))).replace("\n", " ").encode()[:LONGEST_FRAME - 2] + b"\n"
        while frame:
            frame = frame[os.write(self._output, frame):]

    def next_assignment(self) -> Assignment | None:
        """Waits for the next Assignment. None: no more come."""
        while not self._waiting and self._is_open:
            self._read()
        return self._waiting.popleft() if self._waiting else None

    def is_stopped(self, run: str) -> bool:
        """Whether the run is to end. Reads what has come, without waiting."""
        while self._is_open and select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return run in self._stopped

    def wait(self, other: int, run: str, was_stopped: bool) -> bool:
        """Waits until `other` is readable (True), or the run is to end and `was_stopped` is false (False)."""
        while True:
            if not was_stopped and self.is_stopped(run):
                return False
            watched = [other, self._descriptor] if self._is_open else [other]
            ready = select.select(watched, [], [])[0]
            if self._descriptor in ready and self._is_open:
                self._read()
            if other in ready:
                return True

    def close(self) -> None:
        """For a forked child, to which the connection does not belong."""
        os.close(self._descriptor)

    def forget(self, run: str) -> None:
        self._stopped.discard(run)

    def _read(self) -> None:
        some = os.read(self._descriptor, 65536)
        if not some:
            self._is_open = False
            return
        *lines, self._unread = (self._unread + some).split(b"\n")
        if len(self._unread) > LONGEST_ASSIGNMENT:
            raise ProtocolError(f"an assignment of more than {LONGEST_ASSIGNMENT} bytes")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "run" in message:
            self._waiting.append(Assignment(message["run"], message["environment"], message.get("arguments", [])))
        elif "stop" in message:
            self._stopped.add(message["stop"])


def set_environment(environment: dict[str, str]) -> None:
    """Replaces the FETTLE_ variables of the process by those of a run."""
    for name in [name for name in os.environ if name.startswith("FETTLE_")]:
        del os.environ[name]
    os.environ.update(environment)


def trials(*, until_step: int = 1, **defaults: Any) -> Iterator[Trial]:
    """Yields the trials to train, one after another; the one trial of this process if it is not a worker.

    `defaults`: values of parameters that a trial does not have. With them the program also runs without Fettle: one
    trial, of `until_step` steps, whose reports go nowhere.
    """
    connection = Connection.from_environment()
    if connection is None:
        only = trial(until_step=until_step, **defaults)
        set_current(only)
        try:
            yield only
        finally:
            set_current(None)
        return
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connection.say("ready", VERSION, 1)
    while (assignment := connection.next_assignment()) is not None:
        run, environment, _ = assignment
        set_environment(environment)
        os.fchdir(directory)  # the last trial may have left it
        connection.say("begin", run)
        given = Trial(environment, _stop_of(connection, run), defaults)
        set_current(given)
        yield given
        set_current(None)
        connection.say("end", run, 143 if connection.is_stopped(run) else given.exit_code)
        connection.forget(run)


def _stop_of(connection: Connection, run: str) -> Callable[[], bool]:
    return lambda: connection.is_stopped(run)


def trial(*, until_step: int = 1, **defaults: Any) -> Trial:
    """The trial that this program trains: of a function that tune() calls, or of the program that Fettle started.

    `defaults` and `until_step` are those of trials().
    """
    found = current()
    if found is not None:
        return found
    if "FETTLE_TRIAL" in os.environ:
        variables = {name: value for name, value in os.environ.items() if name.startswith("FETTLE_")}
        return Trial(variables, defaults=defaults)
    if defaults:
        return Trial.alone(defaults, until_step)
    raise RuntimeError("there is no trial: start this program by `fettle run study.yaml`, with `trial.execution: Warm` "
                       "for one process that trains many trials of fettle.trials(), or give defaults, as in "
                       "fettle.trials(lr=0.1)")
