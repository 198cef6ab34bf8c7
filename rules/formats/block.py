"""Any value as YAML in block style, the same bytes for the same value."""

from io import StringIO
from typing import Any

from ruamel.yaml import YAML


def block_of(value: Any) -> list[str]:
    """The lines of a value, at column 0."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 4096
    stream = StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().splitlines()
