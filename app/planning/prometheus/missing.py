"""What a Prometheus does not have of an SLO: an error where it has nothing, words where it lacks
something."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from tailburn.app.errors import UserError
from tailburn.app.planning.prometheus.asking import HOUR_S, MINUTE_S, Asking
from tailburn.app.planning.prometheus.counters import Counters
from tailburn.app.planning.prometheus.gauges import in_flight_series
from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.lateness import has_deadlines
from tailburn.engine.slo.model import objectives
from tailburn.rules.promql import by, selector
from tailburn.rules.ruleset import watches_of
from tailburn.rules.sources.histograms import Histogram

_NAMED: Final = 5
_OTHERWISE: Final = "counted, but defined otherwise than now, as"


def require_series(found: Sequence[Counters], asking: Asking, since: int, until: int) -> None:
    """Raises UserError where there is no value of any of these SLOs, and says what there is.

    Times are minutes since the epoch.
    """
    if any(len(one.points) for one in found):
        return
    who, metric = f"--prometheus {asking.ranges.name}", SLO_REQUESTS_METRIC
    kept = asking.label_values(SLO_LABEL, metric)
    if not kept:
        raise UserError(f"{who}: has no series {metric}; does it scrape a `tailburn serve --slo`?")
    names = [one.slo.name for one in found]
    if not set(kept) & set(names):
        told = ", ".join(kept[:_NAMED]) + (", ..." if len(kept) > _NAMED else "")
        raise UserError(f"{who}: has no series {metric} of {' or '.join(names)}, only of {told}")
    others = [line for one in found for line in _budgets(one, asking, since, until)]
    if any(_OTHERWISE in line for line in others):
        raise UserError(*(f"{who}: {line}" for line in others))
    raise UserError(f"no data: {asking.ranges.name} has no value of {metric} in that time")


def missing(one: Counters, asking: Asking, since: int, until: int) -> Iterator[str]:
    """What can't be judged of an SLO in the minutes from one to another, and why."""
    name = one.slo.name
    yield from _budgets(one, asking, since, until)
    if has_deadlines(one.slo) and SLO_DEADLINE_REQUESTS_METRIC not in one.metrics:
        yield f"deadlines of {name}: no series {SLO_DEADLINE_REQUESTS_METRIC}"
    if one.metrics and SLO_UNMEASURED_METRIC not in one.metrics:
        yield f"requests of {name} without a verdict: no series {SLO_UNMEASURED_METRIC}"
    needs = [watch.condition.needs for watch in watches_of([one.slo])]
    if any(need.in_flight_s for need in needs):
        series = in_flight_series(one.slo)
        yield from _told(f"stalled queues of {name}", series, asking, since, until)
    for clock in sorted({need.clock for need in needs if need.clock is not None}):
        series = Histogram(one.slo, clock).own(le="+Inf")
        yield from _told(f"percentiles of {clock} of {name}", series, asking, since, until)


def _told(what: str, series: str, asking: Asking, since: int, until: int) -> Iterator[str]:
    """How much of a time there are no values of, hour by hour."""
    hours, whole = _hours(f"count({_each_hour(series)})", asking, since, until)
    there = len(set(hours.get((), ())))
    if not there:
        yield f"{what}: no series {series}"
    elif there < whole:
        yield f"{what} in {whole - there:,} of {whole:,} hours: no value of {series}"


def _budgets(one: Counters, asking: Asking, since: int, until: int) -> Iterator[str]:
    """Of each budget that has no counter: what there is instead."""
    counted = {objective for objective, _, _ in one.last}
    lacking = [o.name for o in objectives(one.slo) if o.name not in counted]
    if not lacking:
        return
    series = selector(SLO_REQUESTS_METRIC, {SLO_LABEL: one.slo.name})
    labels = (OBJECTIVE_LABEL, DEFINITION_LABEL)
    hours, _ = _hours(f"count {by(labels)} ({_each_hour(series)})", asking, since, until, labels)
    for objective in lacking:
        others = sorted(definition for name, definition in hours if name == objective)
        if others:
            yield f"{one.slo.name} {objective}: {_OTHERWISE} {', '.join(others)}"
        else:
            yield f"{one.slo.name} {objective}: no series {SLO_REQUESTS_METRIC} of it"


def _each_hour(series: str) -> str:
    return f"last_over_time({series}[{HOUR_S}s])"


def _hours(
    query: str, asking: Asking, since: int, until: int, labels: Sequence[str] = ()
) -> tuple[dict[tuple[str, ...], list[int]], int]:
    """The ends of the hours that have values, by the values of labels; and of how many hours."""
    first_s, whole = since * MINUTE_S + HOUR_S, max((until - since) * MINUTE_S // HOUR_S, 1)
    last_s = first_s + (whole - 1) * HOUR_S
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for [answer] in asking.pieces([query], first_s, last_s, HOUR_S):
        for series in answer:
            found[tuple(series.labels.get(label, "") for label in labels)] += series.at_s.tolist()
    return found, whole
