"""`tailburn slo suggest`: a healthy store in, a file that `slo check` accepts out."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tailburn.engine.slo.model import Clock, Tier
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.conftest import Run
from tests.engine.suggest.rows import healthy

HOURS = 30


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty hours of chat that are well, with two hours of a fault, and a little batch work."""
    folder = tmp_path_factory.mktemp("suggest") / "store"
    chat = healthy(12_000, HOURS)
    slow = chat["ttft_gateway_s"].to_numpy().copy()
    slow[4_000:4_800] *= 20
    index = chat.schema.get_field_index("ttft_gateway_s")
    chat = chat.set_column(index, "ttft_gateway_s", pa.array(slow))
    batch = healthy(500, HOURS, seed=2, request_type="batch")
    store = ParquetStore(folder)
    store.publish("requests", chat, LogRange(1, 1))
    store.publish("requests", batch, LogRange(2, 2))
    return folder


def test_the_file_is_an_slo_and_thin_classes_are_told(run: Run, week: Path) -> None:
    answer = run("slo", "suggest", "--store", week, "-o", "slo")
    assert answer.code == 0 and "wrote slo/llama-chat.yaml" in answer.err
    assert (
        "model=llama, request_type=batch: too thin for an SLO: 500 requests with ttft in 30 hours; "
        "want 1,100 (they bound p95 within a tenth) in 24 hours" in answer.err
    )
    checked = run("slo", "check", "slo")
    assert checked.code == 0 and "ttft_p95" in checked.out


def test_a_time_left_out_moves_no_threshold(run: Run, week: Path) -> None:
    def ttft(*flags: object) -> float:
        text = run("slo", "suggest", "--store", week, "--where", "request_type=chat", *flags).out
        [slo] = parse([("it.yaml", text)]).slos
        assert slo.select == {"request_type": "chat", "model": "llama"}
        return slo.clocks[Clock.TTFT][Tier.ACCEPTABLE]["p95"]

    without = ttft("--except", _fault(week))
    assert without < 0.6 < ttft()


def _fault(week: Path) -> str:
    times = ParquetStore(week).requests(columns=["received_ns"])["received_ns"].to_numpy()
    first, last = (int(t) for t in sorted(times)[4_000:5_100:1_099])
    return f"{_iso(first - 600 * 10**9)}..{_iso(last)}"


def _iso(ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ns // 10**9, UTC).isoformat()


def test_rows_for_machines_hold_the_intervals(run: Run, week: Path) -> None:
    answer = run("slo", "suggest", "--store", week, "--json")
    rows = [json.loads(line) for line in answer.out.splitlines()]
    [p95] = [r for r in rows if r["type"] == "quantile" and (r["clock"], r["percentile"]) == (
        "ttft", "p95",
    )]  # fmt: skip
    assert p95["low_s"] <= p95["value_s"] <= p95["high_s"] < p95["acceptable_s"]
    [slo] = [r for r in rows if r["type"] == "slo"]
    assert slo["requests"] == 12_000 and slo["pages_a_month"][0] <= slo["pages_a_month"][2]
    assert [r["needed_requests"] for r in rows if r["type"] == "thin"] == [1_100]


def test_a_store_too_thin_for_any_slo_ends_with_1(run: Run, week: Path) -> None:
    answer = run("slo", "suggest", "--store", week, "--where", "request_type=batch")
    assert (answer.code, answer.out) == (1, "") and "too thin" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--by", "modle"), "--by 'modle': is no dimension; did you mean model?"),
        (("--headroom", "0.1"), "--headroom '0.1': want a share such as 10%"),
        (("--vantage", "gatway"), "--vantage 'gatway': is not known"),
        (("--except", "3d"), "--except '3d': want FROM..TO, such as 3d..2d"),
        (("--except", "2d..3d"), "--except '2d..3d': 2d is not before 3d"),
        (("--where", "outcome=ok"), "--where outcome=ok: an SLO selects by dimensions"),
        (("--since", "1m"), "no data: the store keeps no request of that time"),
        (("--model", "qwen"), "no data: nothing in that time fits"),
    ],
)
def test_what_can_not_be_asked_is_told(
    run: Run, week: Path, flags: tuple[str, str], said: str
) -> None:
    answer = run("slo", "suggest", "--store", week, *flags)
    assert answer.code == 2 and said in answer.err
