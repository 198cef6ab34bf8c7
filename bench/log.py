"""What durability costs: the log, the intake in front of it, and reading it back.

python -m bench.log [--bodies 64] [--repeats 5]

Beside each figure stands the same bytes written and synced without a frame around them.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from bench.bodies import START_NS, bodies
from bench.decode import WANTED
from bench.figures import Figure, show
from tailburn.collector.accept import Encoding, Signal
from tailburn.collector.intake import Intake
from tailburn.collector.log import Entry, Kind, LogReader, open_log
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.recovery import Replay


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    cpu_s: float
    wall_s: float

    def us(self, spans: int) -> float:
        """CPU microseconds a span."""
        return self.cpu_s / spans * 1e6


def cost(run: Callable[[], object], repeats: int) -> Cost:
    """The median of some runs."""
    found = []
    for _ in range(repeats):
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        run()
        found.append((time.process_time() - cpu_s, time.perf_counter() - wall_s))
    return Cost(*(statistics.median(column) for column in zip(*found, strict=True)))


def groups(data: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    for i in range(0, len(data), size):
        yield data[i : i + size]


def plain(folder: Path, data: Sequence[bytes], group: int) -> Callable[[], None]:
    """The baseline: the bodies as they are, one write and one sync a group."""
    path = folder / "plain"

    def run() -> None:
        fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        for some in groups(data, group):
            os.writev(fd, some)
            os.fdatasync(fd)
        os.close(fd)

    return run


def logged(folder: Path, data: Sequence[bytes], group: int, compress: bool) -> Callable[[], None]:
    """The log: framed and with a checksum."""
    writer = open_log(folder / f"log-{group}-{compress}").writer

    def run() -> None:
        for some in groups(data, group):
            entries = [Entry(Kind.TRACES, START_NS, "default", body) for body in some]
            writer.append(entries, compress)
        writer.trim(writer.next_position)

    return run


def taken(folder: Path, data: Sequence[bytes], senders: int) -> tuple[Cost, list[float]]:
    """The whole intake: decoded, logged, acknowledged. Also the seconds to each ack."""
    writer = open_log(folder / f"intake-{senders}").writer
    intake = Intake(writer, Decoder(WANTED), _no_json, _no_points)
    waits: list[float] = []
    rest = iter(data)

    async def sender() -> None:
        for body in rest:
            began = time.perf_counter()
            await intake(Signal.TRACES, Encoding.PROTOBUF, bytearray(body), "default", START_NS)
            waits.append(time.perf_counter() - began)
            while not intake.deliveries.empty():
                intake.consumed(intake.deliveries.get() or _ended())

    async def all_senders() -> None:
        await asyncio.gather(*(sender() for _ in range(senders)))

    found = cost(lambda: asyncio.run(all_senders()), 1)
    intake.close()
    writer.close()
    return found, sorted(waits)


def read_back(folder: Path) -> int:
    """Everything in a log as columns; the number of spans."""
    replay = Replay(LogReader(folder), Decoder(WANTED), _no_points)
    return sum(len(delivery.batch) for delivery in replay)


def _no_json(body: bytearray) -> Never:
    raise AssertionError("no JSON here")


def _no_points(body: bytearray, encoding: Encoding, *, received_ns: int, tenant: str) -> Never:
    raise AssertionError("no metrics here")


def _ended() -> Never:
    raise AssertionError("the intake ended early")


def figures(count: int = 64, repeats: int = 5, disk: Path | None = None) -> Iterator[Figure]:
    """Of bodies as a collector sends them, and of those of a sender that does not batch."""
    for spans, bodies_ in ((512, count), (8, 10 * count)):
        with tempfile.TemporaryDirectory(dir=disk) as folder:
            yield from _figures(Path(folder), spans, bodies(bodies_, spans), repeats)


def _figures(folder: Path, spans: int, data: list[bytes], repeats: int) -> Iterator[Figure]:
    total = spans * len(data)
    for group in (1, 8):
        bare = cost(plain(folder, data, group), repeats).us(total)
        for name, compress in (("raw", False), ("zstd", True)):
            framed = cost(logged(folder, data, group, compress), repeats).us(total)
            what = f"log, {name}, {spans} spans a body, {group} a sync"
            yield Figure(what, [framed], "us CPU/span", bare, "written without frames", True)
    for senders in (1, 16):
        whole, waits = taken(folder, data * repeats, senders)
        what = f"intake, {spans} spans a body, {senders} senders"
        yield Figure(what, [whole.us(total * repeats)], "us CPU/span")
        for name, q in (("p50", 0.5), ("p99", 0.99)):
            yield Figure(f"{what}, ack {name}", [waits[int(len(waits) * q)] * 1e3], "ms")
    again = cost(lambda: read_back(folder / "intake-16"), repeats)
    rate = total * repeats / again.wall_s
    yield Figure(f"read the log back, {spans} spans a body", [rate], "spans/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to be tried")
    arguments = parser.parse_args()
    show(list(figures(arguments.bodies, arguments.repeats, arguments.folder)))


if __name__ == "__main__":
    main()
