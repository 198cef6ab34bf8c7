"""Words for a name that names nothing: the nearest of those that do."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`did you mean h1 or h2?`: the three nearest names, all of them where none is near.

    `cutoff`, 0 to 1, is how alike a near one is at least.
    """
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=cutoff) or names
    return f"did you mean {' or '.join(near)}?"
