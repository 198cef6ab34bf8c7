"""Changes read off what the store has, over the minutes and over restarts."""

from pathlib import Path
from typing import Any

import pytest

from tailburn.app.changing import DELAY_NS, Changing
from tailburn.engine.changes import Change
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import open_state, state_path
from tests.engine.sightings.seen import at, signals, spans

REPLICAS = ("vllm-0", "vllm-1", "vllm-2")


class Scene:
    """Minutes pass; what each replica tells is published, and looked at."""

    def __init__(self, folder: Path) -> None:
        self.store = ParquetStore(folder)
        self.changes = Changes(open_state(state_path(folder)))
        self.now_ns = at(0)
        self.leads = True
        self.position = 0
        self.restart()

    def restart(self) -> None:
        self.changing = Changing(self.store, self.changes, lambda: self.now_ns, lambda: self.leads)

    def minute(self, *versions: str, looks: bool = True) -> None:
        """The version that each replica has in it; none: nothing is told."""
        number = (self.now_ns - at(0)) // MINUTE_NS
        rows = [
            {"minute": number + i / 10, "hop": "engine", "resource": {
                "service.name": "vllm", "service.version": version,
                "service.instance.id": REPLICAS[i]}}
            for i, version in enumerate(versions)
        ]  # fmt: skip
        if rows:
            running = [(number + i / 10, "requests_running", 3.0, {"replica": REPLICAS[i]})
                       for i in range(len(versions))]  # fmt: skip
            self._publish("spans", spans(*rows))
            self._publish("signals", signals(*running))
        self.now_ns += MINUTE_NS
        if looks:
            self.look()

    def look(self) -> None:
        self.now_ns += DELAY_NS
        self.changing.step()
        self.now_ns -= DELAY_NS

    def _publish(self, table: str, rows: Any) -> None:
        self.store.publish(table, rows, LogRange(self.position, self.position + 1))
        self.position += 1

    def told(self) -> list[tuple[str, str, str, str, int]]:
        return [
            (str(c.kind), c.what, c.old, c.new, (c.at_ns - at(0)) // MINUTE_NS)
            for c in self.changes.all()
        ]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _rolls(scene: Scene) -> None:
    for _ in range(4):
        scene.minute("1", "1", "1")
    for _ in range(3):
        scene.minute("2", "1", "1")
    for _ in range(3):
        scene.minute("2", "2", "2")


def test_a_rolling_deploy_is_one_change_as_soon_as_it_begins(scene: Scene) -> None:
    _rolls(scene)
    assert scene.told() == [("deploy", "vllm", "1", "2", 4)]
    (change,) = scene.changes.all()
    assert isinstance(change, Change) and change.who == "telemetry"
    assert change.where == {"hop": "engine", "service": "vllm"}, "not one replica's alone"


def test_after_a_restart_nothing_is_told_twice_and_what_changed_meanwhile_is(
    scene: Scene,
) -> None:
    _rolls(scene)
    scene.restart()
    scene.minute("2", "2", "2")
    assert len(scene.told()) == 1
    scene.now_ns += 180 * MINUTE_NS
    scene.restart()
    for _ in range(3):
        scene.minute("3", "3", "3")
    assert scene.told()[1:] == [("deploy", "vllm", "2", "3", 191)]


def test_what_was_published_while_nobody_looked_is_caught_up_with(scene: Scene) -> None:
    scene.minute("1", "1", "1")
    for _ in range(30):
        scene.minute("1", "1", looks=False)
    scene.look()
    assert [row[:4] for row in scene.told()] == [("scale", "vllm", "3", "2")]


def test_who_stands_by_writes_nothing(scene: Scene) -> None:
    scene.leads = False
    _rolls(scene)
    assert scene.told() == []
    scene.leads = True
    for _ in range(3):
        scene.minute("3", "3", "3")
    assert [row[:4] for row in scene.told()] == [("deploy", "vllm", "2", "3")]


def test_a_clock_that_is_set_back_tells_nothing_anew(scene: Scene) -> None:
    _rolls(scene)
    scene.now_ns -= 60 * MINUTE_NS
    for _ in range(5):
        scene.minute("2", "2", "2")
    assert len(scene.told()) == 1
