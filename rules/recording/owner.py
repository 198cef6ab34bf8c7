"""Who owns the excess: the hop with half or more of what slow requests took over the baseline.

The service counts the excess per hop. An engine alone tells only how much of the first token's
time was its queue.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.excess import OWNER_SHARE
from tailburn.engine.names import (
    HOP_LABEL,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_EXCESS_SHARE_RECORD,
    SLO_LABEL,
    SLO_OWNER_RECORD,
    SLO_SLOW_SECONDS_METRIC,
)
from tailburn.engine.scaling.terms import OWNER_S
from tailburn.engine.slo.model import Clock, EngineSource, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import by, duration, number, selector
from tailburn.rules.sources import engine
from tailburn.rules.sources.engines import engine_of

_WINDOW: Final = duration(OWNER_S)


def owner(slo: Slo) -> Iterator[Rule]:
    """Each hop's share of the excess over half an hour, and the owner's."""
    share = _share(slo)
    if share is None:
        return
    yield share
    recorded = selector(SLO_EXCESS_SHARE_RECORD, {SLO_LABEL: slo.name})
    yield Rule(f"{recorded} >= {number(OWNER_SHARE)}", SLO_OWNER_RECORD)


def _share(slo: Slo) -> Rule | None:
    if slo.source is None:
        chosen = {SLO_LABEL: slo.name}
        slow, excess = (
            f"sum {by(labels)} (rate({selector(metric, chosen)}[{_WINDOW}]))"
            for metric, labels in (
                (SLO_SLOW_SECONDS_METRIC, (SLO_LABEL, HOP_LABEL, *slo.by)),
                (SLO_EXCESS_SECONDS_METRIC, (SLO_LABEL, *slo.by)),
            )
        )
        on = f"on ({', '.join((SLO_LABEL, *slo.by))})"
        return Rule(f"{slow}\n/ {on} group_left ()\n({excess} > 0)", SLO_EXCESS_SHARE_RECORD)
    if not isinstance(slo.source, EngineSource):
        return None
    told = engine_of(slo.source).histograms
    if not {Clock.TTFT, Clock.QUEUE} <= set(told):
        return None
    queue, ttft = (
        engine.rate(slo, slo.source, f"{told[clock]}_sum", _WINDOW)
        for clock in (Clock.QUEUE, Clock.TTFT)
    )
    labels = {SLO_LABEL: slo.name, HOP_LABEL: "queue"}
    return Rule(f"{queue}\n/\n({ttft} > 0)", SLO_EXCESS_SHARE_RECORD, labels=labels)
