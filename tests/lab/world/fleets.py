"""Small fleets and random requests for the world's tests."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tailburn.lab.fleet import Fleet, Policy, Service, split, standard
from tailburn.lab.records import Attempts, Requests

S = 10**9
CLIENTS = 12
END = 3_600 * S


def requests(count: int, per_s: float, seed: int = 0, **fixed: Any) -> Requests:
    """Random requests of every kind; `fixed` sets columns."""
    draw = np.random.default_rng(seed)
    prompt = draw.integers(1, 3_000, count)
    columns: dict[str, object] = {
        "arrival_ns": (np.cumsum(draw.exponential(1 / per_s, count)) * S).astype(np.int64),
        "client": draw.integers(0, CLIENTS, count),
        "route": draw.integers(0, 5, count),
        "prompt_tokens": prompt,
        "output_tokens": draw.integers(1, 200, count),
        "max_tokens": 150,
        "prefix": draw.integers(0, 4, count),
        "prefix_tokens": np.minimum(prompt, 200),
        "streamed": draw.random(count) < 0.8,
        "rag": draw.random(count) < 0.3,
        "structured": draw.random(count) < 0.1,
        "lora": np.where(draw.random(count) < 0.1, draw.integers(0, 6, count), -1),
        "session": np.where(draw.random(count) < 0.3, draw.integers(1, 40, count), 0),
        "priority": draw.integers(0, 2, count),
    }
    return Requests.of(columns | fixed)


def plain(replicas: int = 2, **group: object) -> Fleet:
    """A standard fleet of few clients, who behave as given."""
    return behaving(standard(10, clients=CLIENTS, replicas=replicas), **group)


def behaving(fleet: Fleet, **group: object) -> Fleet:
    """The fleet with something changed in all its clients."""
    groups = tuple(replace(g, **group) for g in fleet.clients.groups)  # type: ignore[arg-type]
    return replace(fleet, clients=replace(fleet.clients, groups=groups))


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Any small fleet: split or not, with impatient clients, tight queues, few blocks."""
    fleet = split(15, clients=CLIENTS) if draw(st.booleans()) else plain(draw(st.integers(1, 3)))
    fleet = behaving(
        fleet,
        timeout_s=draw(st.sampled_from([0.2, 2.0, 600.0])),
        retry_max=draw(st.integers(0, 3)),
        retry_jitter=draw(st.booleans()),
        pool_limit=draw(st.sampled_from([0, 1, 3, 100])),
        hedge_after_s=draw(st.sampled_from([0.0, 0.1, 0.5])),
        cancel_share=draw(st.sampled_from([0.0, 0.3])),
        patience_s=1.0,
    )
    pools = tuple(
        replace(
            pool,
            router=replace(
                pool.router,
                policy=draw(st.sampled_from(Policy)),
                max_inflight=draw(st.sampled_from([0, 0, 5])),
                host=draw(st.sampled_from([None, "front-1"])),
                retries=draw(st.sampled_from([0, 0, 2])),
                timeout_s=draw(st.sampled_from([0.0, 0.0, 0.3])),
            ),
            scheduler=replace(
                pool.scheduler,
                max_num_seqs=draw(st.sampled_from([3, 64])),
                kv_blocks=draw(st.sampled_from([0, 400])),
                priority=draw(st.booleans()),
            ),
            tokenizer=replace(pool.tokenizer, threads=draw(st.integers(1, 3))),
        )
        for pool in fleet.pools
    )
    gateways = tuple(
        replace(
            g,
            workers=draw(st.integers(1, 3)),
            max_inflight=draw(st.sampled_from([0, 0, 4])),
            retries=draw(st.sampled_from([0, 0, 2])),
            timeout_s=draw(st.sampled_from([0.0, 0.0, 0.5])),
        )
        for g in fleet.gateways
    )
    return replace(
        fleet,
        pools=pools,
        gateways=gateways,
        retrieval=Service(draw(st.integers(1, 4)), 30.0, 0.5),
        guardrail=Service(draw(st.integers(1, 4)), 10.0, 0.5),
    )


FAULTS = (
    ("replica_down", 1.0, "all"),
    ("gateway_stall_s", 3.0, "all"),
    ("abort_lost", 1.0, "all"),
    ("tokenizer_factor", 20.0, "all"),
    ("edge_loss", 0.1, "all"),
    ("kv_blocks", 260.0, "all"),
    ("cpu_factor", 4.0, "host:node-0"),
    ("route_policy", 2.0, "all"),
    ("client_timeout_s", 0.3, "all"),
    ("priority_scheduling", 1.0, "all"),
    ("max_num_seqs", 2.0, "all"),
    ("gateway_buffer_bytes", 8_000.0, "all"),
    ("storage_gbps", 100.0, "all"),
)


def same(one: Attempts, other: Attempts) -> None:
    """Both tables are equal in every column."""
    assert len(one) == len(other)
    for name, column in one.arrays().items():
        np.testing.assert_array_equal(column, other.arrays()[name], err_msg=name)
