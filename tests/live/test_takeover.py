"""Two services of which one tells people: it is killed, stopped or cut off in mid-incident."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from tests.live.burning import SLO, burn
from tests.live.monitoring import Pager, paging
from tests.live.service import QUICK, Service, until
from tests.live.wire import Wire, wire_to
from tests.postgres import Server, server

pytestmark = pytest.mark.timeout(3_600)

WITHIN_S = 30.0
"""So soon another has to tell people."""
RESOLVED_S = 20.0


@dataclass
class One:
    """A service of the pair, and its way to the database."""

    service: Service
    wire: Wire

    @property
    def leads(self) -> bool:
        return "tailburn_tells_people 1.0" in self.service.get("/metrics").text


@dataclass
class Pair:
    """Both, the receiver that they tell, and how long takeovers took."""

    ones: tuple[One, One]
    pager: Pager
    took_s: list[float] = field(default_factory=list)

    def leader(self) -> tuple[One, One]:
        """Who tells people, and who stands by."""
        first, second = self.ones
        until(lambda: first.leads != second.leads, 60)
        return (first, second) if first.leads else (second, first)

    def act(self, by: One, action: str) -> None:
        (incident,) = by.service.rows("/api/incidents")
        by.service.act(incident["id"], action)

    def pages(self) -> list[tuple[str, str]]:
        """What a receiver that deduplicates makes of it: each begin and end once."""
        told: list[tuple[str, str]] = []
        for page in self.pager.told:
            if page["severity"] == "page" and (page["key"], page["what"]) not in told:
                told.append((page["key"], page["what"]))
        return told


def _killed(leader: One) -> Callable[[], None]:
    leader.service.kill()
    return lambda: None


def _stopped(leader: One) -> Callable[[], None]:
    os.kill(leader.service.pid, SIGSTOP)
    return lambda: os.kill(leader.service.pid, SIGCONT)


def _cut_off(leader: One) -> Callable[[], None]:
    leader.wire.cut()
    return leader.wire.mend


WAYS = {"killed": _killed, "stopped": _stopped, "cut off": _cut_off}


@pytest.fixture(scope="module")
def postgres(need_program: Callable[[str], str]) -> Iterator[Server]:
    with server(need_program("initdb")) as started:
        yield started


@pytest.mark.parametrize(
    ("rounds", "way"),
    [
        pytest.param(1, "stopped", id="1 time, stopped"),
        *(pytest.param(7, way, id=f"7 times, {way}", marks=pytest.mark.long) for way in WAYS),
    ],
)
def test_another_takes_over_in_mid_incident_and_nobody_is_told_twice(
    tmp_path: Path, postgres: Server, rounds: int, way: str
) -> None:
    chance = random.Random(rounds)
    took_s = []
    for number in range(rounds):
        (folder := tmp_path / str(number)).mkdir()
        with _pair(folder, postgres, f"{way.replace(' ', '_')}_{rounds}_{number}") as pair:
            took_s.append(_round(pair, WAYS[way], chance.uniform(0, 4)))
    print(f"{way}: taken over after", ", ".join(f"{one:.1f}" for one in took_s), "s")
    assert max(took_s) < WITHIN_S


def _round(pair: Pair, harm: Callable[[One], Callable[[], None]], after_s: float) -> float:
    """The seconds until the other told people."""
    leader, other = pair.leader()
    time.sleep(after_s)  # before its alerts are judged, while it tells, or after
    began_s = time.monotonic()
    mend = harm(leader)
    until(lambda: other.leads, WITHIN_S)
    took_s = time.monotonic() - began_s
    until(lambda: bool(pair.pages()), 120)
    mend()
    if harm is not _killed:
        until(lambda: not leader.leads, 60)
    pair.act(other, "ack")
    pair.act(other, "resolve")
    until(lambda: len(pair.pages()) > 1, RESOLVED_S)
    assert other.leads
    time.sleep(2)  # whatever else the one before has to say
    assert [what for _, what in pair.pages()] == ["trigger", "resolve"]
    assert len({key for key, _ in pair.pages()}) == 1
    return took_s


@contextmanager
def _pair(folder: Path, postgres: Server, name: str) -> Iterator[Pair]:
    (folder / "chat.yaml").write_text(SLO)
    with ExitStack() as stack:
        url, pager = stack.enter_context(paging())
        (folder / "hook").write_text(f"{url}\n")
        ones = []
        for store in ("one", "two"):
            wire = stack.enter_context(wire_to(postgres.folder))
            flags = ["--slo", folder / "chat.yaml", "--page-to", f"webhook:{folder / 'hook'}"]
            flags += ["--state-url", wire.url, "--pair", name]
            service = Service(folder / store, *QUICK, *flags)
            stack.callback(service.end)
            service.start()
            assert service.stop() == 0
            burn(folder / store, postgres.url, name)
            ones.append(One(service, wire))
        for one in ones:
            one.service.spawn()
        for one in ones:
            one.service.wait_until_ready()
        yield Pair((ones[0], ones[1]), pager)
