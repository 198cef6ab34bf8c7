"""Which spans outlive the thinning of their hour."""

import numpy as np
import pytest

from tailburn.engine.store.keeping import Keeping, in_sample, notable_traces, thin
from tailburn.engine.store.rows import ids_of_binary, ids_of_hex
from tests.engine.store import samples
from tests.engine.store.conformance import traces


def test_the_slowest_of_each_service_and_clock_are_notable() -> None:
    rows = [
        *(samples.request(i, service="a", ttft_gateway_s=1 + i / 100) for i in range(40)),
        *(samples.request(i, service="b", e2e_engine_s=100 - i) for i in range(100, 140)),
        samples.request(200, service="c", ttft_client_s=0.01),
    ]
    slow = {38, 39, 100, 101, 200}
    assert set(notable_traces(samples.requests(*rows)).tolist()) == set(traces(*slow).tolist())


def test_the_outermost_vantage_decides_what_is_slow() -> None:
    rows = [
        samples.request(i, ttft_client_s=float(i), ttft_engine_s=float(20 - i)) for i in range(20)
    ]
    assert notable_traces(samples.requests(*rows)).tolist() == traces(19).tolist()


@pytest.mark.parametrize(
    ("outcome", "notable"),
    [("error", True), ("cancelled", True), ("ok", False), ("unknown", False), (None, False)],
)
def test_failed_requests_are_notable(outcome: str | None, notable: bool) -> None:
    found = notable_traces(samples.requests(samples.request(1, outcome=outcome)))
    assert found.tolist() == (traces(1).tolist() if notable else [])


def test_no_requests_make_nothing_notable() -> None:
    assert notable_traces(samples.requests()).tolist() == []


@pytest.mark.parametrize("half", [0, 1], ids=["begin alike", "end alike"])
def test_a_sample_holds_its_share_and_a_smaller_one_lies_within_it(half: int) -> None:
    words = np.zeros((100_000, 2), np.uint64)
    words[:, 1 - half] = np.arange(100_000)
    ids = words.view("S16").reshape(-1)
    twentieth, half_of_them = in_sample(ids, 0.05), in_sample(ids, 0.5)
    assert abs(int(twentieth.sum()) - 5000) < 5 * 69  # five sigma of a binomial
    assert not (twentieth & ~half_of_them).any()
    assert in_sample(ids, 1.0).all()


def test_thinning_grows_the_weight_that_a_span_already_has() -> None:
    rows = samples.spans(*(samples.span(i, 0, weight=2.0) for i in range(50)))
    kept, dropped = thin(rows, traces(7), 0.25)
    weights = dict(
        zip(kept.column("trace_id").to_pylist(), kept.column("weight").to_pylist(), strict=True)
    )
    assert weights.pop(bytes.fromhex(samples.trace_hex(7))) == 2.0
    assert set(weights.values()) == {8.0}
    assert dropped.total() == 50 - len(kept)


@pytest.mark.parametrize("ratio", [0, -1, 1.5])
def test_a_sample_ratio_outside_its_range_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="sample ratio"):
        Keeping(sample_ratio=ratio)


def test_ids_of_hex_and_of_bytes_agree_and_hex_is_checked() -> None:
    spans = samples.spans(*(samples.span(i, 0) for i in range(20)))
    requests = samples.requests(*(samples.request(i) for i in range(20)))
    expected = traces(*range(5, 20)).tolist()
    assert ids_of_binary(spans.column("trace_id").slice(5)).tolist() == expected
    assert ids_of_hex(requests.column("trace_id").slice(5)).tolist() == expected
    for wrong in ("", "00", "g" * 32):
        bad = samples.requests(samples.request(1, trace_id=wrong))
        with pytest.raises(ValueError, match="32 hex digits"):
            ids_of_hex(bad.column("trace_id"))
