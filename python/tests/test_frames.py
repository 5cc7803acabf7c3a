"""Frames and plots, against the built wheel: needs the extra `notebook`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import polars as pl
import pytest

import talkpath
from talkpath import _scale, _select
from talkpath.looks import LOOKS

mpl.use("Agg")

SCENARIO: dict[str, Any] = {
    "name": "a sweep",
    "duration": "3 s",
    "warm_up": "1 s",
    "repeat": 2,
    "path": {"up": {"rate": "1 Mbps", "delay": "20 ms"}, "down": {"rate": "8 Mbps", "delay": "15 ms"}},
    "flow": {
        "call": {"transport": "udp", "workload": {"kind": "voice", "echo": True}},
        "upload": {"transport": "tcp", "workload": {"kind": "bulk"}, "start": "500 ms"},
    },
    "sweep": {
        "flow.call.transport": ["udp", "tcp"],
        "path.up.loss": [0.0, 0.05],
        "path.up.delay": ["10 ms", "40 ms"],
    },
}


PROGRAM: dict[str, Any] = {
    "duration": "9 s",
    "path": {"up": {"rate": "1 Mbps", "delay": "20 ms"}, "down": {"rate": "8 Mbps", "delay": "15 ms"}},
    "program": {
        "command": ["sh", "-c", "echo stalled 3 s"],
        "figures": {"stalls": {"regex": "stalled ([0-9]+) s", "unit": "s", "better": "less"}},
    },
    "sweep": {"path.up.delay": ["10 ms", "40 ms"], "path.up.rate": ["1 Mbps", "2 Mbps"]},
}

Draw = Callable[[talkpath.Run], object]

WRONG: list[tuple[Draw, str]] = [
    (lambda run: run.plot.heatmap("loss", "rate"), "rate: no swept key; there are"),
    (lambda run: run.plot.sweep("loss"), "path_up_delay_s has several values"),
    (lambda run: run.plot.heatmap("loss", "rtt", "loss_rate"), "choose a transport"),
    (lambda run: run.plot.heatmap("loss", "loss"), "the same column"),
    (lambda run: run.plot.heatmap("loss", "rtt", transport="sctp"), "there are udp, tcp"),
    (lambda run: run.plot.ccdf(where={"loss": 0.3}), "path_up_loss is 0.0, 0.05"),
    (lambda run: run.plot.ccdf(where={"transport": 5}), "flow_call_transport is tcp, udp"),
    (lambda run: run.plot.ccdf(where={"delay": "10 ms"}), "path_up_delay_s is 0.01, 0.04"),
    (lambda run: run.plot.ccdf(flow="video"), "there are call, upload"),
    (lambda run: run.plot.series("window"), "no kind of series"),
    (lambda run: run.plot.sweep("loss", "call.moss"), "call.mos"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[talkpath.Run]:
    yield talkpath.run(SCENARIO, out=tmp_path_factory.mktemp("runs"), progress=False)


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[talkpath.Run]:
    """A key of both directions, and one whose values are words."""
    sweep = {"path.*.delay": ["10 ms", "40 ms"], "path.up.queue": ["drop-tail", "codel"]}
    yield talkpath.run(SCENARIO | {"sweep": sweep}, out=tmp_path_factory.mktemp("runs"), progress=False)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


def test_swept_keys_are_typed_columns_in_si_units_in_every_frame(run: talkpath.Run) -> None:
    assert run.swept == ["flow_call_transport", "path_up_delay_s", "path_up_loss"]
    for frame in (run.messages, run.repetitions, run.cells, run.series, run.links):
        assert frame.schema["path_up_delay_s"] == pl.Float64
        assert frame.schema["flow_call_transport"] == pl.String
        assert set(frame["path_up_delay_s"].to_list()) == {0.01, 0.04}
        assert frame["cell"].n_unique() == 8
    assert run.messages.schema["due_ns"] == pl.Int64
    assert run.repetitions.schema["call_mos"] == pl.Float64


def test_figures_are_those_of_the_summary(run: talkpath.Run) -> None:
    rows = run.repetitions.filter(pl.col("flow") == "call").sort("cell", "repetition")
    assert rows["call_mos"].to_list() == [it["flows"]["call"]["call"]["mos"] for it in run.summary["runs"]]
    medians = run.cells.filter(pl.col("flow") == "call", pl.col("figure") == "call.mos")["median"].to_list()
    assert medians == [it["flows"]["call"]["call.mos"]["median"] for it in run.summary["cells"]]
    assert run.links.height == 8 * 2 * 2


def test_series_have_units(run: talkpath.Run) -> None:
    kinds = dict(run.series.select("kind", "unit").unique().iter_rows())
    assert kinds["queue_delay"] == "ms" and kinds["send_buffer"] == "bytes"
    assert None not in kinds.values(), "a kind that the table of units does not know"


def test_trips_have_the_summarys_percentiles(run: talkpath.Run) -> None:
    trips = _select.trips(run, "call", {}, 0)
    for it in run.summary["runs"]:
        if it["repetition"] != 0:
            continue
        told = it["flows"]["call"]
        of_cell = trips.filter(pl.col("cell") == it["cell"])
        delays = of_cell["delay_ms"].drop_nulls().sort()
        assert of_cell.height == told["sent"], "the warm-up is left out"
        assert delays.max() == pytest.approx(told["round_trip_delay_ms"]["max"], abs=1e-6)
        # The nearest rank, as the summary has it.
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            at_rank = delays[math.ceil(share * delays.len()) - 1]
            assert at_rank == pytest.approx(told["round_trip_delay_ms"][name], abs=1e-6)


def test_a_distribution_falls_to_the_share_that_is_missing(run: talkpath.Run) -> None:
    axes = run.plot.ccdf(where={"path.up.delay": 0.01, "loss": 0.05})
    line = next(it for it in axes.get_lines() if str(it.get_label()).startswith("UDP"))
    told = next(it for it in run.summary["runs"] if it["cell"] == 2 and it["repetition"] == 0)["flows"]["call"]
    assert told["loss_rate"] > 0
    last: Any = line.get_ydata()
    assert last[-1] == pytest.approx(told["loss_rate"])
    assert line.get_color() == LOOKS["udp"].colour


def test_a_heat_map_has_the_best_transports_mean_in_each_cell(run: talkpath.Run) -> None:
    axes = run.plot.heatmap("loss", "rtt")
    assert [it.get_text() for it in axes.get_xticklabels()] == ["0 %", "5 %"]
    assert [it.get_text() for it in axes.get_yticklabels()] == ["25", "55"]
    mos = run.cells.filter(pl.col("flow") == "call", pl.col("figure") == "call.mos")
    best = mos.group_by("path_up_loss", "path_up_delay_s").agg(pl.col("mean").max())
    texts = {it.get_position(): it.get_text() for it in axes.texts}
    for loss, delay, mean in best.iter_rows():
        text = texts[(float(loss == 0.05), float(delay == 0.04))]
        assert text.strip("()") == f"{mean:.2f}"
        assert text.startswith("(") == (mean < 3.1)
    one = run.plot.heatmap("loss", "rtt", "loss_rate", transport="tcp")
    assert len(one.texts) == 4


def test_other_plots_draw_a_line_for_each_cell(run: talkpath.Run) -> None:
    chosen = {"loss": 0.0, "delay": 0.01}
    assert len(run.plot.delay(where=chosen).get_lines()) == 2
    assert len(run.plot.series("queue_delay", "up", where=chosen).get_lines()) == 2
    swept = run.plot.sweep("loss", where={"delay": 0.01})
    assert [it.get_label() for it in swept.get_lines()][:2] == ["UDP", "TCP"]


def test_a_sweep_of_goodput_is_in_the_unit_of_its_title(run: talkpath.Run) -> None:
    chosen = {"transport": "udp", "delay": 0.01}
    axes = run.plot.sweep("loss", "goodput_bps", flow="upload", where=chosen)
    rows = run.cells.filter(pl.col("flow") == "upload", pl.col("figure") == "goodput_bps")
    rows = rows.filter(pl.col("flow_call_transport") == "udp", pl.col("path_up_delay_s") == 0.01).sort("path_up_loss")
    drawn: Any = axes.get_lines()[0].get_ydata()
    assert list(drawn) == pytest.approx([it / 1e6 for it in rows["mean"]])
    band: Any = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(rows["mean_ci95_high"].to_numpy().max() / 1e6)
    assert axes.get_ylabel() == "goodput, Mb/s"
    map_of = run.plot.heatmap("loss", "delay", "goodput_bps", flow="upload", where={"transport": "udp"})
    assert f"{rows['mean'][0] / 1e6:.3f}" in [it.get_text() for it in map_of.texts]


def test_scales_are_the_reports(run: talkpath.Run) -> None:
    chosen = {"loss": 0.05, "delay": 0.01}
    assert run.plot.sweep("loss", where={"delay": 0.01}).get_ylim() == (1.0, 4.5)
    assert run.plot.sweep("loss", "in_time", where={"delay": 0.01}).get_ylim() == (0.0, 100.0)
    assert run.plot.sweep("loss", where={"delay": 0.01}).get_xscale() == "linear"
    tail, over_time = run.plot.ccdf(where=chosen), run.plot.delay(where=chosen)
    delays = _select.trips(run, "call", chosen, 0)["delay_ms"].drop_nulls().to_list()
    is_log, *ends = _scale.fitting(min(delays), max(delays))
    assert (tail.get_xscale() == "log", over_time.get_yscale() == "log") == (is_log, is_log)
    assert [*tail.get_xlim()] == ends and [*over_time.get_ylim()] == ends
    assert over_time.get_xlim()[0] == 0.0
    # Two figures in the same axes: the first stays whole.
    twice = run.plot.delay(where=chosen | {"delay": 0.04}, ax=over_time)
    assert twice.get_ylim()[0] <= ends[0] and twice.get_ylim()[1] >= ends[1]


def test_words_stand_beside_each_other_under_their_own_names(worded: talkpath.Run) -> None:
    axes = worded.plot.sweep("queue", where={"delay": 0.01})
    assert [it.get_text() for it in axes.get_xticklabels()] == ["drop-tail", "codel"]
    places: Any = axes.get_lines()[0].get_xdata()
    assert list(places) == [0.0, 1.0]
    flags = pl.DataFrame({"cell": [0, 1, 2], "on": [True, False, True]})
    assert [_select.written("on", it) for it in _select.values(flags, "on")] == ["true", "false"]


def test_a_key_of_both_directions_makes_the_round_trip(worded: talkpath.Run) -> None:
    axes = worded.plot.heatmap("rtt", "queue")
    assert [it.get_text() for it in axes.get_xticklabels()] == ["20", "80"]
    assert worded.plot.sweep("rtt", where={"queue": "codel"}).get_xlabel() == "round trip without a queue, ms"
    assert worded.plot.sweep("path.*.delay", where={"queue": "codel"}).get_xlabel() == "* delay, ms"


def test_a_transport_is_an_axis(run: talkpath.Run) -> None:
    axes = run.plot.heatmap("loss", "transport", where={"delay": 0.01})
    assert [it.get_text() for it in axes.get_yticklabels()] == ["udp", "tcp"]
    assert len(axes.texts) == 4
    swept = run.plot.sweep("flow.call.transport", where={"loss": 0.05, "delay": 0.01})
    assert [it.get_text() for it in swept.get_xticklabels()] == ["udp", "tcp"]


def test_equal_round_trips_of_unequal_delays_name_the_delays() -> None:
    paths: Any = SimpleNamespace(swept=["path_up_delay_s", "path_down_delay_s"], scenario={})
    rows = pl.DataFrame({"path_up_delay_s": [0.01, 0.02], "path_down_delay_s": [0.02, 0.01], _select.RTT: [0.03, 0.03]})
    with pytest.raises(talkpath.UsageError, match="path_up_delay_s, path_down_delay_s has several values"):
        _select.only(paths, rows, [_select.RTT])


def test_a_flows_floor_is_its_own_beside_a_call() -> None:
    rows = pl.DataFrame({"flow": ["call", "game"], "floor": [3.1, 0.9], "call_mos": [4.0, None]})
    run: Any = SimpleNamespace(repetitions=rows)
    assert _select.floor(run, "game", "in_time") == 0.9
    assert _select.floor(run, "call", "in_time") is None
    assert _select.floor(run, "call", "call.mos") == 3.1


def test_cells_that_gaps_bar_have_a_ring_and_stand_in_brackets(run: talkpath.Run) -> None:
    rows = pl.DataFrame(
        {
            "flow": ["call"] * 6,
            "cell": [0, 0, 1, 1, 2, 2],
            "floor": [3.1] * 6,
            "call_mos": [4.0, 4.2, 4.0, 2.0, 2.0, None],
            "call_usable": [True, False, False, False, False, None],
        }
    )
    barred: Any = SimpleNamespace(repetitions=rows)
    # A score below the floor is no gap's doing.
    assert sorted(_select.barred(barred, "call", "call.mos")) == [0, 1]
    assert _select.barred(barred, "call", "in_time") == []

    silent = talkpath.Run(run.path)
    gaps = pl.when(pl.col("flow") == "call").then(pl.lit(False)).otherwise(pl.col("call_usable"))
    # What the property keeps.
    vars(silent)["repetitions"] = run.repetitions.with_columns(call_usable=gaps, call_mos=pl.lit(4.0))
    chosen = {"delay": 0.01}
    labels = [it.get_label() for it in silent.plot.sweep("loss", where=chosen).get_lines()]
    assert "barred by gaps" in labels
    assert "barred by gaps" not in [it.get_label() for it in run.plot.sweep("loss", where=chosen).get_lines()]
    assert all(it.get_text().startswith("(") for it in silent.plot.heatmap("loss", "delay").texts)


def test_small_and_near_values_are_told_apart() -> None:
    run: Any = SimpleNamespace(swept=["path_up_loss", "path_up_delay_s"])
    frame = pl.DataFrame({"path_up_loss": [1e-10, 1e-9, 0.0], "path_up_delay_s": [1e-9, 2e-9, 0.3]})
    for value in (1e-10, 1e-9, 0.0):
        assert _select.where(run, frame, {"loss": value})["path_up_loss"].to_list() == [value]
    assert _select.where(run, frame, {"delay": 0.1 + 0.2}).height == 1
    sizes = [_select.written("flow_call_workload_size_bytes", it) for it in (1234567, 1234568)]
    assert sizes == ["1234567", "1234568"]
    assert _select.written("path_up_delay_s", 0.0293) == "29.3"


def test_a_round_trip_is_not_the_scenarios_where_paths_are_swept() -> None:
    delays = {"up": {"delay": "20 ms"}, "down": {"delay": "5 ms"}}
    paths: Any = SimpleNamespace(swept=["path"], scenario={"path": delays})
    with pytest.raises(talkpath.UsageError, match="no delays of its own"):
        _select.along(paths, pl.DataFrame({"path": ["lan", "lte"]}), "rtt")


def test_a_column_is_chosen_by_its_whole_name_first(run: talkpath.Run) -> None:
    both: Any = SimpleNamespace(swept=["path_up_rate", "path_up_rate_bps"])
    assert _select.column(both, "path_up_rate") == "path_up_rate"
    assert _select.column(both, "path_up_rate_bps") == "path_up_rate_bps"
    words: Any = SimpleNamespace(swept=["room"])
    frame = pl.DataFrame({"room": ["16", "0.5", "unlimited"]})
    assert _select.where(words, frame, {"room": 16})["room"].to_list() == ["16"]
    assert _select.where(words, frame, {"room": "unlimited"}).height == 1
    assert _select.where(run, run.cells, {"loss": 0.05}).height > 0


@pytest.mark.parametrize(("draw", "says"), WRONG)
def test_a_wrong_name_is_told_with_those_that_there_are(run: talkpath.Run, draw: Draw, says: str) -> None:
    with pytest.raises(talkpath.UsageError, match=says):
        draw(run)


def test_frames_become_pandas(run: talkpath.Run) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame: Any = run.cells.to_pandas()
    assert frame["path_up_loss"].dtype == "float64"
    assert len(frame) == run.cells.height


def test_a_simulated_run_without_rows_makes_them_again(tmp_path: Path) -> None:
    bare = talkpath.run(SCENARIO, out=tmp_path / "bare", records="none", progress=False)
    whole = talkpath.run(SCENARIO, out=tmp_path / "whole", progress=False)
    assert not (bare.path / "series.parquet").exists()
    assert bare.messages.equals(whole.messages)
    assert bare.series.equals(whole.series)


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    def stop(done: int, _: int | None) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(talkpath.Interrupted) as caught:
        talkpath.run(SCENARIO, repeat=50, out=tmp_path, progress=stop)
    partial = caught.value.run
    assert partial is not None and not partial.complete
    whole = talkpath.resume(partial, progress=False)
    assert whole.complete and len(whole.summary["runs"]) == 400


def test_a_study_has_frames() -> None:
    study = talkpath.study("sawashima-1997", claims=["S1"], quick=True, progress=False)
    assert study.claims["id"].to_list() == ["S1"]
    assert study.checks.filter(pl.col("assumption") == "base", pl.col("check") == "mean queue")["median"].len() == 1


def test_every_block_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/guide/from-python.md").read_text(encoding="utf-8")
    blocks = [rest.split("```")[0] for rest in page.split("```python\n")[1:]]
    assert len(blocks) == 6, "blocks on the page: say here how many, so that none is lost"
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for block in blocks:
        exec(block, known)
    assert known["mos"].height == 18


def test_the_figures_of_a_program_are_in_frames_and_plots(tmp_path: Path) -> None:
    try:
        run = talkpath.run(PROGRAM, allow_program=True, out=tmp_path, progress=False)
    except talkpath.UnavailableError as why:
        pytest.skip(f"no network namespaces here: {why}")
    assert run.program["figures_stalls"].to_list() == [3.0] * 4
    assert run.program["failure"].null_count() == 4
    of_cells = run.cells.filter(pl.col("flow") == "program")
    assert of_cells["figure"].to_list() == ["stalls"] * 4
    assert run.plot.sweep("delay", "stalls", where={"rate": 1e6}).get_ylabel() == "stalls, s"
    drawn = run.plot.heatmap("delay", "rate", "stalls")
    assert drawn.get_title(loc="left") == "stalls, s of the program"
    assert [text.get_text() for text in drawn.texts] == ["3"] * 4
    with pytest.raises(talkpath.UsageError, match="there are stalls"):
        run.plot.sweep("delay", "stall", where={"rate": 1e6})


def test_a_run_without_a_program_has_no_frame_of_it(run: talkpath.Run) -> None:
    with pytest.raises(talkpath.UsageError, match="has no \\[program\\]"):
        _ = run.program
