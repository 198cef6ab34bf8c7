"""An engine's own histograms and counters: exact at a bucket's bound, blind between two.

A threshold that is no bound has no bucket: the budget then has no bad requests to show, and the
alert on unmeasured budgets says so. A clock of a request that an engine measures per token, the
gap between two, stands for the longest gap only roughly.
"""

from collections.abc import Iterator

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, EngineSource, Kind, Objective, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import by, number, quoted
from tailburn.rules.sources.engines import engine_of, labelled_by


def measures(source: EngineSource, budget: Objective) -> bool:
    """Whether the engine counts what the budget needs; goodput joins what it keeps apart."""
    if budget.kind is Kind.AVAILABILITY:
        return True
    return _clock(budget) in engine_of(source).histograms


def rates(
    slo: Slo, source: EngineSource, budgets: tuple[Objective, ...], window: str, suffix: str
) -> Iterator[Rule]:
    """Requests a second and bad ones over a window, of those budgets that it measures."""
    for budget in budgets:
        if not measures(source, budget):
            continue
        total, bad = _parts(slo, source, budget, window)
        labels = {
            SLO_LABEL: slo.name,
            OBJECTIVE_LABEL: budget.name,
            DEFINITION_LABEL: definition_of(slo, budget),
        }
        yield Rule(total, f"{SLO_TOTAL_RATE_RECORD}{window}{suffix}", labels=labels)
        yield Rule(bad, f"{SLO_BAD_RATE_RECORD}{window}{suffix}", labels=labels)


def _clock(budget: Objective) -> Clock | None:
    return Clock.E2E if budget.kind is Kind.COMPLETION else budget.clock


def _parts(slo: Slo, source: EngineSource, budget: Objective, window: str) -> tuple[str, str]:
    clock = _clock(budget)
    if clock is None or budget.threshold_s is None:
        return _outcomes(slo, source, window)
    if source.histogram == "native":
        return _native(slo, source, clock, budget.threshold_s, window)
    return _classic(slo, source, clock, budget.threshold_s, window)


def _outcomes(slo: Slo, source: EngineSource, window: str) -> tuple[str, str]:
    engine = engine_of(source)
    ended = rate(slo, source, engine.requests, window)
    failed = rate(slo, source, engine.failed, window, engine.failed_matchers)
    none_failed = f"{failed}\nor\n0 * {ended}"
    if engine.failed_in_requests:
        return ended, none_failed
    return f"{ended} + ({failed} or 0 * {ended})", none_failed


def _classic(
    slo: Slo, source: EngineSource, clock: Clock, threshold_s: float, window: str
) -> tuple[str, str]:
    engine = engine_of(source)
    name, needed = engine.histograms[clock], engine.matchers.get(clock, "")
    bound = f"le=~{quoted(bound_pattern(threshold_s / engine.unit_s))}"
    total = rate(slo, source, f"{name}_count", window, needed)
    within = rate(slo, source, f"{name}_bucket", window, ",".join(filter(None, (needed, bound))))
    return total, f"{total}\n-\n{within}"


def _native(
    slo: Slo, source: EngineSource, clock: Clock, threshold_s: float, window: str
) -> tuple[str, str]:
    engine = engine_of(source)
    needed = engine.matchers.get(clock, "")
    all_of_it = rate(slo, source, engine.histograms[clock], window, needed)
    total = f"histogram_count({all_of_it})"
    bound = number(threshold_s / engine.unit_s)
    return total, f"{total}\n*\n(1 - histogram_fraction(0, {bound}, {all_of_it}))"


def rate(slo: Slo, source: EngineSource, metric: str, window: str, matchers: str = "") -> str:
    """A counter's rate summed to the SLO's `by`, under the names that the SLO uses."""
    return summed(slo, source, f"rate({selected(source, metric, matchers)}[{window}])")


def selected(source: EngineSource, metric: str, matchers: str = "") -> str:
    """A series of the engine, with the user's own matchers."""
    own = [f"{name}={quoted(value)}" for name, value in source.match.items()]
    chosen = ",".join(filter(None, (*own, matchers)))
    return f"{metric}{{{chosen}}}" if chosen else metric


def summed(
    slo: Slo, source: EngineSource, expr: str, dimensions: tuple[str, ...] = (), le: bool = False
) -> str:
    """The sum by the SLO's dimensions and some more, which an engine may call by other names."""
    ours = (*slo.by, *dimensions)
    theirs = tuple(labelled_by(source, name) for name in ours)
    kept = ("le",) if le else ()
    summed = f"sum {by((*theirs, *kept))} ({expr})"
    renamed = [(name, other) for name, other in zip(ours, theirs, strict=True) if name != other]
    if not renamed:
        return summed
    for name, other in renamed:
        summed = f'label_replace({summed}, "{name}", "$1", "{other}", "(.*)")'
    return f"sum {by((*ours, *kept))} ({summed})"


def bound_pattern(bound: float) -> str:
    """A bound as Prometheus 2 writes it, or as 3 does: 1 and 1.0."""
    text = number(bound)
    return text.replace(".", "\\.") if "." in text else f"{text}(\\.0)?"
