"""Scenarios as TOML. Python's own library only reads it."""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Iterable, Mapping
from typing import cast

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Chosen: `[flow.call]` is a section, and a table below it stands within a line, as people write scenarios.
_SECTIONS = 2


def dumps(scenario: Mapping[str, object]) -> str:
    """`scenario` as the text of a scenario file."""
    lines: list[str] = []
    _section(scenario, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def value(it: object, where: str) -> str:
    """One value. `where` names its key in an error."""
    if isinstance(it, bool):
        return "true" if it else "false"
    if isinstance(it, str):
        return _text(it)
    if isinstance(it, numbers.Integral):
        return str(int(it))
    if isinstance(it, numbers.Real):
        return _number(float(it))
    if isinstance(it, os.PathLike):
        return _text(os.fspath(cast("os.PathLike[str]", it)))
    if isinstance(it, Mapping):
        table = cast("Mapping[object, object]", it)
        pairs = [f"{key(name)} = {value(inner, f'{where}.{name}')}" for name, inner in table.items()]
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
    if isinstance(it, Iterable):
        inner = cast("Iterable[object]", it)
        return "[" + ", ".join(value(one, f"{where}[{at}]") for at, one in enumerate(inner)) + "]"
    raise TypeError(f"{where}: {it!r} has no form in a scenario file; expected text, a number, a list or a dict")


def key(name: object) -> str:
    """A key, in quotes if it needs them."""
    if not isinstance(name, str):
        raise TypeError(f"the key {name!r} of a scenario is no text")
    return name if _BARE.fullmatch(name) else _text(name)


def _section(table: Mapping[str, object], path: tuple[str, ...], lines: list[str]) -> None:
    def is_section(it: object) -> bool:
        return isinstance(it, Mapping) and len(path) < _SECTIONS

    own = [(name, it) for name, it in table.items() if not is_section(it)]
    if path and (own or not table):
        lines += ["", f"[{'.'.join(key(part) for part in path)}]"]
    lines += [f"{key(name)} = {value(it, '.'.join((*path, str(name))))}" for name, it in own]
    for name, it in table.items():
        if is_section(it):
            _section(cast("Mapping[str, object]", it), (*path, name), lines)


def _number(it: float) -> str:
    if math.isfinite(it):
        return repr(it)
    return "nan" if math.isnan(it) else "inf" if it > 0 else "-inf"


def _text(it: str) -> str:
    # TOML 1.0: a basic string escapes quotes, backslashes and control characters.
    escaped = it.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
