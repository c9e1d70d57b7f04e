"""Lines: one process of `fettle suggest`, and the requests to it.

A request and its reply are one step: threads take turns, by a lock. After the process has ended each request raises
FettleError with its last words. A reply that an interrupt (Ctrl-C) left unread is kept in `strays`. A forked child
closes its copies of the pipes, so that the process ends with the one that started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import weakref
from typing import IO, Any

from fettle._errors import FettleError, Refused
from fettle._program import PROTOCOL, check_hello, find_program

CLOSE_SECONDS = 10.0
LAST_WORDS = 2000

_open: weakref.WeakSet[Lines] = weakref.WeakSet()


class Lines:
    """`options` follow `fettle suggest` on its command line."""

    def __init__(self, options: list[str]) -> None:
        self.program = find_program()
        self._lock = threading.Lock()
        self._number = 0
        self._unread = b""
        self.strays: list[dict[str, Any]] = []
        self._is_closed = False
        self._owner = os.getpid()
        self._words: IO[bytes] = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen([self.program, "suggest", *options], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=self._words, start_new_session=True)
        except OSError as error:
            raise FettleError(f"{self.program} cannot be started: {error}") from error
        _open.add(self)
        try:
            self.hello = self._say_hello()
        except BaseException:
            self.close()
            raise

    def _say_hello(self) -> dict[str, Any]:
        try:
            hello: dict[str, Any] = self.request("hello", PROTOCOL)["hello"]
        except Refused as error:
            raise FettleError(f"{self.program} is too old for this package, which needs protocol {PROTOCOL} of "
                              f"`fettle suggest`: {error}") from None
        check_hello(hello, self.program)
        return hello

    def request(self, verb: str, content: Any) -> dict[str, Any]:
        """Sends a request and returns its reply. Refused: the reply is an error."""
        with self._lock:
            if self._is_closed:
                raise FettleError("the search is closed" if self._owner == os.getpid() else
                                  f"the search belongs to process {self._owner}; this is a child of it")
            self._number += 1
            reply = self._exchange({verb: content, "re": self._number, "ack": True})
        if "error" in reply:
            raise Refused(reply["error"])
        return reply

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            while True:
                reply = self._parse(self._read_line())
                if reply.get("re", message["re"]) == message["re"]:  # protocol 1 has none
                    return reply
                self.strays.append(reply)
        except (BrokenPipeError, ConnectionResetError):
            raise FettleError(self._last_words()) from None

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise FettleError(f"{self.program} is not the program of this package: it said "
                              f"{line[:200].decode(errors='replace')!r}")
        return reply

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            some = os.read(self._process.stdout.fileno(), 1 << 16)
            if not some:
                raise BrokenPipeError
            self._unread += some
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        code = self._process.wait()
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - LAST_WORDS))
        words = self._words.read().decode(errors="replace").strip()
        return f"`fettle suggest` {ended}" + (f": {words}" if words else "")

    def close(self) -> None:
        """Ends the process. Whatever it was sent is kept, if the study has a name."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._close_pipes()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:  # a request that was not flushed
                pass

    def forget(self) -> None:
        """In a forked child, whose parent's threads may hold the lock and the buffers."""
        self._lock = threading.Lock()
        self._is_closed = True
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                os.dup2(null, pipe.fileno(), inheritable=False)  # what is buffered reaches nobody
                os.close(null)
        self._process.returncode = 0  # not a child of this process

    def __del__(self) -> None:
        if hasattr(self, "_process") and self._owner == os.getpid():
            self.close()


def _forget_all() -> None:
    for lines in list(_open):
        lines.forget()


os.register_at_fork(after_in_child=_forget_all)
