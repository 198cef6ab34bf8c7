"""What clients ask for and how they ask: streaming, limits, retries, hedges, giving up.

A client that stops streaming waits for whole answers, and one that asks again and again makes the
queue that it waits in: neither is a fault of the service, and both look like one. So what each
client does is set against what it did before. Two changes are judged, each by the exact test of
`engine.proportions` and only from a least size on, since with many requests every trifle is
beyond chance: a fall of the streamed share, and a rise of the share that is tried more than once,
or more than twice. The level is for the whole report: it is divided by the tests made.

A request of sampling weight w counts round(w) times, at least once. Tests rest on the effective
count (Kish, "Survey Sampling", 1965): (sum of w)^2 / (sum of w^2), all of them where w is 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.grouping import I64, distinct, numbers, stacked_text, text, weights
from tailburn.engine.names import UNKNOWN
from tailburn.engine.proportions import chance_of_more

CONTRACT_COLUMNS: Final = (
    "streamed",
    "output_tokens",
    "max_output_tokens",
    "attempts",
    "hedged",
    "outcome",
    "http_status",
    "weight",
)
LEVEL: Final = 0.01  # chance of any finding in a report where nothing changed
LEAST_COUNT: Final = 50  # effective requests that tell, on each side
LEAST_FALL: Final = 0.05  # of the streamed share
LEAST_RISE: Final = 0.02  # of the share tried again
_TIME_OUTS: Final = (408, 504)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Share:
    """How many of those that tell; `hits <= told`, both weighted."""

    hits: int
    told: int
    effective: int  # what a test rests on

    @property
    def value(self) -> float | None:
        return self.hits / self.told if self.told else None

    @property
    def effective_hits(self) -> int:
        return round(self.effective * self.hits / self.told) if self.told else 0


@dataclass(frozen=True)
class Behaviour:
    """What the requests of one client in one window say of it."""

    count: int  # weighted
    attempts: int  # of the requests that tell them: `retried.told`
    streamed: Share
    capped: Share  # made as many tokens as were allowed; told by those that have both counts
    retried: Share  # tried more than once, hedges apart
    retried_more: Share  # tried more than twice
    hedged: Share  # two attempts at once
    cancelled: Share
    timed_out: Share  # answered with 408 or 504; told by those with a status

    @property
    def attempts_per_request(self) -> float | None:
        return self.attempts / self.retried.told if self.retried.told else None


@dataclass(frozen=True)
class Client:
    """One client, or all of them, in a window and in the one before."""

    name: str
    now: Behaviour
    before: Behaviour


class Kind(StrEnum):
    NOT_STREAMING = "not streaming"
    RETRY_WAVE = "retry wave"


class Verdict(StrEnum):
    FOUND = "found"
    QUIET = "quiet"
    THIN = "thin"  # under LEAST_COUNT, now or before
    NOT_TOLD = "not told"  # no request tells, now or before


@dataclass(frozen=True)
class Check:
    """One judged change of one client."""

    client: Client
    kind: Kind
    verdict: Verdict
    p: float | None  # None where nothing was tested
    level: float | None  # what p had to be under


@dataclass(frozen=True)
class Contract:
    """Clients, most requests first; their counts add up to those of `total`."""

    clients: tuple[Client, ...]
    total: Client
    checks: tuple[Check, ...]


def contract(requests: pa.Table, baseline: pa.Table, by: str) -> Contract:
    """Each client's behaviour in both tables, and what changed; `by` names the caller.

    Both tables need `by` and `CONTRACT_COLUMNS`.
    """
    names, group = _clients(requests, baseline, by)
    now = _behaviours(requests, group[: len(requests)], len(names))
    before = _behaviours(baseline, group[len(requests) :], len(names))
    clients = [Client(*parts) for parts in zip(names, now, before, strict=True)]
    clients.sort(key=lambda c: (-c.now.count, -c.before.count, c.name))
    total = Client("total", *(_behaviours(t, None, 1)[0] for t in (requests, baseline)))
    return Contract(tuple(clients), total, _checks(clients))


def _clients(requests: pa.Table, baseline: pa.Table, by: str) -> tuple[list[str], I64]:
    """All names, and which of them each row has, those of `requests` first."""
    column = stacked_text((requests, baseline), by, UNKNOWN)
    if not len(column):
        return [], np.zeros(0, np.int64)
    keys, group = distinct([column])
    return keys[0].to_pylist(), group


def _behaviours(table: pa.Table, group: I64 | None, groups: int) -> list[Behaviour]:
    weight = weights(table)
    at = np.zeros(len(table), np.int64) if group is None else group

    def summed(values: NDArray[np.float64] | I64) -> NDArray[np.float64]:
        return np.bincount(at, values, groups).astype(np.float64)

    def shares(told: Mask, hit: Mask) -> list[Share]:
        n, squares = summed(weight * told), summed(weight**2 * told)
        effective = n**2 / np.maximum(squares, 1)
        columns = (summed(weight * (told & hit)), n, np.floor(effective + 1e-9))
        return [Share(*map(int, row)) for row in zip(*columns, strict=True)]

    parts = {name: shares(*measure(table)) for name, measure in _MEASURES.items()}
    attempts = summed(weight * np.maximum(numbers(table.column("attempts"), 0.0), 0))
    counts = summed(weight)
    return [
        Behaviour(int(counts[i]), int(attempts[i]), **{k: part[i] for k, part in parts.items()})
        for i in range(groups)
    ]


def _streamed(table: pa.Table) -> tuple[Mask, Mask]:
    return _known(table, "streamed"), _is_true(table, "streamed")


def _capped(table: pa.Table) -> tuple[Mask, Mask]:
    made = numbers(table.column("output_tokens"), -1.0)
    allowed = numbers(table.column("max_output_tokens"), -1.0)
    return (made >= 0) & (allowed > 0), made >= allowed


def _tried_over(least: int) -> Callable[[pa.Table], tuple[Mask, Mask]]:
    def measure(table: pa.Table) -> tuple[Mask, Mask]:
        attempts = numbers(table.column("attempts"), 0.0)
        return attempts >= 1, attempts - _is_true(table, "hedged") > least

    return measure


def _hedged(table: pa.Table) -> tuple[Mask, Mask]:
    return _known(table, "hedged"), _is_true(table, "hedged")


def _cancelled(table: pa.Table) -> tuple[Mask, Mask]:
    outcome = text(table.column("outcome"), UNKNOWN).cast(pa.string())
    return _mask(pc.not_equal(outcome, UNKNOWN)), _mask(pc.equal(outcome, "cancelled"))


def _timed_out(table: pa.Table) -> tuple[Mask, Mask]:
    status = numbers(table.column("http_status"), 0.0)
    return status > 0, np.isin(status, _TIME_OUTS)


_MEASURES: Final[Mapping[str, Callable[[pa.Table], tuple[Mask, Mask]]]] = {
    "streamed": _streamed,
    "capped": _capped,
    "retried": _tried_over(1),
    "retried_more": _tried_over(2),
    "hedged": _hedged,
    "cancelled": _cancelled,
    "timed_out": _timed_out,
}


def _known(table: pa.Table, name: str) -> Mask:
    return _mask(pc.is_valid(table.column(name)))


def _is_true(table: pa.Table, name: str) -> Mask:
    return _mask(pc.fill_null(table.column(name), False))


def _mask(column: pa.ChunkedArray) -> Mask:
    return np.asarray(column.to_numpy(), np.bool_)


def _checks(clients: list[Client]) -> tuple[Check, ...]:
    asked = [(client, kind) for client in clients for kind in Kind]
    verdicts = [_readable(client, kind) for client, kind in asked]
    tests = sum(verdict is Verdict.QUIET for verdict in verdicts)
    return tuple(
        _judged(client, kind, LEVEL / tests)
        if verdict is Verdict.QUIET
        else Check(client, kind, verdict, None, None)
        for (client, kind), verdict in zip(asked, verdicts, strict=True)
    )


def _readable(client: Client, kind: Kind) -> Verdict:
    """QUIET where there is enough to test."""
    measure = "streamed" if kind is Kind.NOT_STREAMING else "retried"
    sides: list[Share] = [getattr(side, measure) for side in (client.now, client.before)]
    if not all(side.told for side in sides):
        return Verdict.NOT_TOLD
    enough = all(side.effective >= LEAST_COUNT for side in sides)
    return Verdict.QUIET if enough else Verdict.THIN


def _judged(client: Client, kind: Kind, level: float) -> Check:
    now, before = client.now, client.before
    if kind is Kind.NOT_STREAMING:
        p = _chance(before.streamed, now.streamed)
        found = p <= level and _rise(before.streamed, now.streamed) >= LEAST_FALL
        return Check(client, kind, Verdict.FOUND if found else Verdict.QUIET, p, level)
    pairs = ((now.retried, before.retried), (now.retried_more, before.retried_more))
    # Two tests of which either may find: each has half of the level.
    chances = [min(1.0, 2 * _chance(*pair)) for pair in pairs]
    found = (now.attempts_per_request or 0) > (before.attempts_per_request or 0) and any(
        p <= level and _rise(*pair) >= LEAST_RISE for p, pair in zip(chances, pairs, strict=True)
    )
    return Check(client, kind, Verdict.FOUND if found else Verdict.QUIET, min(chances), level)


def _chance(more: Share, less: Share) -> float:
    return chance_of_more(more.effective_hits, more.effective, less.effective_hits, less.effective)


def _rise(more: Share, less: Share) -> float:
    return (more.value or 0.0) - (less.value or 0.0)
