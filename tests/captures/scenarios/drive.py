"""Deliveries through decoder, rules and stitcher, without doors, log or store."""

from collections.abc import Sequence
from functools import cache

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.collector.otlp.decoder import Decoder
from tailburn.collector.pipeline import Pipeline
from tailburn.collector.stitch.rows import PromptClasses
from tests.captures.scenarios.otlp import Delivery, body

TENANT = "default"
SECOND_NS = 1_000_000_000
SECONDS_AFTER = 30  # past the closing delay, so that what closes by itself does


@cache
def shipped_rules() -> Rules:
    """The rules that come with the collector."""
    return load_rules()


def rows_of(deliveries: Sequence[Delivery]) -> list[dict[str, object]]:
    """Every version of every request row that the deliveries lead to, in order of closing.

    Time passes in seconds between deliveries, and everything still open closes at the end.
    """
    rules = shipped_rules()
    decoder = Decoder(rules.wanted)
    classifier = Classifier(rules, decoder.dictionary, decoder.resources)
    classes = PromptClasses(rules.dimensions.prompt_bounds, rules.dimensions.prompt_classes)
    pipeline = Pipeline(classifier, decoder.dictionary, decoder.resources, classes=classes)
    now_ns = deliveries[0].received_ns
    for delivery in deliveries:
        _pass_time(pipeline, now_ns, delivery.received_ns)
        now_ns = delivery.received_ns
        decoder.add(bytearray(body(delivery.spans)), received_ns=now_ns, tenant=TENANT)
        pipeline.add(decoder.take(), decoder.take_rejected())
    until_ns = now_ns + SECONDS_AFTER * SECOND_NS
    _pass_time(pipeline, now_ns, until_ns)
    pipeline.close_all(until_ns)
    tables = pipeline.take_rows()
    return tables["requests"].to_pylist() if "requests" in tables else []


def _pass_time(pipeline: Pipeline, from_ns: int, to_ns: int) -> None:
    for now_ns in range(from_ns, to_ns, SECOND_NS):
        pipeline.advance(now_ns)
    pipeline.advance(to_ns)
