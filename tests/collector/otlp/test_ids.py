"""Ids of one request in the dress of several hops."""

import pytest

from bench.bodies import key_values
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.otlp.ids import id_hash
from tailburn.collector.otlp.wanted import Want, Wanted
from tests.collector.otlp.test_decoder import add, one_span

SAME = [
    ("chatcmpl-b9c49b13144a49e2", "b9c49b13144a49e2"),
    ("cmpl-b9c49b13144a49e2-0", "b9c49b13144a49e2"),
    ("cmpl-b9c49b13144a49e2-117", "b9c49b13144a49e2"),
    ("resp_b9c49b13144a49e2_0", "b9c49b13144a49e2"),
]
DIFFERENT = [
    ("nightly-job-7", "nightly-job-8"),  # the caller's own numbers
    ("chatcmpl-nightly-job-7", "chatcmpl-nightly-job-8"),
    ("cmpl-1234567-1", "1234567"),  # too short to be cut
    ("cmpl-b9c49b13144a49e2-1234", "b9c49b13144a49e2"),  # four digits are no number of a prompt
    ("cmpl-b9c49b13144a49e2-0-0", "b9c49b13144a49e2"),  # one suffix
    ("chatcmpl-chatcmpl-b9c49b13144a49e2", "b9c49b13144a49e2"),  # one prefix
    ("b9c49b13144a49e2-a", "b9c49b13144a49e2"),
    ("B9C49B13144A49E2", "b9c49b13144a49e2"),
    ("83a79c8a-6464-4d3a-bdd7-d1666843005e", "83a79c8a-6464-4d3a-bdd7"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_id_in_other_dress(one: str, other: str) -> None:
    assert id_hash(one) == id_hash(other) != 0


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_ids(one: str, other: str) -> None:
    assert id_hash(one) != id_hash(other)


def test_no_id_is_zero() -> None:
    assert id_hash("") == 0


def test_hashes_last() -> None:
    """They are kept in snapshots: a change of this figure breaks every store."""
    assert id_hash("chatcmpl-b9c49b13144a49e2") == LASTING


def test_the_decoder_hashes_as_python_does() -> None:
    decoder = Decoder([Wanted("id", Want.ID)])
    for text in {text for pair in SAME + DIFFERENT for text in pair}:
        batch = add(decoder, one_span(attributes=key_values({"id": text})))
        assert batch.wanted_id.tolist() == [id_hash(text)]


LASTING = 0x44B0899091A4C4D8
