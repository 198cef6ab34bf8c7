"""How fast the demo's budgets burn: verdicts of the stored requests over an alert's windows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from rich.table import Table

from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import NO_DATA, plain, share
from tailburn.engine.schema import REQUESTS
from tailburn.engine.slo.burn import Pair, Severity, pairs, window_s
from tailburn.engine.slo.model import Objective, Slo, objectives
from tailburn.engine.slo.quantities import write_percent, write_time
from tailburn.engine.slo.verdicts import Codes, Requests, Verdict, judge
from tailburn.engine.store.api import Store, Window

_NS = 1_000_000_000


@dataclass(frozen=True)
class Burning:
    """One budget under its quickest page. Shares are of the requests with a verdict."""

    slo: Slo
    objective: Objective
    pair: Pair
    long_ratio: float | None
    short_ratio: float | None

    @property
    def burn(self) -> float | None:
        """How many times faster than allowed the budget goes, over the short window."""
        if self.short_ratio is None:
            return None
        return self.short_ratio / self.objective.budget_ratio

    @property
    def fires(self) -> bool:
        limit = self.pair.threshold_ratio
        return (self.long_ratio or 0.0) > limit and (self.short_ratio or 0.0) > limit


def burning(store: Store, slos: Sequence[Slo], now_ns: int) -> list[Burning]:
    """Every budget that has a page, as of `now_ns`."""
    return [each for slo in slos for each in _of_slo(store, slo, now_ns)]


def _of_slo(store: Store, slo: Slo, now_ns: int) -> Iterator[Burning]:
    @cache
    def codes_of_last(seconds: int) -> Codes:
        return _codes(store, slo, Window(now_ns - seconds * _NS, now_ns))

    for number, objective in enumerate(objectives(slo)):
        found = pairs(objective.budget_ratio, window_s(slo.window))
        page = next((pair for pair in found if pair.severity is Severity.PAGE), None)
        if page is not None:
            long, short = (
                _bad_ratio(codes_of_last(seconds)[:, number])
                for seconds in (page.long_s, page.short_s)
            )
            yield Burning(slo, objective, page, long, short)


def _codes(store: Store, slo: Slo, window: Window) -> Codes:
    """The verdicts of all objectives on the requests of a window."""
    names = [name for name in REQUESTS.names if name != "digests"]
    return judge(Requests(store.requests(window, dict(slo.select), columns=names)), slo)


def _bad_ratio(codes: Codes) -> float | None:
    """The share of bad requests of one objective; None without a verdict."""
    bad, good = int((codes == Verdict.BAD).sum()), int((codes == Verdict.GOOD).sum())
    return bad / (bad + good) if bad + good else None


def burn_table(rows: Sequence[Burning]) -> Table:
    """Budgets that burn first."""
    drawn = table(["slo", "objective", "promise"], ["bad, long", "bad, short", "burn", "page"])
    for row in sorted(rows, key=lambda row: -(row.burn or 0.0)):
        limit = row.objective.threshold_s
        promise = write_percent(1 - row.objective.budget_ratio)
        within = "" if limit is None else f" within {write_time(limit)}"
        windows = f"{write_time(row.pair.long_s)}/{write_time(row.pair.short_s)}"
        fires = f"{windows} over {share(row.pair.threshold_ratio)}"
        cells = [
            row.slo.name, row.objective.name, f"{promise}{within}", _share(row.long_ratio),
            _share(row.short_ratio), "" if row.burn is None else f"{row.burn:.1f}",
            f"FIRES, {fires}" if row.fires else fires,
        ]  # fmt: skip
        drawn.add_row(*(plain(cell, "bold" if row.fires else "") for cell in cells))
    return drawn


def _share(ratio: float | None) -> str:
    return NO_DATA if ratio is None else share(ratio)
