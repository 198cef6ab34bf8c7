"""docs/store.md: its code runs, its answers are right, and no column is left out."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailburn.engine import rollup
from tailburn.engine.names import DECODE_HOP_COLUMNS, TTFT_HOP_COLUMNS
from tailburn.engine.schema import TABLES
from tailburn.engine.store import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.engine.store import samples
from tests.engine.store.samples import HOUR_NS, T0

DOCUMENT = (Path(__file__).parents[3] / "docs" / "store.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
VALUES = np.random.default_rng(9).lognormal(-1, 1, 400)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = ParquetStore(tmp_path)
    for part in range(2):
        rows = samples.requests(
            *(
                samples.request(i, ttft_gateway_s=float(VALUES[i]))
                for i in range(part * 200, part * 200 + 200)
            )
        )
        store.publish("requests", rows, LogRange(part, part))
        store.publish("rollups", rollup.fold(rows), LogRange(part, part))
    slowest = int(VALUES.argmax())
    store.publish("spans", samples.spans(samples.span(slowest, 1)), LogRange(2, 2))
    stone = samples.request(500, ttft_gateway_s=1.0)
    ended = [stone, stone | {"version": 2, "tombstone": True}]
    store.publish("requests", samples.requests(*ended), LogRange(2, 2))
    return tmp_path


@pytest.mark.parametrize("compacted", [False, True])
def test_the_code_in_the_document_runs_and_tells_the_truth(folder: Path, compacted: bool) -> None:
    if compacted:
        ParquetStore(folder).compact(T0 + 2 * HOUR_NS, durable_position=2)
    said: dict[str, Any] = {"STORE": str(folder)}
    for block in BLOCKS:
        exec(compile(block, "docs/store.md", "exec"), said)
    assert len(said["latest"]) == 400
    [(model, count, p99_s)] = said["by_model"].fetchall()
    assert (model, count) == ("llama", 400)
    assert p99_s == pytest.approx(np.quantile(VALUES, 0.99))
    assert said["slowest"].fetchall()[0][1] == VALUES.max()
    assert len(said["requests"]) == 400
    assert said["p99_s"] == pytest.approx(np.sort(VALUES)[395], rel=0.011)


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_in_the_document(table: str) -> None:
    section = DOCUMENT.split(f"### {table}\n")[1].split("\n### ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    by_hop = {*TTFT_HOP_COLUMNS, *DECODE_HOP_COLUMNS}
    missing = set(TABLES[table].names) - named - by_hop
    assert not missing
