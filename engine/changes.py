"""A change of the fleet: what was done, when, where, and who says so."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What sort of change it is."""

    DEPLOY = "deploy"
    CONFIG = "config"
    DRIVER = "driver"
    FIRMWARE = "firmware"
    RESTART = "restart"
    SCALE = "scale"
    THROTTLE = "throttle"
    """A GPU that is held back, or free again."""
    OTHER = "other"


@dataclass(frozen=True)
class Change:
    """From `old` to `new`; empty where that is not known, or there is nothing to name."""

    at_ns: int
    kind: Kind
    what: str
    old: str = ""
    new: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    """Dimensions that it touches; one that it does not name it touches whatever its value."""
    who: str = ""
    link: str = ""
    tenant: str = "default"
    id: int | None = None
    """None before it is written down."""
    told_as: str = ""
    """Its key, where what it says may grow; empty: the key is of what it says."""

    @property
    def key(self) -> str:
        """The same for what is told twice: 32 hex digits."""
        if self.told_as:
            return self.told_as
        told = (self.tenant, self.at_ns, self.kind, self.what, self.old, self.new)
        return key_of(*told, sorted(self.where.items()))

    def touches(self, where: Mapping[str, str]) -> bool:
        """Whether it touches what has these dimensions."""
        return all(where.get(name, value) == value for name, value in self.where.items())


def key_of(*parts: object) -> str:
    """The key of a change that these parts tell from all others: 32 hex digits."""
    text = json.dumps(parts, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
