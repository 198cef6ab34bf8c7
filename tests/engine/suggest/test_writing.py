"""The file of a proposal reads back as the proposal, whatever the values are called."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.intervals import Bounds
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Place
from tailburn.engine.slo.parse import parse
from tailburn.engine.suggest.proposal import Proposal, propose
from tailburn.engine.suggest.writing import Forecast, Rested, document, quoted
from tests.engine.store.samples import HOUR_NS, T0
from tests.engine.suggest.rows import healthy
from tests.engine.suggest.test_proposal import seen

FORECAST = Forecast(2.0, dict.fromkeys(Severity, 1), dict.fromkeys(Severity, Bounds(15, 0.4, 84)))
RESTED = Rested(T0, T0 + 50 * HOUR_NS, 48, ((T0 + HOUR_NS, T0 + 3 * HOUR_NS),))
[CLASS] = seen(healthy(5_000, 48, failed=0.01, http_status=200))


def proposal(model: str) -> Proposal:
    return propose(CLASS, "chat", {"model": model}, "gateway", 0.1, {"ttft": 2})


@given(st.text(min_size=1).filter(lambda text: text.isprintable() and text.strip()))
@settings(max_examples=100)
def test_a_document_says_what_was_proposed(model: str) -> None:
    given = proposal(model)
    found = parse([("chat.yaml", document(given, FORECAST, RESTED, 0.1))])
    assert not found.problems
    [slo] = found.slos
    assert replace(slo, place=Place("", 0), labels={}) == given.slo


def test_words_of_yaml_stay_texts() -> None:
    assert (
        quoted("null") == '"null"'
        and quoted("a: b") == '"a: b"'
        and quoted("llama-3.1") == ("llama-3.1")
    )


def test_every_figure_is_told_with_what_it_rests_on() -> None:
    text = document(proposal("llama"), FORECAST, RESTED, 0.1)
    for words in (
        "5,000 requests in 48 of 48 hours", "Left out:", "5,000 requests with a first token",
        "acceptable is 30% above that: with 20% an alert would have fired", "seen to fail:",
        "pages: 1, so 15 a month are to be expected (0.4 to 84)", "David and Nagaraja",
    ):  # fmt: skip
        assert words in text
