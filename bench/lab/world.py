"""How fast a fleet runs, with and without what it tells: a day's traffic, on one core.

    python -m bench.lab.world [--rate 500] [--minutes 10] [--seed 1] [--split]

CPU seconds of the same minutes: drawing the traffic, the world with its scrapes, the spans as
OTLP bodies, the text of every target's /metrics at every scrape. Beside them a loop over
Python's own heap that only passes requests on, and protobuf writing the same bodies.
"""

import argparse
import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich import box
from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from tailburn.lab.fleet import split, standard
from tailburn.lab.records import Requests
from tailburn.lab.telemetry.metrics import MetricsText
from tailburn.lab.telemetry.spans import SpanTelemetry
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload.profiles import named
from tailburn.lab.workload.stream import Workload
from tailburn.lab.world.world import World

WARM_MINUTES: Final = 2
MINUTE_NS: Final = 60 * 10**9
HOLD_NS: Final = 20 * 10**9
"""Spans and scrapes come out so much behind the world."""
WANTED: Final = 20.0
"""Times faster than real time, at 500 req/s, telemetry included."""
MOST_KEPT: Final = 64 << 20
"""Bytes of bodies that protobuf writes again."""

TRAFFIC, WORLD, SPANS, METRICS = "traffic", "world", "spans", "metrics"
STAGES: Final = (TRAFFIC, WORLD, SPANS, METRICS)


@dataclass
class Measured:
    """A run's counts, and CPU seconds of each stage after the warm-up."""

    per_s: float
    span_s: float
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    heap_s: float = 0.0
    protobuf_share: float = 0.0
    """CPU that protobuf takes to write the same bodies, over that of the stage `spans`."""

    def times_real(self, *stages: str) -> float:
        """Simulated seconds a CPU second of these stages, at the mean rate asked for."""
        return self.times(sum(self.cpu_s[stage] for stage in stages))

    def times(self, cpu_s: float) -> float:
        """The same of so many CPU seconds for all requests."""
        return self.counts["requests"] / cpu_s / self.per_s


def _passed_on(requests: Requests, events: int) -> float:
    """CPU seconds that a heap of Python's takes for as many events of each request."""
    begun = time.process_time()
    heap = [(int(at), i, 0) for i, at in enumerate(requests.arrival_ns)]
    heapq.heapify(heap)
    while heap:
        at, i, step = heapq.heappop(heap)
        if step < events:
            heapq.heappush(heap, (at + 1_000_000 * (1 + i % 7), i, step + 1))
    return time.process_time() - begun


def _written_again(bodies: list[bytes]) -> float:
    """CPU seconds of protobuf (upb) to write bodies that it has read."""
    read = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    begun = time.process_time()
    for message in read:
        message.SerializeToString()
    return time.process_time() - begun


class _Run:
    """One fleet under traffic, a minute at a time."""

    def __init__(self, per_s: float, seed: int, halves: bool) -> None:
        self.workload = Workload(named("azure-conv"), seed=seed, per_s=per_s)
        clients = self.workload.clients
        make = split if halves else standard
        fleet = make(per_s, clients=len(clients.names), routes=clients.routes)
        wiring = wiring_of(fleet)
        self.world = World(fleet, seed)
        self.spans = SpanTelemetry(wiring, seed=seed, hold_ns=HOLD_NS)
        self.metrics = MetricsText(fleet, wiring, hold_ns=HOLD_NS)
        self.fed: list[Requests] = []
        self.kept: list[bytes] = []

    def minute(self, found: Measured, stream: Iterator[Requests]) -> None:
        """One minute through every stage."""
        clock = [time.process_time()]

        def done(stage: str) -> None:
            clock.append(time.process_time())
            found.cpu_s[stage] += clock[-1] - clock[-2]

        requests = next(stream)
        done(TRAFFIC)
        until = self.world.now_ns + MINUTE_NS
        self.world.feed(requests)
        attempts, samples = self.world.advance(until), self.world.samples(until)
        done(WORLD)
        before = self.spans.spans
        bodies = [body for _, body in self.spans.feed(attempts, until)]
        done(SPANS)
        scrapes = self.metrics.feed(attempts, samples, until)
        pages = [scrapes.text(t, row) for row in range(len(scrapes)) for t in scrapes.targets]
        done(METRICS)
        self.fed.append(requests)
        if sum(map(len, self.kept)) < MOST_KEPT:
            self.kept += bodies
        found.counts.update(
            requests=len(requests),
            attempts=len(attempts),
            scrapes=len(samples),
            spans=self.spans.spans - before,
            span_bytes=sum(len(body) for body in bodies),
            pages=sum(page is not None for page in pages),
            page_bytes=sum(len(page or b"") for page in pages),
        )


