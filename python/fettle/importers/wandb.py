"""Imports the table of runs that W&B's page exports as CSV. A run that did not finish has no result."""

from __future__ import annotations

import argparse

from fettle.importers import _lines
from fettle.importers import csv as table

# Columns of the page about a run, not of its configuration.
ABOUT = {"Name", "ID", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "Group", "Job Type", "Hostname",
         "GitHub", "Updated", "End Time", "_runtime", "_step", "_timestamp", "_wandb"}  # fmt: skip


def read(options: argparse.Namespace) -> _lines.Lines:
    header, rows = table.rows(options)
    columns = table.parameters_of(options, header, ABOUT)
    found = _lines.Lines()
    for number, row in enumerate(sorted(rows, key=lambda row: row.get("Created") or ""), 1):
        if row.get("State", "finished") != "finished":
            found.without += 1
            continue
        values = {metric: _lines.number(row[metric] or "") for metric in options.objective}
        found.add(row.get("Name") or f"row-{number}", table.cells(row, columns), values)
    return found


if __name__ == "__main__":
    _lines.main("wandb", read)
