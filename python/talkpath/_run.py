"""A run directory: its answers, and its tables as Polars frames.

The tables are those of `talkpath export`, with the same names: a column says its unit (`path_up_rate_bps`,
`due_ns`, `round_trip_delay_ms_p50`), and swept keys are columns in SI units.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ._errors import UsageError, error_of
from ._program import ask

if TYPE_CHECKING:
    import polars as pl

    from .plot import Plots

Table = Literal["messages", "series", "repetitions", "cells", "links", "program"]

UNITS = {
    "cwnd": "packets",
    "ssthresh": "packets",
    "srtt": "ms",
    "rto": "ms",
    "queue": "packets",
    "queue_delay": "ms",
    "send_buffer": "bytes",
    "pacing_rate": "bit/s",
    "bottleneck_rate": "bit/s",
    "pto": "ms",
    "bytes_in_flight": "bytes",
    "lost_packets": "packets",
}
"""The unit of each kind of line in series.parquet."""


@dataclass(frozen=True)
class Answer:
    """Which transport is best for one flow, at one combination of the other swept keys."""

    flow: str
    sweep: dict[str, Any]
    """The other swept keys and their values."""
    cells: list[int]
    best: list[str]
    """More than one if they are alike or undecided."""
    outcome: Literal["distinct", "alike", "undecided", "unusable", "depends-on-receiver"]
    line: str
    why: str | None
    neighbours: str | None
    """What the flows beside it got."""
    more: int | None
    """About how many more repetitions would decide."""
    cure: dict[str, Any] | None

    def __str__(self) -> str:
        told = (self.line, self.why, self.neighbours)
        return "\n".join(line for line in told if line)


class Run:
    """What a run left behind. Nothing is read before it is used."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = Path(directory)
        if not (self.path / "summary.json").is_file():
            raise UsageError(f"{self.path}: not a run directory: it has no summary.json")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json."""
        with (self.path / "summary.json").open(encoding="utf-8") as file:
            return json.load(file)

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The scenario with every default written out."""
        with (self.path / "scenario.toml").open("rb") as file:
            return tomllib.load(file)

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.summary["name"]

    @property
    def arena(self) -> str:
        """`sim`, `emu` or `live`."""
        return self.summary["arena"]

    @property
    def valid(self) -> bool:
        """False if repetitions are missing, or the machine disturbed more than half of a cell's past a stated limit."""
        return self.summary["valid"]

    @property
    def complete(self) -> bool:
        """False if it was interrupted: `talkpath.resume` goes on with it."""
        return not (self.path / "parts").exists()

    @property
    def warnings(self) -> list[str]:
        """What may bend the figures."""
        return self.summary["warnings"]

    @cached_property
    def answers(self) -> list[Answer]:
        """One for each flow whose transport is swept and each combination of the other swept keys."""
        found = cast("list[dict[str, Any]]", self.summary["comparisons"])
        names = Answer.__dataclass_fields__
        return [
            Answer(
                flow=it["flow"],
                sweep=it["sweep"],
                cells=it["cells"],
                **{name: field for name, field in it["answer"].items() if name in names},
            )
            for it in found
        ]

    @property
    def report(self) -> Path:
        """The page with every figure."""
        return self.path / "report.html"

    @cached_property
    def messages(self) -> pl.DataFrame:
        """A row for each message on each leg.

        Of a simulated run without them they are made again; any other needs `records="all"`.
        """
        return self._table("messages")

    @cached_property
    def repetitions(self) -> pl.DataFrame:
        """A row for each flow in each repetition; each single figure is a column."""
        return self._table("repetitions")

    @cached_property
    def cells(self) -> pl.DataFrame:
        """A row for each figure of each flow in each cell: median, mean and the mean's 95 % interval.

        The figures of a scenario's program are those of the flow `program`.
        """
        return self._table("cells")

    @cached_property
    def links(self) -> pl.DataFrame:
        """A row for each link in each repetition."""
        return self._table("links")

    @cached_property
    def program(self) -> pl.DataFrame:
        """A row for each repetition of a scenario's program: why it failed, how long it ran, and its figures.

        A run without `program` has none: UsageError.
        """
        return self._table("program")

    @cached_property
    def series(self) -> pl.DataFrame:
        """A row for each change of a value, with its unit and the swept keys.

        Of a simulated run without them they are made again; any other needs `records="summary"` or `"all"`.
        """
        pl = polars()
        path = self.path / "series.parquet"
        lines = pl.read_parquet(path) if path.is_file() else self._table("series").select(*_POINT)
        lines = lines.with_columns(unit=pl.col("kind").replace_strict(UNITS, default=None))
        swept = self.cells.select("cell", *self.swept).unique("cell")
        return lines.join(swept, on="cell", how="left", maintain_order="left")

    @cached_property
    def swept(self) -> list[str]:
        """The columns of the swept keys, in every frame."""
        columns = self.cells.columns
        return columns[1 : columns.index("repetitions")]

    @property
    def plot(self) -> Plots:
        """Figures as the report has them."""
        from .plot import Plots

        return Plots(self)

    def export(self, table: Table, file: str | os.PathLike[str]) -> Path:
        """Writes a table as Parquet, row group by row group: what is too large for a frame can be scanned."""
        path = Path(file)
        ended = ask(["export", str(self.path), "--table", table, "--format", "parquet", "--output", str(path)])
        if ended.exit_code:
            raise error_of(ended.exit_code, ended.err, self)
        return path

    def _table(self, table: Table) -> pl.DataFrame:
        pl = polars()
        with tempfile.TemporaryDirectory(prefix="talkpath-") as folder:
            return pl.read_parquet(self.export(table, Path(folder) / "table.parquet"), memory_map=False)

    def __repr__(self) -> str:
        state = "" if self.complete else ", interrupted"
        cells = len(self.summary["cells"])
        return f"<talkpath run {str(self.path)!r}: {self.name!r}, {self.arena}, {cells} cells{state}>"

    def __str__(self) -> str:
        return "\n\n".join([repr(self), *self._told()])

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(text).replace(chr(10), '<br>')}</p>" for text in self._told())
        return f"<p><b>{escape(self.name)}</b> ({self.arena}), {escape(str(self.path))}</p>{told}"

    def _told(self) -> list[str]:
        """The first answers, each under the combination that it is for."""
        told = [
            "\n".join([*(f"{key} = {value}" for key, value in it.sweep.items()), str(it)])
            for it in self.answers[:_MAX_TOLD]
        ]
        rest = len(self.answers) - len(told)
        return [*told, f"{rest} more: .answers"] if rest > 0 else told


def polars() -> Any:
    """Polars, which only frames and plots need."""
    return needed("polars", lambda: __import__("polars"))


def needed(name: str, load: Callable[[], Any]) -> Any:
    """A package that only some of this needs."""
    try:
        return load()
    except ImportError as why:
        raise ImportError(f"this needs {name}: pip install 'talkpath[notebook]'") from why


# The columns of series.parquet.
_POINT = ("cell", "repetition", "entity", "kind", "time_ns", "value")

# Answers that are printed; chosen: more are a table, which `.answers` makes better.
_MAX_TOLD = 4
