"""The calls: each is one command of the program, and gives its run directory back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ._errors import Interrupted, error_of
from ._program import Ended, ask, carry_out
from ._progress import Progress, teller
from ._run import Run
from ._scenario import Scenario, checked, listed
from ._words import Codec

Arena = Literal["sim", "emu", "live"]
Records = Literal["none", "summary", "all"]
File = str | os.PathLike[str]


def run(
    scenario: Scenario,
    *,
    path: File | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    arena: Arena | None = None,
    to: str | None = None,
    key_file: File | None = None,
    ipv4: bool = False,
    ipv6: bool = False,
    clocks_synchronised: bool = False,
    capture: int | bool = False,
    qlog: bool = False,
    mapping_lifetime: bool = False,
    keep_awake: bool = False,
    run_again: str | None = None,
    rounds: bool = False,
    allow_program: bool = False,
    require: Sequence[str] = (),
    fail_if: Sequence[str] = (),
    junit: File | None = None,
    strict: bool = False,
    until_decided: str | None = None,
    jobs: int | None = None,
    records: Records | None = None,
    series: Literal["sampled", "full"] = "sampled",
    per_flow: bool = False,
    out: File | None = None,
    progress: Progress = None,
) -> Run:
    """Runs a scenario: `talkpath run`.

    Args:
        scenario: a dict with the keys of a scenario file, or the path of one. Files that a dict names are
            looked for in the working directory.
        path: another path than the scenario's: a preset or a file, as for `compare`.
        sweep: keys, each with its values, one cell for each combination; they join those that the scenario
            sweeps: `{"path.up.loss": [0.0, 0.01]}`.
        repeat: how many repetitions of each cell.
        seed: that of the first repetition.
        set: keys and their values: `{"path.up.rate": "2 Mbps"}`.
        arena: `sim` unless `to` is given, then `live`.
        to: the host that runs `talkpath serve`.
        key_file: the key that `serve --key-file` was given.
        ipv4: in `live`: reach the far host over IPv4 only.
        ipv6: in `live`: reach the far host over IPv6 only.
        clocks_synchronised: in `live`: GPS or PTP keeps both hosts' clocks.
        capture: in `emu`: keep each packet, or this number of its first bytes.
        qlog: in `emu` and `live`: keep what this host's end of every QUIC connection did, for `export --format qlog`.
        mapping_lifetime: in `live`: find out how long the path keeps a silent UDP flow's mapping, by pauses of up to a
            run's length.
        keep_awake: in `emu` and `live`: let no processor sleep meanwhile.
        run_again: in `emu` and `live`: for how long repetitions that the machine disturbed run again: `2 min`; `0s`
            is never.
        rounds: in `emu` and `live`: in each repetition every cell has its turn.
        allow_program: run the program of a scenario with `program`, which has all rights of your user, in `emu`.
        require: what figures must hold: `["call.mos >= 3.6"]`.
        fail_if: what they must not hold.
        junit: the file that says whether each threshold holds, as JUnit's XML.
        strict: an error if the machine disturbed the run past its limits.
        until_decided: repeat until the thresholds are decided, or the answer without thresholds, for no longer than
            this: `30 min`.
        jobs: repetitions at the same time in `sim` (one for each core unless given) and in `emu` (one unless given).
        records: `summary` leaves out messages, `none` series too. Of a simulated run `messages` and `series` are
            made again where they were left out.
        series: how many points of each line are kept.
        per_flow: figures of each copy of a flow, also of more than 500.
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
            *_option("--path", path),
            *_common(out, jobs, records, series, strict),
            *_place(arena, to, key_file, repeat, seed),
            *_measuring(clocks_synchronised, capture, keep_awake, per_flow),
            *_switches({"--ipv4": ipv4, "--ipv6": ipv6, "--qlog": qlog, "--mapping-lifetime": mapping_lifetime}),
            *_option("--run-again", run_again),
            *_switches({"--rounds": rounds, "--allow-program": allow_program}),
            *_each("--require", require),
            *_each("--fail-if", fail_if),
            *_option("--junit", junit),
            *_until(until_decided),
        ]
        return _run(["run", str(it.file), *it.settings, *flags], progress, it.repetitions)


