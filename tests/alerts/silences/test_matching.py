"""Matchers in Alertmanager's words, and which incidents they keep back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.alerts.incidents.places import places_of
from tailburn.alerts.silences.matching import (
    Matcher,
    MatcherError,
    all_parsed,
    parsed,
    silenced_until_ns,
)
from tailburn.engine.evaluation import AlertKey
from tailburn.engine.incidents import Incident, Member
from tailburn.engine.silences import Silence
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Place, Slo

S = 1_000_000_000
SLOS = [Slo("chat", Place("s", 1), select={"pool": "a"}, labels={"team": "serving"})]


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("model=llama", {"model": "llama"}, True),
        ('model = "llama"', {"model": "llama-3"}, False),
        ("model!=llama", {}, True),
        ("model=~llama.*", {"model": "llama-3"}, True),
        ("model=~llama", {"model": "llama-3"}, False),
        ("model!~ll.*", {"model": "qwen"}, True),
        (r'model="a\"b\\c"', {"model": r'a"b\c'}, True),
        ("model=", {}, True),
        ("model=a=b", {"model": "a=b"}, True),
    ],
)
def test_a_matcher_matches_as_in_alertmanager(
    text: str, labels: dict[str, str], matches: bool
) -> None:
    assert parsed(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model", "want NAME=VALUE"),
        ("mo del=x", "want NAME=VALUE"),
        ("", "want NAME=VALUE"),
        ('model="x', "a quote that has no other"),
        ("model=~[", "no regular expression: unterminated character set"),
        ("model=" + "x" * 501, "501 characters; 500 at most"),
    ],
)
def test_a_broken_matcher_says_what_is_wanted(text: str, says: str) -> None:
    with pytest.raises(MatcherError) as error:
        parsed(text)
    assert says in str(error.value)


@pytest.mark.parametrize("texts", [[], ["model=~.*"], ["model!=x", 'pool=""'], ["a=b"] * 21])
def test_what_would_keep_back_everything_is_refused(texts: list[str]) -> None:
    with pytest.raises(MatcherError):
        all_parsed(texts)


@given(st.text(max_size=60), st.sampled_from(["=", "!="]))
def test_a_matcher_is_read_back_as_it_was_written(value: str, operator: str) -> None:
    one = Matcher("model", operator, value)
    assert parsed(str(one)) == one


def incident(*members: tuple[str, str], severity: Severity = Severity.PAGE) -> Incident:
    found = tuple(
        Member(AlertKey("TailburnBudgetBurn", "chat", "ttft", sev, "1h", "5m",
                        (("model", model),)), 0)
        for model, sev in members
    )  # fmt: skip
    return Incident("k", 0, severity, {}, members=found)


def silence(*matchers: str, until_s: int = 100) -> Silence:
    return Silence(matchers, 10 * S, until_s * S, "ada", "maintenance")


def until_s(one: Incident, *silences: Silence, now_s: int = 50) -> float | None:
    found = silenced_until_ns(one, silences, places_of(SLOS), now_s * S)
    return None if found is None else found / S


def test_it_is_kept_back_while_all_that_fires_is() -> None:
    one = incident(("llama", "page"), ("qwen", "page"))
    assert until_s(one, silence("model=llama")) is None
    assert until_s(one, silence("model=llama"), silence("model=qwen", until_s=70)) == 70
    assert until_s(one, silence("slo=chat"), silence("slo=chat", until_s=200)) == 200


def test_a_silence_holds_for_its_time_alone() -> None:
    one = incident(("llama", "page"))
    assert [until_s(one, silence("model=llama"), now_s=at) for at in (9, 10, 99, 100)] == [
        None, 100, 100, None,
    ]  # fmt: skip


def test_what_its_slo_selects_and_its_team_are_labels_too() -> None:
    one = incident(("llama", "page"))
    assert until_s(one, silence("pool=a", "team=serving", "severity=page")) == 100
    assert until_s(one, silence("pool=b")) is None


def test_tickets_of_a_page_do_not_hold_its_silence_up() -> None:
    one = incident(("llama", "page"), ("qwen", "ticket"))
    assert until_s(one, silence("model=llama")) == 100
