"""Every check by its code; `lint` asks them all."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.lint import (
    batch_ttft,
    bucket_missing,
    buckets_too_coarse,
    budget_not_counted,
    budget_too_small,
    by_cardinality,
    calendar_needs_service,
    clock_excludes_traffic,
    e2e_primary,
    le_form,
    lookback_beyond_retention,
    old_series_name,
    page_too_slow,
    percentile_not_known,
    regression_false_alarms,
    series_missing,
    threshold_unreachable,
    too_few_samples,
    top_bucket_too_low,
    vantage_differs,
)
from tailburn.rules.lint.finding import Finding
from tailburn.rules.lint.known import Known

Check = Callable[[Slo, Known], Iterator[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    threshold_unreachable.CODE: threshold_unreachable.check,
    page_too_slow.CODE: page_too_slow.check,
    budget_too_small.CODE: budget_too_small.check,
    too_few_samples.CODE: too_few_samples.check,
    bucket_missing.CODE: bucket_missing.check,
    top_bucket_too_low.CODE: top_bucket_too_low.check,
    buckets_too_coarse.CODE: buckets_too_coarse.check,
    vantage_differs.CODE: vantage_differs.check,
    budget_not_counted.CODE: budget_not_counted.check,
    percentile_not_known.CODE: percentile_not_known.check,
    calendar_needs_service.CODE: calendar_needs_service.check,
    batch_ttft.CODE: batch_ttft.check,
    e2e_primary.CODE: e2e_primary.check,
    regression_false_alarms.CODE: regression_false_alarms.check,
    by_cardinality.CODE: by_cardinality.check,
    lookback_beyond_retention.CODE: lookback_beyond_retention.check,
    series_missing.CODE: series_missing.check,
    clock_excludes_traffic.CODE: clock_excludes_traffic.check,
    old_series_name.CODE: old_series_name.check,
    le_form.CODE: le_form.check,
}

CODES: Final = (*CHECKS, series_missing.CODE_LABEL)


def lint(slos: Iterable[Slo], known: Known) -> tuple[Finding, ...]:
    """All findings on these SLOs, in their order."""
    return tuple(f for slo in slos for check in CHECKS.values() for f in check(slo, known))


def lint_text(file: str, lines: Sequence[str], known: Known) -> tuple[Finding, ...]:
    """All findings in somebody's own rules: any text that holds PromQL, a line at a time."""
    found = (*old_series_name.in_text(file, lines), *le_form.in_text(file, lines, known))
    return tuple(sorted(found, key=lambda finding: finding.place.line))
