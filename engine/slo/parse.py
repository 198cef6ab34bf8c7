"""Files of SLOs: texts in, what they promise out, with every fault of all of them at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from tailburn.engine.problems import Problem, one_of
from tailburn.engine.slo.building import build
from tailburn.engine.slo.checks import Subject, contradictions
from tailburn.engine.slo.document import Document, Path, documents
from tailburn.engine.slo.faults import faults_of, path_of, shortened, sound_part
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.spec import API_VERSION, KIND, ServingSlo

# Documents of others: `tailburn slo import` makes them ours.
_OTHERS: Final = ("prometheus/", "sloth.slok.dev/", "openslo/", "openslo.com/")


@dataclass(frozen=True)
class Parsed:
    """The SLOs that are sound, and what is wrong with the others; both in the order of the files.

    Where there are problems, no SLO should be put to use: a set with some left out would
    switch their alerts off.
    """

    slos: tuple[Slo, ...]
    problems: tuple[Problem, ...]


def parse(texts: Sequence[tuple[str, str]]) -> Parsed:
    """The SLOs of texts, each given as (name of the file, text)."""
    slos: list[Slo] = []
    problems: list[Problem] = []
    for file, text in texts:
        for document in documents(file, text):
            slo, faults = read_document(document)
            problems.extend(faults)
            if slo is not None:
                slos.append(slo)
    problems.extend(_given_twice(slos))
    order = {file: i for i, (file, _) in enumerate(texts)}
    problems.sort(key=lambda p: (order[p.file], p.line))
    return Parsed(tuple(slos), tuple(problems))


def read_document(document: Document) -> tuple[Slo | None, list[Problem]]:
    """One document's SLO, or all that is wrong with it."""
    if document.data is None:
        return None, document.problems
    stranger = _stranger(document)
    if stranger is not None:
        return None, [stranger]
    problems = [*document.problems, *_without_value(document)]
    broken: set[Path] = set(document.unreadable)
    try:
        form: ServingSlo | None = ServingSlo.model_validate(document.data)
    except ValidationError as error:
        problems.extend(faults_of(document, error))
        broken.update(path_of(fault) for fault in error.errors(include_url=False))
        form = sound_part(document.data)
    if form is not None:
        problems.extend(contradictions(Subject(form.spec, document, frozenset(broken))))
    if problems or form is None:
        return None, problems
    return build(form, document), []


def _without_value(document: Document) -> Iterator[Problem]:
    for path in document.nulls:
        document.unreadable.add(path)
        yield document.problem(path, "", "has no value; give it one or remove the line")


def _stranger(document: Document) -> Problem | None:
    """The one problem of a document that is no SLO of ours; of its fields nothing is known."""
    if not isinstance(document.data, dict):
        return document.problem((), shortened(document.data), f"want a mapping: kind: {KIND}, ...")
    version: Any = document.data.get("apiVersion", document.data.get("version", ""))
    if isinstance(version, str) and version.startswith(_OTHERS):
        path = ("apiVersion",) if "apiVersion" in document.data else ("version",)
        return document.problem(path, version, "is another tool's; see `tailburn slo import`")
    for name, ours in (("apiVersion", API_VERSION), ("kind", KIND)):
        given = document.data.get(name, ours)
        if given != ours and isinstance(given, str):
            return document.problem((name,), shortened(given), one_of(given, (ours,)))
    return None


def _given_twice(slos: Sequence[Slo]) -> Iterator[Problem]:
    """Names told apart without regard to case, as some file systems and Kubernetes do."""
    first: dict[str, Slo] = {}
    for slo in slos:
        before = first.setdefault(slo.name.casefold(), slo)
        if before is not slo:
            wanted = f"is the name of {before.place} too; each SLO needs its own"
            yield Problem(slo.place.file, slo.place.line, "metadata.name", slo.name, wanted)
