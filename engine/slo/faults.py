"""What pydantic finds wrong with a document, told as problems with line, value and remedy."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tailburn.engine.problems import Problem, one_of
from tailburn.engine.slo.document import Document, Path
from tailburn.engine.slo.spec import API_VERSION, KIND, ServingSlo

_KEY: Final = "[key]"  # what pydantic adds where a key is meant, not its value
_GIVEN_LIMIT: Final = 60
# What a first look at the rest of a document takes for a required value that is missing.
_STAND_INS: Final[Mapping[Path, Any]] = {
    ("apiVersion",): API_VERSION,
    ("kind",): KIND,
    ("metadata",): {"name": "unnamed"},
    ("metadata", "name"): "unnamed",
    ("spec",): {},
}


def faults_of(document: Document, error: ValidationError) -> Iterator[Problem]:
    """One problem each, without those of values that a problem stands for already."""
    for fault in error.errors(include_url=False):
        path = path_of(fault)
        if not any(path[: len(x)] == x for x in document.unreadable):
            yield document.problem(path, _given(document, fault), _wanted(fault))


def path_of(fault: ErrorDetails) -> Path:
    """Where the value stands, or the key."""
    return tuple(step for step in fault["loc"] if step != _KEY)


def sound_part(data: Any) -> ServingSlo | None:
    """What is left of a document without its faulty values, so that the rest can be judged.

    None where nothing is left that could be.
    """
    data = deepcopy(data)
    for _ in range(6):  # a part whose required value went goes next: the parts are 4 deep
        try:
            return ServingSlo.model_validate(data)
        except ValidationError as error:
            faults = error.errors(include_url=False)
        # From the end: leaving out an entry of a list moves the later ones.
        for fault in sorted(faults, key=lambda f: [str(x).zfill(9) for x in f["loc"]])[::-1]:
            path = path_of(fault)
            _leave_out(data, path[:-1] if fault["type"] == "missing" else path, path)
    return None


def _leave_out(data: Any, path: Path, faulty: Path) -> None:
    if faulty in _STAND_INS:
        path = faulty
    holder = data
    for step in path[:-1]:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return  # went with what it was part of
    if path in _STAND_INS and isinstance(holder, dict):
        holder[path[-1]] = deepcopy(_STAND_INS[path])
    elif path and isinstance(holder, dict):
        holder.pop(path[-1], None)
    elif path and isinstance(holder, list) and isinstance(path[-1], int):
        del holder[path[-1] : path[-1] + 1]


def _given(document: Document, fault: ErrorDetails) -> str:
    if fault["type"] in ("missing", "extra_forbidden"):
        return ""
    given = fault["loc"][-2] if fault["loc"][-1] == _KEY else fault["input"]
    return shortened(given)


def shortened(given: object) -> str:
    """A scalar as it is shown in a problem; nothing for lists and mappings."""
    text = str(given) if isinstance(given, str | int | float) else ""
    return text if len(text) <= _GIVEN_LIMIT else f"{text[: _GIVEN_LIMIT - 1]}…"


def _wanted(fault: ErrorDetails) -> str:
    kind, path = fault["type"], path_of(fault)
    if kind == "wanted":
        return fault["msg"]
    if kind == "missing":
        field = _fields(path[:-1])[str(path[-1])]
        told = f": {field.description}" if field.description else ""
        return f"is missing; add it{told}"
    if kind == "extra_forbidden":
        return one_of(str(path[-1]), _fields(path[:-1]))
    if kind == "literal_error":
        return one_of(shortened(fault["input"]), get_args(_annotation(path)))
    return "want a mapping of names to values"


def _fields(path: Path) -> dict[str, Any]:
    """The fields, by the names they have in a file, of the part at this path."""
    part = _part(_annotation(path))
    return {field.alias or name: field for name, field in part.model_fields.items()}


def _annotation(path: Path) -> Any:
    annotation: Any = ServingSlo
    for step in path:
        part = _part(annotation)
        names = {field.alias or name: field for name, field in part.model_fields.items()}
        annotation = names[str(step)].annotation
    return _without_none(annotation)


def _part(annotation: Any) -> type[BaseModel]:
    found = _without_none(annotation)
    assert isinstance(found, type) and issubclass(found, BaseModel)
    return found


def _without_none(annotation: Any) -> Any:
    """`X` of `X | None`."""
    arguments = [a for a in get_args(annotation) if a is not type(None)]
    is_optional = type(None) in get_args(annotation)
    return arguments[0] if is_optional else annotation
