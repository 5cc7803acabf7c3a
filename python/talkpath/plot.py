"""Figures as the report has them, by matplotlib: the same colours, dashes, definitions and axes.

matplotlib because it draws in notebooks, in scripts and into files for papers without a browser, comes with
Debian, and has kept its interface for fifteen years.
"""

# matplotlib's own types leave its keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _scale, _select
from ._errors import UsageError
from ._run import UNITS, needed, polars
from .looks import ACCENT, BAD, INK, LINE, SOFT, Look, look

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from ._run import Run

Where = Mapping[str, Any]

# More lines than this in one panel cannot be followed; the report's bound.
_MAX_LINES = 8
# Shares at which a line of a distribution carries its marker: p50, p90 and p99 of what was sent.
_MARKED = (0.5, 0.1, 0.01)


class Plots:
    """The figures of a run. Each gives matplotlib's axes; `ax=` draws into axes that are there.

    `flow` is the flow that is compared unless given. `where` chooses cells by swept keys, as columns, keys or
    their last words: `{"loss": 0.01}`.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def ccdf(
        self,
        *,
        flow: str | None = None,
        where: Where | None = None,
        repetition: int = 0,
        ax: Axes | None = None,
    ) -> Axes:
        """How many messages came later than x, or never: the distribution of delay with its tail."""
        ax = _axes(ax)
        trips = _select.trips(self._run, _select.flow(self._run, flow), where or {}, repetition)
        lines = [(label, drawn, _later(of_cell)) for label, drawn, of_cell in self._lines(trips, flow)]
        lines = [line for line in lines if line[2]]
        fastest = min((points[0][0] for _, _, points in lines), default=math.inf)
        slowest = max((points[-1][0] for _, _, points in lines), default=-math.inf)
        left, right = _fit(ax, "x", (fastest, slowest), ticks=9)
        lowest = min((share for _, _, points in lines for _, share in points if share > 0.0), default=0.1)
        _fit(ax, "y", (min(lowest, 0.1), 1.0), _scale.tail, ticks=5)
        for label, drawn, points in lines:
            # What is missing stays as a floor, to the right edge.
            corners = [(left, 1.0), (points[0][0], 1.0), *points, (right, points[-1][1])]
            ax.step([it[0] for it in corners], [it[1] for it in corners], where="post", label=label, **_line(drawn))
            marked = [next((point for point in points if point[1] <= share), None) for share in _MARKED]
            marked = [point for point in marked if point is not None and point[1] > 0.0]
            ax.plot([it[0] for it in marked], [it[1] for it in marked], linestyle="none", **_mark(drawn))
        is_round = "round_trip" in trips.columns and bool(trips["round_trip"].any())
        ax.set_xlabel(f"{'round trip' if is_round else 'one-way'} delay, ms")
        ax.set_ylabel("share of messages later than that")
        ax.yaxis.set_major_formatter(lambda share, _: f"{share * 100:g} %")
        return _finish(ax)

    def delay(
        self,
        *,
        flow: str | None = None,
        where: Where | None = None,
        repetition: int = 0,
        ax: Axes | None = None,
    ) -> Axes:
        """The delay of each message over the time at which it was due."""
        ax = _axes(ax)
        trips = _select.trips(self._run, _select.flow(self._run, flow), where or {}, repetition)
        lines = self._lines(trips, flow)
        shown = polars().concat([of_cell for _, _, of_cell in lines])
        _fit(ax, "x", (0.0, _extent(shown["due_ns"])[1] / 1e9), _scale.linear)
        _fit(ax, "y", _extent(shown["delay_ms"]), ticks=4)
        for label, drawn, of_cell in lines:
            came = of_cell.drop_nulls("delay_ms")
            style: dict[str, Any] = {**_line(drawn), "linewidth": 1.0}
            ax.plot(came["due_ns"] / 1e9, came["delay_ms"], label=label, **style)
        ax.set_xlabel("time, s")
        ax.set_ylabel("delay, ms")
        return _finish(ax)

    def series(
        self,
        kind: str,
        entity: str | None = None,
        *,
        where: Where | None = None,
        repetition: int = 0,
        ax: Axes | None = None,
    ) -> Axes:
        """A value over time: `queue_delay` of a link, `cwnd` or `send_buffer` of a flow."""
        ax = _axes(ax)
        pl = polars()
        if kind not in UNITS:
            raise UsageError(f"{kind}: no kind of series; there are {', '.join(UNITS)}")
        rows = _select.where(self._run, self._run.series, where or {})
        rows = rows.filter(pl.col("kind") == kind, pl.col("repetition") == repetition)
        entities = rows["entity"].unique(maintain_order=True).to_list()
        if not entities:
            raise UsageError(f"{kind}: this run has no such series")
        entity = entities[0] if entity is None else entity
        if entity not in entities:
            raise UsageError(f"{entity}: no {kind} of it; there is one of {', '.join(entities)}")
        rows = rows.filter(pl.col("entity") == entity)
        lines = self._lines(rows, None)
        shown = pl.concat([of_cell for _, _, of_cell in lines])
        _fit(ax, "x", (0.0, _extent(shown["time_ns"])[1] / 1e9), _scale.linear)
        _fit(ax, "y", (0.0, _extent(shown["value"])[1]))
        for label, drawn, of_cell in lines:
            ax.step(of_cell["time_ns"] / 1e9, of_cell["value"], where="post", label=label, **_line(drawn))
        ax.set_xlabel("time, s")
        ax.set_ylabel(f"{kind} of {entity}, {UNITS[kind]}")
        return _finish(ax)

    def sweep(
        self,
        x: str,
        value: str = "call.mos",
        *,
        flow: str | None = None,
        where: Where | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """A figure of each transport over one swept key: its mean, and the mean's 95 % interval as a band. A ring
        marks calls that gaps bar although their score is usable. Words and flags stand beside each other in the order
        of the cells."""
        ax = _axes(ax)
        pl = polars()
        run, name = self._run, _select.flow(self._run, flow)
        column, rows = _select.along(run, _select.figures(run, name, value, where or {}), x)
        _select.only(run, rows, [column, *_select.transport_columns(run, name)])
        values, is_numeric = _select.values(rows, column), _select.is_numeric(rows, column)
        places = {it: float(it) if is_numeric else float(rank) for rank, it in enumerate(values)}
        # Everything that is drawn of the figure, in the unit of its title.
        drawn_columns = ["mean", "mean_ci95_low", "mean_ci95_high"]
        rows = rows.with_columns(pl.col(drawn_columns) * _select.factor(value))
        barred: list[tuple[float, float]] = []
        barred_cells = pl.col("cell").is_in(_select.barred(run, name, value))
        for transport, variant, label in _select.transports(run, rows, name):
            drawn = look(transport, variant)
            of_one = _select.of_transport(run, rows, name, label)
            at = pl.Series("place", [places[it] for it in of_one[column]], dtype=pl.Float64)
            of_one = of_one.with_columns(at).sort("place")
            at, mean, low, high = (of_one[it] for it in ("place", *drawn_columns))
            ax.plot(at, mean, label=label, **(_line(drawn) | _mark(drawn)))
            ax.fill_between(at, low, high, color=drawn.colour, alpha=0.16, linewidth=0)
            barred.extend(of_one.filter(barred_cells).select("place", "mean").rows())
        if barred:
            ring: dict[str, Any] = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "markeredgecolor": BAD}
            ax.plot(*zip(*barred, strict=True), linestyle="none", label="barred by gaps", **ring)
        floor = _select.floor(run, name, value)
        if floor is not None:
            floor *= _select.factor(value)
            ax.axhline(floor, color=SOFT, linestyle=(0, (2, 4)), linewidth=1, label=f"usable from {floor:g}")
        self._swept_axes(ax, value, rows, (column, places))
        ax.set_ylabel(_select.title_of(run, name, value))
        return _finish(ax)

    def _swept_axes(self, ax: Axes, value: str, rows: pl.DataFrame, swept: tuple[str, Mapping[Any, float]]) -> None:
        """The axes of a sweep: a tick at each swept value, and the scale that the report has for the figure."""
        column, places = swept
        at = list(places.values())
        is_log = _select.is_numeric(rows, column) and _scale.is_swept_log(at)
        ax.set_xscale("log" if is_log else "linear")
        ax.set_xticks(at, _scale.with_room(at, [_select.written(column, it) for it in places], is_log))
        ax.set_xticks([], minor=True)
        ends = _select.JUDGED[value].ends if value in _select.JUDGED else None
        if ends is None:
            pl = polars()
            shown = [pl.coalesce(f"mean_ci95_{end}", "mean").alias(end) for end in ("low", "high")]
            low, high = (_extent(it) for it in rows.select(shown).get_columns())
            _fit(ax, "y", (min(low[0], 0.0), high[1]))
        else:
            _fit(ax, "y", (ends[0] * _select.factor(value), ends[1] * _select.factor(value)), _scale.linear)
        ax.set_xlabel(_select.title(column))

    def heatmap(
        self,
        x: str,
        y: str,
        value: str = "call.mos",
        *,
        flow: str | None = None,
        transport: str | None = None,
        where: Where | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """A figure over two swept keys: that of the best transport, or of `transport`. Each cell says its value;
        in brackets it is below what is usable, or gaps bar it.

        `x` and `y` are columns, keys or their last words; `rtt` is the path's round trip without a queue, from
        the delays of both directions.
        """
        run, name = self._run, _select.flow(self._run, flow)
        rows = _select.figures(run, name, value, where or {})
        column, rows = _select.along(run, rows, x)
        row, rows = _select.along(run, rows, y)
        if column == row:
            raise UsageError(f"{x} and {y} are the same column, {column}")
        names = _select.transports(run, rows, name)
        if transport is not None:
            rows = _select.of_transport(run, rows, name, transport)
        elif len(names) > 1 and value not in _select.JUDGED:
            raise UsageError(f"{value}: nothing says which is better; choose a transport with transport=")
        _select.only(run, rows, [column, row, *_select.transport_columns(run, name)])
        pl = polars()
        # As the answer ranks: what is usable first, then by the mean.
        floor = _select.floor(run, name, value)
        reaches = pl.lit(True) if floor is None else pl.col("mean") >= floor
        is_usable = reaches & pl.col("cell").is_in(_select.barred(run, name, value)).not_()
        ranked = rows.with_columns(usable=is_usable).sort("usable", "mean", descending=True, nulls_last=True)
        best = ranked.group_by(column, row, maintain_order=True).first().select(column, row, "mean", "usable")
        ax = _axes(ax)
        axes = {it: _select.values(rows, it) for it in (column, row)}
        is_program = name == _select.PROGRAM
        less_is_better = is_program and _select.program_figures(run)[value]["less_is_better"]
        self._cells(ax, best, axes, value, less_is_better=less_is_better)
        which = transport or ("the best transport" if len(names) > 1 else names[0][2])
        of_what = "the program" if is_program else f"{name}, {which}"
        ax.set_title(f"{_select.title_of(run, name, value)} of {of_what}", loc="left", fontsize="medium")
        return ax

    def _cells(
        self, ax: Axes, best: pl.DataFrame, axes: Mapping[str, list[Any]], value: str, *, less_is_better: bool = False
    ) -> None:
        """Draws the cells: the better, the stronger the colour. `axes` has the columns across and upwards, with their
        values."""
        rectangle = needed("matplotlib", lambda: __import__("matplotlib.patches").patches.Rectangle)
        names, values = list(axes), list(axes.values())
        ends = _select.JUDGED[value].ends if value in _select.JUDGED else None
        low, high = ends or (0.0, _extent(best["mean"])[1])
        for at_x, at_y, mean, is_usable in best.iter_rows():
            place = (values[0].index(at_x), values[1].index(at_y))
            share = 0.0 if mean is None or high <= low else min(max((mean - low) / (high - low), 0.0), 1.0)
            share = 1.0 - share if less_is_better else share
            # The report's: 5 % of the accent at the scale's lower end, 60 % at its upper one.
            alpha = 0.0 if mean is None else 0.05 + 0.55 * share
            corner = (place[0] - 0.5, place[1] - 0.5)
            ax.add_patch(rectangle(corner, 0.98, 0.96, color=ACCENT, alpha=alpha, linewidth=0))
            text = "–" if mean is None else _select.number(value, mean)
            text = f"({text})" if mean is not None and not is_usable else text
            ax.text(*place, text, ha="center", va="center", color=INK, fontsize="small")
        ax.set_xlim(-0.5, len(values[0]) - 0.5)
        ax.set_ylim(-0.5, len(values[1]) - 0.5)
        ax.set_xticks(range(len(values[0])), [_select.written(names[0], it) for it in values[0]])
        ax.set_yticks(range(len(values[1])), [_select.written(names[1], it) for it in values[1]])
        ax.set_xlabel(_select.title(names[0]))
        ax.set_ylabel(_select.title(names[1]))
        ax.tick_params(length=0, colors=SOFT)
        for spine in ax.spines.values():
            spine.set_visible(False)

    def _lines(self, rows: pl.DataFrame, flow: str | None) -> list[tuple[str, Look, pl.DataFrame]]:
        """Label, look and rows of each cell, at most `_MAX_LINES`."""
        name = _select.flow(self._run, flow)
        variants: dict[str, int] = {}
        lines: list[tuple[str, Look, pl.DataFrame]] = []
        cells = rows.partition_by("cell", maintain_order=True)
        varied = [it for it in self._run.swept if rows[it].n_unique() > 1]
        for of_cell in cells[:_MAX_LINES]:
            transport, label = _select.label(self._run, int(of_cell["cell"][0]), name, varied)
            variant = variants.get(transport, 0)
            variants[transport] = variant + 1
            lines.append((label, look(transport, variant), of_cell))
        if not lines:
            raise UsageError("nothing to draw: no cell is left")
        if len(cells) > _MAX_LINES:
            label, drawn, of_cell = lines[-1]
            lines[-1] = (f"{label} ({len(cells) - _MAX_LINES} more: where=)", drawn, of_cell)
        return lines


def _later(of_cell: pl.DataFrame) -> list[tuple[float, float]]:
    """Delays in ascending order, each with the share of what was sent and has ended that came later, or never."""
    decided = of_cell.filter(polars().col("fate") != "unfinished").height
    delays = of_cell["delay_ms"].drop_nulls().sort()
    return [(delay, (decided - rank) / decided) for rank, delay in enumerate(delays, start=1)]


def _extent(values: pl.Series) -> tuple[float, float]:
    """The smallest and the largest of the values; infinity and -infinity without any."""
    low, high = cast("tuple[float | None, float | None]", (values.min(), values.max()))
    return (math.inf if low is None else float(low), -math.inf if high is None else float(high))


def _fit(
    ax: Axes,
    side: Literal["x", "y"],
    extent: tuple[float, float],
    rule: Callable[[float, float], _scale.Scale] = _scale.fitting,
    *,
    ticks: int = 5,
) -> tuple[float, float]:
    """Gives an axis the report's scale for values of this extent, and its ends. If it is logarithmic it has about
    `ticks` round labels."""
    of_axis: Any = ax
    if not getattr(of_axis, f"get_autoscale{side}_on")():
        # What an earlier call has drawn into these axes stays in sight.
        ends = getattr(of_axis, f"get_{side}lim")()
        extent = (min(extent[0], *ends), max(extent[1], *ends))
    scale = rule(*extent)
    getattr(of_axis, f"set_{side}scale")("log" if scale.is_log else "linear")
    if scale.is_log:
        round_values = _scale.log_ticks(scale.low, scale.high, ticks)
        getattr(of_axis, f"set_{side}ticks")(round_values, [f"{it:g}" for it in round_values])
        getattr(of_axis, f"set_{side}ticks")([], minor=True)
    getattr(of_axis, f"set_{side}lim")(scale.low, scale.high)
    return scale.low, scale.high


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    pyplot = needed("matplotlib", lambda: __import__("matplotlib.pyplot").pyplot)
    return pyplot.subplots(figsize=(7.6, 4.2), layout="constrained")[1]


def _finish(ax: Axes) -> Axes:
    """The report's grid, and a legend above the panel."""
    ax.grid(color=LINE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=SOFT, length=0)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(SOFT)
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        # As many beside each other as fit: about 80 characters stand in a row, and a sample is as wide as six.
        columns = max(1, 80 // (max(len(it) for it in labels) + 6))
        ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False)
    return ax


def _line(drawn: Look) -> dict[str, Any]:
    # SVG's dashes are in pixels, matplotlib's in widths of a line that is two pixels wide.
    dashes = [] if drawn.dash == "none" else [float(length) / 2 for length in drawn.dash.split()]
    return {"color": drawn.colour, "linewidth": 1.5, "linestyle": (0, tuple(dashes)) if dashes else "-"}


def _mark(drawn: Look) -> dict[str, Any]:
    return {"color": drawn.colour, "marker": drawn.marker, "markersize": 6, "markeredgecolor": "white"}
