"""How far a run is: a bar in a notebook or on a terminal, or a function of the caller's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

Progress = bool | Callable[[int, int | None], None] | None
"""`None`: a bar in a notebook and on a terminal. `True` and `False`: always and never. A function is called
with the number of finished repetitions, and of all of them (`None` if that is not known yet)."""


def teller(progress: Progress, total: int | None) -> Callable[[int], None]:
    """A function that is called with the number of finished repetitions; -1 ends it."""
    if callable(progress):
        call = progress
        return lambda done: call(done, total) if done >= 0 else None
    if progress is None:
        progress = in_notebook() or sys.stderr.isatty()
    if not progress:
        return lambda _: None
    return _tqdm(total) or _line(total)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and "IPKernelApp" in running.config


def _tqdm(total: int | None) -> Callable[[int], None] | None:
    """tqdm's bar, which notebooks draw as a widget; `None` if it is not installed."""
    try:
        with warnings.catch_warnings():
            # Without ipywidgets it draws text, which does as well.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm  # pyright: ignore[reportMissingModuleSource]
    except ImportError:
        return None
    bar: Any = tqdm(total=total, unit="repetition", leave=False)

    def tell(done: int) -> None:
        if done < 0:
            bar.close()
        else:
            bar.update(done - bar.n)

    return tell


def _line(total: int | None) -> Callable[[int], None]:
    """One line that is written over."""

    def tell(done: int) -> None:
        text = "" if done < 0 else f"{done} repetitions" if total is None else f"{done} of {total} repetitions"
        print(f"\r{text:<40}", end="\r" if done < 0 else "", file=sys.stderr, flush=True)

    return tell
