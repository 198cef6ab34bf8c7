"""A document whose form is right, as the promise that the rest of the program knows."""

from tailburn.engine.slo.document import Document
from tailburn.engine.slo.mix import LENGTHS
from tailburn.engine.slo.model import (
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
    Source,
    Tier,
    Window,
)
from tailburn.engine.slo.spec import Clocks, ServingSlo, Spec, Thresholds
from tailburn.engine.slo.spec import Exclude as ExcludeForm
from tailburn.engine.slo.spec import Mix as MixForm

DEFAULT_WINDOW_S = 30 * 86_400.0


def build(form: ServingSlo, document: Document) -> Slo:
    """The SLO that a document says."""
    metadata, spec = form.metadata, form.spec
    return Slo(
        name=metadata.name,
        place=Place(document.file, document.line_of(("metadata", "name"))),
        labels=dict(metadata.labels),
        select=dict(spec.select),
        by=tuple(spec.by),
        vantage=spec.vantage,
        window=window_of(spec),
        clocks=_clocks(spec.clocks),
        availability_ratio=spec.availability,
        goodput_ratio=spec.goodput,
        completion=_completion(spec),
        consistency_p99_over_p50=spec.consistency.p99_over_p50 if spec.consistency else None,
        regression=_regression(spec),
        scale_out=_scale_out(spec),
        exclude=_exclude(spec.exclude),
        source=_source(spec),
        runbook_url=metadata.links.runbook,
        dashboard_url=metadata.links.dashboard,
        mix=_mix(metadata.mix),
    )


def window_of(spec: Spec) -> Window:
    """The time that a budget is for."""
    if spec.calendar is not None:
        return Calendar(spec.calendar, spec.time_zone or "UTC")
    return Rolling(DEFAULT_WINDOW_S if spec.window is None else spec.window)


def thresholds_s(thresholds: Thresholds | None) -> dict[str, float]:
    """Seconds by percentile, from the lowest percentile to the highest."""
    if thresholds is None:
        return {}
    given = {name: getattr(thresholds, name.replace(".", "_")) for name in QUANTILES}
    return {name: seconds for name, seconds in given.items() if seconds is not None}


def _clocks(clocks: Clocks) -> dict[Clock, dict[Tier, dict[str, float]]]:
    found: dict[Clock, dict[Tier, dict[str, float]]] = {}
    for clock in Clock:
        tiers = getattr(clocks, clock)
        if tiers is not None:
            by_tier = {tier: thresholds_s(getattr(tiers, tier)) for tier in Tier}
            found[clock] = {tier: given for tier, given in by_tier.items() if given}
    return {clock: tiers for clock, tiers in found.items() if tiers}


def _completion(spec: Spec) -> Completion | None:
    form = spec.completion
    return Completion(form.within, form.objective) if form else None


def _regression(spec: Spec) -> Regression | None:
    form = spec.regression
    return Regression(form.ratio, form.days) if form else None


def _scale_out(spec: Spec) -> ScaleOut | None:
    form = spec.scale_out
    return ScaleOut(form.at, form.hold) if form else None


def _mix(form: MixForm | None) -> Mix | None:
    if form is None:
        return None
    lengths = {
        name: dict(sorted(getattr(form, name).items(), key=lambda one: int(one[0])))
        for name in LENGTHS
    }
    kinds = {
        "model": dict(form.model),
        "streamed": {str(k).lower(): v for k, v in form.streamed.items()},
    }
    return Mix(
        form.requests, {name: shares for name, shares in (lengths | kinds).items() if shares}
    )


def _exclude(form: ExcludeForm) -> Exclude:
    where = tuple(dict(dimensions) for dimensions in form.where)
    return Exclude(form.cancelled_by_client, tuple(form.http_status), where)


def _source(spec: Spec) -> Source | None:
    source = spec.source
    if source is None:
        return None
    if source.queries is not None:
        return QuerySource(source.queries.bad, source.queries.total)
    assert source.engine is not None  # contradictions() refuses a source of neither kind
    return EngineSource(source.engine, dict(source.match), source.relabelled, source.histogram)
