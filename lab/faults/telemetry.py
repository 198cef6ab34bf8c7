"""Faults of telemetry: what is told is wrong, late, twice or lost; the fleet itself is well.

    tell = SpanTelemetry(wiring, ...)
    broken = SpanFaults(faults, fleet, seed)
    broken.set_up(tell)                                # clocks and losses
    for arrival_ns, body in broken.of(tell.feed(attempts, until_ns)):
        ...                                            # late and twice, in order of arrival
    scrapes = ScrapeFaults(faults, seed)
    scrapes.answers(target, at_ns)                     # how late; None: no answer
    scrapes.text(target, at_ns, text)                  # counters begun anew, gauges stuck

The kinds are `KINDS`. Where nothing is broken, everything passes through as it came.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from types import MappingProxyType
from typing import Final, Protocol

from tailburn.lab.faults.scenario import FaultError, TelemetryFault
from tailburn.lab.fleet import Fleet
from tailburn.lab.nearest import did_you_mean
from tailburn.lab.telemetry.spans import Body, SpanTelemetry, ids

SCRAPE_TIMEOUT_S: Final = 10.0
"""An answer later than this is none: Prometheus's default `scrape_timeout`."""
FOREVER_NS: Final = 1 << 62
DUPLICATE_LATER_NS: Final = 1_500_000_000
"""A body whose acknowledgement was lost is sent again after the exporter's first back-off."""


@dataclass(frozen=True)
class TelemetryKind:
    """What a kind of telemetry fault does; `value` lies in [low, high]."""

    unit: str
    low: float
    high: float
    of: str
    """What it happens to: `host`, `spans` or `target`."""
    meaning: str


KINDS: Final[Mapping[str, TelemetryKind]] = MappingProxyType(
    {
        "clock_skew": TelemetryKind("s", -3600.0, 3600.0, "host", "its clock is ahead by this"),
        "span_loss": TelemetryKind("share", 0.0, 1.0, "spans", "spans lost on their way"),
        "body_twice": TelemetryKind("share", 0.0, 1.0, "spans", "bodies that arrive twice"),
        "body_late": TelemetryKind(
            "s", 0.0, 3600.0, "spans", "mean of an exponential delay of bodies"
        ),
        "scrape_gap": TelemetryKind("share", 0.0, 1.0, "target", "scrapes without an answer"),
        "scrape_late": TelemetryKind(
            "s", 0.0, 3600.0, "target", "mean of an exponential delay of answers"
        ),
        "counter_reset": TelemetryKind(
            "0/1", 1.0, 1.0, "target", "its counters begin anew at the start, its process does not"
        ),
        "kv_stuck": TelemetryKind("ratio", 0.0, 1.0, "target", "its KV usage shows this, always"),
    }
)

KV_USAGE: Final = (
    b"vllm:kv_cache_usage_perc",
    b"vllm:gpu_cache_usage_perc",
    b"sglang:token_usage",
    b"sglang:full_token_usage",
    b"trtllm_kv_cache_utilization",
    b"dynamo_component_kvstats_gpu_cache_usage_percent",
    b"dynamo_component_gpu_cache_usage_percent",
)
"""Names of engines' gauges of the share of KV blocks in use; Triton has it under a label alone."""
COUNTER_ENDINGS: Final = (b"_total", b"_count", b"_sum", b"_bucket")


