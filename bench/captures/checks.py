"""A check: what was expected, what came, how far off it may be, and which requests fail it."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN = 8


@dataclass(frozen=True)
class Check:
    """One statement about the rows of a capture."""

    name: str
    expected: str
    got: str
    passed: bool
    tolerance: str = "exact"
    failing: tuple[str, ...] = ()  # ids with what was wrong


@dataclass(frozen=True)
class Pair:
    """What the truth and what the row say of one request."""

    key: str
    want: float
    got: float | None

    def off_by(self) -> float:
        """Distance, infinite where the row says nothing."""
        return float("inf") if self.got is None else abs(self.got - self.want)

    def __str__(self) -> str:
        got = "null" if self.got is None else f"{self.got:.6g}"
        return f"{self.key}: want {self.want:.6g}, got {got}"


def every(name: str, total: int, wrong: Sequence[str], share: float = 1.0) -> Check:
    """At least `share` of `total` things are right; `wrong` says which are not and why."""
    right = total - len(wrong)
    return Check(
        name,
        expected=f"{total}",
        got=f"{right}",
        passed=right >= share * total,
        tolerance="exact" if share == 1.0 else f"{share:.0%} of them",
        failing=tuple(wrong),
    )


def within(name: str, pairs: Iterable[Pair], tolerance: float, share: float, unit: str) -> Check:
    """At least `share` of the pairs agree within `tolerance`."""
    all_pairs = list(pairs)
    wrong = [str(pair) for pair in all_pairs if not pair.off_by() <= tolerance]
    check = every(name, len(all_pairs), wrong, share)
    words = f"{share:.0%} within {tolerance * 1e3:g} ms" if unit == "s" else f"within {tolerance}"
    return Check(name, check.expected, check.got, check.passed, words, check.failing)


def median_within(name: str, pairs: Iterable[Pair], tolerance_s: float) -> Check:
    """The medians of both sides agree; a null counts as zero: the hop held nothing."""
    all_pairs = list(pairs)
    if not all_pairs:
        return Check(name, "requests", "none", False)
    want = statistics.median(pair.want for pair in all_pairs)
    got = statistics.median(pair.got or 0.0 for pair in all_pairs)
    passed = abs(want - got) <= tolerance_s
    far = sorted(all_pairs, key=lambda pair: -abs((pair.got or 0.0) - pair.want))
    return Check(
        name,
        expected=f"{want * 1e3:.1f} ms",
        got=f"{got * 1e3:.1f} ms",
        passed=passed,
        tolerance=f"{tolerance_s * 1e3:g} ms",
        failing=() if passed else tuple(str(pair) for pair in far[:SHOWN]),
    )


def equal(name: str, expected: object, got: object, failing: Sequence[str] = ()) -> Check:
    """Both sides are the same."""
    return Check(name, str(expected), str(got), expected == got, failing=tuple(failing))
