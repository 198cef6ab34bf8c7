"""A trace drawn as bars over time."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import duration, plain, share
from tailburn.engine.names import (
    HOPS,
    UNATTRIBUTED,
    decode_hop_column,
    ttft_hop_column,
)

BAR_CELLS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ERROR_STATUS = 2

Row = Mapping[str, Any]


def waterfall(spans: Sequence[Row]) -> Table:
    """One line per span, indented below its parent, its bar on the trace's time."""
    drawn = table(["hop", "service", "span"], ["starts", "takes"])
    drawn.add_column("", no_wrap=True, min_width=BAR_CELLS)
    begin_ns = min(s["start_ns"] for s in spans)
    length_ns = max(max(s["end_ns"] for s in spans) - begin_ns, 1)
    for span, depth in _by_tree(spans):
        style = "red" if span["status"] == _ERROR_STATUS else ""
        bar = _bar(span["start_ns"] - begin_ns, span["end_ns"] - begin_ns, length_ns)
        drawn.add_row(
            plain(span["hop"] or _without_hop(span), "" if span["hop"] else "dim"),
            plain(span["service"] or "-"),
            plain("  " * depth + span["name"], style),
            plain("+" + duration((span["start_ns"] - begin_ns) / 1e9)),
            plain(duration((span["end_ns"] - span["start_ns"]) / 1e9)),
            plain(bar, style or "cyan"),
        )
    return drawn


def request_breakdown(request: Row) -> Table:
    """Both breakdowns of one request, hop by hop, each with its total."""
    drawn = table(["hop"], ["to the first token", "", "to the last token", ""])
    hops = (*HOPS, UNATTRIBUTED)
    parts = [(request[ttft_hop_column(h)], request[decode_hop_column(h)]) for h in hops]
    totals = [sum(p[i] for p in parts if p[i] is not None) for i in (0, 1)]
    for hop, pair in zip(hops, parts, strict=True):
        if any(pair):
            drawn.add_row(plain(hop), *_pair(pair[0], totals[0]), *_pair(pair[1], totals[1]))
    first, last = (
        duration(t if any(p[i] is not None for p in parts) else None) for i, t in enumerate(totals)
    )
    drawn.add_section()
    drawn.add_row("total", first, "", last, "")
    return drawn


def clock_note(request: Row) -> str:
    """What was done about hosts' clocks that differ."""
    offset_s, width_s = request["clock_offset_s"], request["clock_offset_half_width_s"]
    if offset_s is None:
        return "clocks: no correction was needed, or none was known"
    width = "" if width_s is None else f" ± {duration(width_s)}"
    return f"clocks: corrected by up to {duration(offset_s)}{width}"


def _without_hop(span: Row) -> str:
    """The rule of a span that is no hop of its own, or whose hop only the whole trace tells."""
    return f"({span['rule']})" if span["rule"] else "not recognised"


def _pair(part_s: float | None, total_s: float) -> tuple[str, str]:
    if part_s is None or not total_s:
        return "", ""
    return duration(part_s), share(part_s / total_s)


def _by_tree(spans: Sequence[Row]) -> list[tuple[Row, int]]:
    """Spans with their depth, children under their parents, both in order of start."""
    known = {s["span_id"] for s in spans}
    children: dict[str | None, list[Row]] = {}
    for span in spans:
        parent = span["parent_span_id"]
        children.setdefault(parent if parent in known else None, []).append(span)
    ordered: list[tuple[Row, int]] = []
    seen: set[int] = set()
    stack = [(span, 0) for span in reversed(children.get(None, []))]
    while stack:
        span, depth = stack.pop()
        if id(span) in seen:  # attempts share a span id, and with it its children
            continue
        seen.add(id(span))
        ordered.append((span, depth))
        stack += [(child, depth + 1) for child in reversed(children.get(span["span_id"], []))]
    # What hangs below itself is under no root; it is shown all the same.
    ordered += [(span, 0) for span in spans if id(span) not in seen]
    return ordered


def _bar(begin_ns: int, end_ns: int, length_ns: int) -> str:
    """At least an eighth of a cell wide, on a line of BAR_CELLS."""
    scale = BAR_CELLS * 8 / length_ns
    begin, end = round(begin_ns * scale), round(end_ns * scale)
    cells = min(begin // 8, BAR_CELLS - 1)
    eighths = max(end - cells * 8, 1)
    full, rest = divmod(eighths, 8)
    return " " * cells + "█" * full + (_EIGHTHS[rest] if rest else "")
