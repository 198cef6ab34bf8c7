"""The shipped rules know every span that a stack of the lab's sends."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from bench.lab.ear.chains import CHAINS, Chain
from bench.lab.ear.listening import scenes_for
from bench.lab.ear.scenes import Scene
from tailburn.collector.hops.explain import Explainer
from tailburn.collector.hops.rules import load_rules
from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.spans import Wiring, bodies
from tests.lab.telemetry.making import attempts, wiring

REQUESTS = 40


@pytest.fixture(scope="module")
def scenes() -> Mapping[str, Scene]:
    return scenes_for(CHAINS, REQUESTS, 7)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(load_rules())


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_no_span_of_a_chain_is_unknown(
    chain: Chain, scenes: Mapping[str, Scene], explainer: Explainer
) -> None:
    scene = scenes[chain.scene]
    assert not _unknown(scene.attempts, chain.wiring(scene), explainer)


def test_no_span_of_a_cache_server_or_a_start_is_unknown(explainer: Explainer) -> None:
    told = attempts(60, cache=True)
    told.model_start[:5], told.model_end[:5] = told.arrival_ns[:5], told.scheduled[:5]
    wired = wiring()
    engines = tuple(replace(engine, lmcache=True) for engine in wired.engines)
    sent = {rule for rule, _ in _rules(told, replace(wired, engines=engines), explainer)}
    assert {"lmcache/load", "vllm/boot"} <= sent
    assert "" not in sent


def _unknown(told: Attempts, wired: Wiring, explainer: Explainer) -> set[str]:
    """Names of spans that no rule knows."""
    return {name for rule, name in _rules(told, wired, explainer) if not rule}


def _rules(told: Attempts, wired: Wiring, explainer: Explainer) -> Iterator[tuple[str, str]]:
    for _, body in bodies(told, wired):
        for span in explainer.explain(bytearray(body)):
            yield span.rule, span.name
