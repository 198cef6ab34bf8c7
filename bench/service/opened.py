"""What a request costs with few and with many requests open beside it.

In process, through the pipeline alone: spans in, request row and span rows out. The open ones
are requests whose client's span has not come, so they stay open while others come and go.
"""

import time
from pathlib import Path
from typing import Final

from bench.bodies import START_NS
from bench.service.fresh import FreshBody, fresh_bodies
from tailburn.app.collecting import restored
from tailburn.app.parts import rules_of
from tailburn.app.settings import Settings
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.pipeline import Pipeline

OPEN_REQUESTS: Final = (1_000, 10_000, 100_000)

_SPANS_A_REQUEST: Final = 8
_SPANS_A_BODY: Final = 4096
_REQUESTS_A_BODY: Final = _SPANS_A_BODY // _SPANS_A_REQUEST
_MEASURED_ROUNDS: Final = 40
_STEP_NS: Final = 50_000_000
_ROOTLESS_CLOSE_S: Final = 86_400.0


class Paced:
    """A pipeline whose time moves by a step with each body."""

    def __init__(self) -> None:
        # A request whose entry span never comes stays open for as long as this takes.
        settings = Settings(store=Path("unused"), rootless_close_s=_ROOTLESS_CLOSE_S)
        self._pipeline: Pipeline
        self._decoder: Decoder
        self._pipeline, self._decoder = restored(settings, rules_of(settings), None)
        self._now_ns = START_NS
        self.requests = 0

    def add(self, body: bytearray) -> None:
        """Take a body in, close what is due, and take the rows that are finished."""
        self._now_ns += _STEP_NS
        self._decoder.add(body, received_ns=self._now_ns, tenant="default")
        self._pipeline.add(self._decoder.take(), self._decoder.take_rejected())
        self._pipeline.advance(self._now_ns)
        rows = self._pipeline.take_rows().get("requests")
        self.requests += rows.num_rows if rows is not None else 0

    @property
    def now_ns(self) -> int:
        return self._now_ns


def cost_us(open_requests: int) -> float:
    """CPU microseconds of one request with that many open beside it."""
    paced, rounds = Paced(), 0
    whole, without_root = _body(whole=True), _body(whole=False)
    for rounds in range(1, -(-open_requests // _REQUESTS_A_BODY) + 1):
        paced.add(bytearray(without_root.renew(rounds, paced.now_ns)))
    for _ in range(_MEASURED_ROUNDS * 4):  # until closing keeps pace with coming
        rounds += 1
        paced.add(bytearray(whole.renew(rounds, paced.now_ns)))
    before, began_s = paced.requests, time.process_time()
    for _ in range(_MEASURED_ROUNDS):
        rounds += 1
        paced.add(bytearray(whole.renew(rounds, paced.now_ns)))
    return (time.process_time() - began_s) / (paced.requests - before) * 1e6


def _body(whole: bool) -> FreshBody:
    (body,) = fresh_bodies(1, _SPANS_A_BODY, whole=whole, spans_a_request=_SPANS_A_REQUEST)
    return body
