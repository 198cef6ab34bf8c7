"""Generated rules broken on purpose: the generated tests notice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tailburn.rules.ruleset import groups_of
from tests.rules.testing.mutants import Court, Mutant, mutants
from tests.rules.testing.slos import BATCH, CHAT, ENGINES, SMALL, slo

LEAST_KILLED = 0.9


def survivors(text: str, every: int, folder: Path, promtool: str) -> tuple[Sequence[Mutant], int]:
    """Of each so many mutants those that no test notices; and how many there were."""
    given = slo(text)
    court = Court.of(given, folder, promtool)
    found = list(mutants(given))
    assert court.kills(replace(found[0], groups=tuple(groups_of(given)))) is None
    tried = found[::every]
    return [mutant for mutant in tried if court.kills(mutant) is None], len(tried)


def test_broken_rules_go_red(tmp_path: Path, need_program: Callable[[str], str]) -> None:
    alive, tried = survivors(SMALL, 17, tmp_path, need_program("promtool"))
    assert tried >= 10
    assert len(alive) <= tried * (1 - LEAST_KILLED), [mutant.what for mutant in alive]


@pytest.mark.parametrize("days", ["1d", "3d"])
def test_a_ticket_of_days_that_waits_goes_red(
    days: str, tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    """It comes five minutes late, and a mean of sampled rates may be later."""
    given = slo(SMALL)
    what = f"TailburnBudgetBurn ticket availability {days}: for 0 s -> more"
    (mutant,) = (mutant for mutant in mutants(given) if mutant.what == what)
    assert Court.of(given, tmp_path, need_program("promtool")).kills(mutant) is not None


@pytest.mark.long
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(
    "text",
    [SMALL, CHAT, BATCH, ENGINES["vllm"]],
    ids=["small", "chat", "batch", "vllm"],
)
def test_nine_in_ten_broken_rules_go_red(
    text: str, tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    alive, tried = survivors(text, 1, tmp_path, need_program("promtool"))
    for mutant in alive:
        print(mutant.what)
    print(f"{tried - len(alive)} of {tried} killed")
    assert len(alive) <= tried * (1 - LEAST_KILLED)


def test_a_mutant_differs_from_the_rules_in_one_place() -> None:
    given = slo(SMALL)
    whole = [rule for group in groups_of(given) for rule in group.rules]
    for mutant in mutants(given):
        rules = [rule for group in mutant.groups for rule in group.rules]
        assert len(rules) in (len(whole), len(whole) - 1)
        if len(rules) == len(whole):
            assert sum(a != b for a, b in zip(rules, whole, strict=True)) == 1
