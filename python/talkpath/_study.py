"""A publication's claims held against runs of its own scenarios."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _toml
from ._errors import Interrupted, error_of
from ._program import carry_out
from ._progress import Progress, teller
from ._run import polars
from ._scenario import listed

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Study:
    """What became of each claim."""

    path: Path | None
    """The study's run directory."""
    result: dict[str, Any]
    """study.json."""

    @property
    def as_expected(self) -> bool:
        """Whether each verdict is the one that the study states."""
        claims = cast("list[dict[str, Any]]", self.result["claims"])
        return all(claim["verdict"] == claim["expected"] for claim in claims)

    @property
    def claims(self) -> pl.DataFrame:
        """A row for each claim: what was published, what came out, the verdict and why."""
        claims = cast("list[dict[str, Any]]", self.result["claims"])
        return polars().DataFrame(
            [{name: claim[name] for name in _CLAIM} for claim in claims],
            schema=dict.fromkeys(_CLAIM, polars().String),
        )

    @property
    def checks(self) -> pl.DataFrame:
        """A row for each value of each check of a claim, under each set of assumptions: median and interval."""
        claims = cast("list[dict[str, Any]]", self.result["claims"])
        rows = [
            {
                "claim": claim["id"],
                "assumption": under["assumption"],
                "check": check["name"],
                "holds": check["holds"],
                **{name: value[name] for name in ("cell", "arena", "metric", "n", "median", "min", "max")},
                "ci95_low": (value["ci95"] or [None, None])[0],
                "ci95_high": (value["ci95"] or [None, None])[1],
            }
            for claim in claims
            for under in claim["by_assumption"]
            for check in under["checks"]
            for value in check["values"]
        ]
        return polars().DataFrame(rows, infer_schema_length=None)


def study(
    name: str | os.PathLike[str],
    *,
    claims: Sequence[str] = (),
    quick: bool = False,
    arena: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    resume: bool = False,
    reuse: str | os.PathLike[str] | None = None,
    strict: bool = False,
    allow_program: bool = False,
    jobs: int | None = None,
    records: Literal["none", "summary", "all"] | None = None,
    series: Literal["sampled", "full"] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Study:
    """Runs a study: `talkpath study run`.

    Args:
        name: a built-in study, such as `sawashima-1997`, or a folder with a study.toml.
        claims: these alone: `["S1"]`.
        quick: fewer start phases, in about a minute.
        arena: `sim`, `emu`, or both with a comma; unless given `sim`, or `emu` if a scenario has a program.
        seed: that of the first repetition.
        set: keys and their values.
        resume: go on with the run of it that was interrupted.
        reuse: a run of it; only the cells that this run lacks are run.
        strict: an error where the command says one, as for a verdict other than the study expects.
        allow_program: run the programs of scenarios with `program`, which have all rights of your user.
        jobs: repetitions at the same time.
        records: as of `run`.
        series: as of `run`.
        out: the folder in which the study gets its directory.
        progress: see `talkpath.Progress`.

    Without `strict` a verdict other than the study expects is no error: see `Study.as_expected`.
    """
    flags = [word for claim in listed(claims) for word in ("--claim", claim)]
    switches = {"--quick": quick, "--resume": resume, "--strict": strict, "--allow-program": allow_program}
    flags += [option for option, is_given in switches.items() if is_given]
    flags += [word for key, it in (set or {}).items() for word in ("--set", f"{key}={_toml.value(it, key)}")]
    common = {"--reuse": reuse, "--jobs": jobs, "--records": records, "--series": series, "--out": out}
    for option, value in {"--arena": arena, "--seed": seed, **common}.items():
        flags += [] if value is None else [option, str(value)]
    ended = carry_out(["study", "run", str(name), *flags, "--json"], teller(progress, None))
    if ended.interrupted:
        raise Interrupted()
    # Exit code 1 is a verdict other than the study expects, and the results are there then.
    if ended.exit_code not in ((0,) if strict else (0, 1)) or not ended.out.strip():
        raise error_of(ended.exit_code, ended.err, None)
    return Study(ended.directory, json.loads(ended.out))


_CLAIM = ("id", "claim", "published", "arena", "reproduced", "verdict", "standing", "expected", "why")
