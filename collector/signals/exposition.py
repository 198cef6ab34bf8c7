"""Metrics as text, Prometheus 0.0.4 or OpenMetrics, scanned for the samples that are wanted.

One pass over the bytes: a line whose name nobody wants costs one look into a table. A line that
is broken is left out and counted; it never costs its neighbours.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tailburn.collector.errors import BadBody, TooLarge

LONGEST_LINE_BYTES: Final = 64 * 1024
MOST_SAMPLES: Final = 50_000
MOST_LINES: Final = 1_000_000
HIGHEST_VALUE: Final = 1e300
"""Nothing that is measured is beyond it, and so many of it still have a finite sum."""

_PIECE_BYTES: Final = 1 << 20

# What follows a name: labels, value, maybe a timestamp, maybe an exemplar.
_REST: Final = re.compile(
    rb'[ \t]*(?:\{((?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+)\})?[ \t]*(?<=[} \t])([^ \t{}"#]+)'
    rb"(?:[ \t]+([-+0-9.eE]+))?[ \t]*(?:#[ \t].*)?\r?"
)
_LABEL: Final = re.compile(
    rb'[ \t]*(?:([a-zA-Z_][a-zA-Z0-9_]*)|"((?:[^"\\]++|\\.)*+)")[ \t]*=[ \t]*'
    rb'"((?:[^"\\]++|\\.)*+)"[ \t]*(?:,|$)'
)
_JSON: Final = re.compile(rb'\{\s*(\}|"[^"]*"\s*:)')
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", '"': '"', "\\": "\\"}


class Dropped(StrEnum):
    """Why a sample is not kept."""

    BROKEN = "broken line"
    LONG = "line over 64 KiB"
    NAN = "not a number"
    HUGE = "infinite, or beyond 1e300"
    BLANK = "not measured"
    DUPLICATE = "same series twice"
    MANY = "over 50,000 samples"


@dataclass
class Scanned:
    """The wanted samples of an answer, by column, and what it says besides."""

    names: list[bytes] = field(default_factory=list)
    labels: list[bytes] = field(default_factory=list)  # between the braces; empty for none
    values: list[float] = field(default_factory=list)
    declared: dict[bytes, bytes] = field(default_factory=dict)  # wanted families and their types
    dropped: Counter[Dropped] = field(default_factory=Counter)
    first_bad: str = ""  # the first line that is left out, cut
    lines: int = 0  # samples in the answer, wanted or not

    def drop(self, why: Dropped, line: bytes = b"") -> None:
        self.dropped[why] += 1
        if line and not self.first_bad:
            self.first_bad = line[:80].decode(errors="replace")


def scan(body: bytes, wanted: Collection[bytes], families: Collection[bytes]) -> Scanned:
    """The samples whose name is in `wanted`.

    Raises BadBody where the answer is no metrics at all, with what it looks like, and TooLarge.
    """
    _check(body)
    found = Scanned()
    names, labels, values = found.names, found.labels, found.values
    lines = 0
    for line in _lines(body):
        brace = line.find(b"{")
        name = line[:brace] if brace > 0 else line.partition(b" ")[0]
        if name not in wanted:
            if line[:1] == b"#":
                _comment(line, families, found)
                continue
            if not line or line.isspace():
                continue
            lines += 1
            # Rare: spaces before the name or after it, a tab before the value.
            name = line.split(b"{", 1)[0].split(None, 1)[0] if brace else b""
            if name not in wanted:
                continue
            line = line.lstrip(b" \t")
        else:
            lines += 1
        if len(line) > LONGEST_LINE_BYTES:
            found.drop(Dropped.LONG, line)
            continue
        rest = _REST.fullmatch(line, len(name))
        value = _number(rest[2]) if rest else None
        if rest is None or value is None:
            found.drop(Dropped.BROKEN, line)
        elif value != value:
            found.drop(Dropped.NAN, line)
        elif abs(value) > HIGHEST_VALUE:
            found.drop(Dropped.HUGE, line)
        elif len(values) >= MOST_SAMPLES:
            found.drop(Dropped.MANY)
        else:
            names.append(name)
            labels.append(rest[1] or b"")
            values.append(value)
    found.lines = lines
    return found


def _lines(body: bytes) -> Iterator[bytes]:
    """The lines, split a piece at a time: all at once they take forty times their bytes."""
    start = 0
    while start < len(body):
        end = body.rfind(b"\n", start, start + _PIECE_BYTES)
        if end < 0:  # one line longer than a piece
            end = body.find(b"\n", start)
        if end < 0:
            end = len(body)
        yield from body[start:end].split(b"\n")
        start = end + 1


def read_labels(block: bytes) -> dict[str, str] | None:
    """The labels between the braces; None where they can't be read."""
    found: dict[str, str] = {}
    at = 0
    while at < len(block):
        match = _LABEL.match(block, at)
        if match is None:
            return None if block[at:].strip() else found
        try:
            name = (match[1] or _unescaped(match[2])).decode()
            value = _unescaped(match[3]).decode()
        except UnicodeDecodeError:
            return None
        if name in found:
            return None
        found[name] = value
        at = match.end()
    return found


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    # Only three escapes have a meaning; any other backslash stands for itself.
    plain = text.decode("latin-1")
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), plain).encode("latin-1")


def _number(text: bytes) -> float | None:
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def _comment(line: bytes, families: Collection[bytes], found: Scanned) -> None:
    words = line.split(None, 4)
    if len(words) > 2 and words[2] in families:
        if words[1] == b"TYPE" and len(words) > 3:
            found.declared[words[2]] = words[3]
        elif words[1] == b"HELP":
            found.declared.setdefault(words[2], b"")


def _check(body: bytes) -> None:
    """Raises BadBody for what no line of metrics begins like, and TooLarge."""
    lines = body.count(b"\n")
    if lines > MOST_LINES:
        raise TooLarge(f"answers {lines:,} lines, read are at most {MOST_LINES:,}")
    start = body[:4096].lstrip()
    if start[:1] == b"<":
        raise BadBody("answers HTML, not metrics: is the path right?")
    # A name in quotes may open a line too, but no colon follows it.
    if start[:1] == b"[" or _JSON.match(start):
        raise BadBody("answers JSON, not metrics; TensorRT-LLM has them at /prometheus/metrics")
    if start[:2] == b"\x1f\x8b":
        raise BadBody("answers gzip without saying so in Content-Encoding")
