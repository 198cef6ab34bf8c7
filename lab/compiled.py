"""How the lab's hot paths are compiled: without the GIL, cached on disk, divisions as numpy's."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A function of arrays and numbers that compiled code and Python may both call."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """A helper of such functions, always inlined: array arguments of a call cost atomics."""
    return njit(nogil=True, cache=True, error_model="numpy", forceinline=True)(function)
