"""`tailburn slo suggest`: a healthy store in, a file that `slo check` accepts out."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tailburn.app.cli import cli
from tailburn.engine.slo.model import Clock, Tier
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.conftest import Run
from tests.engine.suggest.rows import healthy

HOURS = 27


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of chat that is well but for two hours of a fault, and a little batch work."""
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


@pytest.fixture(scope="module")
def told(week: Path) -> list[dict[str, Any]]:
    """What is suggested of all of it, as rows."""
    answer = CliRunner().invoke(cli, ["slo", "suggest", "--store", str(week), "--json"])
    assert answer.exit_code == 0
    assert (
        "model=llama, request_type=batch: too thin for an SLO: 500 requests with ttft in 27 hours; "
        "want 1,100 (they bound p95 within a tenth) in 24 hours" in answer.stderr
    )
    return [json.loads(line) for line in answer.stdout.splitlines()]


def of_type(told: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in told if row["type"] == kind]


def test_rows_hold_the_intervals_and_what_is_thin(told: list[dict[str, Any]]) -> None:
    by_name = {(r["clock"], r["percentile"]): r for r in of_type(told, "quantile")}
    p95 = by_name["ttft", "p95"]
    assert p95["low_s"] <= p95["value_s"] <= p95["high_s"] < p95["acceptable_s"]
    [slo] = of_type(told, "slo")
    assert slo["requests"] == 12_000 and slo["pages_a_month"][0] <= slo["pages_a_month"][2]
    assert [r["needed_requests"] for r in of_type(told, "thin")] == [1_100]


def test_the_file_is_an_slo_and_a_time_left_out_moves_no_threshold(
    run: Run, week: Path, told: list[dict[str, Any]]
) -> None:
    flags = ("--where", "request_type=chat", "--except", _fault(week), "-o", "slo")
    answer = run("slo", "suggest", "--store", week, *flags)
    assert answer.code == 0 and "wrote slo/llama.yaml" in answer.err
    assert run("slo", "check", "slo").code == 0
    [without] = parse([("it.yaml", Path("slo/llama.yaml").read_text())]).slos
    assert without.select == {"request_type": "chat", "model": "llama"}
    [slo] = of_type(told, "slo")
    [with_it] = parse([("it.yaml", slo["document"])]).slos
    p95 = [s.clocks[Clock.TTFT][Tier.ACCEPTABLE]["p95"] for s in (without, with_it)]
    assert p95[0] < 0.6 < p95[1]


def _fault(week: Path) -> str:
    times = ParquetStore(week).requests(columns=["received_ns"])["received_ns"].to_numpy()
    first, last = (int(t) for t in sorted(times)[4_000:5_100:1_099])
    ends = (
        datetime.fromtimestamp(ns // 10**9, UTC).isoformat() for ns in (first - 600 * 10**9, last)
    )
    return "..".join(ends)


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