def compare(
    *,
    transports: Sequence[str] | Literal["all"] = (),
    workload: Literal["voice", "bulk", "game-60hz"] = "voice",
    no_plc: bool = False,
    codec: Codec | None = None,
    ptime: str | None = None,
    path: File | None = None,
    line: str | None = None,
    up: str | None = None,
    down: str | None = None,
    queue: str | None = None,
    loss: float | str | None = None,
    cc: Sequence[str] = (),
    duration: str | None = None,
    load: bool = False,
    alone: bool = False,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, str | float | bool] | None = None,
    sweep: Mapping[str, Sequence[str | float | bool]] | None = None,
    arena: Arena | None = None,
    to: str | None = None,
    key_file: File | None = None,
    ipv4: bool = False,
    ipv6: bool = False,
    clocks_synchronised: bool = False,
    capture: int | bool = False,
    qlog: bool = False,
    mapping_lifetime: bool = False,
    keep_awake: bool = False,
    run_again: str | None = None,
    require: Sequence[str] = (),
    fail_if: Sequence[str] = (),
    junit: File | None = None,
    strict: bool = False,
    until_decided: str | None = None,
    jobs: int | None = None,
    records: Records | None = None,
    series: Literal["sampled", "full"] = "sampled",
    per_flow: bool = False,
    out: File | None = None,
    progress: Progress = None,
) -> Run:
    """Runs one call over each transport and says which is best: `talkpath compare`.

    Args:
        transports: `udp`, `tcp`, `tcp-nodelay` and QUIC's three unless given; `all` adds DCCP.
            Of a `bulk` workload `tcp`.
        workload: what is carried.
        no_plc: the receiver of a call plays silence for a missing frame, and does not conceal it.
        codec: of a call, G.711 unless given.
        ptime: the time between two packets of a call: `30 ms`.
        path: a preset, such as `home-adsl`, or a file with `up` and `down`.
        line: your line by its download and upload in Mb/s, and its one-way delay if you know it: `50/10/20ms`.
        up: your line away from you: `10Mbps/15ms/256kB`.
        down: the same towards you.
        queue: the queue discipline of both directions, such as `fq_codel`.
        loss: the share of packets that each direction loses at random: `0.01` or `1%`; 1 alone is refused.
        cc: congestion controls of TCP; each TCP transport is compared with each.
        duration: how long each transport runs: `30 s`.
        load: a bulk upload beside the call in `live` too.
        alone: no upload beside it in `sim` and `emu`.
        sweep: keys, each with its values: the comparison at each combination.
        repeat: how many repetitions; until they decide unless given.

    In `sim` no rows are kept unless `records` says so: `messages` and `series` are made again from scenario and
    seed. The other arguments and the errors are those of `run`.
    """
    flags = [
        *_option("--transports", ",".join(listed(transports)) or None),
        *_option("--workload", workload),
        *_option("--codec", codec),
        *_option("--ptime", ptime),
        *_option("--path", path),
        *_option("--line", line),
        *_option("--up", up),
        *_option("--down", down),
        *_option("--queue", queue),
        *_option("--loss", loss),
        *_option("--cc", ",".join(listed(cc)) or None),
        *_option("--duration", duration),
        *_switches({"--load": load, "--alone": alone, "--no-plc": no_plc}),
        *(word for name, it in (set or {}).items() for word in ("--set", f"{name}={_word(it)}")),
        *(word for name, it in (sweep or {}).items() for word in ("--sweep", f"{name}={_words(it)}")),
        *_common(out, jobs, records, series, strict),
        *_place(arena, to, key_file, repeat, seed),
        *_measuring(clocks_synchronised, capture, keep_awake, per_flow),
        *_switches({"--ipv4": ipv4, "--ipv6": ipv6, "--qlog": qlog, "--mapping-lifetime": mapping_lifetime}),
        *_option("--run-again", run_again),
        *_each("--require", require),
        *_each("--fail-if", fail_if),
        *_option("--junit", junit),
        *_until(until_decided),
    ]
    return _run(["compare", *flags], progress, None)


