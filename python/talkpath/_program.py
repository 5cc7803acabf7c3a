"""The program: where it is, and one run of it as a child that can be interrupted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ._errors import TalkpathError


def binary() -> str:
    """The program: what `TALKPATH_PROGRAM` names, else the one that came with this package, else that of the PATH."""
    named = os.environ.get("TALKPATH_PROGRAM")
    if named:
        return named
    schemes = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    user = sysconfig.get_preferred_scheme("user")
    schemes.append(sysconfig.get_path("scripts", scheme=user))
    for folder in schemes:
        found = Path(folder) / "talkpath"
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    on_path = shutil.which("talkpath")
    if on_path is None:
        raise TalkpathError(f"no program `talkpath` in {', '.join(schemes)} or on the PATH")
    return on_path


@dataclass
class Ended:
    """How the program ended."""

    exit_code: int
    out: str
    """Standard output."""
    err: str
    """Standard error, without the lines of progress and without `error: ` before a line."""
    directory: Path | None = None
    """The run directory, if it made one."""
    interrupted: bool = False


def ask(arguments: Sequence[str]) -> Ended:
    """Runs what takes no time."""
    done = subprocess.run([binary(), *arguments], capture_output=True, text=True, env=_environment(), check=False)
    return Ended(done.returncode, done.stdout, _plain(done.stderr.splitlines()))


def carry_out(arguments: Sequence[str], tell: Callable[[int], None]) -> Ended:
    """Runs what takes time, and tells how many repetitions are done.

    Ctrl-C and a notebook's stop button reach the program as one SIGINT, at which it keeps what is whole and
    ends. A second one kills it.
    """
    with (
        tempfile.TemporaryFile("w+") as out,
        subprocess.Popen(
            [binary(), *arguments, "--verbose"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
            # A terminal sends SIGINT to its whole foreground group: with ours, the program would get two.
            start_new_session=True,
        ) as child,
    ):
        seen = _Seen(tell)
        interrupted = False
        try:
            try:
                seen.read(child)
            except KeyboardInterrupt:
                interrupted = True
                child.send_signal(signal.SIGINT)
                seen.read(child)
        except BaseException:
            child.kill()
            raise
        finally:
            tell(-1)
        out.seek(0)
        return Ended(child.returncode, out.read(), _plain(seen.rest), seen.directory, interrupted)


@dataclass
class _Seen:
    """What standard error said."""

    tell: Callable[[int], None]
    done: int = 0
    directory: Path | None = None
    rest: list[str] = field(default_factory=list[str])

    def read(self, child: subprocess.Popen[str]) -> None:
        """Reads to the end of the child."""
        assert child.stderr is not None
        for line in child.stderr:
            line = line.rstrip("\n")
            if _DONE.match(line):
                self.done += 1
                self.tell(self.done)
            elif line.startswith("run directory: "):
                self.directory = Path(line.removeprefix("run directory: "))
            else:
                self.rest.append(line)
        child.wait()


# Of a run a repetition, of a study a cell.
_DONE = re.compile(r"(cell \d+ repetition \d+ seed \d+|(sim|emu|live): .* under .*): done")


def _plain(lines: Sequence[str]) -> str:
    return "\n".join(line.removeprefix("error: ") for line in lines if not line.startswith("warning: "))


def _environment() -> dict[str, str]:
    """The environment without what would silence the program or change what it prints."""
    silent = {"TALKPATH_QUIET", "TALKPATH_JSON", "TALKPATH_VERBOSE"}
    return {name: value for name, value in os.environ.items() if name not in silent}
