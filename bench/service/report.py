"""The figures of the whole service, in the order in which they are measured."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.figures import Figure
from bench.service import opened
from bench.service.peer import CannotRun, peer
from bench.service.running import BASELINE
from bench.service.sending import Run, measure, receive_only

TOOLS: Final = Path(".make")

_RATE: Final = "spans/cpu-s"
_OVERLOAD: Final = 2.0
_LONG: Final = 4  # times as long as the others
_OVERLOAD_CONNECTIONS: Final = 64
_MB: Final = 1e6


class WrongResult(Exception):
    """What was measured did not do its work: the figure would mean nothing."""


def figures(seconds: float, repeats: int) -> tuple[list[Figure], list[str]]:
    """Figures and notes. Raises WrongResult where an acknowledged span is not in the store."""
    found: list[Figure] = []
    notes: list[str] = []
    with _folder() as folder:
        # Memory is flat only once the table of open and of lately closed requests is full.
        long = _sound(measure(folder, _LONG * seconds))
        runs = [long, *(_sound(measure(folder, seconds)) for _ in range(repeats - 1))]
        plain = _sound(measure(folder, seconds, module=BASELINE))
        found += _whole(runs, plain.spans_per_cpu_s)
        try:
            with peer(TOOLS) as (process, port):
                rate = receive_only(process, port, seconds)
            found.append(_beside_peer(runs, rate))
        except CannotRun as error:
            notes.append(f"rotel: {error}")
        held = sorted(run.outcome.spans_per_s for run in runs)[len(runs) // 2]
        found += _overload(folder, seconds, held)
        found += _smaller(folder, seconds)
    return found + open_requests(), notes


def open_requests() -> list[Figure]:
    """What a request costs beside few and many open ones."""
    few, *more = ((n, opened.cost_us(n)) for n in opened.OPEN_REQUESTS)
    rows = [Figure(_beside(few[0]), [few[1]], "us CPU a request")]
    return rows + [
        Figure(_beside(n), [cost], "us CPU a request", few[1], _beside(few[0]), True)
        for n, cost in more
    ]


def _whole(runs: list[Run], plain: float) -> list[Figure]:
    rates = [run.spans_per_cpu_s for run in runs]
    return [
        Figure("HTTP to durable rows, 512 spans a body", rates, _RATE, plain,
               "protobuf's decoder and Python loops, same server, log and store"),
        Figure("memory, growth from the second third of a long run to the last",
               [100 * runs[0].growth_ratio], "%"),
        Figure("memory, peak of a long run", [runs[0].peak_bytes / _MB], "MB"),
    ]  # fmt: skip


def _beside_peer(runs: list[Run], rate: float) -> Figure:
    return Figure(
        "the same beside a peer that keeps nothing",
        [run.spans_per_cpu_s for run in runs], _RATE, rate,
        "rotel 0.0.1a15 into its blackhole: receives and decodes only",
    )  # fmt: skip


def _overload(folder: Path, seconds: float, held_spans_per_s: float) -> list[Figure]:
    """Twice what it holds, whatever it answers."""
    rate = _OVERLOAD * held_spans_per_s / 512
    run = _sound(
        measure(folder, seconds, flags=("--rate", rate, "--connections", _OVERLOAD_CONNECTIONS))
    )
    outcome = run.outcome
    if outcome.without_retry_after:
        raise WrongResult(f"{outcome.without_retry_after} refusals without Retry-After")
    answers = outcome.refused + outcome.statuses.get("200", 0)
    said = f"at {_OVERLOAD:g} times the rate it holds"
    return [
        Figure(f"ack p50, {said}", [outcome.ack_s(0.5) * 1e3], "ms"),
        Figure(f"ack p99, {said}", [outcome.ack_s(0.99) * 1e3], "ms"),
        Figure(f"sender behind its schedule, p99, {said}", [outcome.late_s(0.99) * 1e3], "ms"),
        Figure(f"bodies refused with Retry-After, {said}", [100 * outcome.refused / answers], "%"),
        Figure(f"memory, peak, {said}", [run.peak_bytes / _MB], "MB"),
        Figure(f"acknowledged spans lost, {said}", [run.lost_spans]),
    ]


def _smaller(folder: Path, seconds: float) -> list[Figure]:
    large = "512 spans a body over HTTP"
    grpc = _sound(measure(folder, seconds, flags=("--grpc",)))
    small = _sound(measure(folder, seconds, spans=8))
    small_grpc = _sound(measure(folder, seconds, spans=8, flags=("--grpc",)))
    return [
        Figure(f"{name} to durable rows", [run.spans_per_cpu_s], _RATE)
        for name, run in (
            (large.replace("HTTP", "gRPC"), grpc),
            ("8 spans a body over HTTP", small),
            ("8 spans a body over gRPC", small_grpc),
        )
    ]


def _sound(run: Run) -> Run:
    if run.lost_spans or run.balance["stored"] != run.balance["received"]:
        said = f"{run.outcome.acknowledged_spans} acknowledged, balance {run.balance}"
        raise WrongResult(said)
    if not run.requests:
        raise WrongResult("no request in the store")
    return run


def _beside(open_requests: int) -> str:
    return f"a request beside {open_requests:,} open ones"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        yield Path(folder)
