"""What can be wrong with a fleet."""

from collections.abc import Iterable
from difflib import get_close_matches


class FleetError(ValueError):
    """A fleet that cannot run; the message says which part, what it has, what it may have."""


def unknown(where: str, what: str, name: str, names: Iterable[str]) -> FleetError:
    """`pool 'chat': no host 'h9'; did you mean h1?`"""
    listed = list(names)
    near = get_close_matches(name, listed, n=3, cutoff=0.5) or listed
    return FleetError(f"{where}: no {what} {name!r}; did you mean {' or '.join(near)}?")
