"""The list of attribute names to blank, made ready for compiled code: name to class."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML

from tailburn.collector.otlp.kernel.memory import (
    address_of,
    compiled,
    load8,
    reference,
)

# Bits of a name's class.
KNOWN: Final = 1  # has been classified
TEXT_BLANKED: Final = 2  # strings, bytes and lists are blanked
NUMBERS_BLANKED: Final = 4  # and numbers
URL: Final = 8
LONG: Final = 16  # long strings are kept
SAMPLE_RATE: Final = 32
TAINTED: Final = 64  # the name itself holds a secret

UNLISTED: Final = np.int64(0)  # a numpy number, since numba compiles anew for each literal
HIDDEN: Final = TEXT_BLANKED | NUMBERS_BLANKED | TAINTED

_KEEP: Final = 128

_RECORD: Final = np.dtype(
    [
        ("bytes", np.int64),
        ("ends", np.int64),
        ("actions", np.int64),
        ("count", np.int64),
    ],
    align=True,
)


patterns_at = reference(_RECORD)


@compiled
def plain(byte: int) -> int:
    """A byte of a name, without case, `-` as `_`."""
    if 65 <= byte <= 90:
        return byte + 32
    return 95 if byte == 45 else byte


@compiled
def _matches(pattern: int, pattern_end: int, p: int, end: int) -> bool:
    star = -1
    resume = p
    while p < end:
        byte = load8(pattern) if pattern < pattern_end else -1
        if byte == 42:
            star = pattern
            pattern += 1
            resume = p
        elif byte == plain(load8(p)):
            pattern += 1
            p += 1
        elif star >= 0:
            resume += 1
            p = resume
            pattern = star + 1
        else:
            return False
    while pattern < pattern_end and load8(pattern) == 42:
        pattern += 1
    return pattern == pattern_end


@compiled
def class_of_name(patterns: int, p: int, end: int) -> int:
    """The class of an attribute's name, by the patterns of `Names.record`."""
    names = patterns_at(patterns)
    found = KNOWN
    start = np.int64(0)
    ends = names.ends
    for i in range(names.count):
        stop = np.int64(load8(ends + 2 * i)) | (np.int64(load8(ends + 2 * i + 1)) << 8)
        action = load8(names.actions + i)
        blanking = action == TEXT_BLANKED or action == (TEXT_BLANKED | NUMBERS_BLANKED)
        wanted = not (blanking and found & _KEEP)
        if wanted and _matches(names.bytes + start, names.bytes + stop, p, end):
            found |= action
        start = stop
    return found & ~_KEEP


@dataclass(frozen=True)
class Names:
    """Patterns in the order keep, blank, urls, long, with what each does; words besides."""

    record: NDArray[np.void]
    words: NDArray[np.void]
    memory: tuple[NDArray[Any], ...]  # what the records point at


def _pack(patterns: list[tuple[str, int]]) -> tuple[NDArray[np.void], tuple[NDArray[Any], ...]]:
    encoded = [text.encode() for text, _ in patterns]
    data = np.frombuffer(b"".join(encoded), np.uint8).copy()
    ends = np.cumsum([len(e) for e in encoded]).astype("<u2")
    actions = np.array([action for _, action in patterns], np.uint8)
    record = np.zeros(1, _RECORD)
    record["bytes"] = address_of(data)
    record["ends"] = address_of(ends)
    record["actions"] = address_of(actions)
    record["count"] = len(patterns)
    return record, (data, ends, actions)


@cache
def names() -> Names:
    """The shipped list, read once."""
    text = files("tailburn.collector.otlp").joinpath("blank.yaml").read_text("utf-8")
    lists = YAML(typ="safe", pure=True).load(text)
    all_ = TEXT_BLANKED | NUMBERS_BLANKED
    actions = [
        (lists["keep"], _KEEP),
        (lists["blank"]["content"], all_),
        (lists["blank"]["identity"], all_),
        (lists["blank"]["credentials"], TEXT_BLANKED),
        (lists["urls"], URL),
        (lists["long"], LONG),
        (["samplerate"], SAMPLE_RATE),
    ]
    record, memory = _pack([(p, action) for patterns, action in actions for p in patterns])
    words, word_memory = _pack([(word, 0) for word in lists["words"]])
    return Names(record, words, memory + word_memory)
