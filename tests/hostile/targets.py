"""Targets that go wrong, each on a port of its own in a thread, until they are told to be well."""

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.app.targets import saved
from tests.collector.scrape.answers import Answer, hangs, http, listening, says

GOOD: Final = http(saved("vllm-0.32.0"))
SERIES: Final = 10_000
_MB: Final = 1_000_000
_DEPTH: Final = b"vllm:num_requests_waiting"
_PREEMPTED: Final = b'vllm:num_preemptions_total{model_name="m%d"} %d\n'
CROWDED: Final = http(b"".join(_PREEMPTED % (i, i) for i in range(SERIES)))
"""A good answer of so many series."""


async def trickles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte of a good answer a second."""
    for byte in GOOD:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1.0)


async def pours(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """200 MB, and it does not say so before."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(200):
        writer.write(b"a 1\n" * (_MB // 4))
        await writer.drain()


@dataclass
class Bad:
    """A target that can go wrong. `named` is how the service says so."""

    answer: Answer
    named: str
    is_well: bool = True
    asked_s: list[float] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked_s.append(time.monotonic())
        await (says(GOOD) if self.is_well else self.answer)(reader, writer)


def of_every_kind(timeout_s: float) -> dict[str, Bad]:
    late = f": no whole answer within {timeout_s:g} s"
    large = ": answers more than 34 MB, the setting scrape_body_bytes"
    odd = " is read, but samples left out: "
    bomb = http(gzip.compress(bytes(200 * _MB), 9), "content-encoding: gzip")
    values = b'%s NaN\n%s{a="b"} +Inf\n%s{a="c"} 1.7e308\n' % (_DEPTH, _DEPTH, _DEPTH)
    twice = b"%s 1\n%s 1000000\n" % (_DEPTH, _DEPTH)
    label = b'%s{a="%s"} 1\n%s 2\n' % (_DEPTH, b"x" * _MB, _DEPTH)
    return {
        "hangs": Bad(hangs, late),
        "trickles": Bad(trickles, late),
        "pours": Bad(pours, large),
        "announces": Bad(says(http(b"", length=200 * _MB)), large),
        "bomb": Bad(says(bomb), large),
        "html": Bad(says(http(b"<!doctype html>")), ": answers HTML, not metrics: is the path"),
        "values": Bad(says(http(values)), odd + "infinite, or beyond 1e300 (2), not a number (1);"),
        "twice": Bad(says(http(twice)), odd + "same series twice (1);"),
        "label": Bad(says(http(label)), odd + "line over 64 KiB (1);"),
    }


@contextmanager
def listening_all(answers: Mapping[str, Answer]) -> Iterator[dict[str, str]]:
    """The `host:port` of each."""
    addresses: dict[str, str] = {}
    are_there, enough = threading.Event(), threading.Event()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            for name, answer in answers.items():
                port = await stack.enter_async_context(listening(answer))
                addresses[name] = f"127.0.0.1:{port}"
            are_there.set()
            while not enough.is_set():
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="targets")
    thread.start()
    are_there.wait()
    try:
        yield addresses
    finally:
        enough.set()
        thread.join()
