"""A past time of some SLOs out of a Prometheus: one Past of each, and what it can't tell.

1. Every SLO's counters are read, from as far before the time as alerts look back.
2. The time begins with the first value and ends with the last, unless an end was asked for.
3. Where no SLO's counters were read for over five minutes is a hole: no rate goes over it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.app.calculators.words import percent, span
from tailburn.app.errors import UserError
from tailburn.app.planning.backtesting import WARM_NS, Counted, require_own
from tailburn.app.planning.prometheus.asking import MINUTE_S, Asking
from tailburn.app.planning.prometheus.counters import Counters, read_counters
from tailburn.app.planning.prometheus.gauges import InFlight
from tailburn.app.planning.prometheus.missing import missing, require_series
from tailburn.app.planning.prometheus.rollups import Buckets
from tailburn.app.planning.replaying import Past, Read, no_rollups
from tailburn.app.planning.stored import Span
from tailburn.engine.evaluation.windows import SAMPLED_S
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.model import Clock, Slo, objectives
from tailburn.engine.slo.quantities import time_of
from tailburn.rules.ruleset import watches_of

_LONGEST: Final = SAMPLED_S // MINUTE_S
_TOLD_FROM: Final = 0.01
"""Such a share of minutes without a value is worth a word; a scrape that fails is not."""


def of_prometheus(
    slos: Sequence[Slo], asking: Asking, since_ns: int, until_ns: int, *, to_last: bool
) -> Counted:
    """What it knows of a time. `to_last`: it ends with the last value, not with a hole.

    Raises UserError where it is no Prometheus, or has nothing of these SLOs.
    """
    require_own(slos, "of its own")
    since, until = -(-since_ns // MINUTE_NS), until_ns // MINUTE_NS
    if since >= until:
        raise UserError("no data: want a whole minute that is past between --since and --until")
    begin = since - WARM_NS // MINUTE_NS
    found = [read_counters(slo, asking, begin * MINUTE_S, until * MINUTE_S) for slo in slos]
    require_series(found, asking, begin, until)
    for one in found:
        _require_minutes(one)
    known = [one for one in found if len(one.points)]
    points = np.unique(np.concatenate([one.points for one in known]))
    if to_last:
        until = int(points[-1])
    if until <= since or points[-1] <= since:
        raise UserError(f"no data: the last value of these counters is of {_at(points[-1])} UTC")
    first = int(points[0])
    asked, since = since, max(since, first)
    lacks = [line for one in found for line in missing(one, asking, since, until)]
    lacks += [line for one in known for line in _untold(one, points, since, until)]
    if first > asked:
        lacks.append(f"before {_at(since)} UTC: there is no value of these counters")
    pasts = {one.slo.name: _past(one, asking, since, until) for one in known}
    verdicts = pa.concat_tables([t for one in known for t in (one.verdicts, one.across)])
    whole = Past(
        verdicts, no_rollups, first * MINUTE_NS, until * MINUTE_NS, _holes(points, until),
        (since - first) * MINUTE_NS,
    )  # fmt: skip
    return Counted(whole, tuple(lacks), pasts)


def _past(one: Counters, asking: Asking, since: int, until: int) -> Past:
    begin = int(one.points[0])
    watches = watches_of([one.slo])
    clocks = {w.condition.needs.clock for w in watches} - {None}
    counted = {objective for objective, _, _ in one.last}
    read = Read(
        frozenset((one.points * MINUTE_NS).tolist()),
        one.across,
        one.across_until_ns,
        InFlight(one.slo, asking),
        frozenset(o.name for o in objectives(one.slo)) - counted,
    )
    return Past(
        one.verdicts,
        Buckets(one.slo, tuple(c for c in Clock if c in clocks), asking),
        begin * MINUTE_NS,
        until * MINUTE_NS,
        warm_ns=max(since - begin, 0) * MINUTE_NS,
        read=read,
    )


def _at(minute: int | np.int64) -> str:
    return time_of(int(minute) * MINUTE_NS)


def _holes(points: I64, until: int) -> tuple[Span, ...]:
    ends = np.append(points, until) if until > points[-1] else points
    wide = np.flatnonzero(np.diff(ends) > _LONGEST)
    return tuple((int(ends[i]) * MINUTE_NS, int(ends[i + 1]) * MINUTE_NS) for i in wide)


def _require_minutes(one: Counters) -> None:
    """Raises UserError where the counters were kept more seldom than alerts are evaluated."""
    if len(one.points) < 2:
        return
    between = float(np.median(np.diff(one.points)))
    if between > 1:
        raise UserError(
            f"{one.slo.name}: its counters have a value each {span(between * MINUTE_S)}; want one "
            "a minute at least: a scrape_interval of 1m or less, and no thinned out history"
        )


def _untold(one: Counters, points: I64, since: int, until: int) -> Iterator[str]:
    """What is known of an SLO less often or less long than of others."""
    name, minutes = one.slo.name, until - since
    own, everyone = (p[(p >= since) & (p <= until)] for p in (one.points, points))
    if len(own) and own[0] > everyone[0]:
        yield f"{name} before {_at(own[0])} UTC: its counters begin then"
        everyone = everyone[everyone >= own[0]]
    lacking = len(np.setdiff1d(everyone, own))
    if lacking > _TOLD_FROM * minutes:
        yield f"{name} in {lacking:,} minutes: the counters of others were read, its own were not"
    between = np.diff(own)
    short = int((between[between <= _LONGEST] - 1).sum())
    if short > _TOLD_FROM * minutes:
        yield (
            f"{name} in {percent(short / minutes)} of the minutes: no value of a counter; "
            "rates go over such short gaps, as in the rules"
        )
    last: dict[str, int] = {}
    for (_, _, by), at in one.last.items():
        last[by] = max(at, last.get(by, 0))
    for by, at in last.items():
        if since < at < min(int(one.points[-1]), until) - _LONGEST:
            yield (
                f"{name} {by} after {_at(at)} UTC: its counters end, those of other values go on; "
                "that it is not measured any more is no alert here"
            )
