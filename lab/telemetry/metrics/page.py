"""A page of `/metrics` as a template: the text that a stack shows, with signals for values.

Files in `pages/` are such templates. They read like a scrape, in the order of the real one:

    # HELP vllm:num_requests_running Number of requests in model execution batches.
    # TYPE vllm:num_requests_running gauge
    vllm:num_requests_running{engine="0",model_name="$model"} running
    # TYPE vllm:time_to_first_token_seconds histogram
    vllm:time_to_first_token_seconds{engine="0",model_name="$model"} ttft [0.001 0.005 0.01]

A value is a number, a signal, or a signal and its factor (`step_ns * 1e-9`). A histogram or
summary is one line with the stream that it counts, and its bounds as they are printed. `$name`
in a label is a variable of the target; where it is a list, there is a series for each item, and
lists of one line go side by side. `#! python`, `#! go`, `#! created` and `#! include NAME` say how
the exporter prints and what else is on its page.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Labels = dict[str, str]
Signal = Callable[[str], F64]
"""Values of a signal: [scrape], or [scrape, item] where a variable is a list."""
Variables = Mapping[str, str | Sequence[str]]

PAGES: Final = Path(__file__).parent / "pages"
_LINE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+"
    r"(?P<signal>[\w.+-]+)(?:\s*\*\s*(?P<factor>[\d.e+-]+))?(?:\s+\[(?P<bounds>[^\]]*)\])?$"
)
_LABEL = re.compile(r'([A-Za-z_]\w*)="([^"]*)"')
_NUMBER: Final = "0123456789-+."
_INF: Final = float("inf")
_OF_MANY: Final = ("histogram", "summary")
_COUNTING: Final = ("counter", *_OF_MANY)


class PageError(ValueError):
    """A template that can't be read; says file, line and what is accepted."""


@dataclass(frozen=True)
class Line:
    """One line of a template: one series, one for each item of a list, or a histogram."""

    name: str
    kind: str
    labels: tuple[tuple[str, str], ...]
    signal: str
    factor: float
    bounds: tuple[str, ...]
    python: bool = False
    """As prometheus_client prints it; else as Go and Rust do."""
    created: bool = False

    @cached_property
    def stream(self) -> tuple[str, tuple[float, ...]] | None:
        """Which observations it counts into which bounds; None: it is a plain value."""
        if self.kind not in _OF_MANY:
            return None
        return self.signal, tuple(float(bound) / self.factor for bound in self.bounds)


@dataclass(frozen=True)
class Template:
    """A template as read: metadata and lines in order, and the exporter's way to print."""

    name: str
    rows: tuple[str | Line, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """Those that have values."""
        return tuple(row for row in self.rows if isinstance(row, Line))


@cache
def template(*names: str) -> Template:
    """Templates of `pages/`, one below the other; PageError."""
    rows: list[str | Line] = []
    for name in names:
        _read(name, rows, set())
    return Template("+".join(names), tuple(rows))


def _read(name: str, rows: list[str | Line], style: set[str]) -> None:
    path = PAGES / f"{name}.prom"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PAGES.glob("*.prom")))
        raise PageError(f"no page {name!r}; there are {known}")
    kinds: dict[str, str] = {}
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if text.startswith("#!"):
            word, _, rest = text[2:].strip().partition(" ")
            if word == "include":
                _read(rest.strip(), rows, set())
            else:
                style.add(word)
        elif text.startswith("#"):
            if text.startswith("# TYPE "):
                kinds[text.split(" ")[2]] = text.split(" ")[3]
            rows.append(text)
        elif text.strip():
            try:
                rows.append(_line(text.strip(), kinds, style))
            except PageError as error:
                raise PageError(f"{path.name}:{number}: {error}") from None


def _line(text: str, kinds: Mapping[str, str], style: Collection[str]) -> Line:
    found = _LINE.match(text)
    if not found:
        raise PageError(f"{text!r}: want NAME{{LABELS}} SIGNAL [* FACTOR] [BOUNDS]")
    name = found["name"]
    bounds = tuple((found["bounds"] or "").split())
    kind = kinds.get(name, "untyped")
    if (kind == "histogram") != bool(bounds):
        raise PageError(f"{name} is a {kind} and has {len(bounds)} bounds")
    labels = tuple((key, value) for key, value in _LABEL.findall(found["labels"] or ""))
    factor = float(found["factor"] or 1.0)
    python, created = "python" in style, "created" in style
    return Line(name, kind, labels, found["signal"], factor, bounds, python, created)


@dataclass(frozen=True)
class Series:
    """One series of a page: its name and labels."""

    name: str
    labels: str
    """As printed between the braces."""
    kind: str
    """counter, gauge, or histogram and summary for their parts."""
    family: str

    @property
    def counts(self) -> bool:
        """Whether it only grows, until its process begins anew."""
        return self.kind in _COUNTING


@dataclass(frozen=True)
class _Part:
    line: Line
    first: int
    items: int
    each: int
    """Series of one item."""


