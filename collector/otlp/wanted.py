"""Which attributes the rules ask for, and in what form."""

from dataclasses import dataclass
from enum import IntFlag
from typing import Literal


class Want(IntFlag):
    """The forms in which a wanted attribute is handed over; combine them at will.

    NUMBER takes ints, doubles, booleans (1 and 0) and texts that are one of these in
    writing: "63.23", "True". TEXT takes strings, booleans, ints in decimal, and of a list
    its first string, whether the list is an array or written as JSON ('["length"]').
    ID takes strings and ints: see `ids.id_hash`.
    """

    NUMBER = 1
    TEXT = 2
    ID = 4


@dataclass(frozen=True)
class Wanted:
    """An attribute of a span or of its events."""

    key: str
    want: Want
    where: Literal["span", "event"] = "span"
