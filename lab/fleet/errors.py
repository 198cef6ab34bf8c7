"""What can be wrong with a fleet."""

from collections.abc import Iterable

from tailburn.lab.nearest import did_you_mean


class FleetError(ValueError):
    """A fleet that cannot run; the message says which part, what it has, what it may have."""


def unknown(where: str, what: str, name: str, names: Iterable[str]) -> FleetError:
    """`pool 'chat': no host 'h9'; did you mean h1?`"""
    return FleetError(f"{where}: no {what} {name!r}; {did_you_mean(name, names)}")
