"""`tailburn compare`: a window against the same one a day before."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tailburn.app.answers.compare import replicas_verdict
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.conftest import Run
from tests.app.rows import RECEIVED_NS, make_rows

DAY_NS = 86_400_000_000_000
N = 100


def published(store: ParquetStore, part: int, received_ns: int, queue_s: float, long: int) -> None:
    """A hundred requests of which `long` have a prompt a hundred times as long."""
    prefill = [2.0 if i < long else 0.125 for i in range(N)]
    rows = make_rows(
        received_ns=[received_ns] * N,
        request_id=[f"{part:08x}{i:08x}" for i in range(N)],
        trace_id=[f"{part:016x}{i:016x}" for i in range(N)],
        model=["llama"] * N,
        streamed=[True] * N,
        prompt_tokens=[10_000 if i < long else 100 for i in range(N)],
        output_tokens=[64] * N,
        ttft_queue_s=[queue_s] * N,
        ttft_prefill_s=prefill,
    )
    store.publish("requests", rows, LogRange(part, part))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A healthy day, one with a queue, one with longer prompts."""
    store = ParquetStore(tmp_path / "store")
    for part, (queue_s, long) in enumerate([(0.125, 0), (1.125, 0), (1.125, 50)]):
        published(store, part + 1, RECEIVED_NS + part * DAY_NS, queue_s, long)
    return tmp_path / "store"


def compared(run: Run, folder: Path, day: int, *flags: object) -> list[dict[str, Any]]:
    answer = run("compare", "--store", folder, *_window(day), *flags, "--json")
    assert answer.code == 0
    return [json.loads(line) for line in answer.out.splitlines()]


def _window(day: int) -> list[str]:
    since_ns = RECEIVED_NS + day * DAY_NS - 60 * 10**9
    ends = (
        datetime.fromtimestamp(ns // 10**9, UTC).isoformat()
        for ns in (since_ns, since_ns + 120 * 10**9)
    )
    return [
        word for flag, end in zip(("--since", "--until"), ends, strict=True) for word in (flag, end)
    ]


def test_a_queue_that_grew_is_a_hop_and_no_mix(run: Run, folder: Path) -> None:
    rows = compared(run, folder, 1)
    effects = {row["hop"]: row["effect_ns"] for row in rows if row["clock"] == "ttft"}
    assert effects == {"mix": 0, "queue": 10**9, "total": 10**9}


def test_longer_prompts_are_mix(run: Run, folder: Path) -> None:
    rows = compared(run, folder, 2)
    effects = {row["hop"]: row["effect_ns"] for row in rows if row["clock"] == "ttft"}
    assert effects == {"mix": 1_875_000_000, "total": 1_875_000_000}


def test_who_made_requests_bad_is_dealt_out(run: Run, folder: Path) -> None:
    rows = [r for r in compared(run, folder, 1, "--threshold", "500ms") if r["what"] == "bad"]
    assert [(r["hop"], r["cured"], r["shapley"]) for r in rows] == [
        ("queue", N, N),
        ("total", N, N),
    ]
    assert rows[0]["lower_bound"] and rows[-1]["baseline_bad_ratio"] == 0


def test_it_reads_well(run: Run, folder: Path) -> None:
    told = run("compare", "--store", folder, *_window(1), "--threshold", "500ms").out
    assert "queue is most of the change. Look next:" in told
    assert "100 of 100 requests, 24h before 0.0%" in told and "at least 100" in told
    assert "The queue owns the miss (100%), and no more is asked for than before" in told
    assert "5.0 % over 500ms, burns down to -1900.0 %; the queue alone (at least) to" in told
    told = run("compare", "--store", folder, *_window(2)).out
    assert "Other requests than before are most of the change" in told


def test_replicas_are_advised_only_where_the_queue_owns_and_more_is_asked() -> None:
    def told(queue: float, **total: object) -> str:
        rows = [{"hop": "queue", "share": queue}, {"hop": "total", "bad": 10} | total]
        return replicas_verdict(rows)

    grown = {"requests_ratio": 1.0, "tokens_ratio": 1.4}
    assert told(0.8, owner="queue", **grown) == (
        "The queue owns the miss (80%) and more is asked for: add replicas."
    )
    flat = told(0.8, owner="queue", requests_ratio=1.02, tokens_ratio=0.9)
    assert "add replicas" not in flat and "symptom" in flat
    assert told(0.2, owner="retrieval", **grown) == (
        "More replicas would not cure it: the queue has 20% of the miss."
    )
    assert told(0.0, bad=0) == "Nothing missed: no replicas are wanted."


def test_the_budget_burns_down_part_by_part(run: Run, folder: Path) -> None:
    rows = [
        r
        for r in compared(run, folder, 1, "--threshold", "500ms", "--objective", "99%")
        if r["what"] == "queue"
    ]
    assert len(rows) == 60 and sum(r["bad"] for r in rows) == sum(r["queued"] for r in rows) == N
    assert rows[0]["left_ratio"] == 1 and rows[-1]["left_ratio"] == pytest.approx(1 - N / 1)


def test_throughput_bought_with_delay_is_noted(run: Run, tmp_path: Path) -> None:
    store = ParquetStore(tmp_path / "store")
    for part, (factor, tokens) in enumerate([(1.0, 64), (2.0, 128)]):
        rows = make_rows(
            received_ns=[RECEIVED_NS + part * DAY_NS] * 400,
            request_id=[f"{part:08x}{i:08x}" for i in range(400)],
            trace_id=[f"{part:016x}{i:016x}" for i in range(400)],
            ttft_engine_s=[(0.1 + i / 1000) * factor for i in range(400)],
            ttft_prefill_s=[(0.1 + i / 1000) * factor for i in range(400)],
            output_tokens=[tokens] * 400,
            replica=["a", "b"] * 200,
        )
        store.publish("requests", rows, LogRange(part + 1, part + 1))
    told = run("compare", "--store", tmp_path / "store", *_window(1)).out
    assert (
        "Throughput bought with delay: p95 of the first token x 2.00 (engine) and "
        "tokens/s x 2.00, x 2.00 for each replica that served, at x 1.00 requests" in told
    )


def test_without_a_baseline_it_says_so(run: Run, folder: Path) -> None:
    answer = run("compare", "--store", folder, *_window(0))
    assert (answer.out, answer.code) == ("", 0)
    assert "no data: nothing fits, now or 24h before" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--ago", "yesterday"), "--ago 'yesterday': want a duration such as"),
        (("--threshold", "fast"), "--threshold 'fast': want a duration such as"),
        (("--slowest", "200%"), "--slowest '200%': want a share such as 5%"),
        (("--objective", "0"), "--objective '0': want a share such as 5%"),
    ],
)
def test_bad_options_are_told(run: Run, folder: Path, flags: tuple[str, str], said: str) -> None:
    answer = run("compare", "--store", folder, *flags)
    assert answer.code == 2 and said in answer.err
