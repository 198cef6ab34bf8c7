"""Files of other tools, made documents of ours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailburn.engine.problems import Problem
from tailburn.engine.slo.document import Document, Path, documents
from tailburn.engine.slo.exchange.draft import Draft
from tailburn.engine.slo.exchange.openslo_reading import OpenSlo, is_openslo
from tailburn.engine.slo.exchange.sloth import FILE_VERSION, KUBERNETES_VERSION, sloth_drafts
from tailburn.engine.slo.exchange.taking import Taking

WANTED = f"is not known; want {FILE_VERSION}, {KUBERNETES_VERSION} or openslo/v1"


@dataclass(frozen=True)
class Imported:
    """What was made of the files; nothing of it is of use where there are problems."""

    texts: tuple[tuple[str, str], ...]  # name of the SLO and its YAML
    problems: tuple[Problem, ...]
    lost: tuple[Problem, ...]  # what could not be carried over, or not as it was


def import_slos(texts: Sequence[tuple[str, str]], window: str = "30d") -> Imported:
    """The SLOs of files given as (name of the file, text), each with what it lost.

    `window` is for files that name none, as Sloth's don't.
    """
    read = [d for file, text in texts for d in _parts(file, text)]
    openslo = OpenSlo()
    takings = []
    drafts: list[Draft] = []
    for document in read:
        taking = Taking(document)
        takings.append(taking)
        if document.data is None:
            continue
        version = _version(document)
        if version in (FILE_VERSION, KUBERNETES_VERSION):
            drafts.extend(sloth_drafts(taking, window))
        elif is_openslo(version):
            openslo.add(taking)
        else:
            taking.fault(_version_path(document), WANTED)
    drafts.extend(openslo.drafts())
    return _gathered(takings, drafts)


def _gathered(takings: Sequence[Taking], drafts: Sequence[Draft]) -> Imported:
    order = {taking.document.file: i for i, taking in reversed(list(enumerate(takings)))}
    problems = [p for taking in takings for p in taking.problems]
    told = {(p.file, p.line, p.field) for p in problems}
    faults = [p for draft in drafts for p in draft.faults()]
    problems.extend(p for p in faults if (p.file, p.line, p.field) not in told)
    problems.extend(_given_twice(drafts))
    problems.sort(key=lambda p: (order[p.file], p.line))
    lost = dict.fromkeys(
        p for t in takings for p in sorted((*t.lost, *t.rest()), key=lambda p: p.line)
    )
    return Imported(
        tuple((draft.name, draft.text) for draft in drafts),
        tuple(dict.fromkeys(problems)),
        tuple(lost),
    )


def _given_twice(drafts: Sequence[Draft]) -> Iterator[Problem]:
    first: dict[str, Draft] = {}
    for draft in drafts:
        before = first.setdefault(draft.name.casefold(), draft)
        if before is not draft:
            place = before.taking.document
            line = place.line_of(before.name_origin)
            yield draft.taking.document.problem(
                draft.name_origin,
                draft.name,
                f"is the name of {place.file}:{line} too; each SLO needs its own",
            )


def _parts(file: str, text: str) -> Iterator[Document]:
    """The documents of a file; a list of objects, as OpenSLO allows, is so many documents."""
    for document in documents(file, text):
        if not isinstance(document.data, list):
            yield document
            continue
        for i, item in enumerate(document.data):
            lines = {path[1:]: line for path, line in document.lines.items() if path[:1] == (i,)}
            problems = document.problems if i == 0 else []
            yield Document(file, lines.get((), document.line), item, lines, problems)


def _version_path(document: Document) -> Path:
    if not isinstance(document.data, dict):
        return ()
    return ("apiVersion",) if "apiVersion" in document.data else ("version",)


def _version(document: Document) -> str:
    path = _version_path(document)
    version = document.data.get(path[0]) if path else None
    return version if isinstance(version, str) else ""
