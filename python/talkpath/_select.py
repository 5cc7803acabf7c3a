"""What a plot shows: flows, cells, columns, and how they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ._errors import UsageError
from ._run import polars
from .looks import look

if TYPE_CHECKING:
    import polars as pl

    from ._run import Run


class Judged(NamedTuple):
    """How a figure is written and drawn by which transports are ranked, the larger the better."""

    title: str
    factor: float
    """From the figure to what is written."""
    decimals: int
    ends: tuple[float, float] | None
    """Of its scale, in the figure's own unit; None if that goes from zero to the largest that came out."""


@cache
def _rows() -> dict[str, dict[str, Any]]:
    """The program's own list of figures."""
    text = files("talkpath").joinpath("figures.json").read_text(encoding="utf-8")
    return cast("dict[str, dict[str, Any]]", json.loads(text))


def _judged(row: dict[str, Any]) -> Judged:
    ends = row["ends"]
    return Judged(row["title"], row["factor"], row["decimals"], None if ends is None else (ends[0], ends[1]))


JUDGED = {path: _judged(row["judged"]) for path, row in _rows().items() if "judged" in row}
"""The figures by which transports are ranked; the report writes and draws them so."""

PROGRAM = "program"
"""The name of a scenario's program among the flows of the frame of cells."""

RTT = "rtt_s"
"""The column of the path's round trip without a queue."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNIT = re.compile(r"_(s|bps|bytes|packets|hz)$")


def flow(run: Run, name: str | None) -> str:
    """The flow that is named; else the one that is compared, else the program, else the first."""
    names = run.repetitions["flow"].unique(maintain_order=True).to_list()
    names = [PROGRAM, *names] if program_figures(run) else names
    if name is None and not (run.answers or names):
        raise UsageError("this run has no flow")
    if name is None:
        return run.answers[0].flow if run.answers else names[0]
    if name not in names:
        raise UsageError(f"{name}: this run has no such flow; there are {', '.join(names)}")
    return name


def program_figures(run: Run) -> dict[str, Any]:
    """The figures of the scenario's program, by their names: their units, and whether less is better."""
    found = run.summary.get(PROGRAM)
    return {} if found is None else cast("dict[str, Any]", found["figures"])


def column(run: Run, name: str) -> str:
    """The column of a swept key: by its name, by the key, or by the key's last words."""
    slug = re.sub(r"[^a-z0-9]", "_", name.lower())
    exact = [it for it in run.swept if it == slug]
    of_key = [it for it in run.swept if _UNIT.sub("", it) == slug]
    ending = [it for it in run.swept if _UNIT.sub("", it).endswith(f"_{slug}")]
    found = exact or of_key or ending
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name}: it may be {' or '.join(found)}")
    raise UsageError(f"{name}: no swept key; there are {', '.join(run.swept) or 'none'}")


def where(run: Run, frame: pl.DataFrame, chosen: Mapping[str, Any]) -> pl.DataFrame:
    """The rows whose swept keys have these values."""
    for name, value in chosen.items():
        at = column(run, name)
        kept = frame.filter(_has(frame, at, value))
        if kept.is_empty():
            values = ", ".join(str(it) for it in frame[at].unique().sort().to_list())
            raise UsageError(f"{name} = {value!r}: no such cell; {at} is {values}")
        frame = kept
    return frame


def _has(frame: pl.DataFrame, at: str, value: Any) -> pl.Expr:
    """Whether a column has the value. A column of words may hold numbers too: a number is looked for as a number in
    both, and whatever else is not of the column's kind as text."""
    pl = polars()
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    if is_number and frame.schema[at] != pl.Boolean:
        return (pl.col(at).cast(pl.Float64, strict=False) - value).abs() <= 1e-9 * abs(value)
    return pl.col(at).cast(pl.String) == _word(value)


