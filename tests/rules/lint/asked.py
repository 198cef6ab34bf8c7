"""SLOs to check, and a Prometheus that answers from a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailburn.engine.slo.model import Clock, Place, Slo, Thresholds, Tier
from tailburn.rules.lint.known import Known, Sample

HERE = Place("chat.yaml", 11)


def slo(**fields: Any) -> Slo:
    """An SLO named chat at line 11 of chat.yaml."""
    return replace(Slo("chat", HERE), **fields)


def clocks(**acceptable: Thresholds) -> Mapping[Clock, Mapping[Tier, Thresholds]]:
    """`ttft={"p95": 0.5}` as the acceptable tier of TTFT."""
    return {Clock(name): {Tier.ACCEPTABLE: given} for name, given in acceptable.items()}


@dataclass
class Table:
    """Answers by the begin of the question; all else is empty."""

    answers: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    version: str = "2.42.0"
    retention_s: float | None = None
    asked: list[str] = field(default_factory=list)

    def query(self, expr: str) -> Sequence[Sample]:
        self.asked.append(expr)
        return next((a for begin, a in self.answers.items() if expr.startswith(begin)), ())


def one(value: float, **labels: str) -> Sample:
    return Sample(labels, value)


def known(answers: Mapping[str, Sequence[Sample]], **fields: Any) -> Known:
    return Known(prometheus=Table(answers, **fields))
