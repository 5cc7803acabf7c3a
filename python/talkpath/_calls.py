"""The calls: each is one command of the program, and gives its run directory back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ._errors import Interrupted, error_of
from ._program import Ended, carry_out
from ._progress import Progress, teller
from ._run import Run
from ._scenario import Scenario, checked, listed

Arena = Literal["sim", "emu", "live"]
Records = Literal["none", "summary", "all"]
File = str | os.PathLike[str]


def run(
    scenario: Scenario,
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    arena: Arena | None = None,
    to: str | None = None,
    key_file: File | None = None,
    require: Sequence[str] = (),
    fail_if: Sequence[str] = (),
    strict: bool = False,
    jobs: int | None = None,
    records: Records = "all",
    series: Literal["sampled", "full"] = "sampled",
    out: File | None = None,
    progress: Progress = None,
) -> Run:
    """Runs a scenario: `talkpath run`.

    Args:
        scenario: a dict with the keys of a scenario file, or the path of one. Files that a dict names are
            looked for in the working directory.
        sweep: keys, each with its values, one cell for each combination; they join those that the scenario
            sweeps: `{"path.up.loss": [0.0, 0.01]}`.
        repeat: how many repetitions of each cell.
        seed: that of the first repetition.
        set: keys and their values: `{"path.up.rate": "2 Mbps"}`.
        arena: `sim` unless `to` is given, then `live`.
        to: the host that runs `talkpath serve`.
        key_file: the key that `serve --key-file` was given.
        require: what figures must hold: `["call.mos >= 3.6"]`.
        fail_if: what they must not hold.
        strict: an error if the machine disturbed the run past its limits.
        jobs: repetitions at the same time in `sim`; one for each core unless given.
        records: `summary` leaves out messages, `none` series too.
        series: how many points of each line are kept.
        out: the folder in which the run gets its directory; `talkpath-runs` unless given.
        progress: see `talkpath.Progress`.

    Raises:
        ScenarioError: the scenario has mistakes; all are in it.
        ThresholdError: a threshold did not hold, or is undecided (UndecidedError).
        Interrupted: Ctrl-C, or a notebook's stop button.
        TalkpathError: everything else, each exit code with a class of its own.
    """
    with checked(scenario, sweep, set or {}, repeat) as it:
        flags = [
            *_common(out, jobs, records, series, strict),
            *_place(arena, to, key_file, repeat, seed),
            *_each("--require", require),
            *_each("--fail-if", fail_if),
        ]
        return _run(["run", str(it.file), *it.settings, *flags], progress, it.repetitions)


def compare(
    *,
    transports: Sequence[str] | Literal["all"] = (),
    workload: Literal["voice", "bulk", "game-60hz"] = "voice",
    path: File | None = None,
    up: str | None = None,
    down: str | None = None,
    queue: str | None = None,
    loss: float | str | None = None,
    cc: Sequence[str] = (),
    duration: str | None = None,
    load: bool = False,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, str | float | bool] | None = None,
    arena: Arena | None = None,
    to: str | None = None,
    key_file: File | None = None,
    require: Sequence[str] = (),
    fail_if: Sequence[str] = (),
    strict: bool = False,
    jobs: int | None = None,
    records: Records = "all",
    series: Literal["sampled", "full"] = "sampled",
    out: File | None = None,
    progress: Progress = None,
) -> Run:
    """Runs one call over each transport and says which is best: `talkpath compare`.

    Args:
        transports: `udp`, `tcp`, `tcp-nodelay` and QUIC's three unless given; `all` adds DCCP.
            Of a `bulk` workload `tcp`.
        workload: what is carried.
        path: a preset, such as `home-adsl`, or a file with `up` and `down`.
        up: your line away from you: `10Mbps/15ms/256kB`.
        down: the same towards you.
        queue: the queue discipline of both directions, such as `fq_codel`.
        loss: the share of packets that each direction loses at random: `0.01` or `1%`.
        cc: congestion controls of TCP; each TCP transport is compared with each.
        duration: how long each transport runs: `30 s`.
        load: a bulk upload beside the call in `live` too.
        repeat: how many repetitions; until they decide unless given.

    The other arguments and the errors are those of `run`.
    """
    flags = [
        *_option("--transports", ",".join(listed(transports)) or None),
        *_option("--workload", workload),
        *_option("--path", path),
        *_option("--up", up),
        *_option("--down", down),
        *_option("--queue", queue),
        *_option("--loss", loss),
        *_option("--cc", ",".join(listed(cc)) or None),
        *_option("--duration", duration),
        *(["--load"] if load else []),
        *(word for name, it in (set or {}).items() for word in ("--set", f"{name}={_word(it)}")),
        *_common(out, jobs, records, series, strict),
        *_place(arena, to, key_file, repeat, seed),
        *_each("--require", require),
        *_each("--fail-if", fail_if),
    ]
    return _run(["compare", *flags], progress, None)


def load(directory: File) -> Run:
    """A run directory that is there already."""
    return Run(directory)


def resume(run: Run | File, *, progress: Progress = None) -> Run:
    """Goes on with a run that was interrupted or killed: `talkpath run --resume`."""
    path = run.path if isinstance(run, Run) else Path(run)
    ended = carry_out(["run", "--resume", str(path), "--json"], teller(progress, None))
    ended.directory = path
    return _whole(ended)


def _run(arguments: Sequence[str], progress: Progress, total: int | None) -> Run:
    # With --json thresholds that do not hold are part of the error.
    return _whole(carry_out([*arguments, "--json"], teller(progress, total)))


def _whole(ended: Ended) -> Run:
    is_there = ended.directory is not None and (ended.directory / "summary.json").is_file()
    measured = Run(ended.directory) if ended.directory is not None and is_there else None
    if ended.interrupted:
        raise Interrupted(measured)
    if ended.exit_code or measured is None:
        raise error_of(ended.exit_code, ended.err, measured)
    return measured


def _common(out: File | None, jobs: int | None, records: Records, series: str, strict: bool) -> list[str]:
    return [
        *_option("--out", out),
        *_option("--jobs", jobs),
        *_option("--records", records),
        *_option("--series", series),
        *(["--strict"] if strict else []),
    ]


def _place(
    arena: Arena | None, to: str | None, key_file: File | None, repeat: int | None, seed: int | None
) -> list[str]:
    return [
        *_option("--arena", arena),
        *_option("--to", to),
        *_option("--key-file", key_file),
        *_option("--repeat", repeat),
        *_option("--seed", seed),
    ]


def _option(name: str, value: File | float | None) -> list[str]:
    return [] if value is None else [name, str(value)]


def _each(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in listed(values) for word in (name, value)]


def _word(it: str | float | bool) -> str:
    return str(it).lower() if isinstance(it, bool) else str(it)
