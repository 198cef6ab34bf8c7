"""A request in OTLP/JSON as exporters write it, from protobuf's JSON."""

import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

_IDS = {"traceId", "spanId", "parentSpanId"}


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(v).hex() if key in _IDS else _with_hex_ids(v)
        for key, v in value.items()
    }


def as_dict(request: Message) -> dict[str, Any]:
    """Hex ids, integers for enums, strings for 64-bit integers."""
    found = _with_hex_ids(MessageToDict(request, use_integers_for_enums=True))
    assert isinstance(found, dict)
    for group in found.get("resourceSpans", []):
        for scoped in group.get("scopeSpans", []):
            for span in scoped.get("spans", []):
                span.setdefault("startTimeUnixNano", "0")
    return found


def as_json(request: Message) -> bytes:
    return json.dumps(as_dict(request)).encode()
