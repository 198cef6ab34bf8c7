"""Answers within a time and a size, and one clear reason for each that is not."""

import asyncio
import gzip
import ssl
from dataclasses import replace

import pytest
import trustme

from tailburn.collector.scrape.errors import Reason, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, fetch, new_client
from tests.collector.scrape.answers import (
    PATIENT,
    Answer,
    drips,
    fetched,
    hangs,
    http,
    listening,
    pours,
    says,
)

SOON = Bounds(timeout_s=0.2, body_bytes=1 << 20)


def refused(answer: Answer, bounds: Bounds = PATIENT) -> tuple[Reason, str]:
    with pytest.raises(ScrapeError) as told:
        fetched(answer, bounds)
    return told.value.reason, str(told.value)


def test_an_answer_is_its_body() -> None:
    assert fetched(says(http(b"a 1\n"))) == b"a 1\n"


def test_a_packed_answer_is_unpacked() -> None:
    body = b"a 1\n" * 50_000
    packed = gzip.compress(body) + gzip.compress(b"b 2\n")
    assert fetched(says(http(packed, "content-encoding: gzip"))) == body + b"b 2\n"


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 258])
def test_an_answer_is_whole_wherever_a_step_ends(size: int) -> None:
    packed = gzip.compress(b"a" * size)
    bounds = replace(PATIENT, body_bytes=4 << 20)
    assert fetched(says(http(packed, "content-encoding: gzip")), bounds) == b"a" * size


def test_an_answer_may_be_of_many_members() -> None:
    packed = gzip.compress(b"") * 5_000 + gzip.compress(b"a 1\n")
    assert fetched(says(http(packed, "content-encoding: gzip"))) == b"a 1\n"


def test_it_asks_for_text_and_for_no_packing_but_gzip() -> None:
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(http(b"a 1\n"))

    fetched(answer)
    assert b"accept: text/plain;version=0.0.4" in heads[0]
    assert b"accept-encoding: gzip\r\n" in heads[0]


@pytest.mark.parametrize("answer", [hangs, drips])
def test_a_target_that_hangs_costs_the_time_out(answer: Answer) -> None:
    assert refused(answer, SOON) == (Reason.TIMEOUT, "no whole answer within 0.2 s")


def test_an_answer_without_end_is_cut_off() -> None:
    reason, message = refused(pours)
    assert (reason, message) == (Reason.TOO_LARGE, "answers more than 1 MB")


def test_a_bound_that_can_be_raised_is_told_with_the_setting_that_does() -> None:
    bounds = replace(PATIENT, setting="scrape_body_bytes")
    assert refused(pours, bounds)[1] == "answers more than 1 MB, the setting scrape_body_bytes"


def test_an_answer_that_says_it_is_too_large_is_not_read() -> None:
    raw = http(b"", length=200_000_000)
    assert refused(says(raw))[0] is Reason.TOO_LARGE


def test_a_gzip_bomb_costs_a_step_over_the_bound() -> None:
    bomb = gzip.compress(bytes(200_000_000), 9)
    raw = http(bomb, "content-encoding: gzip")
    assert refused(says(raw))[0] is Reason.TOO_LARGE


@pytest.mark.parametrize(
    "raw",
    [
        http(gzip.compress(b"a 1\n" * 999)[:-9], "content-encoding: gzip"),
        http(b"no gzip", "content-encoding: gzip"),
        http(b"a 1\n", length=99),
        http(b"a 1\n", "content-encoding: br"),
        b"no HTTP at all\r\n\r\n",
        b"",
    ],
    ids=["cut gzip", "no gzip", "cut body", "other packing", "no HTTP", "nothing"],
)
def test_an_answer_that_breaks_off_is_broken(raw: bytes) -> None:
    assert refused(says(raw))[0] is Reason.BROKEN


def test_a_status_is_told_with_where_it_leads() -> None:
    raw = http(b"", "location: /login", status="302 Found")
    assert refused(says(raw)) == (Reason.STATUS, "answers HTTP 302 to /login")
    assert refused(says(http(b"", status="503 Busy"))) == (Reason.STATUS, "answers HTTP 503")


def test_https_needs_an_authority_that_is_trusted() -> None:
    authority = trustme.CA()
    certificate = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(certificate)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    async def run(trusted: ssl.SSLContext | None) -> bytes:
        answer = says(http(b"a 1\n"))
        async with listening(answer, certificate) as port, new_client(1, trusted) as client:
            return await fetch(client, f"https://127.0.0.1:{port}/metrics", Bounds())

    assert asyncio.run(run(trust)) == b"a 1\n"
    with pytest.raises(ScrapeError, match="can't connect: .*certificate") as told:
        asyncio.run(run(None))
    assert told.value.reason is Reason.CONNECT


def test_nobody_there_is_no_connection() -> None:
    async def run() -> None:
        async with new_client(1) as client:
            await fetch(client, "http://127.0.0.1:1/metrics", PATIENT)

    with pytest.raises(ScrapeError, match="can't connect") as told:
        asyncio.run(run())
    assert told.value.reason is Reason.CONNECT
