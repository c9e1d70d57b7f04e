"""Worker processes of tune(), as the process that calls it sees them. One thread.

A forked worker needs no pickling: closures, lambdas and functions of a notebook work. But a fork copies one thread
alone, and no GPU context, so where there are others a worker is a new interpreter: the function is then pickled by
its name, or by cloudpickle if that is installed.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from fettle._errors import FettleError
from fettle._evaluate import Worker, draw_other_numbers, settle
from fettle._function import Function, Task
from fettle.space import Space

END_SECONDS = 2.0
_START = "import sys; sys.path.insert(0, sys.argv[3]); from fettle._evaluate import main; main()"


class Process:
    """One worker. `fileno` is readable when it says something, or has ended."""

    def __init__(self, start: Callable[[socket.socket, list[Process]], int], others: list[Process]) -> None:
        self._connection, theirs = socket.socketpair()
        try:
            self.pid = start(theirs, [*others, self])
        finally:
            theirs.close()
        self._unread = b""
        self._has_ended = False
        self.trial: Any = None  # that it evaluates
        self.deadline: float | None = None

    def fileno(self) -> int:
        return self._connection.fileno()

    def say(self, message: dict[str, Any]) -> None:
        """Never fails: the end of a worker is read, not met here."""
        self.say_line(json.dumps(message).encode() + b"\n")

    def say_line(self, line: bytes) -> None:
        try:
            self._connection.sendall(line)
        except OSError:
            pass

    def hear(self) -> list[dict[str, Any]] | None:
        """The messages that have come; None: it has ended."""
        try:
            some = self._connection.recv(1 << 18)
        except ConnectionResetError:
            some = b""
        if not some:
            return None
        *lines, self._unread = (self._unread + some).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Tells it that no more trials come."""
        self._connection.close()

    def kill(self) -> None:
        """Ends it and what it started, at once."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def wait(self, seconds: float) -> str | None:
        """How it ended, as a phrase; None: it has not within that time."""
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self._has_ended = True
                return _phrase(os.waitstatus_to_exitcode(status))
            if time.monotonic() >= end:
                return None
            time.sleep(0.002)

    def _signal(self, number: int) -> None:
        if self._has_ended:
            return
        for send in (os.killpg, os.kill):  # it may not have made its group yet
            try:
                send(self.pid, number)
                return
            except ProcessLookupError:
                pass


def end_all(processes: list[Process], *, gently: bool) -> None:
    """Ends workers: idle ones by the end of their socket, others by SIGTERM; whatever is left, by SIGKILL."""
    for one in processes:
        one.close()
        if not gently:
            one.terminate()
    end = time.monotonic() + END_SECONDS
    for one in processes:
        if one.wait(max(0.0, end - time.monotonic())) is None:
            one.kill()
            one.wait(END_SECONDS)


def _phrase(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was ended by SIGKILL: often the machine was out of memory"
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


class Starter:
    """Starts workers for a function, in the way that `start` says: fork or spawn."""

    def __init__(self, function: Function, space: Space, task: Task, start: str) -> None:
        self._function = function
        self._task = task
        self._start = self._fork if start == "fork" else self._spawn
        self._setup = b"" if start == "fork" else self._setup_line(space)

    def start(self, others: list[Process]) -> Process:
        """`others`: the living ones, whose sockets a forked worker closes."""
        return Process(self._start, others)

    def _fork(self, theirs: socket.socket, others: list[Process]) -> int:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or the child would print it again
        parent = os.getpid()
        pid = os.fork()
        if pid != 0:
            return pid
        code = 1
        try:
            settle(parent)
            for one in others:
                one.close()
            draw_other_numbers()
            Worker(theirs, theirs.makefile("rb"), self._function, self._task).run()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)

    def _spawn(self, theirs: socket.socket, others: list[Process]) -> int:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        process = subprocess.Popen([sys.executable, "-c", _START, str(theirs.fileno()), str(os.getpid()), package],
                                   pass_fds=[theirs.fileno()])
        process.returncode = 0  # waited for by Process
        others[-1].say_line(self._setup)
        return process.pid

    def _setup_line(self, space: Space) -> bytes:
        content = {"function": base64.b64encode(pickled((self._function.function, dict(space)))).decode(),
                   "path": sys.path, "task": self._task._asdict()}
        return json.dumps(content).encode() + b"\n"


def pickled(content: Any) -> bytes:
    """By cloudpickle if it is installed, else by name. FettleError: neither can."""
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        pass
    else:
        data: bytes = cloudpickle.dumps(content)
        return data
    function = content[0]
    if getattr(function, "__module__", "__main__") == "__main__":
        raise FettleError("a new process cannot find a function of the script or notebook that calls tune(): install "
                          "cloudpickle, or move the function to a module")
    try:
        return pickle.dumps(content)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise FettleError(f"the function cannot be sent to a new process ({error}): install cloudpickle, or make it "
                          "one of a module") from None


def hazard_of_a_fork() -> str | None:
    """Why a fork is not safe in this process now; None: it is."""
    if threading.active_count() > 1:
        return "this process has other threads"
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "this process uses CUDA"
    if sys.platform != "linux":
        return None if sys.platform != "darwin" else "forks are not safe on macOS"
    if len(os.listdir("/proc/self/task")) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()  # libraries such as OpenBLAS end their threads before it
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return "a library has started threads" if len(os.listdir("/proc/self/task")) > 1 else None


def way_to_start(function: Function, space: Space) -> tuple[str, str | None]:
    """fork, spawn or threads; and a sentence for the user, if it is none of the first two."""
    hazard = hazard_of_a_fork()
    if hazard is None:
        return "fork", None
    try:
        pickled((function.function, dict(space)))
    except FettleError as error:
        return "threads", f"fettle: uses threads, since {hazard}, and {error}"
    return "spawn", None
