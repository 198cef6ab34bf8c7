"""Resources as the rules see them: in groups no rule tells apart, and what each alone tells."""

from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np

from tailburn.collector.hops.dimensions import PER_REPLICA
from tailburn.collector.hops.ruleset import Rules
from tailburn.collector.spans import I32


class Texts(Protocol):
    """The shared dictionary, as far as it is needed here."""

    def text(self, code: int) -> str: ...
    def code(self, text: str) -> int: ...
    def own_code(self, text: str) -> int: ...


class ResourceTexts(Protocol):
    """The table of resources, as far as it is needed here."""

    def attributes(self, code: int) -> Mapping[str, object]: ...


_ROOM: Final = 64


class Origins:
    """What is known of each resource, by its code. Codes are dense and keep their meaning.

    A fleet of a thousand replicas is one group, so that the rules are asked once for all of it.
    """

    def __init__(self, rules: Rules, dictionary: Texts, resources: ResourceTexts) -> None:
        self._rules = rules
        self._dictionary = dictionary
        self._resources = resources
        self._groups: dict[tuple[str | None, ...], int] = {}
        self._texts: list[dict[str, str]] = []
        self.group: I32 = np.zeros(_ROOM, np.int32)  # by code
        self.codes: I32 = np.zeros((len(PER_REPLICA), _ROOM), np.int32)  # of values, by code

    def learn(self, resource: I32) -> None:
        """Get to know every resource up to the highest code in `resource`."""
        if not len(resource):
            return
        for code in range(len(self._texts), int(resource.max()) + 1):
            self._enter(code)

    def fill(self, texts: dict[str, I32], resource: I32) -> None:
        """Put what each span's resource tells into the columns `texts`. What the map of replicas
        says goes before the steps of a dimension; what a rule read off the span before copies."""
        for name, codes in zip(PER_REPLICA, self.codes, strict=True):
            own, told = texts[name], codes[resource]
            if name in self._rules.dimensions.by_resource:
                texts[name] = np.where(own != 0, own, told)
            else:
                texts[name] = np.where(told != 0, told, own)

    def attributes(self, code: int) -> Mapping[str, str]:
        """The attributes of a resource that was learnt, as texts."""
        return self._texts[code]

    def _enter(self, code: int) -> None:
        given = self._resources.attributes(code)
        texts = {key: str(given[key]) for key in given}
        self._texts.append(texts)
        if code == len(self.group):
            self.group = np.resize(self.group, 2 * code)
            self.codes = np.concatenate((self.codes, np.zeros_like(self.codes)), axis=1)
        key = tuple(texts.get(name) for name in self._rules.resource_keys)
        self.group[code] = self._groups.setdefault(key, len(self._groups))
        values = self._rules.dimensions.of_resource(texts)
        self.codes[:, code] = [self._dictionary.code(value) if value else 0 for value in values]
