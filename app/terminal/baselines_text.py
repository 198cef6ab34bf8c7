"""Baselines for people: two tables, and what each figure rests on."""

from collections.abc import Sequence
from typing import Any, Final

from rich.table import Table

from tailburn.app.answers.tails import COLUMNS
from tailburn.app.standing.words import about
from tailburn.app.terminal.output import draw, stderr, stdout
from tailburn.app.terminal.tables import THIN, Row, table
from tailburn.app.terminal.text import NO_DATA, duration, plain
from tailburn.engine.baseline.load import Basis
from tailburn.engine.baseline.same_hour import MINIMUM_COUNT

_NAMES: Final = {name: name.removesuffix("_s") for name in COLUMNS.values()} | {"p999_s": "p99.9"}
_STATES: Final = {
    "thin": "{:,} requests",
    "empty": "no request",
    "young": "it was not there",
}
_LIKE: Final = {
    "uncached": "uncached prompt tokens",
    "prompt": "prompt tokens, cached ones not told",
    "rate": "arrival rate alone",
}
_FIXED: Final = frozenset(
    ("clock", "now", "usual", "ratio", "days", "alerts_known", "pooled", "own_requests",
     "own_needs_s", "needs_s", "deadline")
)  # fmt: skip


def print_baselines(rows: Sequence[Row], over: str) -> None:
    """Both tables; the second only of clocks that have deadlines."""
    by = [name for name in rows[0] if name not in _FIXED]
    console = stdout()
    console.print(f"This hour on the days before, and the last {over}")
    draw(_usual_table(rows, by), console)
    if with_deadline := [row for row in rows if row["deadline"] is not None]:
        console.print(f"Deadlines at the load of the last {over}")
        draw(_deadline_table(with_deadline, by), console)
    err = stderr()
    if any(row["now"]["thin"] or row["usual"]["thin"] for row in rows):
        err.print(f"{THIN} rests on less than one request")
    if not rows[0]["alerts_known"]:
        err.print("no alert was ever evaluated on this store: no day is left out for one")


def _usual_table(rows: Sequence[Row], by: Sequence[str]) -> Table:
    left = [*by, "clock"]
    drawn = table(left, [*_NAMES.values(), "now p99", "x usual", "requests now", "before", "days"])
    drawn.add_column("rests on")
    for row in rows:
        usual, now = row["usual"], row["now"]
        cells = [row[name] for name in left]
        cells += [_quantile(usual, name) for name in _NAMES]
        ratio = row["ratio"]["p99"]
        cells += [_quantile(now, "p99_s"), "" if ratio is None else f"{ratio:.2f}"]
        cells += [f"{now['requests']:,}", f"{usual['requests']:,}", str(usual["days"])]
        drawn.add_row(*map(plain, [*cells, _rests_on(row)]))
    return drawn


def _quantile(tail: dict[str, Any], name: str) -> str:
    if tail[name] is None:
        return NO_DATA
    return (THIN if name in tail["thin"] else "") + duration(tail[name])


def _rests_on(row: Row) -> str:
    """What was pooled, which days don't count, and how much longer a young series takes."""
    parts = []
    if row["usual"]["p99_s"] is None:
        parts.append("no baseline: the SLO alone decides" + _longer(row["needs_s"], " for"))
    elif row["pooled"]:
        own = f"its own {row['own_requests']:,} are too few"
        parts.append(f"all of {', '.join(row['pooled'])} together: {own}")
        parts += [f"its own in {about(row['own_needs_s'])}"] if row["own_needs_s"] else []
    if any(day["state"] != "young" for day in row["days"]):
        parts += [_day(day) for day in row["days"] if day["state"] != "used" or day["left_out"]]
    return "; ".join(parts)


def _longer(seconds: float | None, word: str) -> str:
    if seconds is None:
        return f", fewer than {MINIMUM_COUNT} requests an hour never tell one"
    return f"{word} {about(seconds)} more"


def _day(day: dict[str, Any]) -> str:
    ago, why = f"{day['days_ago']} d ago", ", ".join(day["left_out_for"])
    out = f"{day['left_out']:,} requests left out for {why}"
    if day["state"] == "used":
        return f"{ago} {out}"
    if day["state"] == "excluded":
        return f"{ago} not used: {out}"
    return f"{ago} not used: {_STATES[day['state']].format(day['requests'])}"


def _deadline_table(rows: Sequence[Row], by: Sequence[str]) -> Table:
    left = [*by, "clock"]
    drawn = table(left, ["requests/s", "tokens", "deadline", "late", "of", "from", "days"])
    for name in ("matched on", "rests on"):
        drawn.add_column(name)
    for row in rows:
        held = row["deadline"]
        rate, tokens = held["rate_per_s"], held["tokens"]
        cells = [row[name] for name in left]
        cells += [
            NO_DATA if rate is None else f"{rate:.3g}",
            "" if tokens is None else f"{tokens:,.0f}",
        ]
        cells += [duration(held["deadline_s"]), f"{held['late']:,}", f"{held['judged']:,}"]
        cells += [f"{held['seen_requests']:,}", str(held["seen_days"]), _matched_on(held)]
        drawn.add_row(*map(plain, [*cells, _deadline_rests_on(held)]))
    return drawn


def _matched_on(held: dict[str, Any]) -> str:
    if held["matched_on"] == Basis.PROMPT and held["hits_known"]:
        return "prompt tokens and prefix-hit ratio"
    return _LIKE[held["matched_on"]]


def _deadline_rests_on(held: dict[str, Any]) -> str:
    parts = []
    if held["missing_requests"]:
        parts.append(f"{held['missing_requests']:,} more requests like these are needed")
    elif held["deadline_s"] is None:
        parts.append("the load is not known yet: it takes a minute")
    if held["pooled"]:
        parts.append(f"all of {', '.join(held['pooled'])} together")
    for how, count in held["outside"].items():
        parts.append(f"{count:,} outside what was seen: {how.replace('_', ' ')}")
    return "; ".join(parts)
