"""An answer of any bytes is read or refused, and every sample of it has one fate."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.reading import Answer, read_body
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.mapper import Mapper, signals_table
from tests.collector.signals.reading import RECEIVED_NS, saved, target

BITES = (b"{", b"}", b'"', b"\\", b"\n", b"# ", b",", b"=", b" ", b"\xff", b"\x00", b"1e999")


def read(body: bytes) -> Answer | None:
    """None where it is refused with a reason."""
    catalogue, at = load_catalogue(), target()
    try:
        answer = read_body(body, Mapper(catalogue, at), catalogue)
    except ScrapeError as error:
        assert error.reason in (Reason.NOT_METRICS, Reason.TOO_LARGE)
        return None
    table = signals_table(answer.mapped, catalogue, at, RECEIVED_NS)
    assert table.num_rows == 1 + len(answer.mapped.rows)
    unknown = answer.scanned.lines - answer.mapped.samples - answer.scanned.dropped.total()
    assert unknown >= 0
    return answer


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    read(body)
    read(b"vllm:num_requests_running" + body)


@settings(max_examples=25)
@given(st.integers(0, 1 << 30), st.sampled_from(["vllm-0.32.0", "litellm-1.108", "smg-1.13.0"]))
def test_an_answer_that_got_damaged_loses_the_damaged_lines(seed: int, name: str) -> None:
    rng = random.Random(seed)
    whole = read(saved(name))
    assert whole is not None and not whole.scanned.dropped
    damaged = bytearray(saved(name))
    places = sorted(rng.randrange(len(damaged)) for _ in range(rng.randint(1, 5)))
    for place in reversed(places):
        damaged[place : place + rng.randint(0, 3)] = rng.choice(BITES)
    answer = read(bytes(damaged))
    assert answer is not None
    # A line break put in makes two damaged lines of one, one taken out makes one of two.
    assert answer.mapped.samples >= whole.mapped.samples - 2 * len(places)


def test_an_answer_of_comments_alone_is_no_metrics() -> None:
    with pytest.raises(ScrapeError, match="answers 13 bytes without one sample"):
        read_body(b"# TYPE a b\n\n\n", Mapper(load_catalogue(), target()), load_catalogue())
