"""Every field of an SLO is carried over to OpenSLO or listed as lost: none goes in silence."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest

from tailburn.app.slo_queries import queries_of
from tailburn.engine.slo.exchange.openslo_writing import Exported, export_openslo
from tailburn.engine.slo.model import (
    LOWEST_BUDGET_QUANTILE,
    QUANTILES,
    Calendar,
    Clock,
    Completion,
    EngineSource,
    Exclude,
    Mix,
    Place,
    QuerySource,
    Regression,
    Rolling,
    ScaleOut,
    Slo,
    Tier,
)

SLO = Slo("chat", Place("chat.yaml", 3), availability_ratio=0.99)
BATCH = replace(SLO, completion=Completion(60.0, 0.9))
VLLM = EngineSource("vllm")

# Two SLOs that differ in one field, by the field.
PAIRS: dict[str, tuple[Slo, Slo]] = {
    "name": (SLO, replace(SLO, name="code")),
    "labels": (SLO, replace(SLO, labels={"team": "assistants"})),
    "select": (SLO, replace(SLO, select={"pool": "interactive"})),
    "by": (SLO, replace(SLO, by=("model",))),
    "vantage": (SLO, replace(SLO, vantage="client")),
    "window.seconds": (SLO, replace(SLO, window=Rolling(7 * 86_400.0))),
    "window.period": (
        replace(SLO, window=Calendar("day")),
        replace(SLO, window=Calendar("month")),
    ),
    "window.time_zone": (
        replace(SLO, window=Calendar("day")),
        replace(SLO, window=Calendar("day", "Asia/Kolkata")),
    ),
    "clocks": (SLO, replace(SLO, clocks={Clock.TTFT: {Tier.TARGET: {"p95": 0.5}}})),
    "availability_ratio": (SLO, replace(SLO, availability_ratio=0.999)),
    "goodput_ratio": (SLO, replace(SLO, goodput_ratio=0.95)),
    "completion.within_s": (BATCH, replace(BATCH, completion=Completion(90.0, 0.9))),
    "completion.objective_ratio": (BATCH, replace(BATCH, completion=Completion(60.0, 0.95))),
    "consistency_p99_over_p50": (SLO, replace(SLO, consistency_p99_over_p50=3.0)),
    "regression.ratio": (SLO, replace(SLO, regression=Regression(ratio=2.0))),
    "regression.days": (SLO, replace(SLO, regression=Regression(days=1))),
    "scale_out.at_ratio": (SLO, replace(SLO, scale_out=ScaleOut(at_ratio=0.7))),
    "scale_out.for_s": (SLO, replace(SLO, scale_out=ScaleOut(for_s=60.0))),
    "exclude.cancelled_by_client": (
        SLO,
        replace(SLO, exclude=Exclude(cancelled_by_client="always")),
    ),
    "exclude.http_status": (SLO, replace(SLO, exclude=Exclude(http_status=(404,)))),
    "exclude.where": (SLO, replace(SLO, exclude=Exclude(where=({"client": "probe"},)))),
    "source.engine": (replace(SLO, source=VLLM), replace(SLO, source=EngineSource("sglang"))),
    "source.match": (
        replace(SLO, source=VLLM),
        replace(SLO, source=replace(VLLM, match={"a": "b"})),
    ),
    "source.relabelled": (
        replace(SLO, source=VLLM),
        replace(SLO, source=replace(VLLM, relabelled=True)),
    ),
    "source.histogram": (
        replace(BATCH, source=VLLM),
        replace(BATCH, source=replace(VLLM, histogram="native")),
    ),
    "source.bad": (
        replace(SLO, source=QuerySource("bad", "all")),
        replace(SLO, source=QuerySource("failed", "all")),
    ),
    "source.total": (
        replace(SLO, source=QuerySource("bad", "all")),
        replace(SLO, source=QuerySource("bad", "ended")),
    ),
    "runbook_url": (SLO, replace(SLO, runbook_url="https://wiki.example.com/chat")),
    "dashboard_url": (SLO, replace(SLO, dashboard_url="https://dash.example.com/chat")),
    "mix.requests": (SLO, replace(SLO, mix=Mix(1000, {}))),
    "mix.shares": (SLO, replace(SLO, mix=Mix(1000, {"model": {"a": 1.0}}))),
}
NAMED_OTHERWISE = {"consistency_p99_over_p50": "consistency"}  # in files
NOT_SAID = {"place.file", "place.line"}  # where it was said


def leaves(kind: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields of a model, those within its parts among them."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        parts = [part for part in (hint, *get_args(hint)) if is_dataclass(part)]
        for part in parts:
            yield from leaves(part, (*path, field.name))
        if not parts:
            yield ".".join((*path, field.name))


def test_every_field_of_an_slo_is_asked_about() -> None:
    assert set(leaves(Slo)) == PAIRS.keys() | NOT_SAID


@pytest.mark.parametrize("field", PAIRS)
def test_a_field_is_carried_over_or_listed(field: str) -> None:
    before, after = (export_openslo([slo], queries_of) for slo in PAIRS[field])
    assert is_carried(before, after) or is_listed(before, after, field)


def is_carried(before: Exported, after: Exported) -> bool:
    """By more than the name of the budget's definition, which nobody can read."""
    texts = [re.sub(r'definition=~"[^"]*"', "", exported.text) for exported in (before, after)]
    return texts[0] != texts[1]


def is_listed(before: Exported, after: Exported, field: str) -> bool:
    """As a field of the file, or a part of one."""
    new = {problem.field for problem in after.lost} - {problem.field for problem in before.lost}
    name = NAMED_OTHERWISE.get(field, field)
    whole = [f"{part}.{name}" for part in ("spec", "metadata")]
    return any(one.startswith(path) or path.startswith(f"{one}.") for one in new for path in whole)


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize("percentile", QUANTILES)
def test_a_threshold_is_a_budget_or_listed(clock: Clock, tier: Tier, percentile: str) -> None:
    slo = replace(SLO, clocks={clock: {tier: {percentile: 0.7}}})
    exported = export_openslo([slo], queries_of)
    is_budget = tier is Tier.ACCEPTABLE and QUANTILES[percentile] >= LOWEST_BUDGET_QUANTILE
    assert ("within 700ms" in exported.text) == is_budget
    assert [p.field for p in exported.lost] == (
        [] if is_budget else [f"spec.clocks.{clock}.{tier}.{percentile}"]
    )
