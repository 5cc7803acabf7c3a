"""A scenario as a file that the program reads, checked."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import _toml
from ._errors import Mistake, ScenarioError, UsageError
from ._program import ask

Scenario = Mapping[str, Any] | str | os.PathLike[str]
"""A dict with the keys of a scenario file, or the path of one."""


@dataclass(frozen=True)
class Checked:
    """A scenario without mistakes."""

    file: Path
    settings: tuple[str, ...]
    """`--set` and its values."""
    repetitions: int
    """Of all cells together."""


@contextmanager
def checked(
    scenario: Scenario,
    sweep: Mapping[str, Sequence[Any]] | None,
    settings: Mapping[str, Any],
    repeat: int | None,
) -> Generator[Checked]:
    """The scenario's file, as long as the context lasts. `repeat` is only counted with.

    Raises:
        ScenarioError: with every mistake.
    """
    flags = tuple(word for name, it in settings.items() for word in ("--set", f"{name}={_toml.value(it, name)}"))
    if isinstance(scenario, Mapping):
        whole = _with_sweep(scenario, sweep)
        # A run is called after its file, and this one is to be gone.
        named = {"name": "scenario", **whole}
        with _written(Path(), _toml.dumps(named)) as file:
            yield _check(file, "scenario", flags, repeat)
        return
    path = Path(scenario)
    first = _check(path, str(path), flags, repeat)
    if not sweep:
        yield first
        return
    text = path.read_text(encoding="utf-8")
    table = tomllib.loads(text)
    # Lines keep their numbers where the sweep can stand behind them.
    text = _toml.dumps(_with_sweep(table, sweep)) if "sweep" in table else text + "\n" + _toml.dumps({"sweep": sweep})
    if "name" not in table:
        flags += ("--set", f"name={_toml.value(path.stem, 'name')}")
    with _written(path.parent, text) as file:
        yield _check(file, str(path), flags, repeat)


def listed(values: Sequence[Any]) -> Sequence[Any]:
    """The words of an argument that takes several: of one alone, that one and not its letters."""
    return [values] if isinstance(values, str) else values


def _with_sweep(scenario: Mapping[str, Any], sweep: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    if not sweep:
        return dict(scenario)
    return {**scenario, "sweep": {**scenario.get("sweep", {}), **sweep}}


@contextmanager
def _written(folder: Path, text: str) -> Generator[Path]:
    """A file with `text` in `folder`: what a scenario names is looked for beside it."""
    try:
        number, name = tempfile.mkstemp(prefix=".talkpath-", suffix=".toml", dir=folder)
    except OSError as why:
        raise UsageError(f"{folder.absolute()}: the scenario is written there for the program: {why.strerror}") from why
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink()


def _check(file: Path, shown: str, flags: tuple[str, ...], repeat: int | None) -> Checked:
    counted = () if repeat is None else ("--set", f"repeat={repeat}")
    ended = ask(["check", str(file), "--json", *flags, *counted])
    if ended.exit_code not in (0, 2) or not ended.out:
        raise UsageError(ended.err.replace(str(file), shown))
    found = cast("dict[str, Any]", json.loads(ended.out))
    if not found["valid"]:
        # A mistake may be in a file of the path, which the scenario names.
        mistakes = tuple(Mistake(**{**it, "file": it["file"].replace(str(file), shown)}) for it in found["mistakes"])
        raise ScenarioError(ended.err.replace(str(file), shown), mistakes)
    return Checked(file, flags, found["repetitions"])
