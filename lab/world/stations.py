"""Places where attempts wait for one of some servers, first come, first served.

Each keeps the ns of waiting and of service as areas under its two curves, so that Little's
law can be held against the attempts' own instants.
"""

from typing import Any

from tailburn.lab.compiled import lean, lean_inlined
from tailburn.lab.world import layout as w
from tailburn.lab.world.links import unlink


@lean_inlined
def _count(s: Any, st: Any, now: Any) -> None:
    """Bring the areas up to now."""
    stations = s.stations
    gone = now - stations[st, w.S_SINCE]
    stations[st, w.S_WAIT_AREA] += gone * stations[st, w.S_WAITING]
    stations[st, w.S_BUSY_AREA] += gone * stations[st, w.S_BUSY]
    stations[st, w.S_SINCE] = now


@lean_inlined
def station_of(s: Any, kind: Any, owner: Any) -> Any:
    """The station of a kind that belongs to a client, gateway, pool or replica."""
    return s.fixed[kind] + owner


@lean
def enter(s: Any, st: Any, slot: Any, now: Any) -> Any:
    """Come to a station; True: a server is had at once, else it waits."""
    stations, calls = s.stations, s.calls
    _count(s, st, now)
    stations[st, w.S_ENTERED] += 1
    calls[slot, w.STATION] = st
    if stations[st, w.S_BUSY] < stations[st, w.S_SERVERS]:
        stations[st, w.S_BUSY] += 1
        stations[st, w.S_BEGUN] += 1
        calls[slot, w.SERVED] = 1
        return True
    tail = stations[st, w.S_TAIL]
    calls[slot, w.SERVED], calls[slot, w.NEXT], calls[slot, w.PREV] = 0, -1, tail
    if tail >= 0:
        calls[tail, w.NEXT] = slot
    else:
        stations[st, w.S_HEAD] = slot
    stations[st, w.S_TAIL] = slot
    stations[st, w.S_WAITING] += 1
    return False


@lean_inlined
def _unlink(s: Any, st: Any, slot: Any) -> None:
    unlink(s.calls, slot, w.PREV, w.NEXT, s.stations, st, w.S_HEAD, w.S_TAIL)
    s.stations[st, w.S_WAITING] -= 1


@lean
def let_in(s: Any, st: Any, now: Any) -> Any:
    """The first that waits gets a free server; its slot, or -1 when none waits or is free."""
    stations = s.stations
    slot = stations[st, w.S_HEAD]
    if slot < 0 or stations[st, w.S_BUSY] >= stations[st, w.S_SERVERS]:
        return -1
    _count(s, st, now)
    _unlink(s, st, slot)
    stations[st, w.S_BUSY] += 1
    stations[st, w.S_BEGUN] += 1
    s.calls[slot, w.SERVED] = 1
    return slot


@lean
def free_server(s: Any, st: Any, now: Any) -> None:
    """A server is free again."""
    _count(s, st, now)
    s.stations[st, w.S_BUSY] -= 1


@lean
def quit_queue(s: Any, slot: Any, now: Any) -> None:
    """One that waits goes away."""
    st = s.calls[slot, w.STATION]
    _count(s, st, now)
    _unlink(s, st, slot)
    s.stations[st, w.S_QUIT] += 1
    s.calls[slot, w.STATION] = -1


@lean
def resize(s: Any, st: Any, servers: Any, now: Any) -> None:
    """So many servers from now on; those at work finish what they have."""
    _count(s, st, now)
    s.stations[st, w.S_SERVERS] = servers
