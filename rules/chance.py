"""More bad requests than chance, as PromQL: `engine.evaluation.chance` says why, and how much."""

from typing import Final

from tailburn.engine.evaluation.chance import HEALTHY, LOOKS, floor
from tailburn.rules.promql import number

_DIGITS: Final = 6


def surprise(bad: str, requests: str, window_s: int, healthy_ratio: float) -> str:
    """How little chance there is for so many bad ones in a window, from two rates over it."""
    expected = f"{number(healthy_ratio)} * {requests}"
    return f"{window_s} * ({bad} * (ln({bad} / ({expected})) - 1) + {expected})"


def surprise_of_burn(burn: str, requests: str, window_s: int, budget_ratio: float) -> str:
    """The same of a budget, from how fast it burns: half of the records to read."""
    budgeted = number(round(window_s * budget_ratio, _DIGITS))
    times = number(1 / HEALTHY)
    return f"{budgeted} * {requests} * ({burn} * (ln({times} * {burn}) - 1) + {number(HEALTHY)})"


def enough(series: str, times: float = 1.0, *, is_single: bool) -> str:
    """So many times the surprise that it takes for each of these series that has requests."""
    if is_single:
        return number(round(times * floor(1), _DIGITS))
    factor = "" if times == 1 else f"{number(round(times, _DIGITS))} * "
    return f"{factor}scalar(ln({number(LOOKS)} * count({series} > 0)))"
