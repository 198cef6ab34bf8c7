"""What minutes of counts tell of a ticket is what a replay of the alert itself tells."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tailburn.app.planning.proposing import waiting_of
from tailburn.app.planning.replaying import Past, no_rollups, replay
from tailburn.engine.backtest.lasting import lasting
from tailburn.engine.backtest.minutes import counts_of
from tailburn.engine.counted import rows_of
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import objectives
from tailburn.rules.alerting import Kind
from tests.app.slos import CHAT
from tests.engine.store.samples import T0

SLO = replace(CHAT, by=())
[TICKET] = waiting_of([SLO])
[P95] = [objective for objective in objectives(SLO) if objective.name == TICKET[1]]

minutes = st.lists(
    st.tuples(st.sampled_from([0, 11, 12, 100]), st.sampled_from([0.0, 0.04, 0.06, 1.0])),
    min_size=12,
    max_size=40,
)


def verdicts(counts: list[tuple[int, float]]) -> pa.Table:
    sums = {}
    for at, (requests, share) in enumerate(counts):
        key = (T0 + at * MINUTE_NS, SLO.name, P95.name, definition_of(SLO, P95), "{}")
        sums[key] = (requests, round(requests * share), 0, 0)
    return rows_of("verdicts", sums)


@given(minutes)
@example([(100, 1.0)] * 12)
@example([(100, 0.0)] * 12 + [(100, 1.0)] * 5 + [(100, 0.0)] * 9)
@settings(max_examples=100, deadline=None)
def test_a_ticket_is_told_as_a_replay_tells_it(counts: list[tuple[int, float]]) -> None:
    until_ns = T0 + len(counts) * MINUTE_NS
    rows = verdicts(counts)
    past = Past(rows, no_rollups, T0, until_ns)
    fired = replay([SLO], past, "", [Kind.TIER])
    found = lasting(counts_of(rows, [SLO], T0, until_ns), waiting_of([SLO]))
    assert found == {(f.key.slo, f.key.objective) for f in fired}


def test_the_examples_fire_and_do_not() -> None:
    for bad_minutes, fires in ((12, True), (5, True), (1, False)):
        counts = [(100, 0.0)] * 12 + [(100, 1.0)] * bad_minutes + [(100, 0.0)] * 12
        until_ns = T0 + len(counts) * MINUTE_NS
        found = lasting(counts_of(verdicts(counts), [SLO], T0, until_ns), waiting_of([SLO]))
        assert bool(found) is fires, bad_minutes


def test_a_hole_is_not_judged() -> None:
    counts = [(100, 0.0)] * 12 + [(0, 0.0)] * 30 + [(100, 0.0)] * 12
    until_ns = T0 + len(counts) * MINUTE_NS
    hole = [(T0 + 12 * MINUTE_NS, T0 + 42 * MINUTE_NS)]
    one = list(counts_of(verdicts(counts), [SLO], T0, until_ns))
    assert not lasting(one, waiting_of([SLO]), hole)
    bad = np.zeros(len(counts), np.int64)
    bad[12:42] = 100
    within = [replace(c, requests=c.requests + bad, bad=c.bad + bad) for c in one]
    assert lasting(within, waiting_of([SLO])) and not lasting(within, waiting_of([SLO]), hole)
