"""Search spaces: a dict from the name of a parameter to what it may be.

    {"lr": loguniform(1e-5, 1e-1),
     "optimizer": choice("sgd", "adam"),
     "momentum": uniform(0.5, 0.99, when={"optimizer": "sgd"})}

Pure. A Parameter is immutable and may be shared by threads.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

__all__ = ["Parameter", "Space", "boolean", "choice", "integer", "loguniform", "uniform", "variables"]

Choice = Union[str, bool, int, float]
Condition = Mapping[str, Any]


class Parameter(NamedTuple):
    """One parameter. Made by the functions of this module."""

    kind: str  # float, int, categorical or bool, as in the protocol of `fettle suggest`
    low: float = 0
    high: float = 0
    log: bool = False
    step: float | None = None
    choices: tuple[Choice, ...] = ()
    on: str | None = None  # the parameter that this one depends on
    values: tuple[Choice, ...] = ()  # its values for which this one exists


Space = Mapping[str, Parameter]


def uniform(low: float, high: float, *, step: float | None = None, when: Condition | None = None) -> Parameter:
    """A real number from low to high, both included; with `step`: low, low + step, ..."""
    _check_bounds("uniform", low, high)
    _check_step("uniform", step)
    return _conditional(Parameter("float", float(low), float(high), step=step), when)


def loguniform(low: float, high: float, *, when: Condition | None = None) -> Parameter:
    """A real number from low to high whose logarithm is uniform: for rates and penalties."""
    _check_bounds("loguniform", low, high)
    _check_log("loguniform", low)
    return _conditional(Parameter("float", float(low), float(high), log=True), when)


def integer(low: int, high: int, *, log: bool = False, step: int | None = None,
            when: Condition | None = None) -> Parameter:
    """A whole number from low to high, both included."""
    for number in (low, high, step):
        if number is not None and (isinstance(number, bool) or not isinstance(number, numbers.Integral)):
            raise TypeError(f"integer: bounds and step are whole numbers; found {number!r}. For others use uniform()")
    _check_bounds("integer", low, high)
    _check_step("integer", step)
    if log:
        _check_log("integer", low)
    return _conditional(Parameter("int", int(low), int(high), log, None if step is None else int(step)), when)


def choice(*values: Choice | Sequence[Choice], when: Condition | None = None) -> Parameter:
    """One of several texts, numbers or booleans: choice("sgd", "adam"), or choice(["sgd", "adam"])."""
    if len(values) == 1 and not isinstance(values[0], (str, bytes)) and isinstance(values[0], Iterable):
        values = tuple(values[0])
    if not values:
        raise ValueError("choice: give at least one value")
    choices = tuple(_plain(value, "choice") for value in values)
    for index, value in enumerate(choices):
        if any(value == other and type(value) is type(other) for other in choices[:index]):
            raise ValueError(f"choice: {value!r} comes twice")
    return _conditional(Parameter("categorical", choices=choices), when)


def boolean(*, when: Condition | None = None) -> Parameter:
    """True or False."""
    return _conditional(Parameter("bool"), when)


def variables(space: Space) -> list[dict[str, Any]]:
    """The space as `fettle suggest` reads it: each parameter behind the one that it depends on."""
    if not isinstance(space, Mapping):
        raise TypeError(f"a space is a dict from names to parameters; found {type(space).__name__}")
    if not space:
        raise ValueError("the space is empty: give at least one parameter, as in {\"lr\": fettle.loguniform(1e-5, 1)}")
    for name, parameter in space.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a parameter is a text that is not empty; found {name!r}")
        if not isinstance(parameter, Parameter):
            raise TypeError(f"parameter {name!r}: expected uniform(), loguniform(), integer(), choice() or boolean(); "
                            f"found {parameter!r}")
    return [_variable(name, space[name]) for name in _parents_first(space)]


def _parents_first(space: Space) -> list[str]:
    order: list[str] = []
    waiting = list(space)
    while waiting:
        ready = [name for name in waiting if space[name].on is None or space[name].on in order]
        if not ready:
            name = waiting[0]
            raise ValueError(f"parameter {name!r} depends on {space[name].on!r}, which "
                             + ("depends on it in turn" if space[name].on in space else "is not in the space"))
        order += ready
        waiting = [name for name in waiting if name not in ready]
    return order


def _variable(name: str, parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"name": name, "type": parameter.kind}
    if parameter.kind in ("float", "int"):
        out.update(low=parameter.low, high=parameter.high, log=parameter.log)
        if parameter.step is not None:
            out["step"] = parameter.step
    elif parameter.kind == "categorical":
        out["choices"] = list(parameter.choices)
    if parameter.on is not None:
        out["when"] = {"param": parameter.on, "in": list(parameter.values)}
    return out


def _conditional(parameter: Parameter, when: Condition | None) -> Parameter:
    if when is None:
        return parameter
    if not isinstance(when, Mapping) or len(when) != 1:
        raise ValueError(f"when: expected one other parameter and its values, as in {{\"optimizer\": [\"sgd\"]}}; "
                         f"found {when!r}")
    (on, values), = when.items()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        values = [values]
    plain = tuple(_plain(value, "when") for value in values)
    if not plain:
        raise ValueError(f"when: lists no value of {on!r}")
    return parameter._replace(on=on, values=plain)


def _plain(value: Any, where: str) -> Choice:
    if isinstance(value, (str, bool)):
        return value
    if type(value).__name__ in ("bool_", "bool"):  # of NumPy
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise TypeError(f"{where}: a value is a text, a finite number or a boolean; found {value!r}. Give each object a "
                    "name, and find it by the name in your function")


def _check_bounds(where: str, low: float, high: float) -> None:
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, numbers.Real):
            raise TypeError(f"{where}: bounds are numbers; found {bound!r}")
        if not math.isfinite(bound):
            raise ValueError(f"{where}: bounds are finite numbers; found {bound!r}")
    if low > high:
        raise ValueError(f"{where}: the lower bound {low!r} is above the upper bound {high!r}")


def _check_step(where: str, step: float | None) -> None:
    if step is None:
        return
    if isinstance(step, bool) or not isinstance(step, numbers.Real):
        raise TypeError(f"{where}: a step is a number; found {step!r}")
    if not math.isfinite(step) or step <= 0:
        raise ValueError(f"{where}: a step is a finite number above 0; found {step!r}")


def _check_log(where: str, low: float) -> None:
    if low <= 0:
        raise ValueError(f"{where}: a logarithmic scale needs a lower bound above 0; found {low!r}")
