"""YAML as we write it: block style, or JSON where the user has flow style."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailburn.rules.formats.block import block_of


@dataclass(frozen=True)
class Item:
    """An entry of a list, with the comment that stands before it."""

    value: Any
    why: str = ""


def as_block(items: Iterable[Item]) -> list[str]:
    """The lines of a list in block style, at column 0; the same for the same values."""
    return [line for item in items for line in (*_comment(item), *block_of([item.value]))]


def as_flow(items: Iterable[Item]) -> list[str]:
    """The lines of entries of a list in flow style, each followed by a comma."""
    return [line for item in items for line in (*_comment(item), f"{json.dumps(item.value)},")]


def under(key: str, lines: Iterable[str]) -> list[str]:
    """The lines of a list as the value of a key."""
    return [f"{key}:", *(f"  {line}" for line in lines)]


def _comment(item: Item) -> list[str]:
    return [f"# {item.why}"] if item.why else []
