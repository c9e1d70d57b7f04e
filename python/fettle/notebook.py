"""How a Result looks in a notebook: the best trial, the best value so far as a chart, and a table.

Plain HTML and SVG, without scripts or widgets, in the colours of the notebook's theme. Every text of a user is escaped.
Pure.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fettle.result import Result, TrialRecord

MOST_ROWS = 20
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 180, 64, 24
_COLOURS = {"completed": "#4a8fd6", "stopped": "#9aa5b1", "infeasible": "#d08a2e", "failed": "#c0392b"}


def to_html(result: Result) -> str:
    """The representation of a result."""
    name, direction = next(iter(result.objectives.items()))
    parts = [f"<p>{_headline(result)}</p>"]
    if len(result.objectives) == 1:
        parts.append(_chart(result.trials, name, direction))
    parts.append(_table(result))
    return "<div>" + "".join(parts) + "</div>"


def _headline(result: Result) -> str:
    counts = {state: sum(one.state == state for one in result.trials) for state in _COLOURS}
    said = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    of = f" of <b>{html.escape(result.study)}</b>" if result.study else ""
    if len(result.objectives) > 1:
        return f"{len(result.trials)} trials{of} ({said}); {len(result.front)} on the front"
    if not result.front:
        return f"{len(result.trials)} trials{of} ({said}); none has a result"
    best = result.front[0]
    point = ", ".join(f"{html.escape(key)} = {_text(value)}" for key, value in best.parameters.items())
    name = html.escape(next(iter(result.objectives)))
    return f"{len(result.trials)} trials{of} ({said}). Best {name} <b>{_text(best.value)}</b>, trial {best.id}: {point}"


def best_so_far(trials: Sequence[TrialRecord], direction: str) -> list[tuple[int, float]]:
    """(trial, value) wherever a completed trial was better than all before it."""
    out: list[tuple[int, float]] = []
    for one in trials:
        if one.state != "completed" or one.value is None:
            continue
        if not out or (one.value > out[-1][1]) == (direction == "maximize") and one.value != out[-1][1]:
            out.append((one.id, one.value))
    return out


def _chart(trials: Sequence[TrialRecord], name: str, direction: str) -> str:
    steps = best_so_far(trials, direction)
    if not steps:
        return ""
    values = sorted(one.value for one in trials if one.value is not None and one.state in ("completed", "stopped"))
    # Values far out would make a line of everything else: at most nine of ten, and all that were best.
    inner = values[:-(len(values) // 10) or None] if direction == "minimize" else values[len(values) // 10:]
    low, high = min([*inner, *(value for _, value in steps)]), max([*inner, *(value for _, value in steps)])
    last = max(one.id for one in trials)

    def x(id: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * id / max(1, last)

    def y(value: float) -> float:
        share = 0.5 if high == low else (min(max(value, low), high) - low) / (high - low)
        return 8 + (_HEIGHT - _BOTTOM - 16) * (1 - share)

    dots = "".join(f'<circle cx="{x(one.id):.1f}" cy="{y(one.value):.1f}" r="2.5" fill="{_COLOURS[one.state]}" '
                   f'fill-opacity="0.85"><title>trial {one.id}: {_text(one.value)}</title></circle>'
                   for one in trials if one.value is not None and one.state in ("completed", "stopped"))
    path = f"M{x(steps[0][0]):.1f},{y(steps[0][1]):.1f}"
    path += "".join(f"H{x(id):.1f}V{y(value):.1f}" for id, value in steps[1:]) + f"H{x(last):.1f}"
    labels = [(0, y(high) + 4, "start", _text(high)), (0, y(low) + 4, "start", _text(low)),
              (_LEFT, _HEIGHT - 6, "start", "trial 0"), (_WIDTH - 8, _HEIGHT - 6, "end", f"trial {last}")]
    texts = "".join(f'<text x="{left}" y="{top:.1f}" text-anchor="{anchor}" font-size="11" fill="currentColor">{text}</text>'
                    for left, top, anchor, text in labels)
    title = f"Best {html.escape(name)} so far: {_text(steps[-1][1])} after {len(trials)} trials"
    return (f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{title}">'
            f'<title>{title}</title>{dots}<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>{texts}'
            "</svg>")


def _table(result: Result) -> str:
    sign = -1 if next(iter(result.objectives.values())) == "maximize" else 1
    order = {"completed": 0, "stopped": 1, "infeasible": 2, "failed": 3}
    rows = sorted(result.trials, key=lambda one: (order[one.state], math.inf if one.value is None else sign * one.value))
    names = list(dict.fromkeys(name for one in result.trials for name in one.parameters))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ["trial", "state", *result.objectives, *names])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in _cells(one, len(result.objectives), names)) + "</tr>"
                   for one in rows[:MOST_ROWS])
    more = f"<p>{len(rows) - MOST_ROWS} more in <code>to_pandas()</code></p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cells(one: TrialRecord, objectives: int, names: Sequence[str]) -> list[str]:
    state = one.state if one.error is None else f'<span title="{html.escape(one.error)}">{one.state}</span>'
    values = one.values or (None,) * objectives
    return [str(one.id), state, *(_text(value) for value in values),
            *(_text(one.parameters.get(name)) for name in names)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else html.escape(str(value))
