"""The kinds of value in an SLO's document: how each is read, what is wanted where it can't be.

Each is a type of a field with its JSON Schema. A reader takes what is written (a text, list or
mapping) and returns a value or raises the words of a `Problem`: value, limit, remedy.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import promql_parser
from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from tailburn.engine.names import DIMENSIONS
from tailburn.engine.problems import one_of
from tailburn.engine.slo.quantities import (
    SHARE_PATTERN,
    TIME_PATTERN,
    read_number,
    read_percent,
    read_time_s,
    write_percent,
    write_time,
)

DAY_S: Final = 86_400.0
LONGEST_CLOCK_S: Final = DAY_S
HIGHEST_OBJECTIVE: Final = 0.999_999  # one bad request in a million: no traffic tells more
LOWEST_OBJECTIVE: Final = 0.5
NAME_LIMIT: Final = 128  # a Kubernetes object's 253 less what rules put round it
TEXT_LIMIT: Final = 1024
QUERY_LIMIT: Final = 16_384
WINDOW: Final = "{{.window}}"
"""Where the range goes in a query, as Sloth and others write it."""

# What an alert carries already; two meanings of one label would part its history.
RESERVED_LABELS: Final = {
    "alertname",
    "alertstate",
    "definition",
    "hop",
    "le",
    "long",
    "objective",
    "severity",
    "short",
    "slo",
    "vantage",
}

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LINK: Final = re.compile(r"https?://[^\s\"'<>\\]+")


Unfit = PydanticCustomError
"""What a reader raises; its `message()` is what is wanted instead."""


def _wanted(words: str) -> PydanticCustomError:
    """The fault of a value, told as what is wanted in its place."""
    return PydanticCustomError("wanted", "{words}", {"words": words})


def _text(value: Any, limit: int = TEXT_LIMIT) -> str:
    if not isinstance(value, str):
        raise _wanted("is a list or mapping; want a text")
    if not value.strip():
        raise _wanted("is empty; want a text")
    if len(value) > limit:
        raise _wanted(f"is {len(value)} characters long; want at most {limit}")
    return value


def _line(value: Any) -> str:
    text = _text(value)
    if not text.isprintable():
        raise _wanted("holds a line break or control character; want one line of text")
    return text


def name_of(value: Any) -> str:
    text = _line(value)
    if len(text) > NAME_LIMIT or not _NAME.fullmatch(text):
        raise _wanted(
            f"is no name; want at most {NAME_LIMIT} letters, digits, '-', '_' and '.', "
            "the first and last of them a letter or digit"
        )
    return text


def _label_name(value: Any) -> str:
    text = _line(value)
    if not _LABEL.fullmatch(text) or text.startswith("__"):
        raise _wanted(
            "is no label name in Prometheus; want letters, digits and '_', no digit first, "
            "no '__' first"
        )
    return text


def own_label(value: Any) -> str:
    text = _label_name(value)
    if text in RESERVED_LABELS:
        raise _wanted(f"is a label that alerts and series carry already; rename it, say my_{text}")
    return text


def _link(value: Any) -> str:
    text = _line(value)
    if not _LINK.fullmatch(text):
        raise _wanted("is no link; want one such as https://wiki.example.com/runbooks/chat")
    return text


def _dimension(value: Any) -> str:
    text = _line(value)
    if text not in DIMENSIONS:
        raise _wanted(one_of(text, DIMENSIONS))
    return text


def _time(lowest_s: float, highest_s: float, example: str) -> Callable[[Any], float]:
    limits = f"from {write_time(lowest_s)} to {write_time(highest_s)}"

    def read(value: Any) -> float:
        text = _line(value)
        seconds = read_time_s(text)
        if seconds is None:
            hint = f"; {text} of what?" if read_number(text) is not None else ""
            raise _wanted(f"is no time; want a number and its unit such as {example}{hint}")
        if not lowest_s <= seconds <= highest_s:
            raise _wanted(f"is out of bounds; want a time {limits}")
        return seconds

    return read


def _objective(value: Any) -> float:
    text = _line(value)
    ratio = read_percent(text)
    if ratio is None:
        raise _wanted("is no per cent; want one such as 99.9%")
    if ratio == 1:
        raise _wanted("leaves no budget: the first bad request would break it; want less than 100%")
    if 0 < ratio < 0.01:
        meant = write_percent(ratio * 100)
        raise _wanted(f"is a ratio where a per cent is meant; did you mean {meant}?")
    if not LOWEST_OBJECTIVE <= ratio <= HIGHEST_OBJECTIVE:
        raise _wanted("is out of bounds; want a per cent from 50% to 99.9999%")
    return ratio


def _mix_share(value: Any) -> float:
    ratio = read_percent(_line(value))
    if ratio is None or ratio > 1:
        raise _wanted("is no per cent; want one from 0% to 100%")
    return ratio


def _tokens(value: Any) -> str:
    text = _line(value)
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise _wanted("is no number of tokens; want a whole number such as 512")
    return str(int(text))


def _window(value: Any) -> float:
    if isinstance(value, dict):
        raise _wanted("is a mapping; want a time such as 30d, or in its place `calendar: month`")
    return _time(DAY_S, 366 * DAY_S, "30d")(value)


def number(lowest: float, highest: float, example: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = read_number(_line(value))
        if number is None:
            raise _wanted(f"is no number; want one such as {example}")
        if not lowest <= number <= highest:
            raise _wanted(f"is out of bounds; want a number from {lowest:g} to {highest:g}")
        return number

    return read


def whole(lowest: int, highest: int, why: str = "") -> Callable[[Any], int]:
    def read(value: Any) -> int:
        text = _line(value)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
            raise _wanted(f"is out of bounds; want a whole number from {lowest} to {highest}{why}")
        return int(text)

    return read


def _flag(value: Any) -> bool:
    text = _line(value)
    if text not in ("true", "false"):
        raise _wanted(one_of(text, ("true", "false")))
    return text == "true"


class Listed:
    """Of a field that is a list: a lone value is a list of one, when read and in the schema."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: value if isinstance(value, list) else [value], handler(source)
        )

    def __get_pydantic_json_schema__(
        self, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        array = handler(core)
        return {"anyOf": [array["items"], array]}


def _query(value: Any) -> str:
    text = re.sub(r"\{\{\s*\.window\s*\}\}", WINDOW, _text(value, QUERY_LIMIT)).strip()
    if WINDOW not in text:
        raise _wanted(f"has no {WINDOW}; want it where the range goes: rate(x[{WINDOW}])")
    try:
        query = promql_parser.parse(text.replace(WINDOW, "5m"))
    except ValueError as error:
        raise _wanted(f"is no PromQL: {error}") from error
    if isinstance(query, promql_parser.MatrixSelector | promql_parser.SubqueryExpr):
        raise _wanted("is a range of samples; want a rate of it: rate(x[{{.window}}])")
    return text


def schema(kind: str, **more: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, **more})


