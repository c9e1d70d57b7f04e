"""Writes plain data as YAML that a person would write. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH = 120
# Texts that need no quotes: no YAML 1.1 or 1.2 reads them as something else.
_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*")
_WORDS = re.compile(r"(y|n|yes|no|on|off|true|false|null|nan|inf|\.nan|\.inf|~|-?\.inf)", re.IGNORECASE)


def to_yaml(value: Mapping[str, Any]) -> str:
    return "".join(line + "\n" for line in _lines(value, 0))


def _lines(value: Any, indent: int) -> list[str]:
    space = " " * indent
    out: list[str] = []
    if isinstance(value, Mapping):
        for name, one in value.items():
            short = _flow(one)
            if short is not None and len(space) + len(_scalar(name)) + len(short) + 2 <= _WIDTH:
                out.append(f"{space}{_scalar(name)}: {short}")
            else:
                deeper = 0 if _is_list(one) else 2
                out += [f"{space}{_scalar(name)}:", *_lines(one, indent + deeper)]
        return out
    for one in value:
        short = _flow(one)
        if short is not None and len(space) + len(short) + 2 <= _WIDTH:
            out.append(f"{space}- {short}")
        elif _is_list(one) or isinstance(one, Mapping):
            first, *others = _lines(one, indent + 2)
            out += [f"{space}- {first.lstrip()}", *others]
    return out


def _flow(value: Any, depth: int = 0) -> str | None:
    """On one line; None: it is too deep for that, or begins a list of mappings."""
    if isinstance(value, Mapping):
        parts = [(_scalar(name), _flow(one, depth + 1)) for name, one in value.items()]
        if depth > 1 or any(part is None for _, part in parts):
            return None
        return "{" + ", ".join(f"{name}: {part}" for name, part in parts) + "}"
    if _is_list(value):
        items = [_flow(one, depth + 1) for one in value]
        if depth > 2 or any(item is None for item in items) or any(isinstance(one, Mapping) for one in value):
            return None
        return "[" + ", ".join(str(item) for item in items) + "]"
    return _scalar(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and not _WORDS.fullmatch(value) else json.dumps(value)
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 reads 1e-05 as a text.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value)
