"""Killed at random instants, nothing acknowledged is lost and nothing counts twice."""

import multiprocessing
import random
import time
from collections import Counter
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.collector import crash_child
from tests.collector.support import rows_in

IDS_A_RUN = 1_000_000


class Run:
    """One life of the service, and what it told."""

    def __init__(self, context: ForkServerContext, store: Path, number: int) -> None:
        self._ear, mouth = context.Pipe()
        arguments = (store, number * IDS_A_RUN + 1, mouth)
        self._process = context.Process(target=crash_child.live, args=arguments)
        self._process.start()
        mouth.close()
        self.told: list[str] = []

    def until_ready(self) -> None:
        assert self._hear(60.0), "it never got ready"

    def listen(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._hear(left):
            pass

    def kill(self) -> None:
        self._process.kill()
        self._hear_out()

    def stop(self) -> None:
        self._ear.send_bytes(b"stop")
        self._hear_out()
        assert self._process.exitcode == 0

    @property
    def acknowledged(self) -> list[int]:
        return [int(word) for line in self.told[1:] for word in line.split()]

    def _hear_out(self) -> None:
        while self._hear(60.0):
            pass
        self._process.join()
        self._ear.close()

    def _hear(self, timeout_s: float) -> bool:
        try:
            if not self._ear.poll(timeout_s):
                return False
            self.told.append(self._ear.recv_bytes().decode())
        except (EOFError, ConnectionResetError):
            return False
        return True


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Imports and compiled code are loaded once, so that a life begins at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([crash_child.__name__])
    return context


def check_kills(context: ForkServerContext, store: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    acknowledged: list[int] = []
    for number in range(kills):
        run = Run(context, store, number)
        if rng.random() < 0.8:  # else it may be hit while it recovers
            run.until_ready()
        run.listen(rng.uniform(0.0, 0.8))
        run.kill()
        acknowledged += run.acknowledged
    last = Run(context, store, kills)
    last.until_ready()
    last.stop()
    acknowledged += last.acknowledged

    rows = rows_in(store)

    stored = Counter(n for n, _ in rows)
    assert len(acknowledged) > 100 * kills
    assert [n for n in acknowledged if stored[n] == 0] == []
    assert [n for n, times in stored.items() if times > 1] == []
    # The numbers are given by the pipeline's own state: they have no gap and no repeat only if
    # each restart went on exactly where the rows of the store end.
    assert [number for _, number in rows] == list(range(len(rows)))


def test_twenty_kills_lose_nothing_and_repeat_nothing(
    context: ForkServerContext, tmp_path: Path
) -> None:
    check_kills(context, tmp_path / "store", kills=20, seed=1)


@pytest.mark.long
def test_two_hundred_kills_lose_nothing_and_repeat_nothing(
    context: ForkServerContext, tmp_path: Path
) -> None:
    check_kills(context, tmp_path / "store", kills=200, seed=2)