class ScrapeTarget(Protocol):
    """What is scraped: `kind` engine, gateway, dcgm, nccl or node."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def host(self) -> str: ...


def check_telemetry(faults: Iterable[TelemetryFault]) -> None:
    """FaultError for a kind that there is not, or a value that it does not take."""
    for fault in faults:
        if fault.kind not in KINDS:
            raise FaultError(
                f"no telemetry fault {fault.kind!r}; {did_you_mean(fault.kind, sorted(KINDS))}"
            )
        kind = KINDS[fault.kind]
        if not kind.low <= fault.value <= kind.high:
            raise FaultError(
                f"{fault.kind} = {fault.value:g}: want {kind.low:g} to {kind.high:g} ({kind.unit})"
            )
        if not fault.start_ns < fault.end_ns:
            raise FaultError(
                f"{fault.kind}: ends at {fault.end_ns} ns, not after {fault.start_ns} ns"
            )
        if kind.of == "spans" and fault.scope != "all":
            raise FaultError(f"{fault.kind}: scope {fault.scope!r}; want all")


class SpanFaults:
    """Telemetry faults of spans, for one run of a fleet. Seeded: the same bodies each time."""

    def __init__(self, faults: Sequence[TelemetryFault], fleet: Fleet, seed: int) -> None:
        check_telemetry(faults)
        self._faults = tuple(faults)
        self._hosts = {host.name: host.zone for host in fleet.hosts}
        self._seed = ids.mix(ids.label(f"telemetry {seed}"))
        self._late = [f for f in faults if f.kind == "body_late"]
        self._twice = [f for f in faults if f.kind == "body_twice"]
        self._waiting: list[tuple[int, int, bytes]] = []
        self._seen = 0
        for fault in faults:
            if KINDS[fault.kind].of == "host":
                self._hosts_in(fault.scope)

    def set_up(self, spans: SpanTelemetry) -> None:
        """Tell the exporters of clocks and losses; before their first spans."""
        skews = [f for f in self._faults if f.kind == "clock_skew"]
        for at_ns in _edges(skews):
            for host in self._hosts:
                ahead_s = sum(
                    f.value for f in skews if _on(f, at_ns) and host in self._hosts_in(f.scope)
                )
                spans.set_clock_offset(host, round(ahead_s * 1e9), at_ns)
        losses = [f for f in self._faults if f.kind == "span_loss"]
        for at_ns in _edges(losses):
            kept = 1.0
            for fault in losses:
                kept *= 1.0 - fault.value if _on(fault, at_ns) else 1.0
            spans.set_loss(1.0 - kept, at_ns)

    def of(self, bodies: Iterable[Body]) -> Iterator[Body]:
        """Bodies as they arrive now, in order: some later than they would, some twice."""
        if not self._late and not self._twice:
            yield from bodies
            return
        for arrival_ns, body in bodies:
            yield from self._until(arrival_ns)
            self._take(arrival_ns, body)
        # What waits stays: an earlier body may be among those that the next call brings.

    def finish(self) -> Iterator[Body]:
        """What still is under way."""
        yield from self._until(None)

    def _take(self, arrival_ns: int, body: bytes) -> None:
        late_ns = sum(
            int(f.value * 1e9 * self._exponential("late", i))
            for i, f in enumerate(self._late)
            if _on(f, arrival_ns)
        )
        heapq.heappush(self._waiting, (arrival_ns + late_ns, self._seen, body))
        self._seen += 1
        for i, fault in enumerate(self._twice):
            if _on(fault, arrival_ns) and self._chance("twice", i) < fault.value:
                again_ns = arrival_ns + late_ns + DUPLICATE_LATER_NS
                heapq.heappush(self._waiting, (again_ns, self._seen, body))
                self._seen += 1

    def _until(self, now_ns: int | None) -> Iterator[Body]:
        while self._waiting and (now_ns is None or self._waiting[0][0] <= now_ns):
            arrival_ns, _, body = heapq.heappop(self._waiting)
            yield arrival_ns, body

    def _chance(self, what: str, number: int) -> float:
        key = ids.label(f"{what} {number} {self._seen}") ^ self._seed
        return float(ids.chance(ids.mix(key), what))

    def _exponential(self, what: str, number: int) -> float:
        return _exponential_of(self._chance(what, number))

    def _hosts_in(self, scope: str) -> list[str]:
        what, _, name = scope.rpartition(":")
        if scope == "all":
            return list(self._hosts)
        if what == "zone" and name in self._hosts.values():
            return [host for host, zone in self._hosts.items() if zone == name]
        if what in ("", "host") and name in self._hosts:
            return [name]
        raise FaultError(
            f"clock_skew: scope {scope!r}; want all, host:NAME or zone:NAME of "
            f"{', '.join([*self._hosts, *sorted(set(self._hosts.values()))])}"
        )


class ScrapeFaults:
    """Telemetry faults of scrapes. Targets are named by `all`, `kind:K`, `host:H` or their name.

    A counter that began anew is shown less what it was at the last scrape before that, until a
    true restart makes it lower than it was. Scrapes before a reset must be seen before it.
    """

    def __init__(self, faults: Sequence[TelemetryFault], seed: int) -> None:
        check_telemetry(faults)
        self._faults = [f for f in faults if KINDS[f.kind].of == "target"]
        self._resets = sorted(
            {(f.start_ns, f.scope) for f in self._faults if f.kind == "counter_reset"}
        )
        self._seed = ids.mix(ids.label(f"scrapes {seed}"))
        self._last: dict[tuple[str, bytes], tuple[int, float]] = {}
        self._was: dict[tuple[str, bytes, int], tuple[float, int]] = {}
        """By target, series and reset: what it was, and when a true restart ended that."""

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._faults)

    def answers(self, target: ScrapeTarget, at_ns: int) -> float | None:
        """By how many seconds the answer to a scrape is late; None: there is none."""
        late_s = 0.0
        for number, fault in enumerate(self._faults):
            if not _on(fault, at_ns) or not _is_meant(fault.scope, target):
                continue
            key = ids.mix(ids.label(f"{target.name} {number} {at_ns}") ^ self._seed)
            drawn = float(ids.chance(key, "scrape"))
            if fault.kind == "scrape_gap" and drawn < fault.value:
                return None
            if fault.kind == "scrape_late":
                late_s += fault.value * _exponential_of(drawn)
        return late_s if late_s < SCRAPE_TIMEOUT_S else None

    def text(self, target: ScrapeTarget, at_ns: int, text: bytes) -> bytes:
        """What a target shows at an instant, as its faults have it."""
        stuck, resets = self._stuck(target, at_ns), self._resets_of(target)
        if stuck is None and not resets:
            return text
        lines = text.split(b"\n")
        counters = _counter_names(lines)
        for i, line in enumerate(lines):
            if not line or line[:1] == b"#":
                continue
            series, _, value = line.rpartition(b" ")
            name = series.partition(b"{")[0]
            if stuck is not None and name in KV_USAGE:
                lines[i] = series + b" %g" % stuck
            elif resets and _is_counter(name, counters):
                shown = self._since(target, at_ns, series, float(value), resets)
                lines[i] = series + b" " + _number(shown)
        return b"\n".join(lines)

    def value(
        self, target: ScrapeTarget, at_ns: int, name: str, labels: str, value: float, counter: bool
    ) -> float:
        """One series' value, as its faults have it."""
        series = name.encode()
        if not counter:
            stuck = self._stuck(target, at_ns) if series in KV_USAGE else None
            return value if stuck is None else stuck
        resets = self._resets_of(target)
        if not resets:
            return value
        return self._since(target, at_ns, series + labels.encode(), value, resets)

    def touches(self, target: ScrapeTarget, name: str, counter: bool) -> bool:
        """Whether `value` may change a series at all, at any time."""
        if counter:
            return bool(self._resets_of(target))
        return name.encode() in KV_USAGE and any(
            f.kind == "kv_stuck" and _is_meant(f.scope, target) for f in self._faults
        )

    def _since(
        self, target: ScrapeTarget, at_ns: int, series: bytes, value: float, resets: Sequence[int]
    ) -> float:
        """A counter since the last reset before `at_ns`; as it is where there was none."""
        begun = [start_ns for start_ns in resets if start_ns <= at_ns]
        key = target.name, series
        if at_ns < resets[-1] and at_ns >= self._last.get(key, (-1, 0.0))[0]:
            self._last[key] = at_ns, value
        if not begun:
            return value
        reset = *key, begun[-1]
        if reset not in self._was:
            before = self._last.get(key)
            was = before[1] if before is not None and before[0] < begun[-1] else value
            self._was[reset] = was, FOREVER_NS
        was, until_ns = self._was[reset]
        if value < was and at_ns < until_ns:
            self._was[reset] = was, at_ns
            until_ns = at_ns
        return value - was if at_ns < until_ns else value

    def _stuck(self, target: ScrapeTarget, at_ns: int) -> float | None:
        for fault in self._faults:
            if fault.kind == "kv_stuck" and _on(fault, at_ns) and _is_meant(fault.scope, target):
                return fault.value
        return None

    def _resets_of(self, target: ScrapeTarget) -> list[int]:
        """When a target's counters begin anew, in order."""
        return [start_ns for start_ns, scope in self._resets if _is_meant(scope, target)]


