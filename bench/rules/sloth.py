"""Budgets in the shape that Sloth gives them: three groups each, ratios over eight windows.

Seven windows are read straight from the counters, three days of them for the longest. Only the
30 days are a mean: of the 5-minute ratio, each of which weighs the same.
"""

from collections.abc import Iterator
from typing import Any, Final

STRAIGHT: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
_PAIRS: Final = {
    "page": (("5m", "1h", 14.4), ("30m", "6h", 6.0)),
    "ticket": (("2h", "1d", 3.0), ("6h", "3d", 1.0)),
}


def groups(name: str, objective: float, bad: str, total: str) -> Iterator[dict[str, Any]]:
    """The groups of one budget, as a rule file has them; `bad` and `total` select counters."""
    labels = {"sloth_id": name, "sloth_service": "bench", "sloth_slo": name}
    own = f'{{sloth_id="{name}"}}'
    yield {"name": f"sli-{name}", "rules": list(_ratios(bad, total, own, labels))}
    yield {"name": f"meta-{name}", "rules": list(_meta(objective, own, labels))}
    yield {"name": f"alerts-{name}", "rules": list(_alerts(name, objective, own))}


def _ratios(bad: str, total: str, own: str, labels: dict[str, str]) -> Iterator[dict[str, Any]]:
    for window in STRAIGHT:
        yield {
            "record": f"slo:sli_error:ratio_rate{window}",
            "expr": f"sum(rate({bad}[{window}])) / sum(rate({total}[{window}]))",
            "labels": labels | {"sloth_window": window},
        }
    five = f"slo:sli_error:ratio_rate5m{own}[30d]"
    yield {
        "record": "slo:sli_error:ratio_rate30d",
        "expr": f"sum_over_time({five}) / ignoring (sloth_window) count_over_time({five})",
        "labels": labels | {"sloth_window": "30d"},
    }


def _meta(objective: float, own: str, labels: dict[str, str]) -> Iterator[dict[str, Any]]:
    on = "on (sloth_id, sloth_slo, sloth_service) group_left"
    budget = f"slo:error_budget:ratio{own}"
    said = {
        "slo:objective:ratio": f"vector({objective})",
        "slo:error_budget:ratio": f"vector(1 - {objective})",
        "slo:time_period:days": "vector(30)",
        "slo:current_burn_rate:ratio": f"slo:sli_error:ratio_rate5m{own} / {on} {budget}",
        "slo:period_burn_rate:ratio": f"slo:sli_error:ratio_rate30d{own} / {on} {budget}",
        "slo:period_error_budget_remaining:ratio": f"1 - slo:period_burn_rate:ratio{own}",
        "sloth_slo_info": "vector(1)",
    }
    for record, expression in said.items():
        yield {"record": record, "expr": expression, "labels": labels}


def _alerts(name: str, objective: float, own: str) -> Iterator[dict[str, Any]]:
    for severity, pairs in _PAIRS.items():
        conditions = [
            " and ".join(
                f"max(slo:sli_error:ratio_rate{w}{own} > ({factor} * {1 - objective}))"
                " without (sloth_window)"
                for w in (short, long)
            )
            for short, long, factor in pairs
        ]
        expression = " or ".join(f"({condition})" for condition in conditions)
        labels = {"sloth_severity": severity}
        yield {"alert": f"High{name}", "expr": expression, "labels": labels}
