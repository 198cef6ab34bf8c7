"""Which of several services tells people, as one of them sees it: it holds a lease, or stands by.

It believes itself for shorter than the lease lasts, by a clock that goes on while the process is
stopped. So one that was cut off from the database, or stopped, is silent before another begins.
"""

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

from sqlalchemy.exc import DBAPIError

from tailburn.app.settings import Settings
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State, reason_of
from tailburn.engine.store.state.lease import LASTS_S, Lease, Standing

log = logging.getLogger(__name__)

RENEWS_S: Final = 3.0
MARGIN_S: Final = 2.0
"""So much sooner its holder gives up the lease than others may take it."""

_DAY_NS: Final = 86_400_000_000_000


class Pairing:
    """`leads` may be asked from any thread, at any time."""

    def __init__(
        self,
        name: str,
        state: State,
        now_ns: Callable[[], int],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name`: as people know the service; `now_ns`: the time that its store goes by."""
        self.holder = uuid.uuid4().hex
        self._name = name
        self._lease = Lease(state, self.holder)
        self._alerts = Alerts(state)
        self._now_ns = now_ns
        self._monotonic_s = monotonic_s
        self._until_s = 0.0
        self._is_leading = False  # as it was said last
        self._is_failing = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def leads(self) -> bool:
        """Whether this service is the one that tells people, at this moment."""
        return self._monotonic_s() < self._until_s

    def start(self) -> None:
        """Hold the lease, or wait for it, until `close`."""
        self._thread = threading.Thread(target=self._run, name="pair", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Another may tell people at once."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._until_s = 0.0
        try:
            self._lease.let_go()
        except DBAPIError as error:
            log.warning("the pair is not told that this service ends: %s", reason_of(error))

    def step(self) -> None:
        """Say that it lives, and hold the lease where it can. Raises `DBAPIError`."""
        asked_s = self._monotonic_s()
        standing = self._standing()
        term = self._lease.renew(standing)
        self._until_s = 0.0 if term is None else asked_s + LASTS_S - MARGIN_S
        if self._is_leading != (term is not None):
            self._is_leading = term is not None
            _tell(self._is_leading, standing)

    def _standing(self) -> Standing:
        now_ns = self._now_ns()
        stretches = self._alerts.covered(now_ns - _DAY_NS)
        covered_ns = sum(end - max(begin, now_ns - _DAY_NS) for begin, end in stretches)
        minute_ns = self._alerts.evaluated_ns()
        return Standing(self._name, minute_ns, min(covered_ns / _DAY_NS, 1.0))

    def _run(self) -> None:
        self._try()
        while not self._stopped.wait(RENEWS_S):
            self._try()

    def _try(self) -> None:
        try:
            self.step()
        except DBAPIError as error:
            if not self._is_failing:
                log.error("who tells people can't be found out: %s", reason_of(error))
            self._is_failing = True
        else:
            self._is_failing = False
        if self._is_leading and not self.leads():
            self._is_leading = False
            log.warning("this service tells people no more: another may hold the lease")


def pairing_of(
    settings: Settings, web_port: int, state: State, now_ns: Callable[[], int]
) -> Pairing | None:
    """None for a service without a standby."""
    if not settings.pair:
        return None
    return Pairing(f"{socket.gethostname()}:{web_port}", state, now_ns)


def _tell(is_leading: bool, standing: Standing) -> None:
    told = "tells people from now on" if is_leading else "stands by: another tells people"
    log.warning("this service %s; %s", told, standing.has)
