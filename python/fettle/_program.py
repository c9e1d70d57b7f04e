"""Finds the program `fettle` that this package drives. May be called from any thread."""

from __future__ import annotations

import os
import shutil

from fettle._errors import FettleError
from fettle._namesake import warn_of_namesake

PROTOCOL = 2


def find_program() -> str:
    """The path of `fettle`: FETTLE_PROGRAM, else the one that came with the package, else the one on PATH."""
    warn_of_namesake()
    named = os.environ.get("FETTLE_PROGRAM")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise FettleError(f"FETTLE_PROGRAM is {named!r}, which is no program")
        return named
    packaged = packaged_program("fettle")
    if packaged is not None:
        return packaged
    for folder in os.get_exec_path():
        found = shutil.which("fettle", path=folder)
        if found is not None and not _is_script(found):  # an entry point of a package is not the program
            return found
    raise FettleError("the program `fettle` was not found: install the wheel fettle-tune, put it on PATH, or set "
                      "FETTLE_PROGRAM to its path")


def packaged_program(name: str) -> str | None:
    """The path of a program inside the wheel; None: this is a checkout, or the pure package."""
    path = os.path.join(os.path.dirname(__file__), "bin", name)
    return path if os.access(path, os.X_OK) else None


def check_hello(hello: dict[str, object], program: str) -> None:
    """Refuses a program that does not speak the protocol of this package."""
    if hello.get("protocol") != PROTOCOL:
        raise FettleError(f"{program} is fettle {hello.get('version', 'of an unknown version')} with protocol "
                          f"{hello.get('protocol')}; this package needs protocol {PROTOCOL}. Install the two together")


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
