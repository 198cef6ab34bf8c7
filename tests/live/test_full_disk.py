"""A full disk refuses what it can't keep, and the service gets over it by itself."""

import os
from itertools import count
from pathlib import Path

import grpc
import pytest

from tests.app.service import chat
from tests.live.service import QUICK, Service, living, until
from tests.live.stored import span_ids

pytestmark = pytest.mark.timeout(900)

_BALLAST_STEP = 64 * 1024


def _body(number: int) -> bytes:
    """A call with 40 kB that can't be compressed, so that the disk fills soon."""
    request = chat(number, 1_800_000_000_000_000_000)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    for part in range(200):
        span.attributes.add(key=f"noise.{part}").value.string_value = os.urandom(100).hex()
    return request.SerializeToString()


def _fill(disk: Path) -> Path:
    """Leaves nothing free; the file that takes the room."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(_BALLAST_STEP))
        except OSError:
            return ballast


def _send_until_refused(service: Service, numbers: "count[int]") -> list[int]:
    """Numbers of the calls that were acknowledged before one was refused."""
    taken: list[int] = []
    for number in numbers:
        answer = service.post(_body(number))
        if answer.status_code == 503:
            assert 0 < int(answer.headers["retry-after"]) <= 2
            return taken
        assert answer.status_code == 200
        taken.append(number)
    raise AssertionError("unreachable")


def test_what_was_acknowledged_outlives_a_full_disk(small_disk: Path) -> None:
    numbers = count(1)
    with living(small_disk / "store", *QUICK) as service:
        acknowledged = [next(numbers) for _ in range(5)]
        assert all(service.post(_body(number)).is_success for number in acknowledged)
        ballast = _fill(small_disk)
        acknowledged += _send_until_refused(service, numbers)
        with service.export() as export, pytest.raises(grpc.RpcError) as refused:
            export(_body(next(numbers)))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert service.get("/readyz").status_code == 503
        assert "full" in service.get("/healthz").text

        ballast.unlink()
        until(lambda: service.post(_body(next(numbers))).status_code == 200)
        until(lambda: service.get("/readyz").status_code == 200)
        service.settle(len(acknowledged))
        assert service.stop() == 0
        stored = span_ids(service.store)
    ids = {number.to_bytes(8, "big").hex() for number in acknowledged}
    assert ids <= stored.keys() and set(stored.values()) == {1}
