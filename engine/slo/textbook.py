"""The pairs of the SRE workbook's chapter "Alerting on SLOs" as they stand there, without limits.

What they do to a wide budget is why ours differ: at 95 % the fast page needs 72 % bad requests,
at 90 % it can never fire.
"""

from typing import Final

from tailburn.engine.slo.burn import DAY_S, HOUR_S, MINUTE_S, Pair, Severity

# Severity, the share of the budget that is gone by then, long and short window. The one of a day
# is in the code of the sixth approach only, the others are table 5-8.
_ROWS: Final = (
    (Severity.PAGE, 0.02, HOUR_S, 5 * MINUTE_S),
    (Severity.PAGE, 0.05, 6 * HOUR_S, 30 * MINUTE_S),
    (Severity.TICKET, 0.1, DAY_S, 2 * HOUR_S),
    (Severity.TICKET, 0.1, 3 * DAY_S, 6 * HOUR_S),
)


def textbook_pairs(budget_ratio: float, window_s: float) -> tuple[Pair, ...]:
    """The four pairs; the factor is `share * window / long`, its threshold may be over 1."""
    found = []
    for severity, share, long_s, short_s in _ROWS:
        factor = round(share * window_s / long_s, 12)
        found.append(Pair(severity, long_s, short_s, factor, budget_ratio, factor))
    return tuple(found)
