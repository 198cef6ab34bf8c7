"""What `tailburn backtest --json` answers, and how its times are asked for."""

import json
from datetime import UTC, datetime
from typing import Any

from tests.app.conftest import Result, Run

Rows = dict[str, list[dict[str, Any]]]


def rows_by_type(answer: Result) -> Rows:
    assert answer.code == 0, answer.err
    found: Rows = {}
    for row in map(json.loads, answer.out.splitlines()):
        found.setdefault(row["type"], []).append(row)
    return found


def iso(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).isoformat()


def told(run: Run, *flags: object) -> Rows:
    return rows_by_type(run("backtest", *flags, "--json"))
