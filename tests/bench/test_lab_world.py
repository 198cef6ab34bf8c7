"""The measure of the lab's speed counts what it says it does."""

import pytest

from bench.lab import world


def test_every_stage_is_measured_and_counted() -> None:
    found = world.measure(4.0, 1, seed=1)
    assert set(found.cpu_s) == set(world.STAGES)
    assert found.counts["scrapes"] == 4
    assert found.counts["spans"] > 3 * found.counts["requests"] > 100
    assert found.counts["pages"] % found.counts["scrapes"] == 0
    slow, fast = found.times_real(*world.STAGES), found.times_real(world.WORLD)
    assert 0 < slow < fast
    per_request = sum(found.cpu_s.values()) / found.counts["requests"]
    assert slow == pytest.approx(1 / (per_request * 4.0))


def test_the_figures_name_what_they_are_beside() -> None:
    whole = list(world.figures(4.0, 1))
    assert len(whole) == 3
    assert all(one.baseline and one.baseline_is for one in whole)
