"""One reading of a file of signals: which metric says a signal, and how."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tailburn.collector.hops.conditions import Patterns
from tailburn.collector.hops.document import Value
from tailburn.collector.signals.catalogue import Kind, LabelFrom, Made, Reading, Signal

_READING: Final = (
    "signal",
    "metric",
    "each",
    "sum",
    "count",
    "where",
    "factor",
    "labels",
    "product_of",
    "items_of",
    "told_in",
    "since",
    "until",
    "note",
)
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
RESERVED: Final = ("le", "part", "source", "instance", "job")


def read_reading(
    value: Value,
    source: str,
    labels: Mapping[str, LabelFrom],
    signals: Mapping[str, Signal],
    file: Path,
) -> Reading | None:
    """None, and problems in the document, where it can't be used."""
    parts = value.mapping(_READING)
    if "signal" not in parts:
        value.fault("want signal")
        return None
    name = parts["signal"].word(signals)
    if name is None:
        return None
    metrics, both = _names(value, parts, signals[name].kind)
    if not metrics and both is None:
        return None
    made, made_of = _made(value, parts)
    if made is not Made.VALUE and signals[name].kind is not Kind.GAUGE:
        value.fault(f"want a gauge: {name} is a {signals[name].kind}")
    factor = number(parts["factor"]) if "factor" in parts else 1.0
    own = read_labels(parts["labels"]) if "labels" in parts else {}
    where = _where(parts["where"]) if "where" in parts else ()
    return Reading(
        signal=name,
        source=source,
        metrics=metrics,
        sum=both[0] if both else "",
        count=both[1] if both else "",
        where=where,
        factor=factor or 1.0,
        labels={**labels, **own},
        made=made,
        made_of=made_of,
        since=_text(parts, "since"),
        until=_text(parts, "until"),
        note=_text(parts, "note"),
        file=file,
        line=value.line,
    )


def _names(
    value: Value, parts: Mapping[str, Value], kind: Kind
) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Metrics, or the pair of a sum and a count; exactly one of them is given."""
    given = [name for name in ("metric", "each", "sum") if name in parts]
    if len(given) != 1 or ("sum" in parts) != ("count" in parts):
        value.fault("want exactly one of metric, each, or sum with count")
        return (), None
    if given == ["sum"]:
        if kind is not Kind.HISTOGRAM:
            value.fault(f"sum and count are for a histogram, and this is a {kind}")
            return (), None
        total, count = _metric(parts["sum"]), _metric(parts["count"])
        return (), (total, count) if total and count else None
    if given == ["metric"]:
        metric = _metric(parts["metric"])
        return ((metric,) if metric else ()), None
    metrics = [_metric(item) for item in parts["each"].items()]
    if len(metrics) < 2:
        parts["each"].fault("want at least two metrics")
    return tuple(metric for metric in metrics if metric), None


def _metric(value: Value) -> str | None:
    text = value.text()
    if text is not None and not _METRIC.fullmatch(text):
        value.fault("want the name of a metric, such as vllm:num_requests_waiting")
        return None
    return text


def _where(value: Value) -> tuple[tuple[str, Patterns], ...]:
    found: list[tuple[str, Patterns]] = []
    for label, given in value.entries():
        try:
            found.append((label, Patterns(given.texts())))
        except re.error as error:
            given.fault(f"is no regular expression: {error}")
    return tuple(found)


def _made(value: Value, parts: Mapping[str, Value]) -> tuple[Made, tuple[str, ...]]:
    given = [name for name in _MADE if name in parts]
    if len(given) > 1:
        value.fault(f"want one of {', '.join(_MADE)}")
    if not given:
        return Made.VALUE, ()
    return _MADE[given[0]], parts[given[0]].texts()


_MADE: Final = {"product_of": Made.PRODUCT, "items_of": Made.ITEMS, "told_in": Made.ONE}


def read_labels(value: Value) -> dict[str, LabelFrom]:
    """`ours: theirs`, `ours: [theirs, or this]` or `ours: {from: theirs, strip: PREFIX}`."""
    found: dict[str, LabelFrom] = {}
    for name, given in value.entries():
        if not _LABEL.fullmatch(name) or name in RESERVED:
            given.fault(f"want a name of letters, digits and _, and none of {', '.join(RESERVED)}")
            continue
        if not given.is_mapping:
            found[name] = LabelFrom(given.texts())
            continue
        parts = given.mapping(("from", "strip"))
        if "from" not in parts:
            given.fault("want from")
            continue
        found[name] = LabelFrom(parts["from"].texts(), _text(parts, "strip"))
    return found


def number(value: Value) -> float | None:
    """A finite number above 0."""
    text = value.text()
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        value.fault("want a number above 0")
        return None
    return found


def _text(parts: Mapping[str, Value], name: str) -> str:
    return (parts[name].text() or "") if name in parts else ""
