"""The JSON Schema of an SLO's file, by which editors complete and check it."""

from typing import Any, Final

from tailburn.engine.slo.quantities import TIME_PATTERN, write_time
from tailburn.engine.slo.spec import ServingSlo

SCHEMA_FILE: Final = "serving-slo.schema.json"
MODELINE: Final = f"# yaml-language-server: $schema={SCHEMA_FILE}"
"""First line of a file, for editors: the schema lies beside it."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of one document."""
    schema = ServingSlo.model_json_schema(by_alias=True)
    return {"$schema": _DIALECT, **_plain(schema)}


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """As a file may say it: no nulls, defaults as they are written, no titles made of names."""
    plain: dict[str, Any] = {}
    for key, value in part.items():
        if key == "title" and isinstance(value, str):
            continue
        plain[key] = _plain(value) if isinstance(value, dict) and key != "default" else value
    choices = [_plain(x) for x in part.get("anyOf", ()) if x != {"type": "null"}]
    if choices:
        plain["anyOf"] = choices
    if len(choices) == 1:
        plain = {**plain.pop("anyOf")[0], **plain}
    default = plain.get("default")
    if default is None or isinstance(default, dict):
        plain.pop("default", None)
    elif plain.get("pattern") == TIME_PATTERN:
        plain["default"] = write_time(default)
    return plain