def _on(fault: TelemetryFault, at_ns: int) -> bool:
    return fault.start_ns <= at_ns < fault.end_ns


def _edges(faults: Sequence[TelemetryFault]) -> list[int]:
    return sorted({at for fault in faults for at in (fault.start_ns, fault.end_ns)})


def _number(value: float) -> bytes:
    """As expositions write it: whole numbers without a fraction where they are exact."""
    return b"%.1f" % value if value == int(value) and abs(value) < 1e15 else b"%.17g" % value


def _exponential_of(drawn: float) -> float:
    return -log1p(-drawn)


def _is_meant(scope: str, target: ScrapeTarget) -> bool:
    what, _, name = scope.rpartition(":")
    if scope == "all":
        return True
    if what == "kind":
        return target.kind == name
    if what == "host":
        return target.host == name
    return what in ("", "target") and target.name == name


def _counter_names(lines: Sequence[bytes]) -> set[bytes]:
    """Names that a `# TYPE` line calls counter or histogram or summary."""
    found = set()
    for line in lines:
        if line.startswith(b"# TYPE "):
            _, _, name, kind = line.split(b" ", 3)
            if kind.strip() in (b"counter", b"histogram", b"summary"):
                found.add(name)
    return found


def _is_counter(name: bytes, counters: set[bytes]) -> bool:
    if name in counters:
        return True
    for ending in COUNTER_ENDINGS:
        if name.endswith(ending) and (name[: -len(ending)] in counters or ending == b"_total"):
            return True
    return False
