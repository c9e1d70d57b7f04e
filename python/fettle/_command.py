"""The commands `fettle` and `kubectl-fettle` of the wheel: this process becomes the program."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings

from fettle._errors import FettleError
from fettle._program import find_program


def main() -> None:
    """Replaces this process. Exit code 3, as of an environment that does not fit: the program cannot be run."""
    trainer = _trainer()
    if trainer is not None:
        os.environ.setdefault("FETTLE_TRAINER", trainer)
    warnings.formatwarning = lambda message, *_: f"fettle: warning: {message}\n"
    try:
        program = find_program()
        # kubectl runs plugins by their file name, which the program reads.
        os.execv(program, [os.path.basename(sys.argv[0]), *sys.argv[1:]])
    except (FettleError, OSError) as error:
        print(f"fettle: {error}", file=sys.stderr)
        sys.exit(3)


def _trainer() -> str | None:
    """The program of the distribution fettle-trainer, if it is installed."""
    found = importlib.util.find_spec("fettle_trainer")
    if found is None or found.origin is None:
        return None
    path = os.path.join(os.path.dirname(found.origin), "bin", "fettle-trainer")
    return path if os.access(path, os.X_OK) else None
