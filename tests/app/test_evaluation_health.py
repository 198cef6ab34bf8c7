"""What `/metrics` and the doctor say of the evaluation of alerts, and of what is in flight."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tailburn.app.evaluating import Evaluating, Progress
from tailburn.app.evaluation_health import BEHIND_S, Health, evaluation_families
from tailburn.app.in_flight_series import in_flight_text
from tailburn.collector.log import lock_store
from tailburn.engine.names import SLO_IN_FLIGHT_METRIC
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.versions import Versions
from tests.app.conftest import Run
from tests.app.fleets import Fleet
from tests.app.lives import BEGIN_NS, READY, Lives
from tests.app.slos import BY_MODEL, CHAT
from tests.app.verdicts import MINUTE_NS
from tests.rules.scaling.both_faces import Stretch

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)
DOCS = Path(__file__).resolve().parents[2] / "docs"
SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec: {vantage: client, availability: 99%}
"""


class Shown:
    """The collector as the service registers it."""

    def __init__(self, health: Health, now_s: float = 0.0) -> None:
        self._health, self._now_s = health, now_s

    def collect(self) -> Iterator[Any]:
        return evaluation_families(lambda: self._health, lambda: self._now_s)

    def text(self) -> str:
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    def values(self) -> dict[str, float]:
        return {
            sample.name + "".join(f" {v}" for v in sample.labels.values()): sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
        }


def test_what_was_evaluated_is_told_in_numbers(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "store", [ONE], healthy=420)
    lives.minutes(12, 1.0)

    told = Shown(lives.evaluating.health).values()

    assert told["tailburn_evaluations_total"] == 12
    assert told["tailburn_evaluated_timestamp_seconds"] == lives.now_ns / 1e9
    assert told["tailburn_evaluation_seconds"] > 0
    assert told["tailburn_evaluation_alerts"] == len(lives.evaluating.watches)
    assert told["tailburn_evaluation_series"] == 1
    fires = [key for key in lives.firing() if key.severity == "page"]
    assert told["tailburn_alerts page firing"] == len(fires) > 0
    assert told["tailburn_alerts ticket frozen"] == 0
    assert told["tailburn_evaluation_failures_total"] == 0


