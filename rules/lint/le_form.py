"""LE_FORM: `le="1"`, which Prometheus 3 writes `le="1.0"`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tailburn.engine.slo.model import EngineSource, Place, QuerySource, Slo
from tailburn.rules.lint.finding import Finding, Severity, error
from tailburn.rules.lint.known import Known

CODE: Final = "LE_FORM"
_WHOLE_BOUND = re.compile(r"""\ble\s*=\s*(["'])(\d+)\1""")


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """In the user's own queries; and a matcher of `le` where the rules choose the bucket."""
    if isinstance(slo.source, QuerySource):
        for field in ("bad", "total"):
            for bound in _whole_bounds(getattr(slo.source, field)):
                severity, where = _severity(known), f"spec.source.{field}"
                yield _finding(slo.place, severity, slo.name, where, bound)
    elif isinstance(slo.source, EngineSource) and "le" in slo.source.match:
        yield error(
            CODE,
            slo,
            "spec.source.match.le",
            slo.source.match["le"],
            "the rules match the bound of the objective themselves, in both spellings",
            "remove it",
        )


def in_text(file: str, lines: Sequence[str], known: Known) -> Iterator[Finding]:
    """Bounds spelt so that they match on one side of an upgrade only."""
    for number, line in enumerate(lines, 1):
        for bound in _whole_bounds(line):
            yield _finding(Place(file, number), _severity(known), "", "query", bound)


def _whole_bounds(text: str) -> list[str]:
    return [bound for _, bound in _WHOLE_BOUND.findall(text)]


def _finding(place: Place, severity: Severity, slo: str, field: str, bound: str) -> Finding:
    return Finding(
        place,
        severity,
        CODE,
        slo,
        field,
        f'le="{bound}"',
        f'Prometheus 3 stores this bucket as le="{bound}.0": the selector finds nothing',
        f'write le=~"{bound}(\\\\.0)?"',
    )


def _severity(known: Known) -> Severity:
    is_three = known.prometheus is not None and int(known.prometheus.version.split(".")[0]) >= 3
    return Severity.ERROR if is_three else Severity.WARNING
