"""Progress: one line on a terminal that says how far tune() is. The caller serialises its calls."""

from __future__ import annotations

import shutil
import sys
import time

_EVERY = 0.1


class Progress:
    """`shown`: None means on a terminal alone."""

    def __init__(self, name: str, direction: str, total: int | None, shown: bool | None) -> None:
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._name = name
        self._direction = direction
        self._total = total
        self._begun = time.monotonic()
        self._drawn = 0.0
        self._ended = 0
        self._bad = 0
        self._best: float | None = None

    def note(self, value: float | None, is_bad: bool) -> None:
        """A trial has ended."""
        self._ended += 1
        self._bad += is_bad
        if value is not None and not is_bad:
            better = max if self._direction == "maximize" else min
            self._best = value if self._best is None else better(self._best, value)

    def draw(self, running: int, *, last: bool = False) -> None:
        """Draws the line again, unless it was drawn just now."""
        if not self._shown or (not last and time.monotonic() - self._drawn < _EVERY):
            return
        self._drawn = time.monotonic()
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r" + self._line(running)[:width].ljust(width) + ("\n" if last else ""))
        sys.stderr.flush()

    def _line(self, running: int) -> str:
        parts = [f"{self._ended}/{self._total} trials" if self._total else f"{self._ended} trials"]
        if self._best is not None:
            parts.append(f"best {self._name} {self._best:.6g}")
        if running:
            parts.append(f"{running} running")
        if self._bad:
            parts.append(f"{self._bad} infeasible")
        return ", ".join([*parts, f"{time.monotonic() - self._begun:.0f} s"])
