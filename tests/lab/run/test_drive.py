"""A whole run: nothing is lost on its way, bodies come in order, a live run keeps time."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.lab.fleet import standard
from tailburn.lab.run import (
    AttemptsFile,
    Drive,
    Merging,
    Plan,
    RunError,
    Summary,
    ToFolder,
    ToService,
    Traffic,
    truth_of,
    write_truth,
)
from tailburn.lab.telemetry.sender import Patience, Sender, Sent
from tailburn.lab.telemetry.spans import Body
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload import named

S = 10**9
EPOCH = 1_764_547_200 * S
FLEET = standard(2.0, clients=30)
PLAN = Plan(FLEET, (Traffic(named("azure-conv"), 2.0),), seed=7)


class Kept:
    """A target that keeps what it takes, and asks the wall what time it is then."""

    def __init__(self, wall: Any = lambda: 0) -> None:
        self.sent, self.bodies, self.at = Sent(), list[Body](), list[int]()
        self.unsent = 0
        self._wall = wall

    def take(self, bodies: Any) -> None:
        for body in bodies:
            self.bodies.append(body)
            self.at.append(self._wall())

    def close(self) -> None: ...

    stop = close


def spans_of(body: bytes) -> set[tuple[bytes, bytes]]:
    request = ExportTraceServiceRequest.FromString(body)
    return {
        (span.trace_id, span.span_id)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


@pytest.fixture(scope="module")
def plain() -> tuple[Kept, Summary]:
    kept = Kept()
    drive = Drive(PLAN, wiring_of(FLEET), kept, epoch_unix_ns=EPOCH)
    drive.run(150 * S)
    return kept, drive.finish()


def test_bodies_come_in_order_and_hold_every_span_once(plain: tuple[Kept, Summary]) -> None:
    kept, summary = plain
    arrivals = [arrival for arrival, _ in kept.bodies]
    assert arrivals == sorted(arrivals)
    each = [spans_of(body) for _, body in kept.bodies]
    assert sum(map(len, each)) == len(set().union(*each)) == summary.spans
    assert summary.attempts > 150
    assert summary.simulated_s == 150


def test_a_collector_between_loses_nothing_and_holds_nothing_long(
    plain: tuple[Kept, Summary],
) -> None:
    bodies, merging = plain[0].bodies, Merging(within_ns=3 * S)
    merged = [*merging.of(bodies), *merging.finish()]
    assert len(merged) < len(bodies) / 3
    assert b"".join(body for _, body in merged) == b"".join(body for _, body in bodies)
    arrivals = [arrival for arrival, _ in merged]
    assert arrivals == sorted(arrivals)
    later = iter(merged)
    at, whole = next(later)
    for arrival, body in bodies:
        if not spans_of(body) <= spans_of(whole):
            at, whole = next(later)
        assert arrival <= at <= arrival + 3 * S


def test_a_collector_lets_go_of_a_full_body_at_once() -> None:
    merging = Merging(within_ns=100, most_bytes=5)
    given = [(1, b"abc"), (2, b"defg"), (3, b"h"), (110, b"i")]
    assert [*merging.of(given), *merging.finish()] == [
        (3, b"abcdefg"),
        (103, b"h"),
        (210, b"i"),
    ]


def test_a_folder_holds_bodies_as_they_are_recorded(
    tmp_path: Path, plain: tuple[Kept, Summary]
) -> None:
    folder = ToFolder(tmp_path / "run" / "telemetry", EPOCH)
    folder.take(plain[0].bodies)
    found = sorted((tmp_path / "run" / "telemetry").glob("*.bin"))
    assert len(found) == len(plain[0].bodies) == folder.sent.bodies
    for path, (arrival, body) in zip(found, plain[0].bodies, strict=True):
        assert path.read_bytes() == body
        header = json.loads(path.with_suffix(".json").read_text())
        assert header["received_unix_ns"] == EPOCH + arrival
        assert header["body_bytes"] == len(body)
    assert found[0].name == "00001-http.bin"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="is there already"):
        ToFolder(tmp_path, EPOCH)


def test_the_truth_has_a_row_for_each_attempt_and_its_trace(
    tmp_path: Path, plain: tuple[Kept, Summary]
) -> None:
    kept = Kept()
    truth = AttemptsFile(tmp_path, PLAN.seed)
    drive = Drive(PLAN, wiring_of(FLEET), kept, epoch_unix_ns=EPOCH, truth=truth)
    drive.run(150 * S)
    assert drive.finish().attempts == truth.rows
    rows = pq.read_table(tmp_path / "attempts.parquet")
    assert rows.num_rows == truth.rows
    assert rows.schema.field("arrival_ns").metadata[b"unit"] == b"ns"
    traces = {trace.hex() for _, body in kept.bodies for trace, _ in spans_of(body)}
    assert set(rows["trace_id"].to_pylist()) <= traces

    path = write_truth(tmp_path, truth_of(PLAN, EPOCH, 150 * S, {"stacks": {"engine": "vllm"}}))
    told = json.loads(path.read_text())
    assert (told["epoch_unix_ns"], told["end_ns"], told["truths"]) == (EPOCH, 150 * S, [])
    assert told["workloads"][0]["per_s"] == 2.0


def sender(answer: Any, tries: int = 3) -> Sender:
    return Sender(
        "http://lab.test:4318",
        epoch_unix_ns=EPOCH,
        transport=httpx.MockTransport(answer),
        patience=Patience(tries=tries, first_wait_s=0.0),
        sleep=lambda seconds: None,
    )


def test_what_a_service_refuses_is_asked_again_then_counted(plain: tuple[Kept, Summary]) -> None:
    answers = iter([200, 503, 429, 200, 503, 503, 503, 400] + [200] * 10_000)
    target = ToService(sender(lambda request: httpx.Response(next(answers))))
    target.take(plain[0].bodies)
    target.close()
    sent = target.sent
    assert sent.refused_bodies == 2
    assert sent.retries == 4
    assert sent.bodies == len(plain[0].bodies) - 2


def test_a_service_that_takes_nothing_at_all_ends_the_run(plain: tuple[Kept, Summary]) -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    target = ToService(sender(gone))
    with pytest.raises(RunError, match="nothing was taken: http://lab.test:4318/v1/traces"):
        target.take(plain[0].bodies * 3)
        target.close()
    assert target.sent.refused_bodies == 3
    assert target.sent.bodies == 0


def test_a_live_run_catches_up_and_then_keeps_the_walls_time() -> None:
    now = EPOCH + 90 * S

    def sleep(seconds: float) -> None:
        nonlocal now
        now += round(seconds * S)

    kept = Kept(lambda: now)
    live: list[bool] = []
    drive = Drive(PLAN, wiring_of(FLEET), kept, epoch_unix_ns=EPOCH, wall=lambda: now, sleep=sleep)
    drive.run(150 * S, lambda step: live.append(step.live))
    assert not live[0] and live[-1]
    assert now == EPOCH + 150 * S - 23 * S
    steps = [later - before for before, later in pairwise(sorted(set(kept.at)))]
    assert steps and max(steps) <= 3 * S
    both = zip(kept.bodies, kept.at, strict=True)
    late = [at - EPOCH - arrival for (arrival, _), at in both if at > EPOCH + 91 * S]
    assert len(late) > 20
    assert max(late) <= 0


def test_bodies_of_a_live_run_are_held_until_they_are_due() -> None:
    asked: list[int] = []

    def early_s(arrival_ns: int) -> float:
        asked.append(arrival_ns)
        return 0.0

    target = ToService(sender(lambda request: httpx.Response(200)), early_s)
    target.take([(1, b""), (2, b"")])
    target.close()
    assert asked == [1, 2]


def test_bodies_that_wait_when_a_run_is_stopped_are_counted() -> None:
    target = ToService(sender(lambda request: httpx.Response(200)), lambda arrival_ns: 60.0)
    target.take([(1, b""), (2, b""), (3, b"")])
    target.stop()
    assert (target.unsent, target.sent.bodies) == (3, 0)
