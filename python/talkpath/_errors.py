"""What a call raises: one class for each exit code of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._run import Run


class TalkpathError(Exception):
    """The program ended with another exit code than 0. The text is what it wrote to standard error."""

    exit_code: int = 1

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run
        """What was measured all the same; `None` if nothing was."""


class UsageError(TalkpathError):
    """Wrong usage, a file that cannot be read, or a scenario that needs what the arena cannot do."""

    exit_code = 2


class UnavailableError(TalkpathError):
    """The arena is not available here. The text says what is missing and how to get it."""

    exit_code = 3


class FarEndError(TalkpathError):
    """The far end is not there, failed or went away."""

    exit_code = 4


class ThresholdError(TalkpathError):
    """A threshold did not hold. `run` has the whole run."""

    exit_code = 5


class UndecidedError(ThresholdError):
    """A threshold is undecided, and none fails: its bound is finer than one message of the run. It did not pass."""

    exit_code = 6


class Interrupted(KeyboardInterrupt):
    """A run was interrupted. `run` has the finished repetitions whole; `resume` goes on with it."""

    def __init__(self, run: Run | None = None) -> None:
        where = "" if run is None else f"; what was measured is in {run.path}, and talkpath.resume goes on"
        super().__init__(f"interrupted{where}")
        self.run = run


@dataclass(frozen=True)
class Mistake:
    """One mistake of a scenario."""

    file: str
    """The file, as it was given; `scenario` for a dict."""
    line: int | None
    """From 1; of a dict, in the TOML that it was written as. `None` for what an argument set."""
    column: int | None
    """From 1, in characters."""
    key: str
    """From the root: `flow.call.transport`."""
    message: str
    """What was found, and what would be right."""
    help: str | None
    """The nearest known key or value."""
    text: str | None
    """The line itself."""
    option: str | None
    """The argument that it is about, as an option of the command line."""

    def __str__(self) -> str:
        place = self.option if self.line is None else f"{self.file}:{self.line}:{self.column}"
        key = f"{self.key}: " if self.key else ""
        help = f" ({self.help})" if self.help else ""
        return f"{place}: {key}{self.message}{help}"


class ScenarioError(UsageError):
    """A scenario has mistakes: all of them, with the text of the command line."""

    def __init__(self, message: str, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__(message)
        self.mistakes = mistakes


def error_of(exit_code: int, message: str, run: Run | None) -> TalkpathError:
    """The error for an exit code."""
    classes = [UsageError, UnavailableError, FarEndError, ThresholdError, UndecidedError]
    by_code = {it.exit_code: it for it in classes}
    return by_code.get(exit_code, TalkpathError)(message, run)
