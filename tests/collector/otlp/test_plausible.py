"""Times that can't be."""

import numpy as np
import pytest

from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.plausible import REASONS, Judged, judge
from tailburn.collector.spans import SpanBatch
from tests.collector.otlp.test_decoder import NOW_NS, add, one_span

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
LATEST = (1 << 64) - 1


def judged(start_ns: int, end_ns: int) -> tuple[SpanBatch, Judged]:
    """One span, received at NOW_NS."""
    request = one_span(start_time_unix_nano=start_ns, end_time_unix_nano=end_ns)
    batch = add(Decoder([]), request)
    return batch, judge(batch)


SOUND = [
    (NOW_NS - 11 * SECOND, NOW_NS - SECOND),
    (NOW_NS, NOW_NS),
    (NOW_NS + 299 * SECOND, NOW_NS + 300 * SECOND),
    (NOW_NS - 2 * DAY, NOW_NS - 2 * DAY + SECOND),
    (NOW_NS - DAY, NOW_NS),
]
SET_ASIDE = [
    (0, NOW_NS, "no_start"),
    (0, 0, "no_start"),
    (NOW_NS - 4 * DAY, NOW_NS - 4 * DAY + SECOND, "past"),
    (NOW_NS + 301 * SECOND, NOW_NS + 302 * SECOND, "future"),
    (LATEST, LATEST, "future"),
    (NOW_NS - DAY - SECOND, NOW_NS, "long"),
    (1, LATEST, "past"),
    (NOW_NS, LATEST, "long"),
    (55, NOW_NS, "past"),  # a span of 56 years
]


@pytest.mark.parametrize(("start", "end"), SOUND)
def test_sound_times_stay(start: int, end: int) -> None:
    batch, found = judged(start, end)
    assert (found.quarantine.tolist(), found.repaired.tolist()) == ([0], [False])
    assert (batch.start_ns.tolist(), batch.end_ns.tolist()) == ([start], [end])


@pytest.mark.parametrize(("start", "end", "reason"), SET_ASIDE)
def test_times_that_cannot_be_are_set_aside(start: int, end: int, reason: str) -> None:
    _, found = judged(start, end)
    assert [REASONS[code] for code in found.quarantine] == [reason]


@pytest.mark.parametrize("end", [0, NOW_NS - 20 * SECOND])
def test_an_end_before_the_start_becomes_the_start(end: int) -> None:
    batch, found = judged(NOW_NS - SECOND, end)
    assert (found.quarantine.tolist(), found.repaired.tolist()) == ([0], [True])
    assert batch.end_ns.tolist() == batch.start_ns.tolist() == [NOW_NS - SECOND]


def test_a_monotonic_clock_taken_for_the_wall_clock_is_mended() -> None:
    batch, found = judged(44_511_913_730_532, 44_511_913_730_532 + 3 * SECOND)
    assert (found.quarantine.tolist(), found.repaired.tolist()) == ([0], [True])
    assert (batch.start_ns.tolist(), batch.end_ns.tolist()) == ([NOW_NS - 3 * SECOND], [NOW_NS])


def test_one_bad_span_does_not_touch_its_neighbours() -> None:
    request = one_span(start_time_unix_nano=NOW_NS - SECOND, end_time_unix_nano=NOW_NS)
    spans = request.resource_spans[0].scope_spans[0].spans
    for start, end, _ in SET_ASIDE:
        spans.add(
            trace_id=b"t" * 16, span_id=b"v" * 8, start_time_unix_nano=start, end_time_unix_nano=end
        )
        spans.add().CopyFrom(spans[0])
    batch = add(Decoder([]), request)
    found = judge(batch)
    np.testing.assert_array_equal(found.quarantine[::2], 0)
    assert (found.quarantine[1::2] > 0).all()
    assert (batch.end_ns - batch.start_ns >= 0)[found.quarantine == 0].all()
