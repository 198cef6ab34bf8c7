"""How the stitcher is compiled, and when what lies in the cache is too old.

numba compiles a cached function anew when its own file changes, but not when one that it
calls does; files of a newer release can even bear the same time stamps. So just the functions
that Python calls are cached, under a key that names the sources of them all.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

from tailburn.engine import breakdown, compiled, names

F = TypeVar("F", bound=Callable[..., Any])


def _revision() -> str:
    files = [Path(module.__file__ or "") for module in (breakdown, compiled, names)]
    digest = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *files]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


REVISION = _revision()


class _RevisedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk, keyed by the sources of all compiled code here as well."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), REVISION)


def entry(function: F) -> F:
    """A function that Python calls; kept in the cache."""
    dispatcher = njit(nogil=True, error_model="numpy")(function)
    dispatcher._cache = _RevisedCache(dispatcher.py_func)
    return dispatcher


def inner(function: F) -> F:
    """A function that only compiled code calls."""
    return njit(nogil=True, error_model="numpy")(function)


def inlined(function: F) -> F:
    """A helper that becomes part of its caller: array arguments of a call cost atomics."""
    return njit(nogil=True, error_model="numpy", forceinline=True)(function)
