"""What fired set against what is known to have happened: precision, recall, delay, false pages.

A person is called once for what overlaps: spans of one severity that lie no further apart than
`APART_NS` are one call. A call belongs to an incident when it overlaps it, or begins within the
grace after it; every other is false.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.backtest.incidents import Marked
from tailburn.engine.intervals import Bounds, rate, share

APART_NS: Final = 5 * 60 * 1_000_000_000
GRACE_NS: Final = 15 * 60 * 1_000_000_000
WEEK_NS: Final = 7 * 86_400 * 1_000_000_000
Span = tuple[int, int]


@dataclass(frozen=True)
class Found:
    """An incident, and how long after its start each severity called; None: never."""

    marked: Marked
    page_after_ns: int | None
    ticket_after_ns: int | None


@dataclass(frozen=True)
class Score:
    """Of a stretch of time. None where nothing is there to take a share of."""

    pages: int
    tickets: int
    incidents: tuple[Found, ...]
    false_pages: tuple[Span, ...]
    false_tickets: tuple[Span, ...]
    healthy_ns: int  # of the time, incidents and holes not counted
    precision: Bounds | None  # pages that belong to an incident, of all pages
    recall: Bounds | None  # incidents that were paged
    recall_any: Bounds | None  # incidents that were paged or ticketed
    false_a_week: Bounds | None
    false_tickets_a_week: Bounds | None


def calls(spans: Iterable[Span], apart_ns: int = APART_NS) -> tuple[Span, ...]:
    """Spans joined where they lie no further apart: what one person is called for once."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] <= apart_ns:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)


def score(
    pages: Iterable[Span],
    tickets: Iterable[Span],
    marked: Sequence[Marked],
    whole: Span,
    holes: Sequence[Span] = (),
    grace_ns: int = GRACE_NS,
) -> Score:
    """Spans of firing alerts and incidents within `whole`, all in ns."""
    called, ticketed = calls(pages), calls(tickets)
    found = tuple(
        Found(one, _after(called, one, grace_ns), _after(ticketed, one, grace_ns)) for one in marked
    )
    false_pages, false_tickets = (
        tuple(s for s in spans if not any(_belongs(s, one, grace_ns) for one in marked))
        for spans in (called, ticketed)
    )
    sick = calls([*((m.start_ns, m.end_ns + grace_ns) for m in marked), *holes], 0)
    healthy = (
        whole[1]
        - whole[0]
        - sum(max(min(end, whole[1]) - max(begin, whole[0]), 0) for begin, end in sick)
    )
    paged = sum(one.page_after_ns is not None for one in found)
    either = sum(one.page_after_ns is not None or one.ticket_after_ns is not None for one in found)
    return Score(
        pages=len(called),
        tickets=len(ticketed),
        incidents=found,
        false_pages=false_pages,
        false_tickets=false_tickets,
        healthy_ns=healthy,
        precision=share(len(called) - len(false_pages), len(called)),
        recall=share(paged, len(found)),
        recall_any=share(either, len(found)),
        false_a_week=rate(len(false_pages), healthy / WEEK_NS),
        false_tickets_a_week=rate(len(false_tickets), healthy / WEEK_NS),
    )


def _belongs(span: Span, marked: Marked, grace_ns: int) -> bool:
    return span[0] <= marked.end_ns + grace_ns and span[1] > marked.start_ns


def _after(spans: Iterable[Span], marked: Marked, grace_ns: int) -> int | None:
    """From an incident's start until the first call for it; 0 where that came before it."""
    ours = [span[0] for span in spans if _belongs(span, marked, grace_ns)]
    return max(min(ours) - marked.start_ns, 0) if ours else None
