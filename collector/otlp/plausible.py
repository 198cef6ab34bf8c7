"""Times that can't be: mended where the duration can be trusted, set aside where not."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.spans import I8, SpanBatch

REASONS: Final = ("", "no_start", "past", "future", "long")
"""Reasons to set a span aside, by code: no start time; a start more than three days before it
was received; one more than five minutes after; a duration of more than a day."""

SOUND: Final = 0
NO_START: Final = 1
PAST: Final = 2
FUTURE: Final = 3
LONG: Final = 4

_SECOND_NS: Final = 1_000_000_000
_DAY_NS: Final = 86_400 * _SECOND_NS
_OLDEST_NS: Final = 3 * _DAY_NS
_NEWEST_NS: Final = 300 * _SECOND_NS
_EPOCH_NS: Final = 365 * _DAY_NS  # clocks that count from boot or process start stay below


@dataclass(frozen=True)
class Judged:
    """One entry per span: why it is set aside (index in REASONS), and whether its times were
    mended."""

    quarantine: I8
    repaired: NDArray[np.bool_]


def judge(batch: SpanBatch) -> Judged:
    """Judge a batch's times against its receive times, and mend `start_ns` and `end_ns` in place.

    - an end before the start becomes the start;
    - a start near the epoch with a duration below a day (a monotonic clock taken for the wall
      clock) is moved so that the span ends when it was received.
    """
    start, end, received = batch.start_ns, batch.end_ns, batch.received_ns
    quarantine = np.zeros(len(batch), np.int8)
    backwards = (end < start) & (start != 0)
    end[backwards] = start[backwards]
    duration = end - start  # both are in [0, 2^63) and end >= start, or start is 0
    long = duration > _DAY_NS
    near_epoch = (start > 0) & (start < _EPOCH_NS) & ~long & ~backwards & (received > _EPOCH_NS)
    start[near_epoch] = received[near_epoch] - duration[near_epoch]
    end[near_epoch] = received[near_epoch]
    quarantine[long] = LONG
    quarantine[start > received + _NEWEST_NS] = FUTURE
    quarantine[start < received - _OLDEST_NS] = PAST
    quarantine[start == 0] = NO_START
    return Judged(quarantine, backwards | near_epoch)
