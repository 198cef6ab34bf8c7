"""The mix that a proposal is made of."""

from typing import Any

import numpy as np
import pytest

from tailburn.engine.slo.verdicts import Requests
from tailburn.engine.suggest.mixed import LEAST_SHARE, Mixed
from tests.engine.suggest.rows import healthy

COUNT = 4_000
DRAW = np.random.default_rng(3)
PROMPT = DRAW.lognormal(6.5, 1.2, COUNT).astype(int)
CACHED = np.minimum(PROMPT, DRAW.integers(0, 500, COUNT))


def mixed(**told: Any) -> Mixed:
    found = Mixed()
    rows = healthy(COUNT, 24, **told)
    for begin in range(0, COUNT, 900):
        found.take(Requests(rows.slice(begin, 900)), np.arange(min(900, COUNT - begin)))
    return found


def test_lengths_are_those_of_what_was_not_cached() -> None:
    shares = mixed(prompt_tokens=PROMPT, cached_tokens=CACHED).mix().shares

    assert list(shares) == ["uncached_tokens", "output_tokens", "model", "streamed"]
    lows = [int(low) for low in shares["uncached_tokens"]]
    place = np.searchsorted(lows, PROMPT - CACHED, side="right") - 1
    exact = np.bincount(place, minlength=len(lows)) / COUNT
    assert list(shares["uncached_tokens"].values()) == pytest.approx(exact.tolist())
    assert min(exact) >= LEAST_SHARE and lows[0] == 0


def test_prompts_stand_in_where_cached_tokens_are_not_told() -> None:
    shares = mixed(prompt_tokens=PROMPT).mix().shares

    assert "uncached_tokens" not in shares and "prompt_tokens" in shares


def test_what_nobody_tells_and_what_is_selected_is_no_part() -> None:
    found = mixed().mix({"model"})

    assert found.requests == COUNT
    assert found.shares == {"output_tokens": {"0": 1.0}, "streamed": {"true": 1.0}}


def test_weights_count() -> None:
    weight = np.where(np.arange(COUNT) % 2, 3.0, 1.0)
    streamed = np.arange(COUNT) % 2 == 1
    found = mixed(weight=weight, streamed=streamed).mix()

    assert found.requests == 2 * COUNT
    assert found.shares["streamed"] == {"true": 0.75, "false": 0.25}
