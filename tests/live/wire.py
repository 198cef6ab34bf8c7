"""The way from a service to its PostgreSQL server: a socket that can be cut, and mended."""

import contextlib
import selectors
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

_NAME = ".s.PGSQL.5432"
_STEP_S = 0.2


class Wire:
    """While it is cut nothing comes through, and nobody is told: a network that swallows."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.url = f"postgresql://tailburn@/postgres?host={folder}"
        self._server = server / _NAME
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / _NAME))
        self._listening.listen(64)
        self._cut = Event()
        self._ended = Event()
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        self._cut.set()

    def mend(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        self._listening.settimeout(_STEP_S)
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._server))
                thread = Thread(target=self._carry, args=(near, far), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while not self._ended.is_set():
                if self._cut.is_set():
                    self._ended.wait(_STEP_S / 10)
                    continue
                for key, _ in ready.select(_STEP_S):
                    sent = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                    if not sent:
                        return
                    key.data.sendall(sent)


@contextmanager
def wire_to(server: Path) -> Iterator[Wire]:
    """A way of its own to the server whose socket lies in a folder."""
    folder = Path(tempfile.mkdtemp(prefix="tb-wire-"))
    wire = Wire(folder, server)
    try:
        yield wire
    finally:
        wire.close()
        shutil.rmtree(folder)
