"""Real exporters send through a restart of the service in mid-stream."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.live import exporters
from tests.live.exporters import JS, Sender, Told
from tests.live.service import QUICK, Service, living, until
from tests.live.stored import call_traces, counted, request_traces, span_ids

pytestmark = [pytest.mark.timeout(900), pytest.mark.program("node")]

KINDS = ("python-http", "python-grpc", "js-proto", "js-json", "js-grpc")
RETRYING = KINDS[:4]

# The SDK for JavaScript gives up after five retries, 10 s at the least: where a slow machine
# keeps the service away for longer than this, that is not held against it.
_JS_RETRIES_FOR_S = 8.0
_READY_WITHIN_CPU_S = 6.0


@dataclass(frozen=True)
class Outcome:
    """What became of a run with one restart in it."""

    told: dict[str, Told]
    stored: dict[str, Counter[str]]  # rows of each span id, by service name
    calls: set[str]  # trace ids of the calls stored
    requests: Counter[str]  # by trace id
    counted: int  # requests behind the quantiles
    totals: dict[str, int]
    exit_code: int
    ready_s: float  # from exec to ready
    ready_cpu_s: float  # of the service's own until then: the same on a busy machine
    away_s: float  # from SIGTERM to ready again


@pytest.fixture(scope="module")
def outcome(
    tmp_path_factory: pytest.TempPathFactory, need_program: Callable[[str], str]
) -> Iterator[Outcome]:
    node = need_program("node")
    if not (JS / "node_modules").is_dir():
        need_program("npm")
        pytest.fail("the exporters for JavaScript are missing: make .make/exporters")
    with living(tmp_path_factory.mktemp("live") / "store", *QUICK) as service:
        yield _through_a_restart(service, exporters.all_kinds(service, node))


def _through_a_restart(service: Service, senders: dict[str, Sender]) -> Outcome:
    until(lambda: all(len(s.told.acknowledged) > 100 for s in senders.values()))
    began_s = time.monotonic()
    exit_code = service.stop()
    ready_s, ready_cpu_s = service.start(), service.cpu_s
    away_s = time.monotonic() - began_s
    before = {name: len(s.told.acknowledged) for name, s in senders.items()}
    until(lambda: all(len(s.told.acknowledged) > before[n] for n, s in senders.items()))
    for sender in senders.values():
        sender.finish()
    service.settle(sum(len(sender.told.acknowledged) for sender in senders.values()))
    calls = call_traces(service.store)
    until(lambda: request_traces(service.store).keys() >= calls)
    totals = service.totals()
    assert service.stop() == 0
    return Outcome(
        told={name: sender.told for name, sender in senders.items()},
        stored={name: span_ids(service.store, name) for name in senders},
        calls=calls,
        requests=request_traces(service.store),
        counted=counted(service.store, "e2e_client_s"),
        totals=totals,
        exit_code=exit_code,
        ready_s=ready_s,
        ready_cpu_s=ready_cpu_s,
        away_s=away_s,
    )


def test_sigterm_drains_and_the_service_is_soon_ready_again(outcome: Outcome) -> None:
    print(
        f"ready {outcome.ready_s:.2f} s after exec ({outcome.ready_cpu_s:.2f} s of CPU),"
        f" {outcome.away_s:.2f} s after SIGTERM"
    )
    assert outcome.exit_code == 0
    assert outcome.ready_cpu_s < _READY_WITHIN_CPU_S


@pytest.mark.parametrize("name", KINDS)
def test_what_was_acknowledged_is_stored_once(outcome: Outcome, name: str) -> None:
    stored = outcome.stored[name]
    lost = set(outcome.told[name].acknowledged) - stored.keys()
    assert not lost and set(stored.values()) == {1}


@pytest.mark.parametrize("name", KINDS)
def test_what_an_exporter_drops_is_what_it_reports(outcome: Outcome, name: str) -> None:
    told = outcome.told[name]
    assert set(told.sent) - outcome.stored[name].keys() == set(told.failed)
    assert len(told.acknowledged) + len(told.failed) == len(told.sent)


@pytest.mark.parametrize("name", RETRYING)
def test_an_exporter_that_retries_loses_nothing(outcome: Outcome, name: str) -> None:
    if name.startswith("js") and outcome.away_s > _JS_RETRIES_FOR_S:
        pytest.skip(f"the service was away for {outcome.away_s:.1f} s: longer than it retries")
    assert outcome.told[name].failed == []


def test_the_exporter_that_never_retries_was_there_for_the_restart(outcome: Outcome) -> None:
    assert outcome.told["js-grpc"].failed


def test_each_request_counts_once_and_the_balance_holds(outcome: Outcome) -> None:
    totals = outcome.totals
    assert totals["stored"] == sum(map(len, outcome.stored.values()))
    assert totals["received"] == totals["stored"] + totals["duplicate"]
    assert outcome.requests == Counter(outcome.calls)
    assert outcome.counted == len(outcome.requests)
