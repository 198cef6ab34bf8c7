"""Versions of a budget: what starts a new one, and what does not."""

import pytest

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.parse import parse
from tests.engine.slo.texts import CHAT


def definitions(text: str) -> dict[str, str]:
    parsed = parse([("f", text)])
    assert not parsed.problems, [str(p) for p in parsed.problems]
    (slo,) = parsed.slos
    return {objective.name: definition_of(slo, objective) for objective in objectives(slo)}


def changed(old: str, new: str) -> set[str]:
    """The budgets whose definition another text of the SLO changes."""
    text = CHAT.replace(old, new)
    assert text != CHAT
    before, after = definitions(CHAT), definitions(text)
    return {name for name in before | after if before.get(name) != after.get(name)}


EVERY = {"availability", "goodput", "ttft_p95", "ttft_p99", "tpot_p95"}

CHANGES = {
    "the window": ("window: 30d", "window: 28d", EVERY),
    "a calendar": ("window: 30d", "calendar: month", EVERY),
    "the selection": ("pool: interactive", "pool: batch", EVERY),
    "one dimension less": (", request_type: chat", "", EVERY),
    "the dimensions": ("vantage: gateway", "vantage: gateway\n  by: [model]", EVERY),
    "the vantage": ("vantage: gateway", "vantage: client", EVERY),
    "the exclusions": ("before_threshold", "always", EVERY),
    "a status left out": ("before_threshold}", "before_threshold, http_status: 404}", EVERY),
    "an objective": ("99.9%", "99.5%", {"availability"}),
    "the objective of goodput": ("goodput: 95%", "goodput: 96%", {"goodput"}),
    "a threshold": ("p99: 1s", "p99: 2s", {"ttft_p99"}),
    "a threshold of goodput": ("{p95: 60ms}", "{p95: 61ms}", {"tpot_p95", "goodput"}),
}

NO_CHANGES = {
    "the team": ("team: assistants", "team: others"),
    "a link": ("assistants}", "assistants}, links: {runbook: https://example.com}"),
    "the name": ("name: chat", "name: talk"),
    "the target": ("target: {p95: 400ms}", "target: {p95: 300ms}"),
    "what is no budget": ("p50: 300ms", "p50: 250ms"),
    "the critical tier": ("critical: {p95: 3s}", "critical: {p95: 4s}"),
    "consistency": ("p99_over_p50: 3", "p99_over_p50: 4"),
    "regression": ("ratio: 1.5", "ratio: 2"),
    "scale-out": ("at: 0.8", "at: 0.7"),
    "the spelling": ("400ms", "0.4s"),
    "the order": (
        "{pool: interactive, request_type: chat}",
        "{request_type: chat, pool: interactive}",
    ),
}


@pytest.mark.parametrize(("old", "new", "budgets"), CHANGES.values(), ids=CHANGES.keys())
def test_what_decides_who_is_bad_starts_a_new_budget(old: str, new: str, budgets: set[str]) -> None:
    assert changed(old, new) == budgets


@pytest.mark.parametrize(("old", "new"), NO_CHANGES.values(), ids=NO_CHANGES.keys())
def test_all_else_keeps_the_budget(old: str, new: str) -> None:
    assert changed(old, new) == set()


def test_a_definition_is_the_same_on_every_machine() -> None:
    assert definitions(CHAT)["availability"] == "aa7e5383"
    assert all(len(d) == 8 and int(d, 16) >= 0 for d in definitions(CHAT).values())


def test_two_sources_are_two_definitions() -> None:
    def of(source: str) -> str:
        text = f"""\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {{name: a}}
spec: {{vantage: engine, availability: 99%{source}}}
"""
        return definitions(text)["availability"]

    sources = ("", ", source: {engine: vllm}", ", source: {engine: vllm, match: {job: a}}")
    assert len({of(source) for source in sources}) == len(sources)


def test_budgets_of_one_slo_differ() -> None:
    (slo,) = parse([("f", CHAT)]).slos
    assert isinstance(slo, Slo)
    assert len(set(definitions(CHAT).values())) == len(EVERY)
