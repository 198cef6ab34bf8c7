"""A simulated course on a terminal: what fired, what is left, both over time."""

from collections.abc import Iterator

from rich.table import Table

from tailburn.app.calculators.simulating import Simulated
from tailburn.app.calculators.words import percent, span, title, windows
from tailburn.app.terminal.plots import WIDTH, axis, spans_line, sparkline
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import NO_DATA, harmless, plain
from tailburn.engine.slo.burn import Pair
from tailburn.engine.slo.simulate import Effect, Firing, Held

SHOWN_FIRINGS = 50
_STILL = "still fires"


def heading(found: Simulated) -> str:
    """Which budgets, and how wide."""
    budget = found.explained
    names = ", ".join(objective.name for objective in budget.objectives)
    allowed = percent(budget.budget_ratio)
    return harmless(f"{budget.slo.name} / {names}: {allowed} may be bad over {budget.slo.window}")


def firing_table(found: Simulated) -> Table:
    """A line for each of the first times that an alert fires."""
    drawn = table(["alert", "windows"], ["fires at", "ends at", "lasts", "budget left then"])
    for firing in found.firings[:SHOWN_FIRINGS]:
        end_s = firing.end_s
        cells = [
            str(firing.pair.severity),
            windows(firing.pair),
            span(firing.begin_s),
            _STILL if end_s is None else span(end_s),
            "" if end_s is None else span(end_s - firing.begin_s),
            _left(found.budget.left_at(firing.begin_s)),
        ]
        drawn.add_row(*map(plain, cells))
    return drawn


def budget_lines(found: Simulated) -> Iterator[str]:
    """What the course leaves of the budget."""
    if not found.firings:
        yield "No alert fires."
    yield from _held_lines(found)
    lowest, overdrawn = found.budget.lowest(), found.budget.overdrawn()
    end = f"budget left at the end of the course: {_left(found.budget.left_at(found.told_s))}"
    yield end if lowest is None else f"{end}; at the lowest {percent(lowest[1])}"
    if overdrawn:
        yield f"the budget is overdrawn from {span(overdrawn[0][0])} on"


def _held_lines(found: Simulated) -> Iterator[str]:
    """The first time that each alert is held back, and how often besides."""
    for pair in found.explained.pairs:
        ours = [one for one in found.held if one.pair == pair]
        if ours:
            more = f" (and {len(ours) - 1} more)" if len(ours) > 1 else ""
            yield f"{title(pair)}: {_held(ours[0])}{more}"


def _held(one: Held) -> str:
    begin, end = span(one.begin_s), span(one.end_s)
    why = "so few bad requests may be chance"
    if one.effect is Effect.DELAYED:
        return f"both windows are over from {begin} on, it fires at {end}: till then {why}"
    if one.effect is Effect.PREVENTED:
        return f"both windows are over from {begin} to {end}, it does not fire: {why}"
    return f"it ends at {begin}, though both windows are over until {end}: {why}"


def plot(found: Simulated) -> Iterator[str]:
    """The share of bad requests, each alert that fires and the budget, on one axis of time."""
    pairs = list(dict.fromkeys(firing.pair for firing in found.firings))
    bad = found.bad_over_time(WIDTH)
    top = max((value for value in bad if value is not None), default=0.0)
    lines = [
        ("bad", sparkline(bad, top), f"up to {percent(top)}"),
        *((title(pair), _line(found, pair), "") for pair in pairs),
        ("budget left", sparkline(found.left_over_time(WIDTH), 1.0), _lowest(found)),
    ]
    room = max(len(name) for name, _, _ in lines)
    for name, line, note in lines:
        yield f"{name:>{room}} │{line}│ {note}".rstrip()
    end_s = found.shown_s
    ticks = [(0, "0"), (WIDTH // 2, span(end_s / 2)), (WIDTH - 1, span(end_s))]
    yield from axis(ticks, WIDTH, room + 2)


def _line(found: Simulated, pair: Pair) -> str:
    end_s = found.shown_s
    return spans_line([_span(f, end_s) for f in found.firings if f.pair == pair], end_s)


def _span(firing: Firing, end_s: float) -> tuple[float, float]:
    return firing.begin_s, end_s if firing.end_s is None else firing.end_s


def _lowest(found: Simulated) -> str:
    lowest = found.budget.lowest()
    return "" if lowest is None else f"down to {percent(lowest[1])}"


def _left(ratio: float | None) -> str:
    return NO_DATA if ratio is None else percent(ratio)
