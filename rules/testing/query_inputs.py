"""Series that a user's two queries select, where each is plainly the rate of one series."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.slo.model import QuerySource
from tailburn.rules.sources.query import WINDOW

_RATED = re.compile(r"\brate\s*\(\s*([a-zA-Z_:][\w:]*)\s*(?:\{([^{}]*)\})?\s*\[@\]\s*\)")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*(["\'])(.*?)\3')
_USUAL_VALUES: Final = ("200", "500", "503", "429", "ok", "error", "true", "false", "another")

Counters = Iterator[tuple[str, dict[str, str], Sequence[float]]]


@dataclass(frozen=True)
class _Series:
    metric: str
    matchers: tuple[tuple[str, str, str], ...]  # label, operator, text

    def selects(self, label: str, value: str) -> bool:
        return all(_matches(op, text, value) for name, op, text in self.matchers if name == label)

    @property
    def labels(self) -> set[str]:
        return {name for name, _, _ in self.matchers}

    def named(self, label: str) -> Iterator[str]:
        """Values that the matchers of a label spell out."""
        texts = (text for name, _, text in self.matchers if name == label)
        return (part for text in texts for part in text.split("|"))


def query_counters(source: QuerySource, by: Mapping[str, str], bad: Sequence[float]) -> Counters:
    """Metric, labels and the share of the requests that it counts; nothing for other queries."""
    total, failed = _series(source.total), _series(source.bad)
    if total is None or failed is None:
        return
    is_part = total.metric == failed.metric
    in_failed = _labels(by, (failed, total) if is_part else (failed,))
    in_total = _labels(by, (total,), unless=failed if is_part else None)
    if in_failed is not None and in_total is not None:
        yield failed.metric, in_failed, bad
        yield total.metric, in_total, [1 - share if is_part else 1.0 for share in bad]


def _series(query: str) -> _Series | None:
    """The one series that is rated; None where the query is more than that."""
    found = _RATED.findall(WINDOW.sub("@", query))
    if len(found) != 1 or WINDOW.sub("@", query).count("[@]") != 1:
        return None
    metric, matchers = found[0]
    return _Series(metric, tuple((n, op, text) for n, op, _, text in _MATCHER.findall(matchers)))


def _labels(
    by: Mapping[str, str], selected_by: Sequence[_Series], unless: _Series | None = None
) -> dict[str, str] | None:
    """Labels that all of these select, and the other does not; None where none is found."""
    asked = (*selected_by, unless) if unless else selected_by
    labels = dict(by)
    for label in sorted({label for one in asked for label in one.labels} - set(by)):
        values = (*_USUAL_VALUES, *(value for one in asked for value in one.named(label)))
        wanted = [v for v in values if all(one.selects(label, v) for one in selected_by)]
        if not wanted:
            return None
        apart = [v for v in wanted if unless is not None and not unless.selects(label, v)]
        labels[label] = (apart or wanted)[0]
    if unless is not None and all(unless.selects(label, v) for label, v in labels.items()):
        return None
    return labels


def _matches(operator: str, text: str, value: str) -> bool:
    tests: Mapping[str, Callable[[], bool]] = {
        "=": lambda: value == text,
        "!=": lambda: value != text,
        "=~": lambda: re.fullmatch(text, value) is not None,
        "!~": lambda: re.fullmatch(text, value) is None,
    }
    return tests[operator]()