def figures(run: Run, name: str, value: str, chosen: Mapping[str, Any]) -> pl.DataFrame:
    """The cells' rows of one figure of one flow."""
    pl = polars()
    of_flow = run.cells.filter(pl.col("flow") == name)
    rows = of_flow.filter(pl.col("figure") == value)
    if rows.is_empty():
        known = ", ".join(of_flow["figure"].unique().sort().to_list())
        raise UsageError(f"{value}: {name} has no such figure; there are {known}")
    return where(run, rows, chosen)


def along(run: Run, rows: pl.DataFrame, name: str) -> tuple[str, pl.DataFrame]:
    """The column of an axis, and the rows that have a value of it; `rtt` is made from the delays of the path."""
    if name not in ("rtt", RTT):
        at = column(run, name)
        rows = rows.drop_nulls(at)
        if rows.is_empty():
            raise UsageError(f"{name}: no cell that is left sets {at}")
        return at, rows
    whole = _delay(run, "up") + _delay(run, "down")
    # To the nanosecond that the scenario has: sums of decimal fractions differ in their last digits.
    return RTT, rows.with_columns(whole.round(9).alias(RTT))


def _delays(run: Run, *directions: str) -> list[str]:
    """The swept columns with a one-way delay: those of the directions, and that of `path.*.delay`."""
    own = [f"path_{direction}_delay_s" for direction in directions]
    return [it for it in (*own, "path___delay_s") if it in run.swept]


def _delay(run: Run, direction: str) -> pl.Expr:
    """The one-way delay of a direction in seconds: swept, else the scenario's."""
    pl = polars()
    known = [pl.col(it) for it in _delays(run, direction)]
    # Whoever sweeps paths has the delays of each, and not the scenario's.
    delay = None if "path" in run.swept else run.scenario.get("path", {}).get(direction, {}).get("delay")
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zµ]+)\s*", delay) if isinstance(delay, str) else None
    if found is not None and found[2] in _SECONDS:
        known.append(pl.lit(float(found[1]) * _SECONDS[found[2]]))
    if not known:
        raise UsageError("rtt: the path has no delays of its own; name the key that is swept")
    return pl.coalesce(known)


def only(run: Run, rows: pl.DataFrame, axes: Sequence[str]) -> None:
    """Raises UsageError if a further swept key has several values: one figure can show one of them."""
    # What a shown column is made of, and what changes with it, is no choice that is left open.
    shown = [it for it in dict.fromkeys(axes) if it in rows.columns]
    if rows.select(shown).is_duplicated().any():
        made_of = _delays(run, "up", "down") if RTT in shown else list[str]()
        others = [it for it in run.swept if it not in shown and it not in made_of and rows[it].n_unique() > 1]
        # Round trips of 10 and 20 ms and of 20 and 10 ms are the same.
        raise UsageError(f"{', '.join(others or made_of)} has several values: choose one with where=")


def transport_columns(run: Run, name: str) -> list[str]:
    """The swept columns of the flow's transport."""
    slug = re.sub(r"[^a-z0-9]", "_", name.lower())
    return [it for it in run.swept if re.match(rf"flow_{slug}_transport(_|$)", it)]


def transports(run: Run, rows: pl.DataFrame, name: str) -> list[tuple[str, int, str]]:
    """Each transport of the flow: its kind, which of that kind it is, and its name for people."""
    found: list[tuple[str, int, str]] = []
    variants: dict[str, int] = {}
    for cell in rows["cell"].unique().sort():
        kind, text = _transport(run, int(cell), name)
        if text not in [it[2] for it in found]:
            found.append((kind, variants.get(kind, 0), text))
            variants[kind] = variants.get(kind, 0) + 1
    return found


def of_transport(run: Run, rows: pl.DataFrame, name: str, wanted: str) -> pl.DataFrame:
    """The rows of one transport, by its name for people or its kind."""
    pl = polars()
    named = {int(cell): _transport(run, int(cell), name) for cell in rows["cell"].unique()}
    cells = [cell for cell, names in named.items() if wanted in names]
    if not cells:
        known = ", ".join(dict.fromkeys(kind for kind, _ in named.values()))
        raise UsageError(f"{wanted}: {name} has no such transport; there are {known}")
    return rows.filter(pl.col("cell").is_in(cells))


