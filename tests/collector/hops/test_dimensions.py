"""What requests are filed under: by rules of users, by resource, by a map of replicas."""

from collections.abc import Mapping

import pytest

from tailburn.collector.hops import classify
from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.conditions import Facts
from tailburn.collector.hops.dimensions import Dimensions
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.hops.verdict import Verdict, decide
from tests.collector.hops.batches import Resources, Span, Texts, make_batch

OURS = """
dimensions:
  pool:
    - {when: {route: "/v1/chat/*", attributes: {http.request.header.x_batch: "*"}}, value: batch}
    - {when: {tenant: acme, model: "llama-*"}, value: interactive}
    - {attribute: http.request.header.x_pool}
    - {resource: k8s.namespace.name}
  priority:
    - {when: {attributes: {prio: "re:[0-9]"}}, attribute: prio}
  zone:
    - {when: {service: "edge-*"}, value: edge}
replicas:
  vllm-a-*: {node: gpu-node-1, gpu: [GPU-11, GPU-12], zone: eu-1a}
  "631": {node: gpu-node-9}
"""


class Filed:
    """Texts of the columns of spans under the rules of a file."""

    def __init__(self, rules: Rules) -> None:
        self.texts, self.resources = Texts(), Resources()
        self.classifier = Classifier(rules, self.texts, self.resources)

    def __call__(self, span: Span) -> Mapping[str, str]:
        batch = make_batch([span], self.classifier.wanted, self.texts, self.resources)
        columns = self.classifier.classify(batch)
        return {
            name: self.texts.text(int(getattr(columns, name)[0]))
            for name in ("pool", "priority", "replica", "host", "node", "gpu", "zone", "client")
        }


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Filed:
    file = tmp_path_factory.mktemp("rules") / "ours.yaml"
    file.write_text(OURS)
    return Filed(load_rules([file]))


@pytest.fixture(scope="module")
def shipped() -> Filed:
    return Filed(load_rules())


CHAT = {"url.path": "/v1/chat/completions"}


@pytest.mark.parametrize(
    ("span", "pool"),
    [
        (Span(kind=2, attributes={**CHAT, "http.request.header.x_batch": "1"}), "batch"),
        (Span(kind=2, attributes={"http.request.header.x_batch": "1"}), ""),
        (
            Span(
                kind=3,
                attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "llama-8b"},
                tenant="acme",
            ),
            "interactive",
        ),
        (Span(kind=2, attributes={**CHAT, "http.request.header.x_pool": "gold"}), "gold"),
        (Span(kind=2, attributes=CHAT, resource={"k8s.namespace.name": "prod"}), "prod"),
        (Span(kind=2, attributes=CHAT), ""),
    ],
)
def test_a_pool_is_the_first_steps_that_gives_one(span: Span, pool: str, ours: Filed) -> None:
    assert ours(span)["pool"] == pool


@pytest.mark.parametrize(("given", "priority"), [("3", "3"), ("high", ""), ("12", "")])
def test_a_value_is_copied_only_where_its_condition_holds(
    given: str, priority: str, ours: Filed
) -> None:
    assert ours(Span(attributes={"prio": given}))["priority"] == priority


def test_the_resource_tells_where_a_replica_stands(shipped: Filed) -> None:
    resource = {
        "service.name": "vllm",
        "service.instance.id": "i-1",
        "k8s.node.name": "node-1",
        "host.name": "pod-1",
        "cloud.availability_zone": "eu-1a",
    }
    found = shipped(Span("llm_request", "vllm.tracing.otel", 2, resource=resource))
    assert found["replica"] == "i-1"
    assert (found["host"], found["node"], found["zone"]) == ("node-1", "node-1", "eu-1a")


def test_a_map_says_where_replicas_stand_before_the_resource_does(ours: Filed) -> None:
    resource = {"service.instance.id": "vllm-a-7", "host.name": "pod-7"}
    found = ours(Span(resource=resource))
    assert (found["node"], found["gpu"], found["zone"]) == ("gpu-node-1", "GPU-11,GPU-12", "eu-1a")
    assert found["host"] == "pod-7"


def test_a_replica_that_the_span_names_is_looked_up_in_the_map_too(ours: Filed) -> None:
    attributes = {"endpoint": "generate", "instance_id": "631"}
    resource = {"service.instance.id": "vllm-a-7", "host.name": "pod-7"}
    found = ours(Span("handle_payload", kind=2, attributes=attributes, resource=resource))
    assert (found["replica"], found["node"]) == ("631", "gpu-node-9")


def test_a_step_of_a_user_comes_before_the_shipped_ones(ours: Filed) -> None:
    resource = {"service.name": "edge-1", "cloud.availability_zone": "eu-1a"}
    assert ours(Span(resource=resource))["zone"] == "edge"
    assert ours(Span(resource={**resource, "service.name": "core"}))["zone"] == "eu-1a"


def test_a_caller_is_named_by_its_service(shipped: Filed) -> None:
    call = Span(
        kind=3, attributes={"gen_ai.operation.name": "chat"}, resource={"service.name": "app"}
    )
    assert shipped(call)["client"] == "app"


def test_a_fleet_of_replicas_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(rules: Rules, facts: Facts) -> Verdict:
        asked.append(facts.name)
        return decide(rules, facts)

    monkeypatch.setattr(classify, "decide", counted)
    texts, resources = Texts(), Resources()
    classifier = Classifier(load_rules(), texts, resources)
    spans = [
        Span(
            "llm_request",
            "vllm.tracing.otel",
            resource={"service.name": "vllm", "service.instance.id": f"i-{i}"},
        )
        for i in range(1000)
    ]
    columns = classifier.classify(make_batch(spans, classifier.wanted, texts, resources))
    assert asked == ["llm_request"]
    assert [texts.text(code) for code in columns.replica] == [f"i-{i}" for i in range(1000)]


@pytest.mark.parametrize(
    ("bounds", "classes"),
    [
        ((), ("any",)),
        ((100,), ("<=100", ">100")),
        ((100, 500), ("<=100", "101-500", ">500")),
    ],
)
def test_prompt_classes_are_named_by_their_bounds(
    bounds: tuple[int, ...], classes: tuple[str, ...]
) -> None:
    assert Dimensions({}, prompt_bounds=bounds).prompt_classes == classes
