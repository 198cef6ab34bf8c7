"""A loop whose time passes only where everything waits for it: nothing is late on a busy machine.

For what waits in this loop alone. Sockets and threads take time that it does not know.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):
    """Instead of waiting it says that the time is over."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "all that runs waits for something that never comes"
        ready = super().select(0)
        if not ready:
            self.now_s += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now_s


def run_virtually(what: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` from second 0 on."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(what)


def now_s() -> float:
    """Of the loop that runs."""
    return asyncio.get_running_loop().time()
