"""Deliveries through decoder, rules and stitcher, without doors, log or store."""

from collections.abc import Sequence

from tailburn.collector.hops import Classifier
from tailburn.collector.otlp import Decoder
from tailburn.collector.pipeline import Pipeline
from tests.captures.scenarios.otlp import Delivery, body


def rows_of(deliveries: Sequence[Delivery]) -> list[dict[str, object]]:
    """Every version of every request row that the deliveries lead to, in order of closing."""
    raise NotImplementedError
