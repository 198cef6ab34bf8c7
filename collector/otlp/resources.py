"""Resources by code: what sent a span."""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final, Self

from google.protobuf import json_format
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from tailburn.collector.otlp.kernel.entries import enter_resources
from tailburn.collector.otlp.kernel.table import Table
from tailburn.collector.otlp.shares import Shares

CAPACITY: Final = 16_384
ARENA_BYTES: Final = 16 << 20
LONGEST_BYTES: Final = 1 << 16

_EXACT: Final = 1 << 53

Value = str | float | bool


def plain(value: AnyValue) -> Value:
    """A value as the columns show it: lists as JSON text, bytes as base64."""
    kind = value.WhichOneof("value")
    if kind == "int_value":
        number = value.int_value
        return number if abs(number) <= _EXACT else str(number)
    if kind == "double_value":
        return value.double_value
    if kind == "bool_value":
        return value.bool_value
    if kind is None:
        return ""
    nested = _nested(value)
    return nested if isinstance(nested, str) else json.dumps(nested, ensure_ascii=False)


def _nested(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_nested(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return {kv.key: _nested(kv.value) for kv in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "string_value":
        return _shown(value.string_value)
    if kind == "double_value" and not math.isfinite(value.double_value):
        return json_format.MessageToDict(value)["doubleValue"]
    return None if kind in (None, "string_value_strindex") else getattr(value, kind)


def _shown(text: str) -> str:
    """A string without what was blanked: all of it, or what stood behind a `?` or `#`."""
    if not text.strip(" "):
        return ""
    stripped = text.rstrip(" ")
    return stripped[:-1] if stripped[-1] in "?#" and ("/" in stripped) else text


class Resources:
    """One code per distinct blanked Resource message, bounded; code 0 for what found no room.

    Decoders that share resources serialise their calls.
    """

    def __init__(self, capacity: int = CAPACITY, arena_bytes: int = ARENA_BYTES) -> None:
        self.table = Table(capacity, arena_bytes, LONGEST_BYTES)
        self.shares = Shares(self.table)
        self._attributes: dict[int, Mapping[str, Value]] = {}
        self._json: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.table)

    @property
    def overflowed(self) -> int:
        """How often a resource found no room."""
        return self.table.overflowed

    def attributes(self, code: int) -> Mapping[str, Value]:
        """The attributes of a resource; none for code 0."""
        known = self._attributes.get(code)
        if known is None:
            message = Resource.FromString(self.table.bytes_of(code))
            known = {kv.key: plain(kv.value) for kv in message.attributes}
            self._attributes[code] = known
        return known

    def service(self, code: int) -> str:
        """Its `service.name`, or ""."""
        return str(self.attributes(code).get("service.name", ""))

    def json(self, code: int) -> str:
        """Its attributes as JSON, keys sorted."""
        known = self._json.get(code)
        if known is None:
            known = json.dumps(self.attributes(code), sort_keys=True, ensure_ascii=False)
            self._json[code] = known
        return known

    def dump(self) -> dict[str, Any]:
        """All resources by code, as base64, and who holds how many, for `load`."""
        codes = range(1, len(self.table))
        messages = [base64.b64encode(self.table.bytes_of(code)).decode() for code in codes]
        return {"messages": messages, "shares": self.shares.dump()}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        """Resources with the codes of those that were dumped."""
        resources = cls()
        messages = [base64.b64decode(text) for text in dumped["messages"]]
        with resources.shares.own():
            codes = enter_resources(resources.table, messages)
        if codes != list(range(1, len(messages) + 1)):
            raise ValueError("not a dump of resources: two entries are the same")
        resources.shares.load(dumped["shares"])
        return resources
