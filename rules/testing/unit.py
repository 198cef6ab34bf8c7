"""A file of promtool's unit tests as values, and its text: the same bytes for the same tests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailburn.rules.formats.yaml import text
from tailburn.rules.promql import duration, number, quoted


@dataclass(frozen=True)
class Input:
    """A series that is scraped: its values in promtool's notation, one per interval from 0 on."""

    metric: str
    labels: Mapping[str, str]
    values: str

    @property
    def series(self) -> str:
        return sample_name(self.metric, self.labels)


@dataclass(frozen=True)
class Question:
    """A query at a time, and all the samples it must answer with."""

    at_s: int
    expr: str
    samples: Mapping[str, float]  # by what `sample_name` writes


@dataclass(frozen=True)
class UnitTest:
    """One course of events, which starts without any data."""

    name: str
    interval_s: int  # between scrapes, and between evaluations
    inputs: tuple[Input, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class TestFile:
    """Tests that share an interval."""

    __test__ = False  # its name is promtool's word, not pytest's

    name: str
    interval_s: int
    rule_files: tuple[str, ...]
    group_order: tuple[str, ...]  # promtool takes them as they come otherwise
    tests: tuple[UnitTest, ...]

    @property
    def text(self) -> str:
        """YAML for `promtool test rules`."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "rule_files:"
        yield from (f"  - {text(name)}" for name in self.rule_files)
        yield f"evaluation_interval: {duration(self.interval_s)}"
        yield "group_eval_order:"
        yield from (f"  - {text(name)}" for name in self.group_order)
        yield "tests:"
        for test in self.tests:
            yield f"  - name: {text(test.name)}"
            yield f"    interval: {duration(self.interval_s)}"
            yield "    input_series:" if test.inputs else "    input_series: []"
            for series in test.inputs:
                yield f"      - series: {_single_quoted(series.series)}"
                yield f"        values: {text(series.values)}"
            yield "    promql_expr_test:"
            for question in test.questions:
                yield from _question(question)


def sample_name(metric: str, labels: Mapping[str, str]) -> str:
    """`metric{a="b"}`, labels in order."""
    pairs = (f"{name}={quoted(value)}" for name, value in sorted(labels.items()) if value)
    inside = ",".join(pairs)
    return f"{metric}{{{inside}}}" if inside else metric


def _question(question: Question) -> Iterator[str]:
    yield f"      - expr: {_single_quoted(question.expr)}"
    yield f"        eval_time: {duration(question.at_s) if question.at_s else '0s'}"
    if not question.samples:
        yield "        exp_samples: []"
        return
    yield "        exp_samples:"
    for name, value in sorted(question.samples.items()):
        yield f"          - labels: {_single_quoted(name)}"
        yield f"            value: {number(value)}"


def _single_quoted(value: str) -> str:
    """PromQL is full of double quotes: single ones around it keep it readable."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
