"""`tailburn clients`: what each client does, and what it did a day before."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.conftest import Run
from tests.app.rows import RECEIVED_NS, make_rows

DAY_NS = 86_400_000_000_000
N = 100


def published(store: ParquetStore, day: int, **columns: list[Any]) -> None:
    """A hundred requests of a day."""
    rows = make_rows(
        received_ns=[RECEIVED_NS + day * DAY_NS] * N,
        request_id=[f"{day:08x}{i:08x}" for i in range(N)],
        trace_id=[f"{day:016x}{i:016x}" for i in range(N)],
        **({"streamed": [True] * N, "attempts": [1] * N} | columns),
    )
    store.publish("requests", rows, LogRange(day + 1, day + 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A day as ever; one on which an app stops streaming and asks again; one of few requests."""
    store = ParquetStore(tmp_path / "store")
    apps = ["app\x1b[2J"] * 80 + ["bot"] * 20
    published(store, 0, client=apps)
    published(
        store,
        1,
        client=apps,
        streamed=[False] * 60 + [True] * 40,
        attempts=[3] * 40 + [1] * 60,
    )
    published(store, 2, tenant=["acme"] * N, http_status=[504] * 25 + [200] * 75)
    return tmp_path / "store"


def _window(day: int) -> list[str]:
    since_ns = RECEIVED_NS + day * DAY_NS - 60 * 10**9
    ends = (
        datetime.fromtimestamp(ns // 10**9, UTC).isoformat()
        for ns in (since_ns, since_ns + 120 * 10**9)
    )
    return [
        word for flag, end in zip(("--since", "--until"), ends, strict=True) for word in (flag, end)
    ]


def asked(run: Run, folder: Path, day: int, *flags: object) -> list[dict[str, Any]]:
    answer = run("clients", "--store", folder, *_window(day), *flags, "--json")
    assert (answer.code, answer.err) == (0, "")
    return [json.loads(line) for line in answer.out.splitlines()]


def test_both_changes_are_findings_with_their_figures(run: Run, folder: Path) -> None:
    rows = asked(run, folder, 1)
    found = {row["kind"]: row for row in rows if row.get("verdict") == "found"}
    assert set(found) == {"not streaming", "retry wave"}
    stopped, wave = found["not streaming"], found["retry wave"]
    assert (stopped["share"], stopped["baseline_share"]) == (0.25, 1)
    assert (wave["attempts_per_request"], wave["baseline_attempts_per_request"]) == (2, 1)
    assert all(row["p"] < row["level"] and "Look" not in row["remedy"] for row in found.values())


def test_clients_add_up_to_the_total(run: Run, folder: Path) -> None:
    rows = asked(run, folder, 1)
    counts = [row["count"] for row in rows if row["what"] == "client"]
    total = next(row for row in rows if row["what"] == "total")
    assert counts == [80, 20] and total["count"] == total["baseline_count"] == N
    assert total["capped_share"] is None and total["capped_told"] == 0


def test_it_reads_well(run: Run, folder: Path) -> None:
    answer = run("clients", "--store", folder, *_window(1))
    told = answer.out
    assert answer.code == 0 and "not told" in told
    assert "not streaming. It streams 25.0% of 80 requests, 24h before 100.0% of 80" in told
    assert "retry wave. It tries 2.00 times a request, 24h before 1.00" in told
    assert "not judged for bot: under 50 requests that tell, now or 24h before" in told
    assert "\x1b" not in told


def test_a_client_as_ever_is_said_to_be(run: Run, folder: Path) -> None:
    told = run("clients", "--store", folder, *_window(1), "--ago", "1s").out
    assert "Streaming and retries are as before: 2 judged" in told


def test_the_caller_is_the_first_column_that_is_told(run: Run, folder: Path) -> None:
    assert {row["by"] for row in asked(run, folder, 1)} == {"client"}
    rows = asked(run, folder, 2, "--ago", "7d")
    assert {row["by"] for row in rows} == {"tenant"}
    assert rows[0]["name"] == "acme" and rows[0]["timed_out_share"] == 0.25
    assert {row["by"] for row in asked(run, folder, 2, "--by", "service")} == {"service"}


def test_a_filter_narrows_it(run: Run, folder: Path) -> None:
    names = [row["name"] for row in asked(run, folder, 1, "--where", "client=bot")]
    assert set(names) == {"bot", "total"}


def test_without_a_request_it_says_so(run: Run, folder: Path) -> None:
    answer = run("clients", "--store", folder, *_window(9))
    assert (answer.out, answer.code) == ("", 0)
    assert "no data: nothing fits, now or 24h before" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--ago", "yesterday"), "--ago 'yesterday': want a duration such as"),
        (("--by", "tenent"), "can't tell clients by 'tenent'; did you mean tenant?"),
    ],
)
def test_bad_options_are_told(run: Run, folder: Path, flags: tuple[str, str], said: str) -> None:
    answer = run("clients", "--store", folder, *flags)
    assert answer.code == 2 and said in answer.err