def measure(per_s: float, minutes: int, seed: int, halves: bool = False) -> Measured:
    """A run after a warm-up, then what is beside it."""
    run = _Run(per_s, seed, halves)
    stream = iter(run.workload.minutes(0, WARM_MINUTES + minutes))
    warm = Measured(per_s, WARM_MINUTES * 60.0)
    for _ in range(WARM_MINUTES):
        run.minute(warm, stream)
    run.fed.clear()
    run.kept.clear()
    found = Measured(per_s, minutes * 60.0)
    for _ in range(minutes):
        run.minute(found, stream)
    # Traffic is drawn for several minutes at once.
    drawn = found.cpu_s[TRAFFIC] + warm.cpu_s[TRAFFIC]
    share = found.counts["requests"] / (found.counts["requests"] + warm.counts["requests"])
    found.cpu_s[TRAFFIC] = drawn * share
    counts = run.world.counts
    found.counts["events a request"] = round(counts["events"] / counts["requests"])
    found.heap_s = _passed_on(Requests.join(run.fed), found.counts["events a request"])
    share = sum(map(len, run.kept)) / found.counts["span_bytes"]
    found.protobuf_share = _written_again(run.kept) / share / found.cpu_s[SPANS]
    return found


def figures(per_s: float = 500.0, minutes: int = 3, seed: int = 1) -> Iterator[Figure]:
    """The lab's own speed for the table of all figures."""
    found = measure(per_s, minutes, seed)
    yield Figure(
        f"lab: a fleet at {per_s:.0f} req/s, without telemetry",
        [found.times_real(WORLD)], "x real time", found.times(found.heap_s),
        "Python's heap passing requests on",
    )  # fmt: skip
    yield Figure(
        "lab: the same, spans and /metrics included",
        [found.times_real(*STAGES)], "x real time", WANTED, "what is asked for, one core",
    )  # fmt: skip
    spans = found.counts["spans"] / found.cpu_s[SPANS]
    yield Figure(
        "lab: spans made and written as OTLP", [spans], "spans/cpu-s",
        spans / found.protobuf_share, "protobuf writing the same bodies",
    )  # fmt: skip


def _table(found: Measured) -> Table:
    counts = found.counts
    title = (
        f"{counts['requests']:,} requests in {found.span_s / 60:.0f} min, "
        f"{counts['events a request']} events a request; times real time at {found.per_s:.0f} req/s"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    for name in ("", "cpu s", "us a request", "x real time", "what"):
        table.add_column(name, justify="left" if name in ("", "what") else "right")
    what = {
        TRAFFIC: "requests drawn",
        WORLD: f"{counts['attempts']:,} attempts, {counts['scrapes']} scrapes",
        SPANS: f"{counts['spans']:,} spans, {counts['span_bytes'] / 1e6:.0f} MB",
        METRICS: f"{counts['pages']:,} pages, {counts['page_bytes'] / 1e6:.0f} MB",
    }
    rows = [(stage, found.cpu_s[stage], what[stage]) for stage in STAGES]
    rows.append(("all of it", sum(found.cpu_s.values()), ""))
    rows.append(("Python's heap", found.heap_s, "passes as many events on"))
    again = found.protobuf_share * found.cpu_s[SPANS]
    rows.append(("protobuf (upb)", again, "writes the same bodies"))
    for name, took, told in rows:
        each = f"{took / counts['requests'] * 1e6:.1f}"
        table.add_row(name, f"{took:.2f}", each, f"{found.times(took):.0f}", told)
    return table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=500.0, help="req/s of the mean")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", action="store_true", help="prefill and decode apart")
    asked = parser.parse_args()
    found = measure(asked.rate, asked.minutes, asked.seed, asked.split)
    console = Console(width=110)
    console.print(_table(found))
    console.print(f"wanted: {WANTED:.0f} x real time at 500 req/s, telemetry included")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
