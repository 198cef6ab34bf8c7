"""A service in small that another process kills: recovers, takes bodies, tells what was acked."""

import asyncio
import random
import time
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

from tailburn.collector.accept import Encoding, Signal
from tailburn.collector.intake import Intake
from tailburn.collector.keeper import Cadence
from tailburn.collector.log import Bounds, lock_store
from tailburn.collector.recovery import recover
from tailburn.engine.store.parquet import ParquetStore
from tests.collector.support import ClosingPipeline, body, convert, decoder, points

# Everything that a kill may hit happens many times a second.
CADENCE = Cadence(
    publish_s=0.05, publish_rows=400, snapshot_s=0.1, snapshot_bytes=200_000, snapshot_rest=0
)
BOUNDS = Bounds(segment_bytes=64_000, max_bytes=64_000_000)
SENDERS = 8


def now_ns() -> int:
    """Time runs twenty times faster than outside, so that spans close while more come."""
    return time.monotonic_ns() * 20


async def load(intake: Intake, first_id: int, tell: Connection) -> None:
    """Bodies of one to forty spans from several senders, as fast as they are acknowledged."""
    ids, rng = count(first_id), random.Random(first_id)

    async def sender() -> None:
        while not tell.poll():
            own = [next(ids) for _ in range(rng.choice((1, 2, 8, 40)))]
            padding = 70_000 if own[0] % 50 == 0 else 0
            data = body(own, padding)
            await intake(Signal.TRACES, Encoding.PROTOBUF, data, "acme", now_ns())
            tell.send_bytes(" ".join(map(str, own)).encode())

    await asyncio.gather(*(sender() for _ in range(SENDERS)))


def live(folder: Path, first_id: int, tell: Connection) -> None:
    """Tells the number of records worked through again, then the ids of each acknowledged body.

    Anything sent to it ends it in good order. What it tells goes out in one write each, so a
    kill never leaves half of it.
    """
    lock_store(folder, time.time_ns())
    store = ParquetStore(folder)
    collected = recover(folder, store, ClosingPipeline.restore, points, BOUNDS, CADENCE)
    intake = Intake(collected.writer, collected.decoder, convert, points)
    collected.keeper.start(intake, now_ns)
    tell.send_bytes(str(collected.recovered.records).encode())
    asyncio.run(load(intake, first_id, tell))
    intake.tick(now_ns(), closes_all=True)
    intake.close()
    collected.keeper.wait()
    assert collected.keeper.trouble is None, collected.keeper.trouble


# Once, in the process that all lives are forked from: loads what is compiled.
decoder().add(body([1]), received_ns=0, tenant="")
