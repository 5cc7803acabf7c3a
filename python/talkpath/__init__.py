"""Which transport for a call, a game or a transfer, on which path.

    import talkpath
    run = talkpath.compare()
    print(run)                      # which transport is best, and why
    run.cells                       # a Polars frame
    run.plot.ccdf()                 # the report's figure

The package is a thin layer over the program `talkpath`, which comes with it, and over the tables that it
exports. Frames need Polars, plots matplotlib: `pip install 'talkpath[notebook]'` has both.
"""

from ._calls import compare, listen, load, mos, resume, run
from ._errors import (
    FarEndError,
    Interrupted,
    Mistake,
    ScenarioError,
    TalkpathError,
    ThresholdError,
    UnavailableError,
    UndecidedError,
    UsageError,
)
from ._program import binary
from ._progress import Progress
from ._run import Answer, Run
from ._study import Study, study
from .sweep import SweepError, sweep

__all__ = [
    "Answer",
    "FarEndError",
    "Interrupted",
    "Mistake",
    "Progress",
    "Run",
    "ScenarioError",
    "Study",
    "SweepError",
    "TalkpathError",
    "ThresholdError",
    "UnavailableError",
    "UndecidedError",
    "UsageError",
    "binary",
    "compare",
    "listen",
    "load",
    "mos",
    "resume",
    "run",
    "study",
    "sweep",
]
