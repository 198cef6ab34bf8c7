"""kill -9 of the whole service at random instants under load."""

import random
import time
from pathlib import Path

import pytest

from tests.live.load import Load
from tests.live.service import QUICK, living, until
from tests.live.stored import counted, request_traces, span_ids

_LIVES_AT_MOST_S = 1.5


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(6, marks=pytest.mark.timeout(900)),
        pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(tmp_path: Path, kills: int) -> None:
    chance = random.Random(kills)
    with living(tmp_path / "store", *QUICK) as service, Load(service) as load:
        for kill in range(kills):
            time.sleep(chance.uniform(0, _LIVES_AT_MOST_S))
            acknowledged = load.acknowledged
            service.kill()
            if kill % 3 == 2:  # and once more, before it is ready
                service.spawn()
                time.sleep(chance.uniform(0, 2 * _LIVES_AT_MOST_S))
                service.kill()
            service.start()
            assert service.totals()["received"] >= acknowledged
        spans, traces = load.finish()
        service.settle(len(spans))
        until(lambda: len(request_traces(service.store)) >= len(traces))
        totals = service.totals()
        assert service.stop() == 0

    print(f"{len(spans):,} spans in {len(traces):,} requests: {totals}")
    stored, requests = span_ids(service.store), request_traces(service.store)
    assert not set(spans) - stored.keys(), "lost"
    assert not stored.keys() - set(spans), "nobody sent them"
    assert set(stored.values()) == {1}
    assert requests.keys() == set(traces) and set(requests.values()) == {1}
    assert counted(service.store, "e2e_client_s") == len(traces)
    assert totals["stored"] == len(spans)
    assert totals["received"] == totals["stored"] + totals["duplicate"]
