"""Rows of requests, a small store of them, and the command line run in this process."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailburn.app.__main__ import main
from tailburn.app.settings import TABLE
from tailburn.engine.rollup import fold
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.app.rows import RECEIVED_NS, TRACE, make_rows, make_spans


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`run("tails", "--json")` in an empty folder, without settings from outside."""
    for row in TABLE:
        monkeypatch.delenv(row.variable, raising=False)
    monkeypatch.delenv("TAILBURN_CONFIG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run_main(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["tailburn", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return Result(int(ended.value.code or 0), told.out, told.err)

    return run_main


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with 19 quick requests and one that waited 2 s for its gateway."""
    n = 20
    slow = [i == 7 for i in range(n)]
    requests = make_rows(
        request_id=[f"{i:016x}" for i in range(n)],
        trace_id=[TRACE] + [f"{i:032x}" for i in range(1, n)],
        start_ns=[RECEIVED_NS - 10**9 + i for i in range(n)],
        model=["llama"] * 12 + ["qwen"] * 8,
        node=["a"] * 5 + ["b"] * 15,
        ttft_client_s=[2.25 if s else 0.25 for s in slow],
        ttft_gateway_self_s=[2.125 if s else 0.125 for s in slow],
        ttft_prefill_s=[0.125] * n,
        decode_decode_s=[1.0] * n,
        output_tokens=[64] * n,
        outcome=["ok"] * n,
        completeness=["complete"] * n,
        clock_offset_s=[0.003] * n,
        clock_offset_half_width_s=[0.009] * n,
    )
    folder = tmp_path / "store"
    written = ParquetStore(folder)
    written.publish("requests", requests, LogRange(1, 1))
    written.publish("rollups", fold(requests), LogRange(1, 1))
    written.publish("spans", make_spans(), LogRange(1, 1))
    return folder


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
