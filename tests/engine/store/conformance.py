"""What every store must do: a backend passes by subclassing and saying how it is opened."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine import rollup
from tailburn.engine.store import (
    BadQuery,
    Keeping,
    LogRange,
    NotDurable,
    Store,
    StoreError,
    UnknownColumn,
    Window,
)
from tailburn.engine.store.api import TraceIds
from tests.engine.store import samples
from tests.engine.store.samples import HOUR_NS, MINUTE_NS, SECOND_NS, T0, trace_hex

Open = Callable[[Keeping], Store]
"""Opens the same store again at each call within a test, with other bounds."""

NEVER = "a'] OR 1=1 --"


def ids(rows: pa.Table) -> list[str]:
    """The trace ids of a table, sorted."""
    found = rows.column("trace_id").to_pylist()
    return sorted(x.hex() if isinstance(x, bytes) else x for x in found)


def traces(*numbers: int) -> TraceIds:
    """The ids of numbered traces."""
    return np.array([bytes.fromhex(trace_hex(number)) for number in numbers], "S16")


class StoreConformance:
    """Every test gets an empty store."""

    @pytest.fixture
    def open_store(self) -> Iterator[Open]:
        """How the backend opens its store."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: Open) -> Store:
        return open_store(Keeping())

    # Nothing in it

    def test_an_empty_store_answers_everything_with_no_rows(self, store: Store) -> None:
        assert len(store.requests()) == 0
        assert len(store.trace(trace_hex(1)).spans) == 0
        assert len(store.closed_traces()) == 0
        assert len(store.rollups(by=["model"])) == 0
        for view in ("requests", "request_versions", "spans", "rollups", "signals", "verdicts"):
            assert store.query(f"SELECT count(*) FROM {view}").to_pylist()[0].popitem()[1] == 0
        assert store.usage()["requests"].rows == 0
        assert store.discard_after(0) == 0

    # What goes in comes out

    def test_a_request_comes_back_with_every_column(self, store: Store) -> None:
        rows = samples.requests(samples.request(1, ttft_client_s=0.25, streamed=True))
        store.publish("requests", rows, LogRange(1, 1))
        assert store.requests().to_pylist() == rows.to_pylist()
        assert store.requests().schema.equals(rows.schema)

    def test_a_span_comes_back_with_every_column(self, store: Store) -> None:
        rows = samples.spans(samples.span(1, 1), samples.span(1, 2))
        store.publish("spans", rows, LogRange(1, 1))
        found = store.trace(trace_hex(1)).spans
        assert found.to_pylist() == rows.to_pylist()
        assert found.schema.equals(rows.schema)

    def test_columns_left_out_come_back_null(self, store: Store) -> None:
        rows = samples.requests(samples.request(1)).drop_columns(["ttft_client_s", "lora"])
        store.publish("requests", rows, LogRange(1, 1))
        row = store.requests(columns=["ttft_client_s", "lora", "model"]).to_pylist()
        assert row == [{"ttft_client_s": None, "lora": None, "model": "llama"}]

    def test_a_column_that_is_none_is_refused(self, store: Store) -> None:
        rows = samples.requests(samples.request(1)).append_column("mood", pa.array(["glad"]))
        with pytest.raises(ValueError, match="mood"):
            store.publish("requests", rows, LogRange(1, 1))
        with pytest.raises(StoreError, match="no table 'moods'"):
            store.publish("moods", rows, LogRange(1, 1))

    def test_a_shared_dictionary_leaves_only_the_words_in_use(self, store: Store) -> None:
        everything = pa.array([f"model {i}" for i in range(10_000)])
        column = pa.DictionaryArray.from_arrays(pa.array([7, None], pa.int32()), everything)
        rows = samples.requests(samples.request(1), samples.request(2))
        at = rows.schema.get_field_index("model")
        store.publish("requests", rows.set_column(at, "model", column), LogRange(1, 1))
        assert store.requests(columns=["model"]).column("model").to_pylist() == ["model 7", None]
        assert store.usage()["requests"].bytes < 60_000

    # Versions

    def test_only_the_newest_version_is_latest(self, store: Store) -> None:
        older, newer = samples.request(1, model="a"), samples.request(1, version=2, model="b")
        store.publish("requests", samples.requests(older), LogRange(1, 1))
        store.publish("requests", samples.requests(newer), LogRange(2, 2))
        assert store.requests(columns=["model"]).to_pylist() == [{"model": "b"}]
        assert len(store.requests(latest=False)) == 2
        assert len(store.query("SELECT * FROM requests")) == 1
        assert len(store.query("SELECT * FROM request_versions")) == 2

    def test_a_tombstone_ends_a_request(self, store: Store) -> None:
        stone = samples.request(1, version=2, tombstone=True)
        store.publish("requests", samples.requests(samples.request(1), stone), LogRange(1, 1))
        assert len(store.requests()) == 0
        assert len(store.trace(trace_hex(1)).requests) == 0
        assert len(store.requests_of(traces(1))) == 2

    def test_a_newer_version_after_the_window_hides_the_older_one_in_it(self, store: Store) -> None:
        later = samples.request(1, version=2, received_ns=T0 + 3 * HOUR_NS)
        store.publish("requests", samples.requests(samples.request(1), later), LogRange(1, 1))
        assert len(store.requests(Window(T0, T0 + HOUR_NS))) == 0
        assert len(store.requests(Window(T0 + 2 * HOUR_NS, None))) == 1

    # Windows and filters

    def test_a_window_takes_its_start_and_leaves_its_end(self, store: Store) -> None:
        rows = samples.requests(*(samples.request(i) for i in range(4)))
        store.publish("requests", rows, LogRange(1, 1))
        window = Window(T0 + SECOND_NS, T0 + 3 * SECOND_NS)
        assert ids(store.requests(window)) == sorted([trace_hex(1), trace_hex(2)])
        assert store.closed_traces(window).tolist() == sorted(traces(1, 2).tolist())

    def test_rows_of_many_hours_are_found_by_their_hour(self, store: Store) -> None:
        rows = [samples.request(i, received_ns=T0 + i * HOUR_NS) for i in range(30)]
        store.publish("requests", samples.requests(*rows), LogRange(1, 1))
        window = Window(T0 + 20 * HOUR_NS, T0 + 22 * HOUR_NS)
        assert ids(store.requests(window)) == sorted([trace_hex(20), trace_hex(21)])
        usage = store.usage()["requests"]
        assert (usage.rows, usage.segments) == (30, 30)
        assert (usage.first_hour_ns, usage.last_hour_ns) == (T0, T0 + 29 * HOUR_NS)

    def test_filters_are_equal_to_a_value_and_unknown_finds_null(self, store: Store) -> None:
        one, other = samples.request(1, pool="batch"), samples.request(2, model="qwen")
        store.publish("requests", samples.requests(one, other), LogRange(1, 1))
        assert ids(store.requests(where={"model": "qwen"})) == [trace_hex(2)]
        assert ids(store.requests(where={"pool": "unknown"})) == [trace_hex(2)]
        assert ids(store.requests(where={"output_tokens": "64", "pool": "batch"})) == [trace_hex(1)]
        assert ids(store.requests(where={"tombstone": "true"})) == []

    @pytest.mark.parametrize("value", [NEVER, "x' OR 'a'='a", '"; DROP VIEW requests; --', "%", ""])
    def test_a_filter_value_is_never_code(self, store: Store, value: str) -> None:
        rows = samples.requests(samples.request(1), samples.request(2, model=value))
        store.publish("requests", rows, LogRange(1, 1))
        assert ids(store.requests(where={"model": value})) == [trace_hex(2)]
        assert len(store.requests()) == 2

    def test_a_name_that_is_no_column_is_refused(self, store: Store) -> None:
        with pytest.raises(UnknownColumn, match="no column"):
            store.requests(where={NEVER: "x"})
        with pytest.raises(UnknownColumn):
            store.requests(columns=[NEVER])
        with pytest.raises(UnknownColumn):
            store.rollups(by=["node"])
        with pytest.raises(UnknownColumn):
            store.rollups(where={NEVER: "x"})

    # Traces

    @pytest.mark.parametrize("trace_id", ["", "00", "zz" * 16, "0" * 31, NEVER, "ab" * 16])
    def test_an_unknown_trace_is_empty(self, store: Store, trace_id: str) -> None:
        store.publish("spans", samples.spans(samples.span(1, 1)), LogRange(1, 1))
        found = store.trace(trace_id)
        assert (len(found.spans), len(found.requests)) == (0, 0)

    def test_a_trace_is_found_by_upper_case_digits_and_within_a_hint(self, store: Store) -> None:
        store.publish(
            "spans", samples.spans(samples.span(1, 2), samples.span(1, 1)), LogRange(1, 1)
        )
        assert len(store.trace(trace_hex(1).upper()).spans) == 2
        assert len(store.trace(trace_hex(1), Window(T0, T0 + MINUTE_NS)).spans) == 2
        assert len(store.trace(trace_hex(1), Window(T0 + MINUTE_NS, None)).spans) == 0
        assert store.trace(trace_hex(1)).spans.column("name").to_pylist() == ["step 1", "step 2"]

    def test_traces_that_share_their_first_word_are_told_apart(self, store: Store) -> None:
        twin = bytes.fromhex(trace_hex(1))[:8] + b"another!"
        rows = samples.spans(samples.span(1, 1), samples.span(1, 2, trace_id=twin))
        store.publish("spans", rows, LogRange(1, 1))
        assert len(store.trace(trace_hex(1)).spans) == 1
        assert len(store.trace(twin.hex()).spans) == 1
        assert len(store.spans_of(traces(1))) == 1

    def test_spans_and_requests_are_found_by_their_traces(self, store: Store) -> None:
        store.publish(
            "spans", samples.spans(*(samples.span(i, 0) for i in range(50))), LogRange(1, 1)
        )
        store.publish(
            "requests", samples.requests(*(samples.request(i) for i in range(50))), LogRange(1, 1)
        )
        wanted = traces(30, 7, 7, 99)
        assert ids(store.spans_of(wanted)) == sorted([trace_hex(7), trace_hex(30)])
        assert ids(store.requests_of(wanted)) == sorted([trace_hex(7), trace_hex(30)])
        assert ids(store.spans_of(wanted, Window(T0 + 8 * SECOND_NS, None))) == [trace_hex(30)]
        assert store.requests_of(wanted).column("digests").to_pylist() in ([[7], [30]], [[30], [7]])
        assert len(store.spans_of(traces())) == 0
        closed = store.closed_traces()
        assert closed.tolist() == sorted(traces(*range(50)).tolist())

    # Rollups

    def test_rollups_add_up_over_segments_groups_and_minutes(self, store: Store) -> None:
        rows = [
            samples.request(i, model="ab"[i % 2], ttft_client_s=0.1 * (i + 1)) for i in range(200)
        ]
        for part in (rows[:90], rows[90:]):
            folded = rollup.fold(samples.requests(*part))
            store.publish("rollups", folded, LogRange(1, 1))
        merged = store.rollups(by=["model"], clocks=["ttft_client_s"]).to_pylist()
        by_model = {row["model"]: (row["count"], row["max_s"]) for row in merged}
        assert by_model == {"a": (100, pytest.approx(19.9)), "b": (100, pytest.approx(20.0))}
        whole = store.rollups(where={"model": "a"}, clocks=["ttft_client_s"])
        assert sum(whole.column("counts")[0].as_py()) == 100
        minutes = store.rollups(by=["minute_ns"], clocks=[rollup.REQUESTS]).sort_by("minute_ns")
        assert minutes.column("count").to_pylist() == [60, 60, 60, 20]
        assert minutes.column("minute_ns")[0].as_py() == T0

    def test_a_version_taken_back_leaves_no_trace_in_the_counts(self, store: Store) -> None:
        older = samples.requests(samples.request(1, ttft_client_s=9.0))
        newer = samples.requests(samples.request(1, version=2, ttft_client_s=0.5))
        for folded in (rollup.fold(older), rollup.fold(older, -1), rollup.fold(newer)):
            store.publish("rollups", folded, LogRange(1, 1))
        found = store.rollups(clocks=["ttft_client_s"])
        assert found.column("count").to_pylist() == [1]
        assert found.column("sum_s").to_pylist() == pytest.approx([0.5])

    # Verdicts

    def test_verdicts_add_up_by_minute_and_budget(self, store: Store) -> None:
        rows: list[dict[str, Any]] = [
            {"requests": 10, "bad": 1},
            {"requests": 5, "late": 2},
            {"minute_ns": T0 + MINUTE_NS, "requests": 7},
            {"by": '{"model": "a"}', "unmeasured": 3},
            {"definition": "ffffffff", "requests": 1},
        ]
        for at, row in enumerate(rows):
            store.publish("verdicts", samples.verdicts(row), LogRange(at, at))
        expected = samples.verdicts({"requests": 15, "bad": 1, "late": 2}, *rows[2:]).to_pylist()
        key = str
        assert sorted(store.verdicts().to_pylist(), key=key) == sorted(expected, key=key)
        assert store.verdicts(Window(T0 + 1, None)).to_pylist() == expected[1:2]
        assert store.verdicts(where={"by": '{"model": "a"}'}).to_pylist() == expected[2:3]
        assert store.discard_after(2) == 2
        assert store.verdicts().column("requests").to_pylist() == [15, 7]

    def test_a_key_that_verdicts_are_not_kept_by_is_refused(self, store: Store) -> None:
        with pytest.raises(UnknownColumn, match="'definitions'; did you mean definition"):
            store.verdicts(where={"definitions": "x"})
        with pytest.raises(UnknownColumn, match="excess isn't kept by"):
            store.excess(where={NEVER: "x"})

    # SQL

    def test_sql_reads_the_latest_requests_and_ids_as_hex(self, store: Store) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(1, 1))
        store.publish("spans", samples.spans(samples.span(1, 1)), LogRange(1, 1))
        joined = store.query(
            "SELECT s.name, s.attributes_num['gen_ai.usage.output_tokens'] AS tokens "
            "FROM requests r JOIN spans s ON s.trace_id_hex = r.trace_id WHERE r.model = ?",
            ["llama"],
        )
        assert joined.to_pylist() == [{"name": "step 1", "tokens": 12.0}]
        outside = Window(T0 + HOUR_NS, None)
        assert store.query("SELECT count(*) AS n FROM spans", window=outside).to_pylist() == [
            {"n": 0}
        ]

    @pytest.mark.parametrize(
        "sql",
        [
            "SELEKT 1",
            "",
            "SELECT nope FROM requests",
            "DROP VIEW requests",
            "SELECT 1; SELECT 2",
            "COPY (SELECT 1) TO '/tmp/out.csv'",
            "CREATE TABLE t AS SELECT 1",
            "INSERT INTO requests SELECT * FROM requests",
            "ATTACH '/tmp/x.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "PRAGMA database_list",
        ],
    )
    def test_sql_only_reads_the_store(self, store: Store, sql: str) -> None:
        with pytest.raises(BadQuery):
            store.query(sql)

    # Restart

    def test_a_restart_forgets_what_lies_past_its_position(self, store: Store) -> None:
        for i in (1, 2, 3):
            rows = samples.requests(samples.request(i))
            store.publish("requests", rows, LogRange(10 * i, 10 * i + 9))
        store.publish("spans", samples.spans(samples.span(9, 9)), LogRange(30, 39))
        assert store.discard_after(29) == 2
        assert ids(store.requests()) == sorted([trace_hex(1), trace_hex(2)])
        assert len(store.trace(trace_hex(9)).spans) == 0
        assert store.discard_after(29) == 0

    def test_a_range_that_began_before_the_position_and_ends_after_it_goes_whole(
        self, store: Store
    ) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(5, 15))
        assert store.discard_after(10) == 1
        assert len(store.requests()) == 0

    def test_another_opening_sees_what_was_published(self, open_store: Open, store: Store) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(1, 1))
        assert len(open_store(Keeping()).requests()) == 1

    # Compaction

    def test_compaction_changes_no_answer(self, store: Store) -> None:
        self.fill(store)
        before = self.answers(store)
        done = store.compact(T0 + 4 * HOUR_NS, durable_position=100)
        assert done.hours > 0
        assert done.segments > done.hours
        assert self.answers(store) == before
        assert store.compact(T0 + 4 * HOUR_NS, durable_position=100).hours == 0

    def test_compaction_leaves_the_hour_that_runs_and_what_isnt_durable(self, store: Store) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(1, 5))
        assert store.compact(T0 + HOUR_NS - 1, durable_position=5).hours == 0
        assert store.compact(T0 + HOUR_NS, durable_position=4).hours == 0
        assert store.compact(T0 + HOUR_NS, durable_position=5).hours == 1

    def test_rows_published_after_a_compaction_are_seen_and_merged_in_turn(
        self, store: Store
    ) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(1, 5))
        store.compact(T0 + HOUR_NS, durable_position=5)
        for i in range(2, 12):
            store.publish("requests", samples.requests(samples.request(i)), LogRange(6, 6))
            assert len(store.requests()) == i
        assert store.compact(T0 + HOUR_NS, durable_position=6).hours == 1
        assert len(store.requests()) == 11

    def test_a_restart_from_before_a_compaction_is_refused(self, store: Store) -> None:
        store.publish("requests", samples.requests(samples.request(1)), LogRange(1, 5))
        store.compact(T0 + HOUR_NS, durable_position=5)
        assert store.discard_after(5) == 0
        with pytest.raises(NotDurable):
            store.discard_after(4)

    def test_reading_goes_on_while_others_write_and_compact(self, store: Store) -> None:
        def write() -> None:
            for i in range(30):
                store.publish("requests", samples.requests(samples.request(i)), LogRange(1, 1))
                if i % 5 == 4:
                    store.compact(T0 + HOUR_NS, durable_position=1)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            seen = [0]
            while not writing.done():
                seen.append(len(store.requests(columns=["request_id"])))
            writing.result()
        assert seen == sorted(seen)
        assert len(store.requests()) == 30

    # What the compaction tests ask

    def fill(self, store: Store) -> None:
        """Three hours of all tables in many segments, with versions and tombstones."""
        for part in range(12):
            numbers = range(part * 20, part * 20 + 20)
            at = {i: T0 + part % 3 * HOUR_NS + i * SECOND_NS for i in numbers}
            rows = samples.requests(
                *(
                    samples.request(i, received_ns=at[i], ttft_client_s=0.01 * (i + 1))
                    for i in numbers
                ),
                samples.request(part * 20, version=2, tombstone=True, received_ns=at[part * 20]),
            )
            log = LogRange(part, part)
            store.publish("requests", rows, log)
            store.publish("rollups", rollup.fold(rows), log)
            spans = [samples.span(i, n, received_ns=at[i]) for i in numbers for n in range(4)]
            store.publish("spans", samples.spans(*spans), log)
            signal = {"received_ns": T0, "time_ns": part, "name": "depth", "labels": "{}"}
            store.publish("signals", samples.signals(signal | {"value": float(part)}), log)
            hour = {"minute_ns": T0 + part % 3 * HOUR_NS}
            store.publish("verdicts", samples.verdicts(hour | {"requests": part}), log)
            store.publish("excess", samples.excess(hour | {"slow_ns": part}), log)

    def answers(self, store: Store) -> dict[str, object]:
        """Every kind of answer, in an order that storage can't change."""
        window = Window(T0 + HOUR_NS, T0 + HOUR_NS + 100 * SECOND_NS)
        some = traces(*range(0, 240, 7))
        merged = sorted(
            store.rollups(by=["minute_ns", "model"]).to_pylist(),
            key=lambda row: (row["minute_ns"], row["clock"]),
        )
        return {
            "requests": store.requests().sort_by("request_id").to_pylist(),
            "window": store.requests(window).sort_by("request_id").to_pylist(),
            "versions": sorted(map(str, store.requests_of(some).to_pylist())),
            "spans": sorted(map(str, store.spans_of(some).to_pylist())),
            "closed": store.closed_traces().tolist(),
            "trace": store.trace(trace_hex(77)).spans.to_pylist(),
            "rollups": [{k: v for k, v in x.items() if k != "sum_s"} for x in merged],
            "sums": [round(x["sum_s"], 9) for x in merged],
            "signals": store.query("SELECT * FROM signals ORDER BY time_ns").to_pylist(),
            "verdicts": store.verdicts().sort_by("minute_ns").to_pylist(),
            "excess": store.excess(window).to_pylist(),
        }
