"""Where an axis ends, when it is logarithmic and where its labels stand: the report's rules.

They are those of crates/report/src/plot/scale.rs, and of a swept axis those of chart/sweep.rs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

LOG_RATIO = 50.0
"""Above this ratio of the largest to the smallest value an axis is logarithmic."""

SWEPT_LOG_RATIO = 12.0
"""The same of swept values."""

# Steps of a decade at which ticks are round.
_ROUND = (1.0, 2.0, 5.0)
# The report's units of a swept axis: its length, the least distance of two labels, and a letter's width.
_LENGTH, _LABEL_ROOM, _LETTER = 646.0, 46.0, 8.0


class Scale(NamedTuple):
    """A straight or logarithmic axis."""

    is_log: bool
    low: float
    high: float


def linear(low: float, high: float) -> Scale:
    """Straight from `low` to `high`."""
    return Scale(False, low, high if high > low else low + 1.0)


def tail(low: float, high: float) -> Scale:
    """Logarithmic from a round share at or below `low`, which is above zero."""
    return Scale(True, round_down(low), high)


def fitting(low: float, high: float) -> Scale:
    """From zero to a round number, or logarithmic between round numbers if the values span decades; from a round
    number below zero if there are such values."""
    if low > 0.0 and high / low > LOG_RATIO:
        return Scale(True, round_down(low), round_up(high))
    if low < 0.0:
        return Scale(False, -nice_ceiling(-low), nice_ceiling(high) if high > 0.0 else 0.0)
    return Scale(False, 0.0, nice_ceiling(high))


def is_swept_log(places: Sequence[float]) -> bool:
    """Whether the axis of these swept numbers is logarithmic."""
    low, high = min(places), max(places)
    return low > 0.0 and high / low > SWEPT_LOG_RATIO


def with_room(places: Sequence[float], texts: Sequence[str], is_log: bool) -> list[str]:
    """The labels of a swept axis, of ascending places; what would run into the one before is empty."""
    at = [math.log(it) if is_log else it for it in places]
    unit = _LENGTH / ((at[-1] - at[0]) or 1.0)
    shown: list[str] = []
    free_from = -math.inf
    for place, text in zip(at, texts, strict=True):
        has_room = (place - at[0]) * unit >= free_from
        shown.append(text if has_room else "")
        if has_room:
            free_from = (place - at[0]) * unit + max(_LABEL_ROOM, _LETTER * len(text))
    return shown


def log_ticks(low: float, high: float, target: int) -> list[float]:
    """Powers of ten. With 2 and 5 between them if this gives not many more ticks than `target`; only every n-th
    power if the powers alone are too many."""
    first, last = math.floor(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    count = last - first + 1
    steps = _ROUND if count * len(_ROUND) <= target + 4 else _ROUND[:1]
    powers = range(last, first - 1, -math.ceil(count / (target + 1)))
    ticks = sorted(step * 10.0**power for power in powers for step in steps)
    return [it for it in ticks if low * (1.0 - 1e-9) <= it <= high * (1.0 + 1e-9)]


def nice_ceiling(high: float) -> float:
    """The smallest multiple of a round step that covers `high`."""
    if high <= 0.0 or not math.isfinite(high):
        return 1.0
    step = round_up(high / 5.0)
    return math.ceil(high / step - 1e-9) * step


def round_up(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `value`, which is above zero."""
    power = _power_of_ten(value)
    return next((it * power for it in _ROUND if it * power >= value * (1.0 - 1e-9)), 10.0 * power)


def round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above `value`, which is above zero."""
    power = _power_of_ten(value)
    return next((it * power for it in reversed(_ROUND) if it * power <= value * (1.0 + 1e-9)), power)


def _power_of_ten(value: float) -> float:
    return 10.0 ** math.floor(math.log10(value))
