"""Python values as requests have them: numbers of NumPy and PyTorch, missing ones, names of objectives. Pure."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from fettle.space import Space


def value_of(value: Any, name: str) -> float | None:
    """A metric as a float; None if it is None or not finite. TypeError: it is no number."""
    if value is None:
        return None
    number = number_of(value)
    if number is None:
        raise TypeError(f"{name} must be a number, or None for an infeasible trial; found {found(value)}")
    return number if math.isfinite(number) else None


def number_of(value: Any) -> float | None:
    """The number that `value` is, or holds as an array or tensor of one element; None: it is no number."""
    if isinstance(value, (str, bytes, bytearray, bool)) or type(value).__name__ == "bool_":
        return None
    if not isinstance(value, numbers.Real) and not hasattr(value, "item"):
        if not hasattr(type(value), "__float__"):
            return None
    try:
        number: Any = getattr(value, "item", lambda: value)()
        return None if isinstance(number, (str, bytes, bool)) else float(number)
    except (TypeError, ValueError, RuntimeError):  # an array of several elements, for example
        return None
    except OverflowError:
        return math.inf


def found(value: Any) -> str:
    """A value and its type, for an error."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def cost_of(cost: Any) -> dict[str, float]:
    """The member `cost` of a request, if it is known."""
    if cost is None:
        return {}
    number = number_of(cost)
    if number is None or not math.isfinite(number) or number < 0:
        raise ValueError(f"cost must be a finite number of at least 0; found {found(cost)}")
    return {"cost": number}


def objectives_of(minimize: str | Sequence[str] | None, maximize: str | Sequence[str] | None) -> dict[str, str]:
    """Name of each objective -> minimize or maximize, in order."""
    out: dict[str, str] = {}
    for direction, names in (("minimize", minimize), ("maximize", maximize)):
        for name in [names] if isinstance(names, str) else names or []:
            if not isinstance(name, str) or not name:
                raise TypeError(f"{direction}= takes the name of a metric, or a list of names; found {found(name)}")
            if name in out:
                raise ValueError(f"the objective {name!r} is given twice")
            out[name] = direction
    if not out:
        raise ValueError("name the objective: minimize=\"loss\" or maximize=\"accuracy\"")
    return out


def parameters_of(point: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """A point of a user as a request has it. ValueError: a name that is not in the space."""
    if not isinstance(point, Mapping):
        raise TypeError(f"a point is a dict of parameters; found {found(point)}")
    out: dict[str, Any] = {}
    for name, value in point.items():
        if name not in space:
            raise ValueError(f"there is no parameter {name!r} in the space; it has {', '.join(map(repr, space))}")
        if isinstance(value, (str, bool)):
            out[name] = value
        elif type(value).__name__ == "bool_":
            out[name] = bool(value)
        elif isinstance(value, numbers.Integral):
            out[name] = int(value)
        else:
            number = number_of(value)
            if number is None or not math.isfinite(number):
                raise TypeError(f"parameter {name!r}: expected a text, a finite number or a boolean; found {found(value)}")
            out[name] = number
    return out
