"""received = the sum of all fates, always."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailburn.collector.balance import Balance

codes = st.lists(st.integers(0, 200), max_size=30)


@given(st.lists(st.tuples(codes, st.sampled_from(["stored", "folded", "duplicate", "dropped"]))))
def test_every_span_has_one_fate(batches: list[tuple[list[int], str]]) -> None:
    balance = Balance()
    for spans, fate in batches:
        resource = np.array(spans, np.int32)
        balance.receive(resource)
        balance.settle(resource, fate, "why" if fate == "dropped" else "")
    lines = list(balance.lines())
    assert all(line.unaccounted == 0 for line in lines)
    assert all(line.fates["open"] == 0 for line in lines)
    assert sum(line.received for line in lines) == sum(len(spans) for spans, _ in batches)


def test_a_rejected_span_counts_as_received_with_its_reason() -> None:
    balance = Balance()
    balance.reject(500, "trace_id", 3)
    (line,) = balance.lines()
    assert (line.resource, line.received, line.fates["rejected"]) == (500, 3, 3)
    assert balance.reasons["rejected", "trace_id"] == 3


def test_thinning_moves_stored_spans() -> None:
    balance = Balance()
    balance.receive(np.zeros(10, np.int32))
    balance.settle(np.zeros(10, np.int32), "stored")
    balance.sample_out(0, 4)
    (line,) = balance.lines()
    assert (line.fates["stored"], line.fates["sampled_out"], line.unaccounted) == (6, 4, 0)


def test_a_restored_balance_goes_on() -> None:
    balance = Balance()
    balance.receive(np.array([1, 1, 7], np.int32))
    balance.settle(np.array([7], np.int32), "quarantined", "future")
    again = Balance.restore(balance.state())
    assert [vars(line) for line in again.lines()] == [vars(line) for line in balance.lines()]
    assert again.reasons == balance.reasons
