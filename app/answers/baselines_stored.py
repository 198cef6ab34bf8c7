"""What baselines rest on, read from a store: rollups of a few hours, and a week of loads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.answers.baselines_asked import Asked
from tailburn.engine.baseline import Incident, Learnt, hits, hours
from tailburn.engine.baseline.load import DAY_NS, HOUR_NS
from tailburn.engine.baseline.loads import LOOKED_BACK_NS, PLACE, Loads
from tailburn.engine.baseline.present import Held, held
from tailburn.engine.baseline.usual import CLOCKS, KEPT_DAYS, NEEDED
from tailburn.engine.grouping import text
from tailburn.engine.names import UNKNOWN
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS, USUAL_DIMENSIONS
from tailburn.engine.store.api import Store, Window

Deadlines = Callable[[str], Mapping[tuple[str, ...], Held]]
"""Of a clock, what each series is held against; nothing of a clock that is not learnt."""

_HISTOGRAM: Final = ("clock", "count", "min_s", "max_s", "buckets", "counts")


def rollups_of(store: Store, asked: Asked, fired: Iterable[Incident]) -> pa.Table:
    """The hours of the days before, the last hour and the present of it, each added up.

    Beside them, without a request, the first minute that each series was seen in since the
    first of these hours. Raises StoreError.
    """
    named = dict.fromkeys(name for incident in fired for name in incident.where)
    kept = [name for name in named if name in ROLLUP_DIMENSIONS]
    by = tuple(dict.fromkeys((*asked.dimensions, *kept)))
    schema = pa.schema([ROLLUPS.field(name) for name in ("minute_ns", *by, *_HISTOGRAM)])
    begin_ns, until_ns = asked.present
    days = hours(asked.now_ns)
    parts = [_first_seen(store, asked, by, days[-1][0])]
    for window in (*days, (until_ns - HOUR_NS, begin_ns), (begin_ns, until_ns)):
        rows = store.rollups(Window(*window), asked.never_pooled, by, asked.clocks)
        minute = pa.array(np.full(len(rows), window[0]))
        parts.append(rows.add_column(0, schema.field("minute_ns"), minute))
    whole = [part.select(schema.names).cast(schema) for part in parts]
    return pa.concat_tables(whole).unify_dictionaries()


def _first_seen(store: Store, asked: Asked, by: Sequence[str], since_ns: int) -> pa.Table:
    """Rows of ROLLUPS with the first minute of each series and clock, and no request."""
    named = ", ".join(f'"{name}"' for name in (*by, "clock"))
    clocks = ", ".join("?" for _ in asked.clocks)
    found = store.query(
        f"SELECT {named}, min(minute_ns) AS minute_ns FROM rollups "
        f"WHERE clock IN ({clocks}) GROUP BY {named}",
        asked.clocks,
        window=Window(since_ns, asked.present[1]),
    )
    nothing = {
        "count": pa.array(np.zeros(len(found), np.int64)),
        "min_s": pa.nulls(len(found), pa.float64()),
        "max_s": pa.nulls(len(found), pa.float64()),
        **{n: pa.array([[]] * len(found), ROLLUPS.field(n).type) for n in ("buckets", "counts")},
    }
    for name, column in nothing.items():
        found = found.append_column(name, column)
    return found


def deadlines_of(store: Store, asked: Asked) -> Deadlines:
    """What the requests of the present were held against. Raises StoreError.

    The load is that of all requests of a replica, whoever asks: so are they read.
    """
    begin_ns, until_ns = asked.present
    hour_ns = until_ns // HOUR_NS * HOUR_NS
    first_ns = hour_ns // DAY_NS * DAY_NS - KEPT_DAYS * DAY_NS
    learnt = Learnt(store.usual(Window(first_ns, hour_ns)), USUAL_DIMENSIONS)
    columns = dict.fromkeys((*NEEDED, *asked.dimensions, "version"))
    place = {name: value for name, value in asked.where.items() if name in PLACE}
    looked_back_ns = begin_ns - LOOKED_BACK_NS
    rows = store.requests(
        Window(looked_back_ns, until_ns), place, latest=False, columns=list(columns)
    )
    rows = rows.filter(pc.equal(rows["version"], 1)).sort_by("received_ns")
    kept = store.usage()["requests"].first_hour_ns
    loads = Loads() if kept is None or kept > looked_back_ns else Loads.since(looked_back_ns)
    loads.hits.hear(_hits(store, looked_back_ns, until_ns))
    seen = loads.met(rows, loads.slots(rows.column("received_ns").to_numpy()))
    wanted = _wanted(rows, asked, begin_ns)
    rows, seen = rows.filter(wanted), seen.of(wanted.to_numpy())

    def of(clock: str) -> Mapping[tuple[str, ...], Held]:
        return held(learnt, rows, seen, clock, asked.dimensions) if clock in CLOCKS else {}

    return of


def _hits(store: Store, since_ns: int, until_ns: int) -> pa.Table:
    """What metrics told of prefix caches, from a reading before the first that counts on."""
    names = ", ".join("?" for _ in hits.SIGNALS)
    return store.query(
        f"SELECT * FROM signals WHERE name IN ({names}) ORDER BY received_ns",
        hits.SIGNALS,
        window=Window(since_ns - hits.READ_BEFORE_NS, until_ns),
    )


def _wanted(rows: pa.Table, asked: Asked, begin_ns: int) -> pa.ChunkedArray:
    found = pc.greater_equal(rows["received_ns"], begin_ns)
    for name, value in asked.where.items():
        same = pc.equal(text(rows.column(name), UNKNOWN).cast(pa.string()), value)
        found = pc.and_(found, same)
    return found
