"""Where a run's telemetry goes: to a service over HTTP, or into a folder to be replayed."""

import json
import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from tailburn.lab.run.errors import RunError
from tailburn.lab.telemetry.sender import Sender, Sent
from tailburn.lab.telemetry.spans import Body

_WAITING = 64
"""Bodies made ahead of the one being sent."""
_HOPELESS = 3
"""So many refused in a row, and none ever taken: nobody there wants any."""


class Target(Protocol):
    """Takes bodies in order of arrival; `sent` says what became of them."""

    @property
    def sent(self) -> Sent: ...
    @property
    def unsent(self) -> int:
        """Bodies taken that were never sent, for it was stopped."""
        ...

    def take(self, bodies: Iterable[Body]) -> None: ...
    def close(self) -> None: ...
    def stop(self) -> None: ...


class ToService:
    """Sends in a thread of its own, so that a fleet moves on while an answer is awaited.

    `early_s` says how many seconds too early a body is, to be held back so long. `take` raises
    RunError where nothing was ever taken and three in a row were not.
    """

    def __init__(self, sender: Sender, early_s: Callable[[int], float] | None = None) -> None:
        self._sender = sender
        self.unsent = 0
        self._early_s = early_s or _never_early
        self._waiting: queue.Queue[Body | None] = queue.Queue(_WAITING)
        self._hopeless = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, name="lab sender", daemon=True)
        self._thread.start()

    @property
    def sent(self) -> Sent:
        return self._sender.sent

    def take(self, bodies: Iterable[Body]) -> None:
        for body in bodies:
            while True:
                if self._hopeless.is_set():
                    raise RunError(f"nothing was taken: {self.sent.last_error}")
                try:
                    self._waiting.put(body, timeout=0.5)
                    break
                except queue.Full:
                    continue

    def close(self) -> None:
        """Send what waits, then close; RunError as from `take`."""
        self._put_end()
        self._thread.join()
        self._sender.close()
        if self._hopeless.is_set():
            raise RunError(f"nothing was taken: {self.sent.last_error}")

    def stop(self) -> None:
        """Close at once; what waits is not sent."""
        self._stopped.set()
        self._put_end()
        self._thread.join(10.0)
        self._sender.close()

    def _put_end(self) -> None:
        while self._thread.is_alive():
            try:
                self._waiting.put(None, timeout=0.5)
                return
            except queue.Full:
                continue

    def _send(self) -> None:
        refused = 0
        while (body := self._waiting.get()) is not None:
            early_s = self._early_s(body[0])
            if early_s > 0:
                self._stopped.wait(early_s)
            if self._stopped.is_set() or self._hopeless.is_set():
                self.unsent += 1
                continue
            refused = 0 if self._sender.send(*body) else refused + 1
            if refused >= _HOPELESS and not self.sent.bodies:
                self._hopeless.set()


def _never_early(arrival_ns: int) -> float:
    return 0.0


def check_unused(folder: Path) -> None:
    """RunError for a folder with something in it, and for what is none."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: is there already; want a new or an empty folder")


class ToFolder:
    """Writes each body as `NNNNN-http.bin`, what came with it as `.json` beside it."""

    def __init__(self, folder: Path, epoch_unix_ns: int) -> None:
        check_unused(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._epoch = folder, epoch_unix_ns
        self.sent, self.unsent = Sent(), 0

    def take(self, bodies: Iterable[Body]) -> None:
        for arrival_ns, body in bodies:
            self.sent.bodies += 1
            self.sent.bytes += len(body)
            name = self._folder / f"{self.sent.bodies:05}-http"
            name.with_suffix(".bin").write_bytes(body)
            name.with_suffix(".json").write_text(self._header(arrival_ns, body))

    def close(self) -> None:
        """Nothing is left to do."""

    stop = close

    def _header(self, arrival_ns: int, body: bytes) -> str:
        return json.dumps(
            {
                "transport": "http",
                "path": "/v1/traces",
                "content_type": "application/x-protobuf",
                "content_encoding": None,
                "received_unix_ns": self._epoch + arrival_ns,
                "body_bytes": len(body),
            }
        )