def label(run: Run, cell: int, name: str, varied: Sequence[str]) -> tuple[str, str]:
    """The transport of the flow in a cell, and the cell's name for people: the transport, and its values of the
    columns that are `varied`."""
    kind, text = _transport(run, cell, name)
    row = run.cells.filter(polars().col("cell") == cell).row(0, named=True)
    own = transport_columns(run, name)
    rest = [f"{_key(it)} {written(it, row[it])}{_unit(it)}" for it in varied if it not in own and row[it] is not None]
    return kind, ", ".join([text, *rest])


def _transport(run: Run, cell: int, name: str) -> tuple[str, str]:
    if name == PROGRAM:
        return PROGRAM, PROGRAM
    pl = polars()
    row = run.repetitions.filter(pl.col("cell") == cell, pl.col("flow") == name).row(0, named=True)
    kind = str(row["transport"])
    control = row.get("cc") if any(it.endswith("_cc") for it in transport_columns(run, name)) else None
    return kind, look(kind).name + (f" {control}" if control else "")


def trips(run: Run, name: str, chosen: Mapping[str, Any], repetition: int) -> pl.DataFrame:
    """Each message of a flow that was due after the warm-up: `delay_ms` one way, or there and back of a flow with
    an echo; null if it never came. What the far host needed between the two is no part of it."""
    pl = polars()
    rows = where(run, run.messages, chosen)
    rows = rows.filter(pl.col("flow") == name, pl.col("repetition") == repetition)
    warm_up = _quantity(run.scenario.get("warm_up", "0 s")) * 1e9
    there = rows.filter(pl.col("leg") == "forward", pl.col("due_ns") >= warm_up)
    back = rows.filter(pl.col("leg") == "return")
    if there.is_empty():
        raise UsageError(f"{name}: repetition {repetition} has no messages of it")
    if back.is_empty():
        clock = cast("dict[str, Any]", run.summary["clock"])
        if not clock["trusted"]:
            raise UsageError(f"one-way delays are not known: {clock['why']}")
        took = pl.col("received_ns") - pl.col("due_ns")
        return there.with_columns(delay_ms=took / 1e6, round_trip=pl.lit(False))
    echo = back.select("cell", "seq", echo_due="due_ns", echo_came="received_ns", echo_fate="fate")
    both = there.join(echo, on=["cell", "seq"], how="left", maintain_order="left")
    whole = pl.col("echo_came") - pl.col("due_ns")
    held = (pl.col("echo_due") - pl.col("received_ns")).clip(lower_bound=0)
    unfinished = (pl.col("fate") == "unfinished") | (pl.col("echo_fate") == "unfinished").fill_null(False)
    return both.with_columns(
        delay_ms=(whole - pl.min_horizontal(held, whole)) / 1e6,
        round_trip=pl.lit(True),
        fate=pl.when(unfinished).then(pl.lit("unfinished")).otherwise(pl.col("fate")),
    )


def floor(run: Run, name: str, value: str) -> float | None:
    """The least that is usable, if the flow is judged by this figure."""
    by = {"call.mos": "call_mos", "in_time": "in_time"}.get(value)
    own = run.repetitions.filter(polars().col("flow") == name)
    # A call has a share in time, too, and is judged by how it sounds.
    is_call = "call_mos" in own.columns and own["call_mos"].count() > 0
    if by is None or "floor" not in own.columns or (value == "in_time" and is_call):
        return None
    floors = own["floor"].drop_nulls()
    return None if floors.is_empty() else float(floors[0])


