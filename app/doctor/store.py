"""The store: who holds it, what came in lately, and what is missing in it."""

import fcntl
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.opening import store_of
from tailburn.app.settings import Settings
from tailburn.collector.log.lock import holder_of
from tailburn.engine.names import VANTAGES
from tailburn.engine.store.api import Store, StoreError, Window

LATELY_NS = 3_600_000_000_000
_UNRECOGNISED_WARN_RATIO = 0.05

_MISSING = {
    "client": "no caller sends spans: instrument the client (OpenTelemetry GenAI or OpenInference)",
    "gateway": "the gateway sends no spans, or its hop is not recognised: see `tailburn hops "
    "explain TRACE`",
    "engine": "the engine sends no spans: vLLM wants --otlp-traces-endpoint, SGLang --enable-trace",
}


def lock(settings: Settings) -> Iterator[Finding]:
    """Whether a service runs on this store."""
    if is_held(settings.store):
        seen = f"held by {holder_of(settings.store) or 'a process'}"
    elif (settings.store / "lock").exists():
        seen = "free: no service runs on this store"
    else:
        seen = "free"
    yield Finding("store lock", State.OK, seen)


def is_held(store: Path) -> bool:
    """Whether a process has the lock of a store; asked without taking it."""
    try:
        descriptor = os.open(store / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def arrivals(settings: Settings) -> Iterator[Finding]:
    """What came in during the last hour before the newest request, and what is missing."""
    if not (settings.store / "requests").is_dir():
        todo = f"send OTLP to http://{settings.host}:{settings.http_port}, or try `make run`"
        yield Finding("requests", State.NO_DATA, "none yet", todo)
        return
    store = store_of(settings)
    try:
        newest_ns = store.query("SELECT max(received_ns) FROM requests").column(0)[0].as_py()
        if newest_ns is None:
            yield Finding("requests", State.NO_DATA, "none yet", "see what `tailburn balance` says")
            return
        window = Window(newest_ns - LATELY_NS, None)
        yield _newest(newest_ns)
        yield from _vantages(store, window)
        yield _completeness(store, window)
        yield _unrecognised(store, window)
        yield from _damaged(store)
    except StoreError as error:
        yield Finding("store", State.BAD, str(error), "move the damaged file away")


def _newest(newest_ns: int) -> Finding:
    moment = datetime.fromtimestamp(newest_ns // 1_000_000_000, UTC)
    seen = f"the newest closed at {moment:%Y-%m-%d %H:%M:%S} UTC"
    if time.time_ns() - newest_ns > LATELY_NS:
        todo = "nothing came for an hour: look at the senders' own logs"
        return Finding("requests", State.WARN, seen, todo)
    return Finding("requests", State.OK, seen)


def _vantages(store: Store, window: Window) -> Iterator[Finding]:
    columns = ", ".join(f"count(coalesce(ttft_{v}_s, e2e_{v}_s))" for v in VANTAGES)
    row = store.query(f"SELECT count(*), {columns} FROM requests", window=window).to_pylist()[0]
    total, *measured = row.values()
    for vantage, count in zip(VANTAGES, measured, strict=True):
        seen = f"{count:,} of {total:,} requests measured"
        if count:
            yield Finding(f"{vantage} clock", State.OK, seen)
        else:
            yield Finding(f"{vantage} clock", State.NO_DATA, seen, _MISSING[vantage])


def _completeness(store: Store, window: Window) -> Finding:
    rows = store.query(
        "SELECT missing, count(*) FROM requests WHERE completeness <> 'complete' "
        "GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
        window=window,
    ).to_pylist()
    if not rows:
        return Finding("complete requests", State.OK, "all of them")
    worst = "; ".join(f"{n:,} without {missing or 'a root'}" for missing, n in map(_pair, rows))
    todo = "those hops sample, drop spans, or cut the trace: see docs/stitching.md"
    return Finding("complete requests", State.WARN, worst, todo)


def _unrecognised(store: Store, window: Window) -> Finding:
    rows = store.query(
        "SELECT coalesce(scope || ' / ' || name, name), count(*) FROM spans WHERE rule IS NULL "
        "GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
        window=window,
    ).to_pylist()
    total = store.query("SELECT count(*) FROM spans", window=window).column(0)[0].as_py()
    count = sum(n for _, n in map(_pair, rows))
    if count <= total * _UNRECOGNISED_WARN_RATIO:
        return Finding("recognised spans", State.OK, f"nearly all of {total:,}")
    kinds = ", ".join(f"{name} ({n:,})" for name, n in map(_pair, rows))
    todo = "write rules for them: `tailburn hops explain TRACE` shows what each span offers"
    return Finding("recognised spans", State.WARN, f"most common without a rule: {kinds}", todo)


def _damaged(store: Store) -> Iterator[Finding]:
    for damaged in store.damaged():
        seen = f"{damaged.path}: {damaged.reason}"
        yield Finding("damaged segment", State.BAD, seen, "it is left out; move it away")


def _pair(row: dict[str, object]) -> tuple[str, int]:
    name, count = row.values()
    return "" if name is None else str(name), int(str(count))