@dataclass
class Page:
    """The page of one target. Columns of `values` are `series`, in the order of the text."""

    template: Template
    variables: Variables
    series: list[Series] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    """What stands in the text before each value, metadata included."""
    _shown: list[Callable[[float], bytes]] = field(default_factory=list)
    _parts: list[_Part] = field(default_factory=list)
    _moving: list[_Part] = field(default_factory=list)
    """Those that are no constants."""
    _constant: F64 = field(default_factory=lambda: np.empty(0))
    _tail: bytes = b""

    def __post_init__(self) -> None:
        before, help_ = "", ""
        rows = self.template.rows
        for number, row in enumerate(rows):
            if isinstance(row, str):
                before += row + "\n"
                help_ = (
                    row.split(" ", 3)[3]
                    if row.startswith("# HELP") and row.count(" ") > 2
                    else help_
                )
                continue
            before = self._add(row, before)
            last = number + 1 == len(rows) or isinstance(rows[number + 1], str)
            if last and row.created and row.kind in _COUNTING:
                before = self._add_created(row, rows, number, help_, before)
        self._tail = before.encode()
        self._constant = np.full(len(self.series), np.nan)
        for part in self._parts:
            if part.line.kind not in _OF_MANY and part.line.signal[0] in _NUMBER:
                self._constant[part.first : part.first + part.items] = float(part.line.signal)
            else:
                self._moving.append(part)

    def _add_created(
        self, row: Line, rows: Sequence[str | Line], number: int, help_: str, before: str
    ) -> str:
        """The gauges `_created` that prometheus_client sets below counters and histograms."""
        name = row.name.removesuffix("_total") if row.kind == "counter" else row.name
        before += f"# HELP {name}_created {help_}\n# TYPE {name}_created gauge\n"
        first = number
        while first > 0 and isinstance(rows[first - 1], Line):
            first -= 1
        for each in rows[first : number + 1]:
            if isinstance(each, Line):
                made = Line(f"{name}_created", "gauge", each.labels, "created_s", 1.0, (), True)
                before = self._add(made, before)
        return before

    def _add(self, line: Line, before: str) -> str:
        """The series of a line, the first below `before`."""
        told = [self._labels(line, item) for item in range(self._items(line))]
        first = len(self.series)
        for labels in told:
            for name, own in self._names(line, labels):
                text = ",".join(f'{key}="{value}"' for key, value in own)
                self.series.append(Series(name, text, line.kind, line.name))
                braces = f"{{{text}}}" if text else ""
                self.heads.append(f"{before}{name}{braces} ".encode())
                self._shown.append(_python if line.python else _go)
                before = ""
        each = len(self.series) - first
        self._parts.append(_Part(line, first, len(told), each // len(told) if told else 0))
        return before

    def _items(self, line: Line) -> int:
        """How many series, or histograms, a line stands for: 1 without a list."""
        found = [self._variable(v[1:]) for _, v in line.labels if v.startswith("$")]
        counts = {len(value) for value in found if not isinstance(value, str)}
        if len(counts) > 1:
            raise PageError(f"{line.name}: lists of {sorted(counts)} items side by side")
        return counts.pop() if counts else 1

    def _variable(self, name: str) -> str | Sequence[str]:
        if name not in self.variables:
            raise PageError(f"no variable ${name}; there are {', '.join(sorted(self.variables))}")
        return self.variables[name]

    def _labels(self, line: Line, item: int) -> list[tuple[str, str]]:
        found = []
        for key, value in line.labels:
            if value.startswith("$"):
                given = self._variable(value[1:])
                value = given if isinstance(given, str) else given[item]
            found.append((key, value))
        return found

    def _names(
        self, line: Line, labels: list[tuple[str, str]]
    ) -> list[tuple[str, list[tuple[str, str]]]]:
        if line.kind not in _OF_MANY:
            return [(line.name, labels)]
        found = []
        if line.kind == "histogram":
            for bound in (*line.bounds, "+Inf"):
                own = [*labels, ("le", bound)]
                found.append((f"{line.name}_bucket", sorted(own) if line.python else own))
        ends = ("_count", "_sum") if line.python else ("_sum", "_count")
        return found + [(line.name + end, labels) for end in ends]

    def values(self, signal: Signal, counted: Callable[[Line], tuple[F64, F64]], rows: int) -> F64:
        """[scrape, series]; `counted`: a stream's counts and sums, [scrape, (item,) (bin)].

        NaN is a series that is not there.
        """
        out = np.tile(self._constant, (rows, 1))
        for part in self._moving:
            line, at = part.line, part.first
            if line.kind in _OF_MANY:
                self._fill(out, part, *counted(line))
                continue
            here = out[:, at : at + part.items]
            found = signal(line.signal)
            here[:] = (found if found.ndim > 1 else found[:, None]) * line.factor
        return out

    def _fill(self, out: F64, part: _Part, counts: F64, sums: F64) -> None:
        if counts.ndim == 2:
            counts, sums = counts[:, None], sums[:, None]
        totals = np.cumsum(counts, axis=2)
        python = part.line.python
        for item in range(part.items):
            here = out[:, part.first + item * part.each : part.first + (item + 1) * part.each]
            if part.line.kind == "histogram":
                here[:, :-2] = totals[:, item]
            here[:, -2 if python else -1] = totals[:, item, -1]
            here[:, -1 if python else -2] = sums[:, item] * part.line.factor

    def text(self, values: F64) -> bytes:
        """The page of one scrape, of a row of `values`."""
        out = []
        for head, shown, value in zip(self.heads, self._shown, values.tolist(), strict=True):
            if value == value:
                out.append(head + shown(value) + b"\n")
            elif head.startswith(b"#"):
                out.append(head[: head.rindex(b"\n") + 1])
        out.append(self._tail)
        return b"".join(out)


def _python(value: float) -> bytes:
    """As prometheus_client prints: `12.0`, `1.5e+06` from 7 digits on."""
    if value < 1e6 and value > -1e6:
        return b"%r" % value
    if value == _INF:
        return b"+Inf"
    text = repr(value)
    dot = text.find(".")
    if dot > 6 and "e" not in text:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02}".encode()
    return text.encode()


def _go(value: float) -> bytes:
    """As Go and Rust print: no `.0`."""
    if value == _INF:
        return b"+Inf"
    if abs(value) < 1e15 and value == int(value):
        return b"%d" % value
    return b"%r" % value