def barred(run: Run, name: str, value: str) -> list[int]:
    """The cells whose calls gaps bar although their scores would do, in half of the repetitions or more."""
    own = run.repetitions.filter(polars().col("flow") == name)
    if value != "call.mos" or not {"call_mos", "call_usable", "floor"} <= set(own.columns):
        return []
    is_barred = (polars().col("call_mos") >= polars().col("floor")) & polars().col("call_usable").not_()
    shares = own.group_by("cell").agg(is_barred.fill_null(False).mean().alias("barred"))
    return shares.filter(polars().col("barred") >= 0.5)["cell"].to_list()


def values(rows: pl.DataFrame, name: str) -> list[Any]:
    """The values of a swept column: numbers by their size, words and flags in the order of the cells."""
    found = rows.sort("cell")[name].unique(maintain_order=True)
    return (found.sort() if is_numeric(rows, name) else found).to_list()


def is_numeric(rows: pl.DataFrame, name: str) -> bool:
    """Whether a column's values have places of their own on an axis."""
    return rows.schema[name].is_numeric()


def title(name: str) -> str:
    """The title of an axis."""
    unit = _unit(name)
    what = "round trip without a queue" if name == RTT else _key(name)
    return f"{what},{unit}" if unit else what


def written(name: str, value: Any) -> str:
    """A value of a swept column, in the unit of `title`."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return _word(value)
    # Two swept values are never labelled alike; the last digits of a product are not the scenario's.
    if name.endswith("_s"):
        return f"{value * 1e3:.12g}"
    if name.endswith("_bps"):
        return f"{value / 1e6:.12g}"
    if name.endswith("_loss") or name.endswith("_loss_rate"):
        return f"{value * 100:.12g} %"
    return f"{value:.12g}"


class Shown(NamedTuple):
    """How a figure is written: a row of figures.json, which is the program's own list."""

    title: str
    factor: float
    """From the figure to what is written."""
    decimals: int | None
    """None for as many as its size needs."""


@cache
def _listed() -> dict[str, Shown]:
    return {path: Shown(row["title"], row["factor"], row["decimals"]) for path, row in _rows().items()}


def _shown(value: str) -> Shown:
    """How a figure is written; as it is, if the list has none of this name."""
    if value in JUDGED:
        return Shown(JUDGED[value].title, JUDGED[value].factor, JUDGED[value].decimals)
    return _listed().get(value, Shown(value, 1.0, None))


def figure_title(value: str) -> str:
    """The title of a figure."""
    return _shown(value).title


def title_of(run: Run, name: str, value: str) -> str:
    """The title of a figure of a flow or of the program, whose figures have the units that the scenario says."""
    unit = program_figures(run).get(value, {}).get("unit") if name == PROGRAM else None
    return f"{value}, {unit}" if unit else figure_title(value)


def factor(value: str) -> float:
    """From a figure to the unit of `figure_title`."""
    return _shown(value).factor


def number(value: str, mean: float) -> str:
    """A figure as the report writes it, in the unit of `figure_title`."""
    decimals = _shown(value).decimals
    return f"{mean * factor(value):.3g}" if decimals is None else f"{mean * factor(value):.{decimals}f}"


def _word(value: Any) -> str:
    """A value as scenarios write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(name: str) -> str:
    """A column's last words: `path_up_delay_s` is `up delay`, and `path___loss` is `* loss`."""
    every = re.sub(r"^(path|link|flow)___", r"\1_*_", _UNIT.sub("", name))
    return every.removeprefix("path_").replace("_", " ")


def _unit(name: str) -> str:
    """The unit in which `written` writes a column's values, behind a space; empty if they say it themselves."""
    units = {"_s": " ms", "_bps": " Mb/s", "_bytes": " B", "_packets": " packets", "_hz": " Hz"}
    return next((unit for ending, unit in units.items() if name.endswith(ending)), "")


def _quantity(text: str) -> float:
    """A duration of a resolved scenario, in seconds."""
    amount, unit = text.split()
    return float(amount) * _SECONDS[unit]