# Scalars are read as they are written: to an editor 4 and true are no strings.
_SCALAR_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
_TIME_SCHEMA = schema("string", pattern=TIME_PATTERN)
Line = Annotated[str, BeforeValidator(_line), WithJsonSchema(_SCALAR_SCHEMA)]
Name = Annotated[str, BeforeValidator(name_of), schema("string", pattern=f"^{_NAME.pattern}$")]
OwnLabel = Annotated[str, BeforeValidator(own_label)]
LabelName = Annotated[str, BeforeValidator(_label_name)]
Link = Annotated[str, BeforeValidator(_link), schema("string", pattern="^https?://")]
Dimension = Annotated[str, BeforeValidator(_dimension), schema("string", enum=list(DIMENSIONS))]
ClockTime = Annotated[float, BeforeValidator(_time(0.001, LONGEST_CLOCK_S, "400ms")), _TIME_SCHEMA]
WindowTime = Annotated[float, BeforeValidator(_window), _TIME_SCHEMA]
HoldTime = Annotated[float, BeforeValidator(_time(0, DAY_S, "5m")), _TIME_SCHEMA]
Share = Annotated[
    float,
    BeforeValidator(_objective),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": SHARE_PATTERN}, {"type": "number", "minimum": 50}]}
    ),
]
MixShare = Annotated[
    float,
    BeforeValidator(_mix_share),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": SHARE_PATTERN}, {"type": "number"}]}),
]
Tokens = Annotated[str, BeforeValidator(_tokens), schema("string", pattern=r"^[0-9]{1,9}$")]
Query = Annotated[
    str,
    BeforeValidator(_query),
    schema("string", pattern=r"\{\{\s*\.window\s*\}\}", maxLength=QUERY_LIMIT),
]
Flag = Annotated[bool, BeforeValidator(_flag)]
