"""What was true in a run, as its truth file says. Only the scorer reads it.

    {"format": "tailburn-truth-1", "start_ns": 0, "end_ns": 7200000000000, "truths": [
      {"scenario": "S8", "cause": "hbm_ratio", "hop": "decode", "step": "throughput",
       "verdict": "THROUGHPUT (memory)", "severity": "medium", "pages": true,
       "start_ns": 3600000000000, "end_ns": 6300000000000,
       "affected": {"replica": ["vllm-0"]}}]}

`start_ns` and `end_ns` of the whole: the time that counts; what lies before is warm-up.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from tailburn.lab.score.checked import Place
from tailburn.lab.score.errors import ScoreError

FORMAT: Final = "tailburn-truth-1"


class Truth(Protocol):
    """One fault or control as it was: what the scorer needs to know of it."""

    @property
    def scenario(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def affected(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def pages(self) -> bool: ...


@dataclass(frozen=True)
class Known:
    """A truth as it was read."""

    scenario: str
    start_ns: int
    end_ns: int
    pages: bool = True
    severity: str = "medium"
    affected: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunTruth:
    """All that was true in a run, and which part of it counts."""

    start_ns: int
    end_ns: int
    truths: tuple[Truth, ...]


def read_truth(path: Path) -> RunTruth:
    """Of a truth file; ScoreError says what is not as the format has it."""
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as err:
        raise ScoreError(f"{path}: line {err.lineno}: not JSON: {err.msg}") from None
    return truth_of(found, str(path))


def truth_of(found: Any, where: str = "truth") -> RunTruth:
    """From parsed JSON. What else a truth file tells is passed over."""
    top = Place(where, found)
    if top.text("format") != FORMAT:
        raise ScoreError(f"{where}: format {found['format']!r}; want {FORMAT!r}")
    start = top.whole("start_ns")
    return RunTruth(
        start,
        top.whole("end_ns", least=start + 1),
        tuple(_known(one) for one in top.each("truths")),
    )


def _known(place: Place) -> Known:
    start = place.whole("start_ns")
    return Known(
        place.text("scenario"),
        start,
        place.whole("end_ns", least=start + 1),
        place.truth("pages"),
        place.text("severity"),
        _affected(place),
    )


def _affected(place: Place) -> dict[str, tuple[str, ...]]:
    found = place.get("affected") or {}
    if not isinstance(found, dict):
        raise ScoreError(f"{place.where}.affected: {found!r}; want an object of lists")
    for dim, values in found.items():
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise ScoreError(f"{place.where}.affected.{dim}: {values!r}; want a list of texts")
    return {dim: tuple(values) for dim, values in found.items()}
