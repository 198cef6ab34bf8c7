"""The queries of an OpenSLO indicator as bad and total with a range to be filled in."""

import re
from dataclasses import dataclass
from typing import Final

import promql_parser

from tailburn.engine.slo.document import Path
from tailburn.engine.slo.exchange.sloth import UNWEIGHTED, ratio_queries
from tailburn.engine.slo.exchange.taking import Taking
from tailburn.engine.slo.readers import WINDOW

_PLACEHOLDER: Final = re.compile(r"\{\{\s*\.window\s*\}\}")
_FIXED_RANGE: Final = re.compile(r"\[\s*[0-9][0-9smhdwy]*\s*\]")


@dataclass(frozen=True)
class Indicator:
    """Where an indicator is: below `base` of an object, which may be another than the SLO's."""

    taking: Taking
    base: Path
    slo: Taking


def indicator_queries(indicator: Indicator) -> dict[str, str] | None:
    """Bad and total; None, and told, where PromQL can't be had."""
    taking, base = indicator.taking, indicator.base
    is_alpha = taking.peek(*base, "ratioMetrics") is not None
    ratio: Path = (*base, "ratioMetrics" if is_alpha else "ratioMetric")
    if taking.peek(*base, "thresholdMetric") is not None:
        why = "compares a gauge with a value; a budget needs two counts of requests"
        taking.lose((*base, "thresholdMetric"), why)
        indicator.slo.lose_all(("spec",), "is left out: its indicator counts no requests")
        return None
    if taking.peek(*ratio) is None:
        taking.fault(base, "has no ratioMetric; want good or bad, and total")
        return None
    for note in ("displayName", "description"):
        taking.text(*base, note)
    is_counter = taking.text(*ratio, "incremental" if is_alpha else "counter") != "false"
    found = {}
    for part in ("good", "bad", "total", "raw"):
        if taking.peek(*ratio, part) is not None:
            query = _query(taking, (*ratio, part), is_alpha, is_counter)
            if query is None:
                why = "is left out: its indicator is no PromQL of counters"
                indicator.slo.lose_all(("spec",), why)
                return None
            found[part] = query
    return _bad_and_total(taking, ratio, found)


def _bad_and_total(taking: Taking, ratio: Path, found: dict[str, str]) -> dict[str, str] | None:
    if "raw" in found:
        raw = found["raw"]
        kind = taking.text(*ratio, "rawType")
        taking.mend((*ratio, "raw"), UNWEIGHTED)
        return ratio_queries(raw if kind == "failure" else f"1 - ({raw})")
    total, good, bad = found.get("total"), found.get("good"), found.get("bad")
    if total is None or (good is None and bad is None):
        taking.fault(ratio, "is not whole; want good or bad, and total")
        return None
    if bad is None:
        # Without one good request there may be no series of them: all are bad then, not none.
        bad = f"({total}) - (({good}) or ({total}) * 0)"
    return {"bad": bad, "total": total}


def _query(taking: Taking, part: Path, is_alpha: bool, is_counter: bool) -> str | None:
    """PromQL with its range open; None, and told, where it is none or knows no range."""
    if is_alpha:
        kind = taking.text(*part, "source")
        taking.text(*part, "queryType")
        path: Path = (*part, "query")
    else:
        kind = taking.text(*part, "metricSource", "type")
        path = (*part, "metricSource", "spec", "query")
    if kind.lower() not in ("", "prometheus"):
        taking.lose(part, f"is {kind}'s, not Prometheus'")
        return None
    query = _PLACEHOLDER.sub(WINDOW, taking.text(*path))
    if WINDOW in query:
        return query
    if _FIXED_RANGE.search(query):
        taking.mend(path, "has a range of its own, which becomes that of each window")
        return _FIXED_RANGE.sub(f"[{WINDOW}]", query)
    rated = _rated(query) if is_counter else None
    if rated is None:
        taking.lose(path, f"has no range; want rate(x[{WINDOW}]) of a counter x")
        return None
    taking.mend(path, "is a counter, of which the rate is taken")
    return rated


def _rated(query: str) -> str | None:
    """`sum(x)` as `sum(rate(x[...]))`; None where it is not one counter, summed or plain."""
    try:
        parsed = promql_parser.parse(query)
    except ValueError:
        return None
    inner = parsed.expr if isinstance(parsed, promql_parser.AggregateExpr) else parsed
    if not isinstance(inner, promql_parser.VectorSelector):
        return None
    whole, selector = parsed.prettify(), inner.prettify()
    return whole.replace(selector, f"rate({selector}[{WINDOW}])")
