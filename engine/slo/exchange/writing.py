"""Plain values written as YAML, byte for byte the same each time."""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

_NEVER_FOLD = 100_000  # a line of PromQL stays one line


def yaml_text(data: Any) -> str:
    """Block style, keys in the order given, texts of several lines as blocks."""
    writer = YAML()
    writer.width = _NEVER_FOLD
    writer.indent(mapping=2, sequence=4, offset=2)
    written = _Text()
    writer.dump(_with_blocks(data), written)
    return "".join(written.parts)


class _Text:
    """What a dump is written to."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, part: str | bytes) -> None:
        self.parts.append(part if isinstance(part, str) else part.decode())


def _with_blocks(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _with_blocks(value) for key, value in data.items()}
    if isinstance(data, str) and "\n" in data:
        return LiteralScalarString(data.rstrip("\n") + "\n")
    return data
