"""Lines of the Prometheus text format, as `/metrics` is written in."""

from collections.abc import Iterable, Mapping

from tailburn.rules.promql import quoted

Sample = tuple[Mapping[str, str], float]


def head(metric: str, kind: str, help_text: str) -> str:
    """What stands before the samples of a metric."""
    return f"# HELP {metric} {help_text}\n# TYPE {metric} {kind}\n"


def labels_text(labels: Mapping[str, str]) -> str:
    """`slo="chat",model="llama"`."""
    return ",".join(f"{name}={quoted(value)}" for name, value in labels.items())


def gauge(metric: str, help_text: str, samples: Iterable[Sample]) -> str:
    """A gauge with its samples; empty without any."""
    lines = [f"{metric}{{{labels_text(labels)}}} {value}\n" for labels, value in samples]
    return head(metric, "gauge", help_text) + "".join(lines) if lines else ""
