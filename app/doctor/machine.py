"""Ports, disk, clock and permissions: what the service needs of its machine."""

import ctypes
import errno
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.settings import Settings
from tailburn.collector.log.lock import holder_of
from tailburn.collector.log.writer import MAX_BYTES

_LOW_DISK_RATIO = 0.05
_CLOCK_ERROR_WARN_S = 0.1
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
_MAX_ERROR_OFFSET = 3 * ctypes.sizeof(ctypes.c_long)  # after modes (padded), offset, freq


def ports(settings: Settings) -> Iterator[Finding]:
    """Whether the three ports can be had, or who has them."""
    for name in ("http_port", "grpc_port", "web_port"):
        port = getattr(settings, name)
        subject = f"{name} {port}"
        problem = _bind_problem(settings.host, port)
        if problem is None:
            yield Finding(subject, State.OK, "free")
        elif problem.errno == errno.EADDRINUSE:
            yield _taken(subject, port, settings, f"stop it, or set {name}")
        else:
            todo = f"set host to an address of this machine, or {name} above 1023"
            yield Finding(subject, State.BAD, str(problem.strerror), todo)


def _bind_problem(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def _taken(subject: str, port: int, settings: Settings, todo: str) -> Finding:
    pid, service = _listener(port), holder_of(settings.store)
    if pid is not None and service is not None and pid == service.pid:
        return Finding(subject, State.OK, f"the service on this store listens ({_process(pid)})")
    return Finding(subject, State.WARN, f"taken by {_process(pid)}", todo)


def _listener(port: int) -> int | None:
    """The process that listens there; None where only root may see it."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return None
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            pid: int | None = connection.pid
            return pid
    return None


def _process(pid: int | None) -> str:
    if pid is None:
        return "another process (only root may see which)"
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.NoSuchProcess:
        return f"process {pid}"


def disk(settings: Settings) -> Iterator[Finding]:
    """Whether there is room for the log and the store."""
    usage = psutil.disk_usage(str(_nearest(settings.store)))
    free = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} GB"
    if usage.free < MAX_BYTES or usage.free < usage.total * _LOW_DISK_RATIO:
        todo = "free some space, or shorten requests_kept_h, spans_kept_h and rollups_kept_h"
        yield Finding("disk", State.WARN, free, todo)
    else:
        yield Finding("disk", State.OK, free)


def permissions(settings: Settings) -> Iterator[Finding]:
    """Whether the store's folder can be written and its secrets are nobody else's."""
    folder = _nearest(settings.store)
    if not os.access(folder, os.W_OK | os.X_OK):
        todo = f"chown it to the user of the service ({_user()}), or set store"
        yield Finding("store folder", State.BAD, f"{folder} can't be written", todo)
    else:
        yield Finding("store folder", State.OK, f"{settings.store} can be written")
    if settings.tls_key is not None and settings.tls_key.stat().st_mode & 0o044:
        seen = f"{settings.tls_key} can be read by others"
        yield Finding("tls_key", State.WARN, seen, f"chmod 600 {settings.tls_key}")


def _user() -> str:
    return str(psutil.Process().username())


def _nearest(path: Path) -> Path:
    """The path, or its nearest parent that exists."""
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())


def clock(settings: Settings) -> Iterator[Finding]:
    """Whether this machine's clock is kept right: receive times and offsets rest on it."""
    if settings.clock == "telemetry":
        seen = "receive times come from the sender"
        yield Finding("clock", State.WARN, seen, "set clock = wall outside a lab")
    if not sys.platform.startswith("linux"):
        yield Finding("clock", State.NO_DATA, "not known how on this system")
        return
    timex = (ctypes.c_long * 64)()
    result = ctypes.CDLL(None).adjtimex(timex)
    max_error_s = ctypes.c_long.from_buffer(timex, _MAX_ERROR_OFFSET).value / 1e6
    if result < 0:
        yield Finding("clock", State.NO_DATA, "the kernel does not tell")
    elif result == _UNSYNCHRONISED or max_error_s > _CLOCK_ERROR_WARN_S:
        todo = "run chrony or another NTP client, here and on the engines' hosts"
        yield Finding("clock", State.WARN, "not kept right by NTP", todo)
    else:
        yield Finding("clock", State.OK, f"kept right by NTP within {max_error_s * 1e3:.1f} ms")
