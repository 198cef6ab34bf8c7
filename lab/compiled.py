"""How the lab's hot paths are compiled: without the GIL, cached on disk, divisions as numpy's.

numba keeps a compiled function until its own file changes, and so runs on with what it had
inlined of other files. Here a function is compiled anew when anything it took in has
changed: the files of the compiled functions and modules it names, and the constants.
"""

import os
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from numba import njit, types
from numba.core.caching import IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A function of arrays and numbers that compiled code and Python may both call."""
    return _watched(njit(nogil=True, cache=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """A helper of such functions, always inlined: array arguments of a call cost atomics."""
    options = {"nogil": True, "cache": True, "error_model": "numpy", "forceinline": True}
    return _watched(njit(**options)(function))


def lean(function: F) -> F:
    """As `compiled`, without counts of references: for what makes no arrays.

    A tuple of ten arrays costs some 20 ns each time it is passed with them.
    """
    return _watched(njit(nogil=True, cache=True, error_model="numpy", _nrt=False)(function))


def lean_inlined(function: F) -> F:
    """As `inlined`, without counts of references."""
    options = {"nogil": True, "cache": True, "error_model": "numpy", "forceinline": True}
    return _watched(njit(**options, _nrt=False)(function))


def _watched(dispatcher: Any) -> Any:
    """Let the cached code of a function count as old when what it took in has changed."""
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if file is not None:  # None: compiling is switched off (NUMBA_DISABLE_JIT)
        file.__class__ = _Stamped
        file.taken_from = [dispatcher.py_func]
    of_types = dispatcher.get_call_template

    def without_literals(args: Any, kws: Any) -> Any:
        """numba compiles a function once more for each constant that it is called with."""
        return of_types([types.unliteral(a) for a in args], kws)

    dispatcher.get_call_template = without_literals
    return dispatcher


class _Stamped(IndexDataCacheFile):  # type: ignore[misc]
    """Looks at what a function took in when its cache is first asked for.

    Not when it is defined: what it names may stand further down in its file.
    """

    taken_from: list[FunctionType]
    _stamp: Any = None

    @property
    def _source_stamp(self) -> Any:
        if self._stamp is None:
            own = self.__dict__["_source_stamp"]
            self._stamp = (own, *sorted(set(taken_in(self.taken_from[0]))))
        return self._stamp

    @_source_stamp.setter
    def _source_stamp(self, own: Any) -> None:
        self.__dict__["_source_stamp"] = own


def taken_in(function: FunctionType, seen: set[str] | None = None) -> Iterator[str]:
    """What compiled code of `function` holds beyond its own file, each with its state."""
    seen = set() if seen is None else seen
    seen.add(function.__qualname__ + function.__code__.co_filename)
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        inner = getattr(value, "py_func", None)
        if inner is not None:
            if inner.__qualname__ + inner.__code__.co_filename not in seen:
                yield _state(inner.__code__.co_filename)
                yield from taken_in(inner, seen)
        elif isinstance(value, ModuleType) and value.__name__.startswith("tailburn."):
            yield _state(value.__file__ or "")
        elif isinstance(value, bool | int | float | str | tuple):
            yield f"{name}={value!r}"


def _names(code: Any) -> set[str]:
    """Names that code and the functions within it look up."""
    inner = (_names(constant) for constant in code.co_consts if hasattr(constant, "co_names"))
    return set(code.co_names).union(*inner)


def _state(path: str) -> str:
    found = os.stat(path)
    return f"{path} {found.st_mtime_ns} {found.st_size}"
