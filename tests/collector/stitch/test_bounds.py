"""Open state is bounded: per trace, per tenant and in all, and what is dropped is counted."""

from collections.abc import Iterator

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.pipeline import Pipeline
from tailburn.collector.stitch.rows import PromptClasses
from tailburn.collector.stitch.table import Bounds
from tests.captures.scenarios.drive import shipped_rules
from tests.captures.scenarios.hops import call, engine, gateway
from tests.captures.scenarios.otlp import Delivery, Span, at, body


class Driven:
    """A pipeline with its decoder."""

    def __init__(self, bounds: Bounds) -> None:
        rules = shipped_rules()
        self.decoder = Decoder(rules.wanted)
        self.pipeline = Pipeline(
            Classifier(rules, self.decoder.dictionary, self.decoder.resources),
            self.decoder.dictionary,
            self.decoder.resources,
            classes=PromptClasses((128,), ("<=128", ">128")),
            bounds=bounds,
        )

    def take(self, delivery: Delivery, tenant: str = "one") -> None:
        self.pipeline.advance(delivery.received_ns)
        self.decoder.add(
            bytearray(body(delivery.spans)), received_ns=delivery.received_ns, tenant=tenant
        )
        self.pipeline.add(self.decoder.take(), self.decoder.take_rejected())

    def rows(self) -> list[dict[str, object]]:
        tables = self.pipeline.take_rows()
        return tables["requests"].to_pylist() if "requests" in tables else []

    def dropped(self) -> dict[tuple[str, str], int]:
        return dict(self.pipeline.balance.reasons)

    def held(self) -> int:
        return int(self.pipeline._table.counts[1:].sum())

    def is_balanced(self) -> bool:
        return all(line.unaccounted == 0 for line in self.pipeline.balance.lines())


def steps(count: int, begin: int = 0) -> Iterator[Span]:
    """Pieces inside the call that no rule knows."""
    return (Span(f"step {begin + i}", "step", 1, 2, "call") for i in range(count))


def test_a_trace_over_its_bound_loses_pieces_and_keeps_its_hops() -> None:
    driven = Driven(Bounds(spans_per_trace=100))
    driven.take(at(2, *steps(150)))
    driven.take(at(3, call(0, 1000, 300), gateway(10, 990), engine(20, 220, 950)))
    driven.pipeline.close_all(10**19 // 2)
    (row,) = driven.rows()
    assert row["ttft_engine_s"] == 0.2
    assert driven.dropped() == {("dropped", "trace full"): 50}
    assert driven.is_balanced()


def test_a_tenant_over_its_bound_costs_no_other_tenant_anything() -> None:
    driven = Driven(Bounds(spans_per_tenant=100))
    driven.take(at(2, *steps(150)), tenant="greedy")
    driven.take(at(3, call(0, 1000, 300), gateway(10, 990)), tenant="modest")
    assert driven.dropped() == {("dropped", "tenant full"): 50}
    driven.pipeline.close_all(10**19 // 2)
    assert [row["tenant"] for row in driven.rows()] == ["modest"]
    assert driven.is_balanced()


def test_traces_without_end_are_given_early_and_none_is_refused() -> None:
    driven = Driven(Bounds(spans_in_all=1000, keep_spans=200))
    for i in range(60):
        served = (
            gateway(0, 100, f"served {i} {j}", "never came", trace=f"{i} {j}") for j in range(50)
        )
        driven.take(at(2 + i / 1000, *served))
        assert driven.held() <= 1000
    driven.pipeline.close_all(10**19 // 2)
    rows = driven.rows()
    assert len(rows) == 3000
    assert {row["completeness"] for row in rows} == {"rootless"}
    assert driven.dropped() == {}
    assert driven.is_balanced()


def test_closed_traces_do_not_pile_up() -> None:
    driven = Driven(Bounds(keep_spans=300, keep_ns=10**15))
    for i in range(40):
        pairs = (call(0, 100, 50, f"call {i} {j}", trace=f"{i} {j}") for j in range(50))
        driven.take(at(2 + 10 * i, *pairs))
    assert driven.held() <= 1000


def test_a_clock_set_back_stops_no_request_from_closing() -> None:
    driven = Driven(Bounds())
    driven.take(at(1000, call(0, 100, 50, "ahead", trace="ahead")))
    driven.take(at(1001, *steps(1)))
    driven.pipeline.advance(at(1002).received_ns)
    driven.take(at(2, call(0, 100, 50, "after", trace="after")))
    driven.pipeline.advance(at(20).received_ns)
    assert {row["e2e_client_s"] for row in driven.rows()} == {0.1}
    driven.take(at(21, call(0, 200, 50, "later", trace="later")))
    driven.pipeline.advance(at(40).received_ns)
    assert [row["e2e_client_s"] for row in driven.rows()] == [0.2]


def test_it_is_told_whether_any_request_may_still_get_spans() -> None:
    driven = Driven(Bounds())
    assert not driven.pipeline.has_open
    driven.take(at(2, call(0, 100, 50)))
    assert driven.pipeline.has_open
    driven.pipeline.close_all(10**19 // 2)
    assert not driven.pipeline.has_open
