"""What an engine's own counters and histograms show of a budget's course."""

import re
from collections.abc import Iterator, Mapping, Sequence

from tailburn.engine.slo.model import Clock, EngineSource, Kind, Objective
from tailburn.rules.promql import number
from tailburn.rules.sources.engines import Engine, engine_of, labelled_by

_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_ANOTHER = "another"

Counters = Iterator[tuple[str, dict[str, str], Sequence[float]]]


def engine_counters(
    source: EngineSource, objective: Objective, by: Mapping[str, str], bad: Sequence[float]
) -> Counters:
    """Metric, labels and the share of the requests that it counts in each stretch.

    Nothing for native histograms: promtool's notation has no such series before 2.47.
    """
    engine, labels = engine_of(source), source_labels(source, by)
    good = [1 - share for share in bad]
    everything = [1.0] * len(bad)
    if objective.kind is Kind.AVAILABILITY:
        yield from _outcomes(engine, labels, good, bad)
        return
    clock = Clock.E2E if objective.kind is Kind.COMPLETION else objective.clock
    if source.histogram == "native" or clock is None or objective.threshold_s is None:
        return
    name = engine.histograms[clock]
    labels |= satisfying(engine.matchers.get(clock, ""))
    bound = number(objective.threshold_s / engine.unit_s)
    yield f"{name}_count", labels, everything
    yield f"{name}_bucket", labels | {"le": "+Inf"}, everything
    yield f"{name}_bucket", labels | {"le": bound}, good


def _outcomes(
    engine: Engine, labels: dict[str, str], good: Sequence[float], bad: Sequence[float]
) -> Counters:
    failed = labels | satisfying(engine.failed_matchers)
    if engine.failed == engine.requests:
        other = {name: _ANOTHER for name in failed if name not in labels}
        yield engine.requests, labels | other, good
    else:
        counted = [1.0] * len(good) if engine.failed_in_requests else good
        yield engine.requests, labels, counted
    yield engine.failed, failed, bad


def source_labels(source: EngineSource, by: Mapping[str, str]) -> dict[str, str]:
    """The user's own matchers, and the SLO's dimensions as the engine calls them."""
    return dict(source.match) | {labelled_by(source, name): value for name, value in by.items()}


def satisfying(matchers: str) -> dict[str, str]:
    """Labels that these matchers select, where `=` and negations are all there is."""
    return {
        name: value if operator == "=" else _ANOTHER
        for name, operator, value in _MATCHER.findall(matchers)
    }
