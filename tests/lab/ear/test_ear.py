"""The real service fed by the lab over HTTP at full speed: its rows are the lab's own truth."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.lab.ear.broken import BROKEN, Broken
from bench.lab.ear.chains import CHAINS, Chain
from bench.lab.ear.feeding import Fed, rows_of
from bench.lab.ear.judge import Verdict, judge
from bench.lab.ear.listening import listen, lost, scenes_for, verdicts
from bench.lab.ear.table import failures
from tailburn.lab.telemetry.spans import wiring
from tests.live.service import living

REQUESTS, SEED = 120, 5
FRAGILE = ("openai / litellm / vllm", "app / fastapi / production-stack / vllm",
           "app / dynamo / dynamo-vllm")  # fmt: skip
"""Stacks whose telemetry is broken: siblings for parents, a router, a split request."""


@dataclass(frozen=True)
class Ear:
    """What came of all that was told."""

    verdicts: Mapping[tuple[str, str], Verdict]
    first: Fed
    rows: list[dict[str, Any]]
    spans_lost: int


@pytest.fixture(scope="module")
def ear(tmp_path_factory: pytest.TempPathFactory) -> Ear:
    """One service that hears every chain, some of them broken too."""
    store: Path = tmp_path_factory.mktemp("ear") / "store"
    scenes = scenes_for(CHAINS, REQUESTS, SEED)
    told: list[tuple[Chain, Broken | None]] = [(chain, None) for chain in CHAINS]
    told += [(c, way) for way in BROKEN for c in CHAINS if c.name in FRAGILE]
    with living(store, "--clock", "telemetry") as service:
        heard = listen(service.http, scenes, told)
        spans_lost = lost(heard, service.totals)
        assert service.stop() == 0
    rows = rows_of(store)
    found = verdicts(heard, rows)
    named = {
        (h.fed.chain.name, h.broken.name if h.broken else ""): verdict
        for h, verdict in zip(heard, found, strict=True)
    }
    return Ear(named, heard[0].fed, rows, spans_lost)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_rows_are_what_happened_or_null(chain: Chain, ear: Ear) -> None:
    hold(ear.verdicts[chain.name, ""])


@pytest.mark.parametrize("way", BROKEN, ids=lambda way: way.name)
@pytest.mark.parametrize("chain", FRAGILE)
def test_broken_telemetry_makes_nothing_wrong(chain: str, way: Broken, ear: Ear) -> None:
    hold(ear.verdicts[chain, way.name])


def test_no_span_is_lost(ear: Ear) -> None:
    assert ear.spans_lost == 0


def test_a_row_that_is_off_fails_its_check(ear: Ear) -> None:
    """The judge can say no."""
    mine = [row for row in ear.rows if row["ttft_client_s"] is not None]
    late = [{**row, "ttft_client_s": row["ttft_client_s"] + 0.5} for row in mine]
    failing = {check.name for check in judge(ear.first, late).checks if not check.passed}
    assert failing >= {"ttft_client_s", "a row for every request"}


def test_every_stack_is_in_a_chain() -> None:
    assert {c.client for c in CHAINS} == set(wiring.CLIENT_STACKS)
    assert {c.gateway for c in CHAINS} == set(wiring.GATEWAY_STACKS)
    assert {c.router for c in CHAINS} == set(wiring.ROUTER_STACKS)
    assert {c.engine for c in CHAINS} == set(wiring.ENGINE_STACKS) - {"none"}


def hold(verdict: Verdict) -> None:
    """Every check holds, or the failing ones are said with their requests."""
    assert verdict.passed, "\n".join(failures([verdict], shown=8))
