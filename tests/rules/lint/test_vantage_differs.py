"""A source whose vantage is not the SLO's."""

import pytest

from tailburn.engine.slo.model import EngineSource, QuerySource, Source
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.vantage_differs import check
from tests.rules.lint.asked import slo


def test_an_slo_at_the_gateway_is_not_measured_in_the_engine() -> None:
    (finding,) = check(slo(vantage="gateway", source=EngineSource("vllm")), Known())
    assert (finding.code, finding.severity, finding.given) == (
        "VANTAGE_DIFFERS",
        "error",
        "gateway",
    )
    assert "spec.vantage: engine" in finding.remedy


@pytest.mark.parametrize(
    ("vantage", "source"),
    [
        ("engine", EngineSource("vllm")),
        ("gateway", EngineSource("vllm", relabelled=True)),
        ("gateway", EngineSource("dynamo")),  # its histograms are its front end's
        ("gateway", QuerySource("a", "b")),
        ("gateway", None),
    ],
)
def test_else_nothing_is_found(vantage: str, source: Source | None) -> None:
    assert not list(check(slo(vantage=vantage, source=source), Known()))
