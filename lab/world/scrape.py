"""What a scrape finds at one instant: counters and gauges, copied as they stand."""

from typing import Any

from tailburn.lab.compiled import lean
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w


@lean
def scrape(s: Any, now: Any) -> None:
    """Copy counters and gauges of everything that is scraped; the next is one period on."""
    vary, row = s.vary, s.vary[w.SCRAPE_ROWS]
    s.s_at[row] = now
    for r in range(s.fixed[w.N_REPLICAS]):
        for column in range(c.REP):
            s.s_rep[row, r, column] = s.engines.rep[r, column]
        for column in range(c.REAL):
            s.s_real[row, r, column] = s.engines.real[r, column]
        for column in range(w.REPLICA_WIDTH):
            s.s_replicas[row, r, column] = s.replicas[r, column]
    first = s.fixed[w.ST_WORK]
    for st in range(first, len(s.stations)):
        gone = now - s.stations[st, w.S_SINCE]
        for column in range(w.STATION_WIDTH):
            s.s_stations[row, st - first, column] = s.stations[st, column]
        waiting, busy = s.stations[st, w.S_WAITING], s.stations[st, w.S_BUSY]
        s.s_stations[row, st - first, w.S_WAIT_AREA] += gone * waiting
        s.s_stations[row, st - first, w.S_BUSY_AREA] += gone * busy
    for gateway in range(s.fixed[w.N_GATEWAYS]):
        for column in range(w.GATE):
            s.s_gates[row, gateway, column] = s.gates[gateway, column]
    for pool in range(s.fixed[w.N_POOLS]):
        for column in range(w.POOL_WIDTH):
            s.s_pools[row, pool, column] = s.pools[pool, column]
    vary[w.SCRAPE_ROWS] = row + 1
    vary[w.SCRAPE_NEXT] = now + s.fixed[w.SCRAPE_NS]
