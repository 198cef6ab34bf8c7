"""Whether an outage is paged in time, for pairs that the rules' own arithmetic never makes."""

from tailburn.app.calculators.explaining import explained, refusals
from tailburn.engine.slo.model import Completion, Place, Slo

WIDE = Slo("wide", Place("wide.yaml", 3), availability_ratio=0.95)
BATCH = Slo("batch", Place("batch.yaml", 3), completion=Completion(3600.0, 0.95))


def test_a_page_that_takes_too_long_is_refused_with_how_long() -> None:
    (budget,) = explained(WIDE, textbook=True)
    assert list(refusals(WIDE, [budget])) == [
        "wide.yaml:3: wide: availability: the first page comes 43.2m after all requests are bad; "
        "want one within 10m: 5 % of the requests may be bad, so give a higher objective"
    ]


def test_the_rules_own_page_comes_in_time() -> None:
    assert list(refusals(WIDE, explained(WIDE))) == []


def test_a_batch_pool_is_refused_nothing() -> None:
    assert list(refusals(BATCH, explained(BATCH, textbook=True))) == []
    assert list(refusals(BATCH, [])) == []
