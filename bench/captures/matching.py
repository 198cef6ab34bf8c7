"""Which row is which client's request, and which rows nobody sent."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.captures.log import Sent
from bench.captures.recorded import Group, Span
from bench.captures.rows import Row


@dataclass(frozen=True)
class Found:
    """A client's request, its row, and the spans that were recorded of it."""

    sent: Sent
    row: Row
    group: Group


@dataclass
class Matching:
    """Rows against requests. `surplus` are rows beyond one per request."""

    found: list[Found] = field(default_factory=list)
    missing: list[Sent] = field(default_factory=list)
    alone: list[tuple[Group, Row]] = field(default_factory=list)  # no id leads to a client
    alone_missing: list[Group] = field(default_factory=list)
    surplus: list[Row] = field(default_factory=list)

    def all(self) -> Iterator[tuple[str, Group, Row]]:
        """Every row that is a request, with a key to find it again."""
        for found in self.found:
            yield found.sent.key, found.group, found.row
        for group, row in self.alone:
            yield "trace " + " ".join(sorted(group.traces)), group, row


def match(serves: Callable[[Span], bool], groups: Iterable[Group], rows: Iterable[Row]) -> Matching:
    """One row for each request that was sent, and for each that no client is known of.

    `serves` tells the spans that are a server's stay of an LLM request.
    """
    matching = Matching()
    by_trace: dict[str, list[Row]] = {}
    for row in rows:
        by_trace.setdefault(row.text("trace_id"), []).append(row)
    for group in groups:
        held = [row for trace in sorted(group.traces) for row in by_trace.pop(trace, [])]
        if group.sent:
            _match_sent(matching, group, held)
        elif group.having(serves):
            if held:
                matching.alone.append((group, held.pop(0)))
            else:
                matching.alone_missing.append(group)
            matching.surplus.extend(held)
        else:
            matching.surplus.extend(held)
    for strangers in by_trace.values():
        matching.surplus.extend(strangers)
    return matching


def _match_sent(matching: Matching, group: Group, held: list[Row]) -> None:
    for sent in group.sent:
        row = _best(sent, held)
        if row is None:
            matching.missing.append(sent)
        else:
            held.remove(row)
            matching.found.append(Found(sent, row, group.of(sent)))
    matching.surplus.extend(held)


def _best(sent: Sent, held: Sequence[Row]) -> Row | None:
    """The row at the client's own span, else the one of its trace that starts nearest."""

    def distance(row: Row) -> tuple[bool, bool, int]:
        start = row.count("start_ns") or 0
        other_span = row.text("anchor_span_id") != sent.span_id
        other_trace = row.text("trace_id") != sent.trace_id
        return other_span, other_trace, abs(start - sent.sent_ns)

    return min(held, key=distance, default=None)
