"""How a page reads: a title that says all on a lock screen, a text for one thumb.

What is not known is said to be so. Names come from telemetry, so they are cut and cleaned.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity

MOST_TITLE: Final = 150
MOST_NAME: Final = 60
MOST_LINES: Final = 5
MOST_TRACES: Final = 3
_LINKS: Final = {"runbook": "Do", "dashboard": "See", "incident": "Incident"}
_NS: Final = 1_000_000_000
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are no text: control, format (right-to-left among them)."""
_STEPS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True)
class SlowTrace:
    """A request that was slow, to be looked at."""

    trace_id: str
    took_s: float
    link: str = ""


@dataclass(frozen=True)
class Told:
    """What is known of an incident as somebody is told of it. None: it is not known."""

    what: What
    severity: Severity
    number: int
    slo: str
    objective: str
    where: Mapping[str, str]
    began_ns: int
    at_ns: int
    why: str
    burn_rate: float | None = None
    left_ratio: float | None = None
    gone_ns: int | None = None
    owner: str | None = None
    says: str | None = None
    """Who owns the excess and where to look next, in words."""
    traces: tuple[SlowTrace, ...] = ()
    changes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """The other alerts that fire, a line each."""
    more_slos: int = 0
    """How many other SLOs they are of."""
    links: Mapping[str, str] = field(default_factory=dict)


def clean(text: str, most: int = MOST_NAME) -> str:
    """One line of visible text; what is too long loses its middle."""
    seen = "".join(" " if c.isspace() else c for c in text if _is_seen(c))
    seen = " ".join(seen.split())
    if len(seen) <= most:
        return seen
    half = (most - 1) // 2
    return f"{seen[: most - 1 - half]}…{seen[len(seen) - half :]}"


def _is_seen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) not in _UNSEEN


def title(told: Told) -> str:
    """At most `MOST_TITLE` characters."""
    place = _place(told.where)
    more = f" and {told.more_slos} more" if told.more_slos else ""
    of = f"{clean(told.slo)}{more}{place}"
    if told.what is What.RESOLVE:
        text = f"Over: {of}"
    elif told.burn_rate is not None and told.burn_rate >= 1:
        text = f"{of}: {clean(told.objective)} burns its budget {_times(told.burn_rate)} too fast"
    else:
        text = f"{of}: {clean(told.why, MOST_TITLE)}"
    if told.what is not What.RESOLVE and told.owner:
        text += f"; {clean(told.owner)} owns it"
    return clean(text, MOST_TITLE)


def text(told: Told) -> str:
    """Lines, the most important first."""
    lines = _over(told) if told.what is What.RESOLVE else _begun(told)
    return "\n".join([*lines, *_links(told.links, "dashboard", "incident")])


def _over(told: Told) -> Iterator[str]:
    lasted_s = (told.at_ns - told.began_ns) / _NS
    yield f"Over after {_about(lasted_s)}; it began at {clock(told.began_ns)}."
    yield _budget(told)


def _begun(told: Told) -> Iterator[str]:
    yield f"Since {clock(told.began_ns)}: {clean(told.why, 300)}"
    yield _budget(told)
    yield f"Whose: {clean(told.says, 400) if told.says else 'not known'}"
    yield from _links(told.links, "runbook")
    yield from _listed("Changed", told.changes, "nothing is known to have changed")
    for trace in told.traces[:MOST_TRACES]:
        yield f"Slow: {trace.took_s:.2f} s {clean(trace.link, 500) or clean(trace.trace_id)}"
    if told.others:
        yield from _listed("Also", told.others, "")
    if "incident" not in told.links:
        yield f"Incident {told.number}"


def _budget(told: Told) -> str:
    left = "not known" if told.left_ratio is None else f"{100 * told.left_ratio:.0f} %"
    if told.left_ratio is not None and told.left_ratio <= 0:
        return f"Budget: gone ({left})"
    if told.gone_ns is None:
        return f"Budget left: {left}"
    return f"Budget left: {left}; gone in {_about((told.gone_ns - told.at_ns) / _NS)} at this rate"


def _listed(what: str, lines: Iterable[str], none: str) -> Iterator[str]:
    found = [clean(line, 200) for line in lines]
    if not found:
        yield f"{what}: {none}"
    for line in found[:MOST_LINES]:
        yield f"{what}: {line}"
    if len(found) > MOST_LINES:
        yield f"{what}: {len(found) - MOST_LINES} more"


def _links(links: Mapping[str, str], *wanted: str) -> Iterator[str]:
    for name in wanted:
        if name in links:
            yield f"{_LINKS[name]}: {clean(links[name], 500)}"


def _place(where: Mapping[str, str]) -> str:
    named = ", ".join(f"{clean(name)} {clean(value)}" for name, value in where.items())
    return f" ({named})" if named else ""


def _times(burn: float) -> str:
    return f"{burn:.0f}x" if burn >= 10 else f"{burn:.1f}x"


def _about(seconds: float) -> str:
    for step_s, unit in _STEPS:
        if seconds >= 2 * step_s or unit == "s":
            value = max(seconds, 0.0) / step_s
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    raise AssertionError("seconds are the last step")


def clock(ns: int) -> str:
    """A time as pages have it: `03:00 UTC, 3 Dec`."""
    return datetime.fromtimestamp(ns / _NS, UTC).strftime("%H:%M UTC, %-d %b")
