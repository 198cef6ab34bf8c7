"""Our SLOs as OpenSLO v1: one of its SLOs for each budget, on the queries that our rules ask."""

import hashlib
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailburn.engine.problems import Problem
from tailburn.engine.slo.exchange.openslo_reading import VERSION
from tailburn.engine.slo.exchange.writing import yaml_text
from tailburn.engine.slo.model import (
    LOWEST_BUDGET_QUANTILE,
    QUANTILES,
    EngineSource,
    Exclude,
    Objective,
    Rolling,
    Slo,
    Tier,
    Window,
    objectives,
)
from tailburn.engine.slo.quantities import write_percent, write_time

QueriesOf = Callable[[Slo, Objective], tuple[str, str] | None]
"""Bad and total requests a second, `{{.window}}` as their range; None where nothing counts them."""

_NAME_LIMIT: Final = 63  # of OpenSLO's names, which are DNS labels
_NO_COUNTERPART: Final = "has no counterpart in OpenSLO; left out"
_COUNTED_BY: Final = (
    "has no counterpart: the queries ask for what the service counts by it, so keep this SLO there"
)
_PERIODS: Final = {"day": "1d", "week": "1w", "month": "1M", "quarter": "1Q"}
# The first day of a year and a Monday: every period can be counted on from there.
_START: Final = "2024-01-01 00:00:00"


@dataclass(frozen=True)
class Exported:
    """Documents of OpenSLO, and what of ours it has no words for."""

    text: str
    lost: tuple[Problem, ...]


def export_openslo(slos: Sequence[Slo], queries_of: QueriesOf) -> Exported:
    """All budgets of these SLOs."""
    written: dict[str, str] = {}
    lost: list[Problem] = []
    for slo in slos:
        lost.extend(_lost(slo))
        for objective in objectives(slo):
            queries = queries_of(slo, objective)
            if queries is None:
                lost.append(_told(slo, objective.name, "is counted by no series of its source"))
            else:
                name = _own_name(slo, objective, written)
                written[name] = yaml_text(_document(name, slo, objective, *queries))
    return Exported("---\n".join(written.values()), tuple(lost))


def _document(name: str, slo: Slo, objective: Objective, bad: str, total: str) -> dict[str, Any]:
    annotations = {"runbook_url": slo.runbook_url, "dashboard_url": slo.dashboard_url}
    metadata: dict[str, Any] = {
        "name": name,
        "displayName": f"{slo.name} {objective.name}",
        "labels": {key: [value] for key, value in slo.labels.items()},
        "annotations": {key: value for key, value in annotations.items() if value},
    }
    spec = {
        "description": _description(slo, objective),
        "service": _name(slo.labels.get("service") or slo.select.get("service") or slo.name),
        "indicator": {
            "metadata": {"name": name},
            "spec": {
                "ratioMetric": {
                    "counter": True,
                    "bad": _metric(bad),
                    "total": _metric(total),
                }
            },
        },
        "timeWindow": [_window(slo.window)],
        "budgetingMethod": "Occurrences",
        "objectives": [
            {"displayName": objective.name, "target": round(1 - objective.budget_ratio, 12)}
        ],
    }
    kept = {key: value for key, value in metadata.items() if value}
    return {"apiVersion": VERSION, "kind": "SLO", "metadata": kept, "spec": spec}


def _metric(query: str) -> dict[str, Any]:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}


def _window(window: Window) -> dict[str, Any]:
    if isinstance(window, Rolling):
        return {"duration": write_time(window.seconds), "isRolling": True}
    calendar = {"startTime": _START, "timeZone": window.time_zone}
    return {"duration": _PERIODS[window.period], "isRolling": False, "calendar": calendar}


def _description(slo: Slo, objective: Objective) -> str:
    share = write_percent(1 - objective.budget_ratio)
    if objective.threshold_s is None:
        return f"{share} of the requests at the {slo.vantage} are good: {objective.name}"
    what = f"{objective.clock or objective.name} at the {slo.vantage}"
    return f"{share} of the requests: {what} within {write_time(objective.threshold_s)}"


def _own_name(slo: Slo, objective: Objective, taken: Container[str]) -> str:
    """A name of its own, with digits where OpenSLO's letters don't tell two apart."""
    told = f"{slo.name}-{objective.name}"
    name = _name(told)
    if name in taken or len(name) == _NAME_LIMIT:
        digits = hashlib.sha256(told.encode()).hexdigest()[:8]
        name = f"{name[: _NAME_LIMIT - 9]}-{digits}"
    return name


def _name(text: str) -> str:
    """As OpenSLO wants it: a DNS label."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower())[:_NAME_LIMIT].strip("-")


def _lost(slo: Slo) -> Iterator[Problem]:
    """What no document says; what decides which requests count is known to the service alone."""
    for clock, tiers in slo.clocks.items():
        for tier, thresholds in tiers.items():
            for percentile in thresholds:
                is_budget = QUANTILES[percentile] >= LOWEST_BUDGET_QUANTILE
                if tier is not Tier.ACCEPTABLE or not is_budget:
                    yield _told(slo, f"spec.clocks.{clock}.{tier}.{percentile}", _NO_COUNTERPART)
    parts = {
        "spec.consistency": slo.consistency_p99_over_p50,
        "spec.regression": slo.regression,
        "spec.scale_out": slo.scale_out,
        "metadata.mix": slo.mix,
    }
    for name, part in parts.items():
        if part is not None:
            yield _told(slo, name, _NO_COUNTERPART)
    if slo.select:
        yield _told(slo, "spec.select", _COUNTED_BY)
    if slo.exclude != Exclude():
        yield _told(slo, "spec.exclude", _COUNTED_BY)
    if isinstance(slo.source, EngineSource) and slo.source.relabelled:
        yield _told(slo, "spec.source.relabelled", _NO_COUNTERPART)
    if slo.by:
        yield _told(slo, "spec.by", "has no counterpart: the queries give a series for each value")


def _told(slo: Slo, field: str, why: str) -> Problem:
    return Problem(slo.place.file, slo.place.line, field, "", why)
