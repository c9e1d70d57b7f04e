"""What importers share: their options, and the lines they write, oldest first."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from fettle.export._document import EXIT_INVALID, ExportError, plural, run


def invalid(sentence: str) -> ExportError:
    return ExportError(sentence, EXIT_INVALID)


class Lines:
    """Collects results. Counts the trials that have none."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.without = 0

    def add(self, name: str, parameters: Mapping[str, Any], values: Mapping[str, Any], step: int | None = None,
            stopped: bool = False) -> None:
        """`values`: metric to number. A result that is not finite is left out, as it is none. `stopped`: ended early."""
        parameters = {key: value for key, value in parameters.items() if is_scalar(value)}
        if not parameters or not values or not all(is_number(value) for value in values.values()):
            self.without += 1
            return
        line: dict[str, Any] = {"parameters": parameters, "values": values}
        if step is not None:
            line["step"] = step
        if stopped:
            line["stopped"] = True
        self.lines.append(line | {"name": str(name)[:63]})


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool)) or is_number(value)


def number(text: str) -> int | float | bool | str:
    """A number, a truth value or the text itself."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def main(name: str, read: Callable[[argparse.Namespace], Lines]) -> None:
    """The command line of an importer. `read(options)` returns Lines."""
    parser = argparse.ArgumentParser(prog=f"fettle.importers.{name}")
    parser.add_argument("--source", required=True)
    parser.add_argument("--study", default="")
    parser.add_argument("--objective", action="append", default=[])
    parser.add_argument("--parameter", action="append", default=[])
    parser.add_argument("--output", default="")
    options = parser.parse_args()
    sys.exit(run(f"import --from {name}", lambda: write(options, read(options))))


def write(options: argparse.Namespace, found: Lines) -> None:
    if not found.lines:
        raise invalid(f"no trial in {options.source} has a result" +
                      (f": {plural(found.without, 'trial')} without one" if found.without else ""))
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in found.lines)
    if options.output in ("", "-"):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    unfinished = f"{options.output}.{os.getpid()}"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, options.output)
    except OSError as error:
        raise ExportError(f"cannot write {options.output}: {error.strerror}") from error
    rest = f"; {plural(found.without, 'trial')} had no result" if found.without else ""
    print(f"Wrote {plural(len(found.lines), 'result')} to {options.output}{rest}.")
