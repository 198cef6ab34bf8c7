"""What a system said about a run: pages, and what it holds to be their cause.

One JSON document a run and system, or one a line of a file. Times are ns since the
run's epoch, as the system could know them: a page's start is when it would have rung.

    {"format": "tailburn-outcome-1", "system": "three-sigma",
     "pages": [{"start_ns": 60, "end_ns": 360, "severity": "page",
                "alert": "ttft p99", "dims": {"model": "llama-3.1-70b"}}],
     "diagnoses": [{"start_ns": 60, "end_ns": 360,
                    "causes": [{"cause": "S1", "evidence": [
                        {"signal": "requests_waiting", "dims": {"replica": "vllm-0"}}]}]}]}

`end_ns` null: still open when the run ended. `causes` is ranked, the likeliest first; none
of them is an abstention, and `said` may tell why.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tailburn.lab.score.checked import Place
from tailburn.lab.score.errors import ScoreError

FORMAT: Final = "tailburn-outcome-1"
SEVERITIES: Final = ("page", "ticket")

Dims = Mapping[str, str]


@dataclass(frozen=True)
class Page:
    """One alert that fired. `dims`: which series it was about, as far as it says."""

    start_ns: int
    end_ns: int | None
    severity: str = "page"
    alert: str = ""
    dims: Dims = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A signal that a cause rests on, by its canonical name, and where it was seen."""

    signal: str
    dims: Dims = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """One answer: a scenario's id, and what speaks for it."""

    cause: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """What a system holds to be the cause of what happened in a window, likeliest first."""

    start_ns: int
    end_ns: int
    causes: tuple[Cause, ...] = ()
    said: str = ""

    @property
    def abstained(self) -> bool:
        """Whether it names no cause."""
        return not self.causes


@dataclass(frozen=True)
class Outcome:
    """All that one system said about one run."""

    system: str
    pages: tuple[Page, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the documented format has it."""
        return {"format": FORMAT, **asdict(self)}


def outcome_of(found: Any, where: str = "outcome") -> Outcome:
    """From parsed JSON; ScoreError says which value is not as the format has it."""
    top = Place(where, found)
    top.only("format", "system", "pages", "diagnoses")
    if top.text("format") != FORMAT:
        raise ScoreError(f"{where}: format {found['format']!r}; want {FORMAT!r}")
    return Outcome(
        top.text("system"),
        tuple(_page(one) for one in top.each("pages")),
        tuple(_diagnosis(one) for one in top.each("diagnoses")),
    )


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """Of a file with a document a line, or of one document alone."""
    text = path.read_text()
    for number, line in enumerate([text] if _is_one(text) else text.splitlines(), 1):
        if line.strip():
            try:
                found = json.loads(line)
            except json.JSONDecodeError as err:
                raise ScoreError(f"{path}: line {number}: not JSON: {err.msg}") from None
            yield outcome_of(found, f"{path}: line {number}")


def _is_one(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def _page(place: Place) -> Page:
    place.only("start_ns", "end_ns", "severity", "alert", "dims")
    start = place.whole("start_ns")
    end = None if place.get("end_ns") is None else place.whole("end_ns", least=start)
    return Page(
        start,
        end,
        place.one_of("severity", SEVERITIES, "page"),
        place.text("alert", ""),
        place.dims("dims"),
    )


def _diagnosis(place: Place) -> Diagnosis:
    place.only("start_ns", "end_ns", "causes", "said")
    start = place.whole("start_ns")
    return Diagnosis(
        start,
        place.whole("end_ns", least=start),
        tuple(_cause(one) for one in place.each("causes")),
        place.text("said", ""),
    )


def _cause(place: Place) -> Cause:
    place.only("cause", "evidence")
    return Cause(
        place.text("cause"),
        tuple(
            Evidence(one.text("signal"), one.dims("dims"))
            for one in place.each("evidence")
            if one.only("signal", "dims")
        ),
    )
