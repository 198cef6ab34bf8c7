"""An explained budget on a terminal: a table, a sentence for each alert, a small plot."""

import math
import re
from collections.abc import Iterator, Sequence

from rich.table import Table

from tailburn.app.calculators.explaining import Explained, other_alerts, times_of
from tailburn.app.calculators.shares import Shares, shares_of
from tailburn.app.calculators.words import percent, span, title, windows
from tailburn.app.terminal.plots import TICK, WIDTH, axis, log_plot
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import harmless, plain
from tailburn.engine.slo.burn import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    Limit,
    Pair,
    Severity,
    budget_used_ratio,
    detection_s,
    reset_s,
)
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.quantities import write_time
from tailburn.rules.annotating import definition

_TIMES = (
    (30.0, "30s"),
    (2.0 * MINUTE_S, "2m"),
    (10.0 * MINUTE_S, "10m"),
    (HOUR_S, "1h"),
    (6.0 * HOUR_S, "6h"),
    (DAY_S, "1d"),
    (3.0 * DAY_S, "3d"),
)
_LEAST_BAD_RATIO = 0.001
_CAPTION = "Time to the first page (P) and the first ticket (t), by the share of bad requests"
_TEMPLATE = re.compile(r"\s*\(?[^({]*\{\{.*?\}\}\)?")


def heading(budget: Explained) -> Iterator[str]:
    """Which budgets these are: whose, what they count, how much may be bad."""
    slo = budget.slo
    names = ", ".join(objective.name for objective in budget.objectives)
    yield harmless(f"{slo.name} / {names}  ({slo.place})")
    for objective in budget.objectives:
        yield harmless(f"  {definition(slo, objective)}")
    each = f", for each {' and '.join(slo.by)}" if slo.by else ""
    allowed = percent(budget.budget_ratio)
    yield harmless(f"  {allowed} of the requests of {_window(slo)} may be bad{each}")


def _window(slo: Slo) -> str:
    return f"the last {slo.window}" if str(slo.window)[0].isdigit() else f"a {slo.window}"


def burn_table(budget: Explained, bad_ratios: Sequence[float]) -> Table:
    """A line for each alert; at each share of bad requests the times to detect and to reset."""
    right = ["burn", "bad over", "gone by then", *(f"{percent(bad)} bad" for bad in bad_ratios)]
    drawn = table(["alert", "windows"], right)
    for pair in budget.pairs:
        cells = [
            str(pair.severity),
            windows(pair),
            f"{pair.factor:.3g}",
            percent(pair.threshold_ratio),
            percent(budget_used_ratio(pair, budget.window_s)),
            *(_cell(pair, bad) for bad in bad_ratios),
        ]
        drawn.add_row(*map(plain, cells))
    return drawn


def _cell(watched: Pair | Shares, bad_ratio: float) -> str:
    detection, reset = times_of(watched, bad_ratio)
    return span(None) if detection is None else f"{span(detection)} / {span(reset)}"


def sentences(budget: Explained) -> Iterator[str]:
    """Each alert in words."""
    for pair in budget.pairs:
        long, short = windows(pair).split("/")
        over = percent(pair.threshold_ratio)
        gone = percent(budget_used_ratio(pair, budget.window_s))
        if pair.threshold_ratio >= 1:
            yield f"{title(pair)}: never; its factor of {pair.factor:.3g} wants {over} bad."
            continue
        yield (
            f"{title(pair)}: when over {over} of the requests of the last {long} were bad, and of "
            f"the last {short} still. {gone} of the budget is gone by then. In an outage it fires "
            f"after {span(detection_s(pair, 1.0))} and ends {span(reset_s(pair, 1.0))} after it."
            f"{_why(pair)}"
        )


def _why(pair: Pair) -> str:
    """What made the factor another than the workbook's."""
    if pair.limit is Limit.NONE or pair.factor == pair.textbook_factor:
        return ""
    needed = percent(pair.textbook_factor * pair.budget_ratio)
    factor = f"{pair.textbook_factor:.3g}"
    return f" Set by {pair.limit}: the workbook's factor of {factor} needs {needed} bad."


def plot(budget: Explained) -> list[str]:
    """How soon the first page (P) and the first ticket (t) come, at each share of bad requests."""
    curves = {
        mark: [_first(budget.pairs, severity, bad) for bad in _bad_ratios()]
        for mark, severity in (("P", Severity.PAGE), ("t", Severity.TICKET))
    }
    drawn = log_plot(curves, _TIMES)
    indent = drawn[0].index(TICK) + 1
    ticks = [(_column(bad), percent(bad)) for bad in (_LEAST_BAD_RATIO, 0.01, 0.1, 1.0)]
    return [_CAPTION, *drawn, *axis(ticks, WIDTH, indent)]


def _bad_ratios() -> list[float]:
    step = -math.log(_LEAST_BAD_RATIO) / (WIDTH - 1)
    return [_LEAST_BAD_RATIO * math.exp(step * column) for column in range(WIDTH)]


def _column(bad_ratio: float) -> int:
    share = math.log(bad_ratio / _LEAST_BAD_RATIO) / -math.log(_LEAST_BAD_RATIO)
    return round(share * (WIDTH - 1))


def _first(pairs: Sequence[Pair], severity: Severity, bad_ratio: float) -> float | None:
    times = (detection_s(pair, bad_ratio) for pair in pairs if pair.severity is severity)
    return min((time for time in times if time is not None), default=None)


def others_table(slo: Slo, bad_ratios: Sequence[float]) -> Table | None:
    """The other alerts that rest on shares of bad requests; None where there are none."""
    alike: dict[tuple[str, str, Shares], list[str]] = {}
    for alert in other_alerts(slo):
        shares = shares_of(alert)
        if shares is not None:
            key = (str(alert.severity), str(alert.kind), shares)
            alike.setdefault(key, []).append(alert.objective)
    drawn = table(["alert", "of", "bad over"], [f"{percent(bad)} bad" for bad in bad_ratios])
    for (severity, kind, shares), named in alike.items():
        cells = [
            f"{severity} {kind}",
            ", ".join(named),
            _over(shares),
            *(_cell(shares, bad) for bad in bad_ratios),
        ]
        drawn.add_row(*map(plain, cells))
    return drawn if alike else None


def _over(shares: Shares) -> str:
    over = " and ".join(f"{percent(share)} in {write_time(s)}" for share, s in shares.over)
    return f"{over}, for {write_time(shares.for_s)}" if shares.for_s else over


def others(slo: Slo) -> Iterator[str]:
    """The alerts that rest on no budget's burn, in the words that they carry themselves."""
    alike: dict[tuple[str, str], list[str]] = {}
    for alert in other_alerts(slo):
        said = _TEMPLATE.sub("", alert.annotations.get("description", ""))
        alike.setdefault((f"{alert.severity} {alert.kind}", said), []).append(alert.objective)
    for (name, said), named in alike.items():
        of = ", ".join(filter(None, named))
        yield harmless(f"{name} {of}: {said}" if of else f"{name}: {said}")
