"""How the stitcher is compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from tailburn.collector.compiling import entries_of
from tailburn.engine import breakdown, compiled, names

F = TypeVar("F", bound=Callable[..., Any])

_BELOW = (Path(str(module.__file__)) for module in (breakdown, compiled, names))

entry = entries_of(Path(__file__).parent, *_BELOW)
"""A function that Python calls; kept in the cache."""


def inner(function: F) -> F:
    """A function that only compiled code calls."""
    return njit(nogil=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """A helper that becomes part of its caller: array arguments of a call cost atomics."""
    return njit(nogil=True, error_model="numpy", forceinline=True)(function)
