"""The stability index: by hand, silent about the same population, heard when it moved."""

from collections import Counter

import numpy as np
import pytest

from tailburn.engine.slo.mix import MOVED, Change, Verdict, changes, limit, stability_index
from tailburn.engine.slo.model import Mix

BOUNDS = (0, 128, 256, 512, 1024, 2048, 4096)


def classed(tokens: np.ndarray) -> dict[str, int]:
    place = np.searchsorted(BOUNDS, tokens, side="right") - 1
    return {str(BOUNDS[i]): n for i, n in Counter(place.tolist()).items()}


def mix_of(tokens: np.ndarray) -> Mix:
    counts = classed(tokens)
    shares = {str(low): counts.get(str(low), 0) / len(tokens) for low in BOUNDS}
    return Mix(len(tokens), {"uncached_tokens": shares})


def drawn(count: int, seed: int, middle: float = 600.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.lognormal(np.log(middle), 1, count).astype(int)


def told(mix: Mix, tokens: np.ndarray) -> Change:
    [change] = changes(mix, {"uncached_tokens": classed(tokens)})
    return change


def test_the_index_by_hand() -> None:
    then, now = np.array([100_000.0, 300_000.0]), np.array([200_000.0, 200_000.0])
    by_hand = (0.5 - 0.25) * np.log(0.5 / 0.25) + (0.5 - 0.75) * np.log(0.5 / 0.75)
    assert stability_index(then, now) == pytest.approx(by_hand, rel=1e-4)
    assert stability_index(then, then) == pytest.approx(0)


@pytest.mark.parametrize("today", [300, 1_000, 20_000])
def test_the_same_mix_is_never_called_another(today: int) -> None:
    mix = mix_of(drawn(1_100, seed=1))
    verdicts = [told(mix, drawn(today, seed)).verdict for seed in range(2, 302)]
    assert set(verdicts) == {Verdict.ALIKE}


@pytest.mark.parametrize("today", [300, 1_000, 20_000])
@pytest.mark.parametrize("times", [0.4, 2.5])
def test_prompts_of_another_length_are_another_mix(today: int, times: float) -> None:
    mix = mix_of(drawn(1_100, seed=1))
    verdicts = {told(mix, drawn(today, seed, 600 * times)).verdict for seed in range(2, 52)}
    assert verdicts == {Verdict.MOVED}


def test_a_few_requests_tell_nothing() -> None:
    change = told(mix_of(drawn(1_100, seed=1)), drawn(299, 2, 10_000))
    assert (change.verdict, change.psi, change.requests) == (Verdict.THIN, None, 299)


def test_the_limit_is_beyond_chance_where_that_is_wide() -> None:
    """The 99.9 % point of chi squared with 19 degrees of freedom is 43.82 in every table."""
    assert limit(20, 300, 300) == pytest.approx(43.82 * 2 / 300, rel=0.01)
    assert limit(7, 5_000, 5_000) == MOVED


def test_a_model_that_was_not_there_moves_the_mix() -> None:
    mix = Mix(5_000, {"model": {"llama": 0.9, "qwen": 0.1}})
    [alike] = changes(mix, {"model": {"llama": 905, "qwen": 95}})
    [moved] = changes(mix, {"model": {"llama": 700, "qwen": 80, "new": 220}})
    assert (alike.verdict, moved.verdict) == (Verdict.ALIKE, Verdict.MOVED)
    assert moved.shares[-1] == ("others", 0.0, 0.22)


def test_what_is_not_told_any_more_is_thin_not_alike() -> None:
    mix = Mix(5_000, {"streamed": {"true": 1.0}})
    assert [change.verdict for change in changes(mix, {})] == [Verdict.THIN]