def mos(
    *,
    codec: Codec = "g711",
    bandwidth: Literal["nb", "mb", "wb", "swb", "fb"] | None = None,
    bitrate: str | None = None,
    cbr: bool = False,
    no_plc: bool = False,
    one_way: str | None = None,
    loss: float | str | None = None,
    burst_ratio: float | None = None,
) -> dict[str, Any]:
    """Rates a call by hand: `talkpath mos`.

    Args:
        codec: whose impairment is taken.
        bandwidth: of Opus' speech, `swb` unless given. It decides the scale of the score.
        bitrate: of Opus, `32 kbps` unless given.
        cbr: Opus has a constant bit rate.
        no_plc: the receiver plays silence for a missing frame; `g729a` always conceals it, and
            `opus` always conceals it.
        one_way: from mouth to ear: `150 ms`.
        loss: frames that are not played: `0.01` or `1%`; 1 alone is refused.
        burst_ratio: mean length of the runs of lost frames, over that at random.

    Returns:
        What `mos --json` prints: `r`, `mos`, `scale`, `id`, `ie_eff` (what took from R), `concealment`, `source` and
        `outside_model`.
    """
    flags = [
        *_option("--codec", codec),
        *_option("--bandwidth", bandwidth),
        *_option("--bitrate", bitrate),
        *_switches({"--cbr": cbr, "--no-plc": no_plc}),
        *_option("--one-way", one_way),
        *_option("--loss", loss),
        *_option("--burst-ratio", burst_ratio),
    ]
    ended = ask(["mos", *flags, "--json"])
    if ended.exit_code:
        raise error_of(ended.exit_code, ended.err, None)
    return json.loads(ended.out)


def listen(
    source: Run | File,
    *,
    output: File = "call.wav",
    flow: str | None = None,
    transports: Sequence[str] = (),
    cell: int | None = None,
    repetition: int | None = None,
    speech: File | None = None,
    length: str | None = None,
    law: Literal["mu", "a"] | None = None,
    payload_types: Mapping[int, str] | None = None,
    codec: Codec | None = None,
    one_way: str | None = None,
    report: bool = False,
) -> dict[str, Any]:
    """Writes the sound of a call as its listener heard it: `talkpath listen`.

    Args:
        source: the run, its directory, or a capture (pcap, pcapng).
        output: the WAV file. Several calls have their transport or flow in their names: `call-udp.wav`.
        flow: the call; the first one of a run and all of a capture unless given.
        transports: those of the run to listen to; all unless given.
        cell: of the sweep; the first one of each transport unless given.
        repetition: the one that the report draws unless given.
        speech: a WAV file that the speaker says, with 1 or 2 channels at 8 to 48 kHz.
        length: how much of the call: `60 s` unless given, 10 min at most.
        law: of G.711.
        payload_types: what numbers mean that a capture does not explain: `{111: "opus"}`.
        codec: of streams of a capture that nothing explains.
        one_way: the one-way delay of the fastest packet of a capture.
        report: the player is in report.html of the run.

    Returns:
        What `listen --json` prints: `sounds`, each with its `file` and with what is heard in it, and the `page`
        that plays them. In a notebook `IPython.display.Audio(sound["file"])` plays one.
    """
    named = [f"{number}={name}" for number, name in (payload_types or {}).items()]
    flags = [
        *_option("-o", output),
        *_option("--flow", flow),
        *_option("--transports", _words(transports) or None),
        *_option("--cell", cell),
        *_option("--repetition", repetition),
        *_option("--input", speech),
        *_option("--for", length),
        *_option("--law", law),
        *_each("--payload-type", named),
        *_option("--codec", codec),
        *_option("--one-way", one_way),
        *_switches({"--report": report}),
    ]
    path = source.path if isinstance(source, Run) else Path(source)
    ended = ask(["listen", str(path), *flags, "--json"])
    if ended.exit_code:
        raise error_of(ended.exit_code, ended.err, None)
    return json.loads(ended.out)


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


def _common(out: File | None, jobs: int | None, records: Records | None, series: str, strict: bool) -> list[str]:
    return [
        *_option("--out", out),
        *_option("--jobs", jobs),
        *_option("--records", records),
        *_option("--series", series),
        *_switches({"--strict": strict}),
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


def _measuring(clocks_synchronised: bool, capture: int | bool, keep_awake: bool, per_flow: bool) -> list[str]:
    # `True` is an integer, too.
    bytes_kept = "" if capture is True else f"={capture}"
    return [
        *_switches({"--clocks-synchronised": clocks_synchronised, "--keep-awake": keep_awake, "--per-flow": per_flow}),
        *([] if capture is False else [f"--capture{bytes_kept}"]),
    ]


def _switches(given: Mapping[str, bool]) -> list[str]:
    return [name for name, is_given in given.items() if is_given]


def _option(name: str, value: File | float | None) -> list[str]:
    return [] if value is None else [name, str(value)]


def _until(longest: str | None) -> list[str]:
    return [] if longest is None else [f"--until-decided={longest}"]


def _each(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in listed(values) for word in (name, value)]


def _word(it: str | float | bool) -> str:
    return str(it).lower() if isinstance(it, bool) else str(it)


def _words(values: Sequence[str | float | bool]) -> str:
    return ",".join(_word(it) for it in listed(values))
