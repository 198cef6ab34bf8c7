"""When compiled code in the cache on disk is too old.

numba compiles a cached function anew when its own file changes, but not when one that it
calls does; files of a newer release can even bear the same time stamps. So just the functions
that Python calls are cached, under a key that names the sources of all that they call.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


def _revision(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.glob("*.py")) if source.is_dir() else [source]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def entries_of(*sources: Path) -> Callable[[F], F]:
    """A decorator for the functions that Python calls; `sources` are files and folders."""
    revision = _revision(sources)

    class RevisedCache(FunctionCache):  # type: ignore[misc]
        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (*super()._index_key(sig, codegen), revision)

    def entry(function: F) -> F:
        dispatcher = njit(nogil=True, error_model="numpy")(function)
        dispatcher._cache = RevisedCache(dispatcher.py_func)
        return dispatcher

    return entry
