"""How the hot paths are compiled: without the GIL, cached on disk, divisions as numpy's."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from numba import njit

Int: TypeAlias = Any
"""A 64-bit integer of compiled code, which Python may see as its own or as numpy's."""

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A function that works on arrays."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """A helper of such functions, always inlined: array arguments of a call cost atomics."""
    return njit(nogil=True, cache=True, error_model="numpy", forceinline=True)(function)
