"""How fast the world runs: a fleet under a day's traffic, on one core.

    python -m bench.lab.world [--rate 500] [--minutes 10] [--seed 1] [--split]

Prints us a request and how many times faster than real time, scrapes included, beside a
loop over Python's own heap that only passes requests on. Requests are drawn before.
"""

import argparse
import heapq
import time
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from tailburn.lab.fleet import split, standard
from tailburn.lab.records import Requests
from tailburn.lab.workload.profiles import named
from tailburn.lab.workload.stream import Workload
from tailburn.lab.world.world import World

WARM_MINUTES = 2
MINUTE_NS = 60 * 10**9
WANTED = 20.0
"""Times faster than real time, at 500 req/s, telemetry included."""


def _passed_on(requests: Requests, events: int) -> float:
    """Seconds that a heap of Python's takes for as many events of each request."""
    begun = time.perf_counter()
    heap = [(int(at), i, 0) for i, at in enumerate(requests.arrival_ns)]
    heapq.heapify(heap)
    while heap:
        at, i, step = heapq.heappop(heap)
        if step < events:
            heapq.heappush(heap, (at + 1_000_000 * (1 + i % 7), i, step + 1))
    return time.perf_counter() - begun


def _world_of(workload: Workload, per_s: float, seed: int, halves: bool) -> World:
    clients = workload.clients
    make = split if halves else standard
    return World(make(per_s, clients=len(clients.names), routes=clients.routes), seed)


def measure(per_s: float, minutes: int, seed: int, halves: bool) -> Iterable[tuple[str, float]]:
    """(what, seconds) of a run after a warm-up, then of what is beside it."""
    workload = Workload(named("azure-conv"), seed=seed, per_s=per_s)
    world = _world_of(workload, per_s, seed, halves)
    stream = workload.minutes(0, WARM_MINUTES + minutes)
    running = 0.0
    told = sampled = 0
    fed: list[Requests] = []
    for minute in range(WARM_MINUTES + minutes):
        requests = next(stream)
        begun = time.perf_counter()
        world.feed(requests)
        attempts = world.advance((minute + 1) * MINUTE_NS)
        samples = world.samples((minute + 1) * MINUTE_NS)
        ran = time.perf_counter()
        if minute >= WARM_MINUTES:
            running += ran - begun
            told, sampled = told + len(attempts), sampled + len(samples)
            fed.append(requests)
    table = Requests.join(fed)
    events = round(world.counts["events"] / world.counts["requests"])
    yield "requests", float(len(table))
    yield "attempts told", float(told)
    yield "scrapes", float(sampled)
    yield "events a request", float(events)
    yield "world", running
    yield "Python's heap, passing on", _passed_on(table, events)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rate", type=float, default=500.0, help="req/s of the mean")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--split", action="store_true", help="prefill and decode apart")
    asked = parser.parse_args()
    found = dict(measure(asked.rate, asked.minutes, asked.seed, asked.split))
    count, span = found["requests"], asked.minutes * 60.0
    title = (
        f"{count:.0f} requests in {asked.minutes} min ({count / span:.0f} req/s), "
        f"{found['attempts told']:.0f} attempts, {found['scrapes']:.0f} scrapes, "
        f"{found['events a request']:.0f} events a request"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    for name in ("", "s", "us a request", "x real time"):
        table.add_column(name, justify="right" if name else "left")
    for name in ("world", "Python's heap, passing on"):
        took = found[name]
        table.add_row(name, f"{took:.2f}", f"{took / count * 1e6:.1f}", f"{span / took:.0f}")
    console = Console(width=100)
    console.print(table)
    console.print(f"wanted: {WANTED:.0f} x real time at 500 req/s, telemetry included")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
