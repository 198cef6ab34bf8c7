"""Rich tables of the answers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from tailburn.app.answers.hops import TOTAL
from tailburn.app.answers.tails import COLUMNS
from tailburn.app.terminal.text import NO_DATA, duration, plain, share
from tailburn.engine.names import VANTAGES

Row = Mapping[str, Any]
THIN = "~"
NOT_TOLD = "not told"


def table(left: Iterable[str], right: Iterable[str] = ()) -> Table:
    """An empty table: text columns `left`, then number columns `right`."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        drawn.add_column(name, overflow="fold")
    for name in right:
        drawn.add_column(name, justify="right", no_wrap=True)
    return drawn


def tails_table(rows: Sequence[Row], by: Sequence[str]) -> Table:
    names = [name.removesuffix("_s") for name in COLUMNS.values()]
    names[-1] = "p99.9"
    drawn = table([*by, "clock"], [*names, "max", "count", "unmeasured", "error"])
    for row in rows:
        cells = [plain(row[name]) for name in (*by, "clock")]
        cells += [_quantile(row, column) for column in COLUMNS.values()]
        error = f"± {row['error_ratio'] * 100:.1f} %" if row["count"] else ""
        cells += [plain(duration(row["max_s"])), plain(f"{row['count']:,}")]
        cells += [plain(f"{row['unmeasured']:,}"), plain(error)]
        drawn.add_row(*cells)
    return drawn


def _quantile(row: Row, column: str) -> Text:
    if row[column] is None:
        return plain(NO_DATA, "dim")
    thin = column in row["thin"]
    return plain((THIN if thin else "") + duration(row[column]), "dim" if thin else "")


def requests_table(rows: Iterable[Row]) -> Table:
    left = ["start (UTC)", "trace id", "model", "replica", "outcome", "seen"]
    drawn = table(left, ["TTFT", "TPOT", "longest gap", "E2E", "prompt", "output"])
    for row in rows:
        cells = [_moment(row["start_ns"]), row["trace_id"], *_texts(row, "model", "replica")]
        cells += [*_texts(row, "outcome", "completeness")]
        cells += [duration(outermost(row, clock)) for clock in ("ttft", "tpot")]
        cells += [duration(row["itl_max_s"]), duration(outermost(row, "e2e"))]
        cells += [_count(row["prompt_tokens"]), _count(row["output_tokens"])]
        drawn.add_row(*map(plain, cells))
    return drawn


def outermost(row: Row, clock: str) -> float | None:
    """The clock at the outermost vantage that measured it."""
    measured = (row[f"{clock}_{v}_s"] for v in VANTAGES)
    return next((value for value in measured if value is not None), None)


def hops_table(rows: Sequence[Row]) -> Table:
    drawn = table(["hop"], ["mean", "median", "share"])
    for row in rows:
        part = "" if row["share"] is None else share(row["share"])
        cells = [row["hop"], duration(row["mean_s"]), duration(row["median_s"]), part]
        drawn.add_row(*map(plain, cells), end_section=_is_last_hop(row, rows))
    return drawn


def excess_table(rows: Sequence[Row]) -> Table:
    drawn = table(["hop"], ["slow", "rest", "excess", "share", "clock error"])
    for row in rows:
        style = "bold" if row.get("owns") else ""
        slow, rest = row.get("slow_mean_s"), row.get("baseline_mean_s")
        error = row.get("clock_error_s")
        cells = [
            row["hop"],
            "" if slow is None else duration(slow),
            "" if rest is None else duration(rest),
            duration(row["excess_s"]),
            "" if row["share"] is None else share(row["share"]),
            "" if error is None else f"± {duration(error)}",
        ]
        drawn.add_row(*(plain(c, style) for c in cells), end_section=_is_last_hop(row, rows))
    return drawn


def band_table(rows: Sequence[Row]) -> Table:
    """What moved the mean of a slow band."""
    drawn = table(["what"], ["effect", "share"])
    for row in rows:
        part = "" if row["share"] is None else share(row["share"])
        cells = [row["hop"], duration(row["effect_ns"] / 1e9), part]
        drawn.add_row(*map(plain, cells), end_section=_is_last_hop(row, rows))
    return drawn


def bad_table(rows: Sequence[Row]) -> Table:
    """What each hop has of the requests over a threshold."""
    drawn = table(["hop"], ["its part of the bad", "share", "alone would have cured"])
    for row in rows:
        at_least = "at least " if row.get("lower_bound") else ""
        part = "" if row["share"] is None else share(row["share"])
        cells = [row["hop"], f"{row['shapley']:,.1f}", part, f"{at_least}{row['cured']:,}"]
        drawn.add_row(*map(plain, cells), end_section=_is_last_hop(row, rows))
    return drawn


def clients_table(rows: Sequence[Row]) -> Table:
    """What each client does, the total last; `before` is of the column on its left."""
    compared = ["requests", "before", "streamed", "before", "attempts", "before"]
    drawn = table([rows[0]["by"]], [*compared, "capped", "hedged", "cancelled", "timed out"])
    for row in rows:
        cells = [row["name"]]
        for name, shown in (("count", _count), ("streamed_share", _told)):
            cells += [shown(row[name]), shown(row[f"baseline_{name}"])]
        for name in ("attempts_per_request", "baseline_attempts_per_request"):
            cells.append(NOT_TOLD if row[name] is None else f"{row[name]:.2f}")
        cells += [_told(row[f"{n}_share"]) for n in ("capped", "hedged", "cancelled", "timed_out")]
        is_last_client = len(rows) > 1 and row is rows[-2]
        drawn.add_row(*map(plain, cells), end_section=is_last_client)
    return drawn


def _told(part: float | None) -> str:
    return NOT_TOLD if part is None else share(part)


def _is_last_hop(row: Row, rows: Sequence[Row]) -> bool:
    return len(rows) > 1 and row is rows[-2] and rows[-1]["hop"] == TOTAL


def balance_table(rows: Iterable[Row], fates: Sequence[str]) -> Table:
    drawn = table(["resource"], ["received", *fates])
    for row in rows:
        cells = [f"{row[name]:,}" for name in ("received", *fates)]
        drawn.add_row(plain(_resource(row["resource"])), *map(plain, cells))
    return drawn


def _resource(text: str) -> str:
    """A resource by what tells it from others: its service and instance, where it has them."""
    try:
        attributes = json.loads(text)
    except ValueError:
        return text
    names = (attributes.get(f"service.{part}") for part in ("name", "instance.id"))
    return " ".join(str(name) for name in names if name) or text


def _texts(row: Row, *names: str) -> list[str]:
    return [row[name] if row[name] is not None else "-" for name in names]


def _moment(ns: int | None) -> str:
    if ns is None:
        return "-"
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ns // 1_000_000 % 1000:03}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
