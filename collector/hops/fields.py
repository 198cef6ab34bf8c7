"""Where each field of a recognised span comes from."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from tailburn.collector.hops.conditions import Patterns
from tailburn.collector.hops.document import Value
from tailburn.engine.names import OUTCOMES


class Form(StrEnum):
    """What a field holds."""

    TIME = "time"  # ns since the epoch
    DURATION = "duration"  # ns
    COUNT = "count"
    FLAG = "flag"
    ID = "id"
    TEXT = "text"


FORMS: Final = {
    "first_token": Form.TIME,
    "last_token": Form.TIME,
    "queue": Form.DURATION,
    "prefill": Form.DURATION,
    "decode": Form.DURATION,
    "kv_transfer": Form.DURATION,
    "kv_load": Form.DURATION,
    "e2e": Form.DURATION,
    "prompt_tokens": Form.COUNT,
    "cached_tokens": Form.COUNT,
    "output_tokens": Form.COUNT,
    "max_output_tokens": Form.COUNT,
    "http_status": Form.COUNT,
    "attempt": Form.COUNT,
    "streamed": Form.FLAG,
    "own_id": Form.ID,
    "peer_id": Form.ID,
    "model": Form.TEXT,
    "route": Form.TEXT,
    "replica": Form.TEXT,
    "lora": Form.TEXT,
    "client": Form.TEXT,
    "kv_tier": Form.TEXT,
    "weights_tier": Form.TEXT,
}

UNITS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


class Base(IntEnum):
    """What a time is counted from."""

    NOTHING = 0
    START = 1
    END = 2


BASES: Final = {"start": Base.START, "end": Base.END, "epoch": Base.NOTHING}


@dataclass(frozen=True)
class Source:
    """One place a field may come from; exactly one of the first five is set.

    `factor` makes ns of the value. An event gives its own time (TIME), the time until `until`
    (DURATION) or, by being there, true (FLAG).
    """

    attribute: str = ""
    event_attribute: str = ""
    event: str = ""
    resource: str = ""
    value: int = -1
    until: str = ""
    factor: float = 1.0
    base: Base = Base.NOTHING

    def __str__(self) -> str:
        if self.event:
            return f"event {self.event}" + (f" until {self.until}" if self.until else "")
        return self.attribute or self.event_attribute or self.resource or str(self.value)


def read_fields(value: Value) -> dict[str, tuple[Source, ...]]:
    """Sources by field, first the one that counts most; faults are noted in the document."""
    found: dict[str, tuple[Source, ...]] = {}
    for name, given in value.mapping(tuple(FORMS)).items():
        found[name] = tuple(_sources(given, FORMS[name]))
    return found


def _sources(value: Value, form: Form) -> Iterator[Source]:
    for item in value.items():
        source = _plain(item, form) if item.is_text else _full(item, form)
        if source is not None:
            yield source


def _plain(value: Value, form: Form) -> Source | None:
    """An attribute by name alone."""
    if form in (Form.TIME, Form.DURATION):
        value.fault("want {attribute: NAME, unit: UNIT} or {event: NAME}")
        return None
    attribute = value.text()
    return None if attribute is None else Source(attribute=attribute)


_KINDS_OF_SOURCE: Final = ("attribute", "event_attribute", "event", "resource", "value")
_ALLOWED: Final = {
    Form.TIME: ("attribute", "event_attribute", "event"),
    Form.DURATION: ("attribute", "event_attribute", "event"),
    Form.COUNT: ("attribute", "event_attribute", "value"),
    Form.FLAG: ("attribute", "event_attribute", "event", "value"),
    Form.ID: ("attribute", "event_attribute"),
    Form.TEXT: ("attribute", "resource"),
}


def _full(value: Value, form: Form) -> Source | None:
    parts = value.mapping((*_KINDS_OF_SOURCE, "until", "unit", "from"))
    given = [kind for kind in _KINDS_OF_SOURCE if kind in parts]
    if len(given) != 1 or given[0] not in _ALLOWED[form]:
        value.fault(f"want exactly one of {', '.join(_ALLOWED[form])}")
        return None
    kind = given[0]
    if kind == "value":
        return _constant(parts["value"], form)
    name = parts[kind].text()
    if name is None:
        return None
    if kind == "resource":
        return Source(resource=name)
    if kind == "event":
        return _event(value, parts, name, form)
    if "until" in parts:
        parts["until"].fault("goes with event only")
        return None
    factor, base = 1.0, Base.NOTHING
    if form in (Form.TIME, Form.DURATION):
        unit = parts["unit"].word(UNITS) if "unit" in parts else None
        if unit is None:
            if "unit" not in parts:
                value.fault(f"want a unit, one of {', '.join(UNITS)}")
            return None
        factor = UNITS[unit]
        if form is Form.TIME:
            word = parts["from"].word(BASES) if "from" in parts else "start"
            base = BASES[word or "start"]
    if kind == "attribute":
        return Source(attribute=name, factor=factor, base=base)
    return Source(event_attribute=name, factor=factor, base=base)


def _constant(value: Value, form: Form) -> Source | None:
    if form is Form.FLAG:
        flag = value.flag()
        return None if flag is None else Source(value=int(flag))
    number = value.whole()
    return None if number is None else Source(value=number)


def _event(value: Value, parts: dict[str, Value], name: str, form: Form) -> Source | None:
    if form is not Form.DURATION:
        return Source(event=name)
    until = parts["until"].text() if "until" in parts else None
    if until is None:
        value.fault("want {event: NAME, until: NAME}")
        return None
    return Source(event=name, until=until)


class Word(StrEnum):
    """Witnesses of the outcome that every span has."""

    STATUS_ERROR = "status_error"
    STATUS_OK = "status_ok"
    HTTP_ERROR = "http_error"
    HTTP_OK = "http_ok"


@dataclass(frozen=True)
class Witness:
    """An attribute whose text tells the outcome: pairs of pattern and outcome, first fit."""

    attribute: str
    says: tuple[tuple[Patterns, int], ...]

    def verdict(self, text: str) -> int:
        """An index into OUTCOMES; 0 where no pattern fits."""
        return next((outcome for pattern, outcome in self.says if pattern(text)), 0)

    @property
    def reads_value(self) -> bool:
        """Whether the attribute's text matters, not only that it is there."""
        return not (self.says and self.says[0][0].takes_anything)


OutcomeStep = Word | Witness


def read_outcome(value: Value) -> tuple[OutcomeStep, ...]:
    """The witnesses of the outcome, the one that counts most first."""
    steps = tuple(step for item in value.items() if (step := _step(item)) is not None)
    words = [step for step in steps if isinstance(step, Word)]
    if Word.HTTP_OK in words and Word.HTTP_ERROR not in words[: words.index(Word.HTTP_OK)]:
        value.fault("want http_error before http_ok")
    return steps


def _step(value: Value) -> OutcomeStep | None:
    if value.is_text:
        word = value.word(tuple(map(str, Word)))
        return None if word is None else Word(word)
    parts = value.mapping(("attribute", "is"))
    if len(parts) != 2:
        value.fault("want {attribute: NAME, is: {TEXT: OUTCOME}}")
        return None
    attribute = parts["attribute"].text()
    says: list[tuple[Patterns, int]] = []
    for pattern, outcome in parts["is"].entries():
        word = outcome.word(OUTCOMES)
        if word is not None:
            says.append((Patterns((pattern,)), OUTCOMES.index(word)))
    return None if attribute is None else Witness(attribute, tuple(says))
