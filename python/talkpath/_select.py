"""What a plot shows: flows, cells, columns, and how they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._errors import UsageError
from ._run import polars
from .looks import look

if TYPE_CHECKING:
    import polars as pl

    from ._run import Run

JUDGED = {"call.mos": "MOS", "in_time": "share in time", "goodput_bps": "goodput, Mb/s"}
"""The figures by which transports are ranked, the larger the better, and their titles."""

RTT = "rtt_s"
"""The column of the path's round trip without a queue."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNIT = re.compile(r"_(s|bps|bytes|packets|hz)$")


def flow(run: Run, name: str | None) -> str:
    """The flow that is named; else the one that is compared, else the first."""
    names = run.repetitions["flow"].unique(maintain_order=True).to_list()
    if name is None:
        return run.answers[0].flow if run.answers else names[0]
    if name not in names:
        raise UsageError(f"{name}: this run has no such flow; there are {', '.join(names)}")
    return name


def column(run: Run, name: str) -> str:
    """The column of a swept key: by its name, by the key, or by the key's last words."""
    slug = re.sub(r"[^a-z0-9]", "_", name.lower())
    exact = [it for it in run.swept if slug in (it, _UNIT.sub("", it))]
    ending = [it for it in run.swept if _UNIT.sub("", it).endswith(f"_{slug}")]
    found = exact or ending
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name}: it may be {' or '.join(found)}")
    raise UsageError(f"{name}: no swept key; there are {', '.join(run.swept) or 'none'}")


def where(run: Run, frame: pl.DataFrame, chosen: Mapping[str, Any]) -> pl.DataFrame:
    """The rows whose swept keys have these values."""
    pl = polars()
    for name, value in chosen.items():
        at = column(run, name)
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        near = (pl.col(at) - value).abs() <= 1e-9 * max(1.0, abs(value)) if is_number else pl.col(at) == value
        kept = frame.filter(near)
        if kept.is_empty():
            values = ", ".join(str(it) for it in frame[at].unique().sort().to_list())
            raise UsageError(f"{name} = {value!r}: no such cell; {at} is {values}")
        frame = kept
    return frame


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
    """The column of an axis, and the rows with it; `rtt` is made from the delays of the path."""
    if name not in ("rtt", RTT):
        return column(run, name), rows
    whole = _delay(run, "up") + _delay(run, "down")
    # To the nanosecond that the scenario has: sums of decimal fractions differ in their last digits.
    return RTT, rows.with_columns(whole.round(9).alias(RTT))


def _delay(run: Run, direction: str) -> pl.Expr:
    """The one-way delay of a direction in seconds: swept, or the scenario's."""
    pl = polars()
    swept = f"path_{direction}_delay_s"
    if swept in run.swept:
        return pl.col(swept)
    delay = run.scenario.get("path", {}).get(direction, {}).get("delay")
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zµ]+)\s*", delay) if isinstance(delay, str) else None
    if found is None or found[2] not in _SECONDS:
        raise UsageError("rtt: the path has no delays of its own; name the key that is swept")
    return pl.lit(float(found[1]) * _SECONDS[found[2]])


def only(run: Run, rows: pl.DataFrame, axes: Sequence[str]) -> None:
    """Raises UsageError if a further swept key has several values: one figure can show one of them."""
    # What a shown column is made of, and what changes with it, is no choice that is left open.
    shown = [it for it in axes if it in rows.columns]
    if rows.select(shown).is_duplicated().any():
        made_of = {"path_up_delay_s", "path_down_delay_s"} if RTT in shown else set[str]()
        others = [it for it in run.swept if it not in shown and it not in made_of and rows[it].n_unique() > 1]
        raise UsageError(f"{', '.join(others)} has several values: choose one with where=")


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
    columns = run.repetitions.columns
    if by is None or "floor" not in columns or (value == "in_time" and "call_mos" in columns):
        return None
    floors = run.repetitions.filter(polars().col("flow") == name)["floor"].drop_nulls()
    return None if floors.is_empty() else float(floors[0])


def title(name: str) -> str:
    """The title of an axis."""
    unit = _unit(name)
    what = "round trip without a queue" if name == RTT else _key(name)
    return f"{what},{unit}" if unit else what


def written(name: str, value: Any) -> str:
    """A value of a swept column, in the unit of `title`."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return str(value)
    if name.endswith("_s"):
        return f"{value * 1e3:g}"
    if name.endswith("_bps"):
        return f"{value / 1e6:g}"
    if name.endswith("_loss") or name.endswith("_loss_rate"):
        return f"{value * 100:g} %"
    return f"{value:g}"


def figure_title(value: str) -> str:
    """The title of a figure."""
    return JUDGED.get(value, value)


def number(value: str, mean: float) -> str:
    """A figure as the report writes it."""
    if value == "goodput_bps":
        return f"{mean / 1e6:.3g}"
    return f"{mean:.2f}" if value in JUDGED else f"{mean:.3g}"


def floor_log10(share: float) -> int:
    """The power of ten at or below a share."""
    return math.floor(math.log10(share))


def _key(name: str) -> str:
    """A column's last words: `path_up_delay_s` is `up delay`."""
    return _UNIT.sub("", name).removeprefix("path_").replace("_", " ")


def _unit(name: str) -> str:
    """The unit in which `written` writes a column's values, behind a space; empty if they say it themselves."""
    units = {"_s": " ms", "_bps": " Mb/s", "_bytes": " B", "_packets": " packets", "_hz": " Hz"}
    return next((unit for ending, unit in units.items() if name.endswith(ending)), "")


def _quantity(text: str) -> float:
    """A duration of a resolved scenario, in seconds."""
    amount, unit = text.split()
    return float(amount) * _SECONDS[unit]
