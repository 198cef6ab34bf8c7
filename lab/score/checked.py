"""Values of a JSON document, taken out with a word for what is not as it should be."""

from collections.abc import Iterator, Sequence
from typing import Any

from tailburn.lab.nearest import did_you_mean
from tailburn.lab.score.errors import ScoreError

_NONE = object()


class Place:
    """An object somewhere in a document; `where` names file and place."""

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise ScoreError(f"{where}: {_short(value)}; want an object")
        self.where, self.value = where, value

    def only(self, *names: str) -> bool:
        """ScoreError when it has a field that is none of these; else True."""
        for name in self.value:
            if name not in names:
                raise ScoreError(f"{self.where}: no field {name!r}; {did_you_mean(name, names)}")
        return True

    def get(self, name: str) -> Any:
        """The value as it is; None where there is none."""
        return self.value.get(name)

    def text(self, name: str, default: Any = _NONE) -> str:
        """A text; ScoreError where there is none and no default."""
        return str(self._of(name, str, "a text", default))

    def whole(self, name: str, least: int = -(1 << 62)) -> int:
        """A whole number of at least `least`."""
        found = int(self._of(name, int, "a whole number"))
        if found < least:
            raise ScoreError(f"{self.where}.{name}: {found}; want at least {least}")
        return found

    def number(self, name: str, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        found = float(self._of(name, (int, float), "a number"))
        if not low <= found <= high:
            raise ScoreError(f"{self.where}.{name}: {found}; want {low:g} to {high:g}")
        return found

    def truth(self, name: str) -> bool:
        """true or false."""
        return bool(self._of(name, bool, "true or false"))

    def one_of(self, name: str, names: Sequence[str], default: Any = _NONE) -> str:
        """One of some words."""
        found = self.text(name, default)
        if found not in names:
            raise ScoreError(f"{self.where}.{name}: {found!r}; want one of {', '.join(names)}")
        return found

    def dims(self, name: str) -> dict[str, str]:
        """An object of texts; empty where there is none."""
        found = self._of(name, dict, "an object", {})
        for key, value in found.items():
            if not isinstance(value, str):
                raise ScoreError(f"{self.where}.{name}.{key}: {_short(value)}; want a text")
        return dict(found)

    def each(self, name: str) -> Iterator["Place"]:
        """The objects of a list; none where there is none."""
        for i, one in enumerate(self._of(name, list, "a list", [])):
            yield Place(f"{self.where}.{name}[{i}]", one)

    def _of(self, name: str, kind: Any, want: str, default: Any = _NONE) -> Any:
        found = self.value.get(name, default)
        if found is _NONE:
            raise ScoreError(f"{self.where}: no {name}; want {want}")
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ScoreError(f"{self.where}.{name}: {_short(found)}; want {want}")
        return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
