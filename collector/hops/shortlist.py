"""Which rules are worth asking about a span: those it can't be told at a glance to fail."""

from collections.abc import Iterable, Sequence

from tailburn.collector.hops.conditions import Condition, Facts, Place


class Shortlist:
    """Rules filed under one thing that each of them needs: a name, a scope or an attribute."""

    def __init__(self, conditions: Sequence[tuple[Condition, ...]]) -> None:
        """`conditions` are those of each rule, in the rules' order."""
        self._by_name: dict[str, list[int]] = {}
        self._by_scope: dict[str, list[int]] = {}
        self._by_attribute: dict[str, list[int]] = {}
        self._others: list[int] = []
        for index, when in enumerate(conditions):
            self._file(index, when)

    def _file(self, index: int, when: tuple[Condition, ...]) -> None:
        for place, files in ((Place.NAME, self._by_name), (Place.SCOPE, self._by_scope)):
            texts = _exact(when, place)
            if texts:
                for text in texts:
                    files.setdefault(text, []).append(index)
                return
        for condition in when:
            if condition.place is Place.ATTRIBUTE:
                self._by_attribute.setdefault(condition.key, []).append(index)
                return
        self._others.append(index)

    def candidates(self, facts: Facts) -> Iterable[int]:
        """Indices of the rules that may match, growing."""
        found = [
            *self._others,
            *self._by_name.get(facts.name, ()),
            *self._by_scope.get(facts.scope, ()),
        ]
        for key in facts.attributes:
            found += self._by_attribute.get(key, ())
        return sorted(set(found))


def _exact(when: tuple[Condition, ...], place: Place) -> tuple[str, ...]:
    """The texts one of which the place must hold; () where a pattern leaves it open."""
    for condition in when:
        if condition.place is place and condition.patterns.are_exact:
            return condition.patterns.texts
    return ()
