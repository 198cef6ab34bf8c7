"""Lines of the Prometheus text format are read back as they were meant."""

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from tailburn.app.text_format import gauge


def test_a_gauge_is_read_back_as_it_was() -> None:
    odd = {"slo": 'a "b"\\', "model": "two\nlines"}
    text = gauge("asked", "What was asked.", [(odd, 0.1), ({"slo": "c"}, np.float64(1 / 3))])
    (family,) = text_string_to_metric_families(text)
    assert (family.name, family.type, family.documentation) == ("asked", "gauge", "What was asked.")
    assert [(s.labels, s.value) for s in family.samples] == [(odd, 0.1), ({"slo": "c"}, 1 / 3)]


def test_a_gauge_without_samples_is_not_there() -> None:
    assert gauge("asked", "What was asked.", []) == ""
