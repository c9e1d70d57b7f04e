"""Imports a table with a header: a result a row, oldest first. Columns named by --objective are its values.

Parameters are the columns named by --parameter, those called parameters.NAME (`fettle trials --output csv`), or all
others. Empty cells are left out.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fettle.importers import _lines

Row = dict[str, Any]

PREFIX = "parameters."
# The columns phase, step and infeasible have a meaning in a table that `fettle trials` wrote.
OF_FETTLE = {"trial", "index", "phase", "step", "infeasible"}


def rows(options: argparse.Namespace) -> tuple[list[str], list[Row]]:
    try:
        with open(options.source, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            out = list(reader)
            header = list(reader.fieldnames or [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _lines.invalid(f"{options.source} cannot be read: {error}") from error
    if not options.objective:
        raise _lines.invalid(f"say which column is the objective: --objective NAME; {options.source} has {', '.join(header)}")
    for name in options.objective + options.parameter:
        if name not in header:
            raise _lines.invalid(f"{options.source} has no column {name}; it has {', '.join(header)}")
    return header, out


def parameters_of(options: argparse.Namespace, header: Sequence[str], others: Collection[str] = ()) -> dict[str, str]:
    """Column to the name of its parameter."""
    if options.parameter:
        return {name: name for name in options.parameter}
    if any(name.startswith(PREFIX) for name in header):
        return {name: name[len(PREFIX):] for name in header if name.startswith(PREFIX)}
    return {name: name for name in header if name not in options.objective and name not in others}


def cells(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    return {name: _lines.number(row[column]) for column, name in columns.items() if row.get(column)}


def read(options: argparse.Namespace) -> _lines.Lines:
    header, table = rows(options)
    is_ours = OF_FETTLE <= set(header)
    columns = parameters_of(options, header)
    found = _lines.Lines()
    for number, row in enumerate(table, 1):
        values = {metric: _lines.number(row[metric] or "") for metric in options.objective}
        if not is_ours:
            found.add(f"row-{number}", cells(row, columns), values)
        elif row["phase"] not in ("Completed", "Stopped", "Paused") or row["infeasible"] == "true":
            found.without += 1
        else:
            found.add(row["trial"], cells(row, columns), values, step=int(row["step"] or 0), stopped=row["phase"] != "Completed")
    return found


if __name__ == "__main__":
    _lines.main("csv", read)
