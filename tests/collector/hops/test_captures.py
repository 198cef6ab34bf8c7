"""Every span of every recorded stack is recognised, or known to be none of ours."""

from collections import Counter
from pathlib import Path

import pytest

from bench.captures.shipped import unpack
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import HopColumns
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.spans import SpanBatch
from tailburn.engine.names import HOPS
from tests.collector.hops.recorded import bodies

CLIENT = "genai/call"
ENGINE = "vllm/llm_request"
BOOT = {"vllm/boot": 11}
FAKE = "http/engine"

INVENTORY: dict[str, dict[str, int]] = {
    "vllm-0.32.0/spans/run1-http": {
        "http/token": 13_675,
        "http/asgi": 378,
        "http/call": 252,
        "http/gateway": 126,
        CLIENT: 126,
        ENGINE: 123,
        **BOOT,
    },
    "vllm-0.32.0/spans/run3-http": {ENGINE: 16, **BOOT},
    "litellm-vllm/spans": {
        "litellm/inner": 523,
        "litellm/sent": 105,
        "http/fastapi": 219,
        "litellm/server": 106,
        "litellm/web-server": 106,
        "litellm/try": 106,
        "": 106,  # the application's own spans round its calls: `ask` and `rag.answer`
        "http/call": 103,
        CLIENT: 103,
        ENGINE: 101,
        "http/other": 13,  # scrapes and a probe
        "databases/retrieval": 8,
        "databases/write": 1,
        **BOOT,
    },
    "litellm-vllm/otel-v2/spans": {
        "http/fastapi": 111,
        "litellm/inner": 102,
        "litellm/web-server": 52,
        "http/call": 52,
        "": 52,
        "litellm/call-v2": 50,
        CLIENT: 49,
        ENGINE: 45,
        "databases/retrieval": 8,
        "http/other": 7,
        "databases/write": 1,
        **BOOT,
    },
    "dynamo-mocker/spans/run1-agg-kv": {
        "dynamo/router-inner": 491,
        "dynamo/router": 173,
        CLIENT: 169,
        "dynamo/http-request": 167,
        "dynamo/router-queue": 164,
        "dynamo/call": 164,
        "dynamo/worker": 146,
        "dynamo/worker-upkeep": 2,
    },
    "dynamo-mocker/spans/run2-agg-queue": {
        "dynamo/router-inner": 315,
        "dynamo/router": 105,
        CLIENT: 105,
        "dynamo/http-request": 105,
        "dynamo/router-queue": 105,
        "dynamo/call": 101,
        "dynamo/worker": 92,
        "dynamo/worker-upkeep": 2,
    },
    "dynamo-mocker/spans/run3-disagg-kv": {
        "dynamo/router-inner": 736,
        "dynamo/router": 246,
        "dynamo/router-queue": 246,
        "dynamo/prefill-worker": 123,
        "dynamo/prefill-call": 123,
        "dynamo/call": 123,
        CLIENT: 121,
        "dynamo/http-request": 121,
        "dynamo/worker": 119,
        "dynamo/worker-upkeep": 1,
    },
    "production-stack/spans/run1-roundrobin": {
        "production-stack/try": 166,
        CLIENT: 157,
        "production-stack/request": 149,
        FAKE: 135,
    },
    "sglang-router/spans/run1-cache-aware": {
        "sglang-router/request": 187,
        CLIENT: 187,
        FAKE: 184,
        "http/other": 4,
        "sglang-router/other": 1,
    },
    "sglang-router/spans/run2-rr-queue": {
        "http/call": 149,
        CLIENT: 149,
        "sglang-router/request": 143,
        FAKE: 55,
        "http/other": 4,
        "sglang-router/other": 1,
    },
    "sglang-router/spans/run3-smg-1.13.0": {
        FAKE: 163,
        CLIENT: 160,
        "sglang-router/smg-request": 158,
        "sglang-router/other": 1,
    },
    "vllm-router/spans/run1-consistent-hash": {
        "vllm-router/try": 185,
        FAKE: 175,
        CLIENT: 173,
        "vllm-router/request": 171,
    },
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


class Recorded:
    """A recorded folder, decoded and recognised as in the service."""

    def __init__(self, rules: Rules, folder: Path) -> None:
        decoder = Decoder(rules.wanted)
        for body in bodies(folder):
            decoder.add(body, received_ns=1, tenant="default")
        self.batch: SpanBatch = decoder.take()
        self.classifier = Classifier(rules, decoder.dictionary, decoder.resources)
        self.columns: HopColumns = self.classifier.classify(self.batch)
        self.rules = [self.classifier.classes[c].rule for c in self.columns.class_id]


@pytest.mark.parametrize("folder", INVENTORY)
def test_what_each_stack_sent_is_known_by_rule(folder: str, captures: Path, rules: Rules) -> None:
    found = Counter(Recorded(rules, captures / folder).rules)
    print(folder, dict(found.most_common()))
    assert found == INVENTORY[folder]


def test_every_recorded_folder_has_an_inventory(captures: Path) -> None:
    folders = {str(file.parent.relative_to(captures)) for file in captures.rglob("*.bin")}
    assert folders == set(INVENTORY)


def test_engine_spans_of_litellm_share_an_id_with_just_one_try(
    captures: Path, rules: Rules
) -> None:
    recorded = Recorded(rules, captures / "litellm-vllm/spans")
    engine = [i for i, rule in enumerate(recorded.rules) if rule == ENGINE]
    tries = Counter(
        int(recorded.columns.own_id[i])
        for i, rule in enumerate(recorded.rules)
        if rule == "litellm/try"
    )
    assert [tries[int(recorded.columns.own_id[i])] for i in engine] == [1] * 101


def test_dynamos_cut_traces_share_an_id_with_their_clients(captures: Path, rules: Rules) -> None:
    recorded = Recorded(rules, captures / "dynamo-mocker/spans/run2-agg-queue")
    calls = {int(recorded.columns.own_id[i]) for i, r in enumerate(recorded.rules) if r == CLIENT}
    frontends = [
        int(recorded.columns.own_id[i])
        for i, rule in enumerate(recorded.rules)
        if rule == "dynamo/http-request"
    ]
    known = calls - {0}
    assert len(known) == 100
    assert known <= set(frontends)


def test_a_prefill_workers_stay_is_an_engines_for_it_holds_its_queue_too(
    captures: Path, rules: Rules
) -> None:
    recorded = Recorded(rules, captures / "dynamo-mocker/spans/run3-disagg-kv")
    hops = Counter(
        HOPS[recorded.columns.hop[i]]
        for i, rule in enumerate(recorded.rules)
        if rule in ("dynamo/worker", "dynamo/prefill-worker")
    )
    assert hops == {"engine": 119 + 123}
