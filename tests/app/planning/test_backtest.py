"""`tailburn backtest`: a fault of a stored day is found, and the rest is told."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.conftest import Run
from tests.app.planning.answers import iso, told
from tests.engine.store.samples import HOUR_NS, MINUTE_NS, T0
from tests.engine.suggest.rows import healthy

HOURS = 12
FAULT = (T0 + 5 * HOUR_NS, T0 + 6 * HOUR_NS)
HOLE = (T0 + 9 * HOUR_NS, T0 + 10 * HOUR_NS)
SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  clocks: {ttft: {acceptable: {p95: 600ms}}}
"""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a day: an hour in which every second request is slow, another of which nothing is."""
    folder = tmp_path_factory.mktemp("backtest") / "store"
    rows = healthy(15_000, HOURS)
    at = rows["received_ns"].to_numpy()
    slow = (at >= FAULT[0]) & (at < FAULT[1]) & (np.arange(len(at)) % 2 == 0)
    ttft = np.where(slow, 5.0, rows["ttft_gateway_s"].to_numpy())
    index = rows.schema.get_field_index("ttft_gateway_s")
    rows = rows.set_column(index, "ttft_gateway_s", pa.array(ttft))
    kept = rows.filter(pa.array((at < HOLE[0]) | (at >= HOLE[1])))
    assert pc.sum(kept["version"]).as_py() == len(kept)
    ParquetStore(folder).publish("requests", kept, LogRange(1, 1))
    return folder


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    (tmp_path / "slo.yaml").write_text(SLO)
    return tmp_path / "slo.yaml"


@pytest.fixture
def incidents(tmp_path: Path) -> Path:
    file = tmp_path / "incidents.csv"
    quiet = (T0 + 2 * HOUR_NS, T0 + 2 * HOUR_NS + 30 * MINUTE_NS)
    rows = [f"{iso(b)},{iso(e)},{name}" for (b, e), name in ((FAULT, "slow"), (quiet, "none"))]
    file.write_text("start,end,name\n" + "\n".join(rows) + "\n")
    return file


def test_the_fault_is_paged_and_the_quiet_incident_is_missed(
    run: Run, day: Path, slo: Path, incidents: Path
) -> None:
    found = told(run, slo, "--store", day, "--incidents", incidents)
    by_name = {row["name"]: row for row in found["incident"]}
    assert by_name["none"]["paged_after_s"] is None
    assert 0 < by_name["slow"]["paged_after_s"] <= 1_200
    [score] = found["score"]
    assert score["recall"][0] == 0.5 and score["false_pages"] == 0
    assert score["precision"][0] == 1 and 0 < score["precision"][1] < 1
    pages = [row for row in found["alert"] if row["severity"] == "page"]
    assert {row["objective"] for row in pages} == {"ttft_p95"}
    assert all(FAULT[0] < row["start_ns"] < FAULT[1] for row in pages)
    assert all(row["by"] == {"model": "llama"} for row in pages)


def test_a_hole_is_told_and_no_quiet(run: Run, day: Path, slo: Path) -> None:
    [hole] = told(run, slo, "--store", day)["hole"]
    assert (hole["start_ns"], hole["end_ns"]) == HOLE
    assert "a hole from" in run("backtest", slo, "--store", day).err


def test_the_budget_falls_with_the_fault(run: Run, day: Path, slo: Path) -> None:
    rows = told(run, slo, "--store", day)["budget"]
    left = {(row["at_ns"] - T0) // HOUR_NS: row["left_ratio"] for row in rows}
    assert left[5] > left[6] < left[9]


def test_before_the_time_is_looked_back_to_and_not_judged(run: Run, day: Path, slo: Path) -> None:
    found = told(run, slo, "--store", day, "--since", iso(FAULT[1] + HOUR_NS))
    assert all(row["end_ns"] is None or row["end_ns"] > FAULT[1] for row in found.get("alert", []))
    [score] = found["score"]
    assert score["since_ns"] == FAULT[1] + HOUR_NS


def test_it_reads_well_and_draws(
    run: Run, day: Path, slo: Path, incidents: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "out" / "it.svg"
    answer = run("backtest", slo, "--store", day, "--incidents", incidents, "--plot", picture)
    for words in ("BudgetBurn", "recall by page: 50 %", "missed", "false pages a week: 0.00 ("):
        assert words in answer.out
    assert "budget left" in picture.read_text() and f"wrote {picture}" in answer.err
    assert "not judged: stalled queues" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--plot", "it.pdf"), "--plot it.pdf: want a file that ends in .svg or .png"),
        (("--incidents", "none.csv"), "none.csv:1: file: can't be read: No such file"),
        (("--time-zone", "Mars", "--incidents", "slo.yaml"), "--time-zone 'Mars': is no time zone"),
        (("--incidents", "slo.yaml"), "slo.yaml:1: document: want a list"),
        (("--grace", "soon"), "--grace 'soon': want a duration"),
        (("--since", "1m"), "no data: the store keeps no request of that time"),
    ],
)
def test_what_can_not_be_asked_is_told(
    run: Run, day: Path, slo: Path, flags: tuple[str, ...], said: str
) -> None:
    answer = run("backtest", slo, "--store", day, *flags)
    assert answer.code == 2 and said in answer.err


def test_an_slo_on_another_source_needs_its_prometheus(run: Run, day: Path, slo: Path) -> None:
    slo.write_text(SLO + "  source: {engine: vllm}\n")
    answer = run("backtest", slo, "--store", day)
    assert answer.code == 2 and "rests on a source that the store does not hold" in answer.err
