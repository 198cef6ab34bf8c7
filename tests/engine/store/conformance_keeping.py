"""What every store must do about what is old or too much: thin spans, drop hours."""

from tailburn.engine.store import Keeping, Kept, LogRange
from tests.engine.store import samples
from tests.engine.store.conformance import Open, ids
from tests.engine.store.samples import HOUR_NS, T0, trace_hex


class KeepingConformance:
    """Of a backend that opens its store as `StoreConformance` says."""

    # Thinning

    def test_thinning_keeps_slow_and_failed_traces_whole_and_a_weighted_sample(
        self, open_store: Open
    ) -> None:
        store = open_store(Keeping(spans_full=Kept(2), sample_ratio=0.25))
        rows = [
            samples.request(i, ttft_client_s=0.1 + i / 1000, outcome="error" if i == 3 else "ok")
            for i in range(400)
        ]
        store.publish("requests", samples.requests(*rows), LogRange(1, 1))
        every = [samples.span(i, n) for i in range(400) for n in range(3)]
        store.publish("spans", samples.spans(*every), LogRange(1, 1))
        assert not store.compact(T0 + 2 * HOUR_NS, durable_position=1).sampled_out
        done = store.compact(T0 + 3 * HOUR_NS, durable_position=1)
        left = store.spans_of(store.closed_traces())
        assert done.sampled_out == {'{"service.name":"chat"}': 1200 - len(left)}
        per_trace = {i: ids(left).count(trace_hex(i)) for i in range(400)}
        assert set(per_trace.values()) == {0, 3}
        assert all(per_trace[i] == 3 for i in (3, *range(380, 400)))
        weight = {x["trace_id"].hex(): x["weight"] for x in left.to_pylist()}
        assert weight[trace_hex(3)] == weight[trace_hex(390)] == 1.0
        sampled = [w for w in weight.values() if w != 1.0]
        assert set(sampled) == {4.0}
        assert 60 <= len(sampled) <= 130  # 379 traces at 1 in 4: mean 95, sigma 8.4
        assert len(store.requests()) == 400

    def test_thinning_happens_once_and_treats_late_spans_like_their_trace(
        self, open_store: Open
    ) -> None:
        store = open_store(Keeping(spans_full=Kept(0), sample_ratio=0.5))
        every = [samples.span(i, 0) for i in range(200)]
        store.publish("spans", samples.spans(*every), LogRange(1, 1))
        store.compact(T0 + HOUR_NS, durable_position=2)
        first = set(ids(store.query("SELECT trace_id_hex AS trace_id FROM spans")))
        assert store.compact(T0 + HOUR_NS, durable_position=2).hours == 0
        late = [samples.span(i, 1) for i in range(200)]
        store.publish("spans", samples.spans(*late), LogRange(2, 2))
        store.compact(T0 + HOUR_NS, durable_position=2)
        found = store.query("SELECT trace_id_hex AS trace_id, weight FROM spans")
        assert set(ids(found)) == first
        assert len(found) == 2 * len(first)
        assert set(found.column("weight").to_pylist()) == {2.0}

    def test_too_many_bytes_thin_the_oldest_hour_early(self, open_store: Open) -> None:
        store = open_store(Keeping(spans_full=Kept(100, bytes=20_000), sample_ratio=0.01))
        for hour in range(2):
            rows = [
                samples.span(i, n, received_ns=T0 + hour * HOUR_NS)
                for i in range(100)
                for n in range(3)
            ]
            store.publish("spans", samples.spans(*rows), LogRange(1, 1))
        store.compact(T0 + 2 * HOUR_NS, durable_position=1)
        per_hour = store.query(
            f"SELECT CAST((received_ns - {T0}) // {HOUR_NS} AS INTEGER) AS hour, count(*) AS n "
            "FROM spans GROUP BY 1"
        )
        left = {x["hour"]: x["n"] for x in per_hour.to_pylist()}
        assert left.get(0, 0) < 30
        assert left[1] == 300

    # Retention

    def test_retention_drops_whole_hours_by_age(self, open_store: Open) -> None:
        store = open_store(Keeping(requests=Kept(2), spans=Kept(100)))
        for hour in range(5):
            at = T0 + hour * HOUR_NS
            store.publish(
                "requests", samples.requests(samples.request(hour, received_ns=at)), LogRange(1, 1)
            )
            store.publish(
                "spans", samples.spans(samples.span(hour, 0, received_ns=at)), LogRange(1, 1)
            )
        retired = store.retain(T0 + 5 * HOUR_NS - 1)
        assert retired["requests"].hours == 2
        assert retired["requests"].bytes > 0
        assert ids(store.requests()) == sorted(trace_hex(i) for i in (2, 3, 4))
        assert store.usage()["spans"].rows == 5

    def test_retention_drops_the_oldest_hours_beyond_the_bytes_and_never_the_running_one(
        self, open_store: Open
    ) -> None:
        store = open_store(Keeping(requests=Kept(1000, bytes=1)))
        for hour in range(3):
            at = T0 + hour * HOUR_NS
            store.publish(
                "requests", samples.requests(samples.request(hour, received_ns=at)), LogRange(1, 1)
            )
        assert store.retain(T0 + 2 * HOUR_NS + 1)["requests"].hours == 2
        assert ids(store.requests()) == [trace_hex(2)]
