"""The slow band against its baseline's: mix and hops that add up, and planted causes."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.band import BandChange, band_change
from tailburn.engine.names import ttft_hop_column
from tests.engine.store import samples

RNG = np.random.default_rng(5)


def row(number: int, prompt_tokens: int = 100, model: str = "a", **hops: float) -> dict[str, Any]:
    """A request whose hops took so many seconds."""
    times = {ttft_hop_column(h.replace("__", ">")): s for h, s in hops.items()}
    told = {"prompt_tokens": prompt_tokens, "output_tokens": 50, "streamed": True, "model": model}
    return samples.request(number, **told, **times)


def healthy(count: int, **told: Any) -> list[dict[str, Any]]:
    return [
        row(i, queue=0.01 + RNG.random() / 100, prefill=0.1 + RNG.random() / 50, **told)
        for i in range(count)
    ]


def changed(now: list[dict[str, Any]], before: list[dict[str, Any]], q: float) -> BandChange:
    found = band_change(samples.requests(*now), samples.requests(*before), "ttft", q)
    assert found is not None
    return found


def test_a_hop_that_got_slower_for_all_is_no_mix() -> None:
    now = [r | {ttft_hop_column("gateway>engine"): 0.3} for r in healthy(400)]
    found = changed(now, healthy(400), 0.95)
    assert found.hops[0].hop == "gateway>engine"
    assert found.hops[0].effect_ns == 300_000_000
    assert found.mix_ns == 0 and not found.is_mix
    assert found.band.count == found.baseline.count == 21, "at and above the rank of p95"


def test_longer_prompts_at_their_old_speed_are_mix() -> None:
    def long(number: int) -> dict[str, Any]:
        return row(number, prompt_tokens=9000, queue=0.01, prefill=2.0)

    before = [*healthy(390), *map(long, range(10))]
    now = [*healthy(300), *map(long, range(100))]
    found = changed(now, before, 0.9)
    assert found.is_mix and found.hops == ()
    assert found.mix_ns == found.change_ns > 1_000_000_000


def test_both_at_once_are_told_apart() -> None:
    before = [*healthy(50), *(row(i, prompt_tokens=9000, prefill=2.0) for i in range(50))]
    now = [
        *(row(i, prompt_tokens=100, prefill=3.0) for i in range(20)),
        *(row(i, prompt_tokens=9000, prefill=2.0, queue=0.5) for i in range(80)),
    ]
    found = changed(now, before, 0.4)
    effects = {h.hop: h.effect_ns for h in found.hops}
    assert effects["queue"] > 0 and found.mix_ns != 0
    assert found.mix_ns + sum(effects.values()) == found.change_ns


requests_of = st.lists(
    st.builds(
        row,
        st.integers(0, 1000),
        st.sampled_from([1, 100, 120, 9000]),
        st.sampled_from(["a", "b"]),
        queue=st.floats(0, 5),
        prefill=st.floats(0, 5),
        gateway=st.floats(0, 0.001),
    ),
    min_size=1,
    max_size=30,
)


@given(requests_of, requests_of, st.floats(0.01, 0.99))
@settings(max_examples=150, deadline=None)
def test_effects_add_up_to_the_change_exactly(
    now: list[dict[str, Any]], before: list[dict[str, Any]], q: float
) -> None:
    found = changed(now, before, q)
    assert found.change_ns == found.band.mean_ns - found.baseline.mean_ns
    assert found.mix_ns + sum(h.effect_ns for h in found.hops) == found.change_ns
    back = changed(before, now, q)
    assert abs(back.mix_ns + found.mix_ns) <= 2, "turned round, each effect changes its sign"


@given(requests_of, st.floats(0.01, 0.99))
@settings(max_examples=50, deadline=None)
def test_nothing_changed_has_no_effects(now: list[dict[str, Any]], q: float) -> None:
    found = changed(now, now, q)
    assert (found.change_ns, found.mix_ns, found.hops) == (0, 0, ())


def test_a_side_that_measures_nothing_has_no_change() -> None:
    nothing: pa.Table = samples.requests(row(1))
    assert band_change(nothing, samples.requests(*healthy(5)), "ttft", 0.95) is None
    assert band_change(samples.requests(*healthy(5)), nothing, "ttft", 0.95) is None
    with pytest.raises(ValueError, match="within 0 and 1"):
        band_change(nothing, nothing, "ttft", 95)
