"""Throughput bought with delay: both must have grown, and beyond chance."""

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine.batching import trade_off
from tests.engine.suggest.rows import healthy


def served(
    factor: float = 1.0, tokens: int = 64, count: int = 3_000, replicas: int = 4, seed: int = 1
) -> pa.Table:
    draw = np.random.default_rng(seed)
    names = [f"vllm-{i % replicas}" for i in range(count)]
    first = draw.lognormal(np.log(0.2), 0.5, count) * factor
    return healthy(count, 1, seed, ttft_engine_s=first, output_tokens=tokens, replica=names)


def test_later_first_tokens_and_more_tokens_are_a_larger_batch() -> None:
    found = trade_off(served(1.5, 128, replicas=2), served(seed=2))
    assert found is not None and found.vantage == "engine"
    assert found.p95_ratio == pytest.approx(1.5, rel=0.1)
    assert (found.tokens_ratio, found.per_replica_ratio, found.requests_ratio) == (2.0, 4.0, 1.0)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(served(1.5), id="slower alone"),
        pytest.param(served(1.0, 128), id="more tokens alone"),
        pytest.param(served(0.7, 128), id="quicker and more tokens"),
        pytest.param(served(1.5, 32), id="slower and fewer tokens"),
        pytest.param(served(1.5, 6_400, count=60), id="too few to tell"),
    ],
)
def test_one_side_alone_is_none(now: pa.Table) -> None:
    assert trade_off(now, served(seed=2)) is None


def test_replicas_that_are_not_told_are_none() -> None:
    bare = served(1.5, 128).set_column(
        served().schema.get_field_index("replica"), served().schema.field("replica"),
        pa.nulls(3_000, served().schema.field("replica").type),
    )  # fmt: skip
    found = trade_off(bare, served(seed=2))
    assert found is not None and found.per_replica_ratio is None


def test_a_baseline_without_tokens_says_nothing() -> None:
    assert trade_off(served(), served(count=0)) is None
