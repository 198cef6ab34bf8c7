"""Both faces of every alert on counters, live: a service and a real Prometheus, side by side.

Both have the same two hours and a half behind them; then users go on while both look.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.engine.evaluation import AlertKey, Status
from tailburn.engine.evaluation.windows import MINUTE_S, SLOW_S
from tailburn.engine.names import SLO_SAMPLED
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.rules.alerting import Kind
from tailburn.rules.formats import FORMATS
from tailburn.rules.model import Group
from tailburn.rules.ruleset import build, watches_of
from tests.app.service import chat
from tests.app.verdicts import MINUTE_NS, verdict, verdicts
from tests.live.monitoring import Prometheus, fill, prometheus, record, sped_up
from tests.live.service import PATIENCE_S, QUICK, Service, living
from tests.rules.parity import minutes_of
from tests.rules.test_parity import (
    COUNTED,
    Stretch,
    counts_of,
    series_of,
    values_of,
)

pytestmark = [pytest.mark.program("promtool"), pytest.mark.timeout(900)]

SLO: Final = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec:
  by: [model]
  vantage: client
  clocks: {ttft: {acceptable: {p95: 200ms}}}
  availability: 99%
"""
"""Requests of `chat` take 250 ms to their first token: those that come live are all bad."""
PAST: Final = (Stretch(130, 600), Stretch(20, 600, 1.0, unmeasured=900))
LIVE: Final = 400
LIVE_MODEL: Final = "tiny-llama"


@dataclass
class Both:
    service: Service
    prometheus: Prometheus


@pytest.fixture
def both(tmp_path: Path, need_program: Callable[[str], str]) -> Iterator[Both]:
    """With the same past: minutes that were well, then an outage of one model that goes on."""
    file = tmp_path / "chat.yaml"
    file.write_text(SLO)
    (chat_slo,) = parse([(str(file), SLO)]).slos
    with living(tmp_path / "store", *QUICK, "--slo", file) as service:
        assert service.stop() == 0
        end_ns = time.time_ns() // MINUTE_NS * MINUTE_NS
        begin_ns = end_ns - len(list(minutes_of(PAST))) * MINUTE_NS
        _remember(service.store, chat_slo, begin_ns, end_ns)
        service.start()
        target = service.web.removeprefix("http://")
        with _looking(need_program, tmp_path / "prom", chat_slo, begin_ns, target) as running:
            yield Both(service, running)


def _remember(store: Path, chat_slo: Slo, begin_ns: int, end_ns: int) -> None:
    """What a service leaves that counted all the time, and was to evaluate all alerts next."""
    rows = []
    for number, one in enumerate(minutes_of(PAST)):
        for by in values_of(chat_slo):
            requests, bad, unmeasured = counts_of(one, by["model"])
            at_ns = begin_ns + number * MINUTE_NS
            rows += [
                verdict(chat_slo, o.name, at_ns, requests, bad, unmeasured, **by)
                for o in objectives(chat_slo)
            ]
            rows.append({**rows[-1], "objective": DEADLINE, "definition": ""})
    ParquetStore(store).publish("verdicts", verdicts(rows), LogRange(0, 0))
    database = open_state(state_path(store))
    Alerts(database).write(end_ns, {}, {}, [], begin_ns)
    slow_ns = SLOW_S // MINUTE_S * MINUTE_NS
    Alerts(database).write(end_ns // slow_ns * slow_ns - MINUTE_NS, {}, {}, [])
    database.close()


@contextmanager
def _looking(
    need_program: Callable[[str], str], folder: Path, chat_slo: Slo, begin_ns: int, target: str
) -> Iterator[Prometheus]:
    """A Prometheus that scraped all the time, and recorded what long windows are means of."""
    promtool, program = need_program("promtool"), need_program("prometheus")
    begin_s, rules = begin_ns // 10**9, folder / "rules"
    counters = {
        name: [None if value == "_" else float(value) for value in values.split()]
        for name, values in series_of(chat_slo, PAST).items()
    }
    rules.mkdir(parents=True)
    fill(promtool, folder, counters, begin_s)
    sampled, others = _written(folder, chat_slo)
    with prometheus(program, folder, rules) as first:
        minutes = len(next(iter(counters.values()))) - 1
        record(promtool, folder, first, sampled, begin_s, begin_s + 60 * minutes)
    shutil.copy(sampled, sped_up(others, folder / "loaded"))
    with prometheus(program, folder, folder / "loaded", target) as running:
        yield running


def _written(folder: Path, chat_slo: Slo) -> tuple[Path, Path]:
    """The rules whose samples are averaged, which keep their pace; a folder with all others."""
    sampled, others = list[Group](), list[Group]()
    for group in build([chat_slo]).groups:
        for groups, chosen in ((sampled, True), (others, False)):
            rules = tuple(r for r in group.rules if r.record.endswith(SLO_SAMPLED) is chosen)
            if rules:
                groups.append(replace(group, name=f"{group.name}-{chosen}", rules=rules))
    (folder / "others").mkdir()
    (folder / "others" / "others.yaml").write_text(FORMATS["prometheus"]("", others))
    (folder / "sampled.yaml").write_text(FORMATS["prometheus"]("", sampled))
    return folder / "sampled.yaml", folder / "others"


def test_what_fires_in_the_service_fires_in_prometheus_and_nothing_else(both: Both) -> None:
    past = _agreed(both, set())
    assert {one.alertname for one in past} == set(COUNTED)
    burning = {one for one in past if one.alertname == Kind.BURN}
    assert {one.model for one in burning} == {"a"}
    longs = {key.long for key in _burns_of("availability")}
    assert {one.long for one in burning if one.objective == "availability"} == longs

    _ask(both.service, LIVE)
    began = {one for one in _agreed(both, past) - past if one.model == LIVE_MODEL}
    assert {one.severity for one in began} == {"page", "ticket"}


def _burns_of(objective: str) -> Iterator[AlertKey]:
    for watch in watches_of(parse([("chat.yaml", SLO)]).slos):
        if (watch.key.alertname, watch.key.objective) == (Kind.BURN, objective):
            yield watch.key


class Fires(NamedTuple):
    """An alert that is in trouble, by its labels; how, where it need not wait."""

    alertname: str
    severity: str
    objective: str
    long: str
    short: str
    model: str


def _agreed(both: Both, before: set[Fires]) -> set[Fires]:
    """What both say, once they say the same and more than before."""
    ours: set[Fires] = set()
    theirs: set[Fires] = set()
    give_up_s = time.monotonic() + SLOW_S + PATIENCE_S
    while ours != theirs or not ours - before:
        ours, theirs = _ours(both.service), _theirs(both.prometheus)
        if time.monotonic() > give_up_s:
            assert ours == theirs
            assert ours - before
        time.sleep(0.1)
    return ours


def _ours(service: Service) -> set[Fires]:
    return {
        _fires({**row, **row["by"]})
        for row in service.rows("/api/alerts")
        if row["status"] != Status.INACTIVE
    }


def _theirs(running: Prometheus) -> set[Fires]:
    return {_fires(alert["labels"]) for alert in running.get("/api/v1/alerts")["data"]["alerts"]}


def _fires(labels: Mapping[str, str]) -> Fires:
    return Fires(*(labels.get(name, "") for name in Fires._fields))


def _ask(service: Service, count: int) -> None:
    """So many requests that are answered now, all at once."""
    body = ExportTraceServiceRequest()
    start_ns = time.time_ns() - 3_000_000_000
    for number in range(1, count + 1):
        body.MergeFrom(chat(number, start_ns))
    assert service.post(body.SerializeToString()).status_code == 200