def test_each_series_of_a_budget_is_counted(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", replace(BY_MODEL, vantage="gateway"))
    fleet.minutes(Stretch(3, 600))
    assert fleet.evaluating.health.series == 2
    fleet.database.close()


def test_before_the_first_minute_its_time_is_not_told_as_zero() -> None:
    assert "tailburn_evaluated_timestamp_seconds" not in Shown(Health()).text()


@pytest.mark.parametrize(
    ("progress", "becomes_behind"),
    [(READY, False), (Progress(lambda: 1, lambda: 0), False), (None, True)],
    ids=["evaluated", "rows never came", "each try fails"],
)
def test_it_is_behind_where_what_is_due_stays_undone(
    tmp_path: Path, progress: Progress | None, becomes_behind: bool
) -> None:
    now_s = 0.0
    database = open_state(state_path(tmp_path / "store"))
    now_ns = BEGIN_NS
    evaluating = Evaluating([ONE], database, lambda: now_ns, monotonic_s=lambda: now_s)
    evaluating.begin(ParquetStore(tmp_path / "store"))
    evaluating.step(READY)

    def broken() -> int:
        raise OSError("no")

    for _ in range(400):
        now_s, now_ns = now_s + 0.5, now_ns + 500_000_000
        with suppress(OSError):
            evaluating.step(progress or Progress(broken, broken))
        assert not (evaluating.health.is_behind(now_s) and not becomes_behind)
    assert evaluating.health.is_behind(now_s) is becomes_behind
    database.close()


def test_how_long_is_behind_is_the_figure_that_the_help_tells() -> None:
    health = Health(caught_up_s=100.0)
    assert Shown(health, 100 + BEHIND_S).values()["tailburn_evaluation_behind"] == 0
    assert Shown(health, 101 + BEHIND_S).values()["tailburn_evaluation_behind"] == 1


def test_requests_in_flight_are_shown_by_slo_and_tenant(tmp_path: Path) -> None:
    own = replace(ONE, name="own", select={"tenant": "default"})
    fleet = Fleet(tmp_path / "store", ONE, own, replace(ONE, name="routed", by=("route",)))
    fleet.minutes(Stretch(2, 600, replicas=2, waiting=3.0))
    counts, slos = fleet.evaluating.in_flight(), fleet.evaluating.slos

    assert in_flight_text(counts, slos).splitlines()[1:] == [
        f"# TYPE {SLO_IN_FLIGHT_METRIC} gauge",
        f'{SLO_IN_FLIGHT_METRIC}{{slo="chat"}} 6.0',
        f'{SLO_IN_FLIGHT_METRIC}{{slo="own"}} 6.0',
    ]
    mine = in_flight_text(counts, slos, "default")
    assert 'slo="own"' in mine and 'slo="chat"' not in mine
    assert in_flight_text(counts, slos, "alpha") == ""
    fleet.minutes(Stretch(3, 600))
    assert fleet.evaluating.in_flight() == {}, "what no engine tells any more is not shown"
    fleet.database.close()


def test_every_series_has_its_row_in_the_docs() -> None:
    text = (DOCS / "health.md").read_text()
    families = evaluation_families(lambda: Health(minute_ns=1), lambda: 0.0)
    names = [f.name + ("_total" if f.type == "counter" else "") for f in families]
    assert len(names) > 8
    assert [name for name in [*names, SLO_IN_FLIGHT_METRIC] if f"`{name}`" not in text] == []


def test_rules_that_look_at_the_service_ask_for_what_is_there(
    run: Run, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    rules = run("rules", "itself").out
    (file := tmp_path / "rules.yaml").write_text(rules)
    command = [need_program("promtool"), "check", "rules", str(file)]
    checked = subprocess.run(command, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    shown = Shown(Health(minute_ns=1)).text() + "tailburn_ready tailburn_tells_people"
    asked = set(re.findall(r"tailburn_\w+", rules))
    assert len(asked) > 2
    assert [name for name in asked if name not in shown] == []


# --- the doctor


def finding(run: Run, store: Path, *flags: object) -> dict[str, Any]:
    ports = ("--http-port", 0, "--grpc-port", 0, "--web-port", 0)
    lines = run("doctor", "--json", "--store", store, *ports, *flags).out.splitlines()
    [found] = [row for row in map(json.loads, lines) if row["subject"] == "alerts"]
    return dict(found)


@pytest.fixture
def slo_file(tmp_path: Path) -> Path:
    (tmp_path / "chat.yaml").write_text(SLO)
    return tmp_path / "chat.yaml"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """The store of a service that has run for an hour."""
    lock = lock_store(tmp_path / "held", time.time_ns() - 60 * MINUTE_NS)
    yield tmp_path / "held"
    lock.release()


def ran(store: Path, minutes_ago: int | None, slo: str = SLO) -> None:
    """A service loaded the SLO, and evaluated up to so long ago."""
    state = open_state(state_path(store))
    Versions(state).load(parse([("chat.yaml", slo)]).slos, 1)
    if minutes_ago is not None:
        Alerts(state).write(time.time_ns() - minutes_ago * MINUTE_NS, {}, {}, [])
    state.close()


def test_no_slos_are_no_data(run: Run, held: Path, tmp_path: Path) -> None:
    idle = finding(run, tmp_path / "none")
    assert (idle["state"], idle["seen"]) == ("no data", "no SLOs: nothing is evaluated")
    assert finding(run, held)["seen"] == "the service that runs has no SLOs: nothing is evaluated"


def test_a_service_that_runs_without_the_slos_that_are_meant_is_found(
    run: Run, held: Path, slo_file: Path
) -> None:
    assert finding(run, held, "--slo", slo_file)["state"] == "warn"
    ran(held, 1, SLO.replace("99%", "98%"))
    other = finding(run, held, "--slo", slo_file)
    assert other["state"] == "warn" and "not those of these settings" in other["seen"]


@pytest.mark.parametrize(
    ("minutes_ago", "state", "seen"),
    [
        (1, "ok", "1 budget of 1 SLO, evaluated up to "),
        (12, "bad", "1 budget of 1 SLO, behind by 12 min: the last minute evaluated is "),
        (None, "bad", "behind by 60 min: none ever"),
    ],
    ids=["up to now", "stopped 12 minutes ago", "never in an hour"],
)
def test_evaluation_that_is_behind_is_bad(
    run: Run, held: Path, slo_file: Path, minutes_ago: int | None, state: str, seen: str
) -> None:
    ran(held, minutes_ago)
    found = finding(run, held, "--slo", slo_file)
    assert found["state"] == state and seen in found["seen"]
    assert ("tailburn_evaluation_failures_total" in found["todo"]) is (state == "bad")


def test_a_service_that_began_just_now_is_not_behind(
    run: Run, tmp_path: Path, slo_file: Path
) -> None:
    lock = lock_store(tmp_path / "new", time.time_ns())
    ran(tmp_path / "new", 600)
    assert finding(run, tmp_path / "new", "--slo", slo_file)["state"] == "ok"
    lock.release()


def test_where_no_service_runs_nothing_is_up_to_date(
    run: Run, tmp_path: Path, slo_file: Path
) -> None:
    ran(tmp_path / "over", 12)
    found = finding(run, tmp_path / "over", "--slo", slo_file)
    assert found["state"] == "no data" and "no service runs" in found["seen"]
