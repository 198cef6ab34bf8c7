"""YAML as we write it: block style, or JSON where the user has flow style."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML


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


def block_of(value: Any) -> list[str]:
    """The lines of a value in block style."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 4096
    stream = StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().splitlines()


def under(key: str, lines: Iterable[str]) -> list[str]:
    """The lines of a list as the value of a key."""
    return [f"{key}:", *(f"  {line}" for line in lines)]


def _comment(item: Item) -> list[str]:
    return [f"# {item.why}"] if item.why else []
