"""NCCL's RAS service, spoken to over its own socket."""

import asyncio
import json
from dataclasses import replace

import pytest

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds
from tailburn.collector.scrape.ras import fetch_ras_into, metrics_of
from tailburn.collector.scrape.room import Room
from tests.collector.scrape.answers import PATIENT, Answer, hangs, listening
from tests.collector.signals.reading import values

STATUS = {
    "nccl_version": "2.29.1",
    "communicators": [
        {
            "hash": "0xae94",
            "size": 4,
            "missing_ranks_count": 1,
            "ranks": [
                {"rank": 0, "status": {"async_error": 0}, "collective_counts": {"AllReduce": 17}},
                {"rank": 1, "status": {"async_error": 2}, "collective_counts": {"AllReduce": 12}},
                {"rank": 2, "status": {"abort_flag": True}, "collective_counts": {"AllReduce": 17}},
            ],
            "missing_ranks": [{"rank": 3, "status": {"unresponsive": True}}],
        }
    ],
}


def service(status: bytes, hello: bytes = b"SERVER PROTOCOL 2\n") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"CLIENT PROTOCOL 2\n"
        writer.write(hello)
        assert await reader.readline() == b"SET FORMAT json\n"
        writer.write(b"OK\n")
        assert await reader.readline() == b"VERBOSE STATUS\n"
        writer.write(status)

    return answer


def asked(answer: Answer, bounds: Bounds = PATIENT) -> bytes:
    async def run() -> bytes:
        async with listening(answer) as port:
            with Room(1 << 20).place() as place:
                await fetch_ras_into(place, f"ncclras://127.0.0.1:{port}", bounds)
                return metrics_of(place.whole())

    return asyncio.run(run())


def test_ranks_that_are_missing_late_or_failed_are_told() -> None:
    text = asked(service(json.dumps(STATUS).encode()))
    assert values(text) == {
        "nccl_ranks_missing gauge": 1.0,
        "nccl_rank_lag gauge": 5.0,
        "nccl_errors gauge": 2.0,
    }


def test_a_job_without_communicators_is_no_failure() -> None:
    assert asked(service(b'{"communicators": []}')) == b"ncclras_answers 1\n"


@pytest.mark.parametrize(
    ("answer", "bounds", "reason"),
    [
        (hangs, Bounds(timeout_s=0.2), Reason.TIMEOUT),
        (service(b"", b"HTTP/1.1 400 Bad Request\n"), PATIENT, Reason.NOT_METRICS),
        (service(b"", b"x" * 100_000), PATIENT, Reason.NOT_METRICS),
        (service(b"{cut"), PATIENT, Reason.BROKEN),
        (service(b" " * 5_000), replace(PATIENT, body_bytes=4_000), Reason.TOO_LARGE),
    ],
)
def test_what_is_no_answer_has_a_reason(answer: Answer, bounds: Bounds, reason: Reason) -> None:
    with pytest.raises(ScrapeError) as told:
        asked(answer, bounds)
    assert told.value.reason is reason
