"""Where an alert is: the dimensions by which two of them are told to be of one cause, or not."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tailburn.engine.evaluation.alerts import AlertKey
from tailburn.engine.names import TEAM_LABEL
from tailburn.engine.slo.model import Slo

Place = Mapping[str, str]
PlaceOf = Callable[[AlertKey], Place]

KINDS: Final = frozenset({"request_type", "priority", "prompt_class", "tenant"})
"""Dimensions of what is asked, not of what serves it: one broken replica hurts several of each."""


def places_of(slos: Iterable[Slo]) -> PlaceOf:
    """An alert is where its SLO selects, at its own values of `by`, and with its SLO's team."""
    selected = {
        slo.name: {**slo.select, **({TEAM_LABEL: slo.team} if slo.team else {})} for slo in slos
    }

    def place_of(key: AlertKey) -> Place:
        return {**selected.get(key.slo, {}), **dict(key.by)}

    return place_of


def are_apart(one: Place, other: Place) -> bool:
    """Whether different things serve them, or different people mend them."""
    return any(other.get(name, value) != value for name, value in one.items() if name not in KINDS)


def shared(one: Place, other: Place) -> dict[str, str]:
    """The dimensions on which both say the same."""
    return {name: value for name, value in one.items() if other.get(name) == value}
