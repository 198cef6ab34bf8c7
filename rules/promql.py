"""Pieces of PromQL: durations, numbers, selectors. Text in, text out."""

from collections.abc import Iterable, Mapping
from typing import Final

_UNITS_S: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: float) -> str:
    """`5m`, `1h30m`, `3d`: whole seconds as Prometheus reads and writes them."""
    rest = round(seconds)
    if rest <= 0 or rest != seconds:
        raise ValueError(f"a duration is whole seconds above 0, got {seconds!r}")
    parts = []
    for unit, unit_s in _UNITS_S:
        count, rest = divmod(rest, unit_s)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def number(value: float) -> str:
    """A number without the dust of binary fractions: 0.144, not 0.14399999999999999."""
    return f"{value:.12g}"


def quoted(value: str) -> str:
    """A label's value as a string literal."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def selector(metric: str, equal: Mapping[str, str], **regex: str) -> str:
    """`metric{a="b"}`, and `c=~"d|e"` for what is given by name."""
    matchers = [f"{name}={quoted(value)}" for name, value in equal.items() if value]
    matchers += [f"{name}=~{quoted(value)}" for name, value in regex.items()]
    return f"{metric}{{{','.join(matchers)}}}" if matchers else metric


def by(labels: Iterable[str]) -> str:
    """`by (a, b)`."""
    return f"by ({', '.join(labels)})"


def indented(text: str) -> str:
    """Two spaces in front of every line."""
    return "\n".join(f"  {line}" for line in text.splitlines())
