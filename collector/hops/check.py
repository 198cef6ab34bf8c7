"""Files of rules checked: everything wrong at once, and rules that can never match."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailburn.collector.hops.rules import Rules, load_rules
from tailburn.engine.problems import BadFiles, Problem


@dataclass(frozen=True)
class Checked:
    """What is in the files: how many rules and steps of dimensions, or what is wrong."""

    rules: int
    steps: int
    problems: tuple[Problem, ...]


def check_files(files: Sequence[Path]) -> Checked:
    """Read the files as the service would, before the shipped rules."""
    try:
        rules = load_rules(files)
    except BadFiles as error:
        return Checked(0, 0, error.problems)
    own = [rule for rule in rules.rules if rule.file in files]
    shipped = load_rules()
    steps = _steps(rules) - _steps(shipped)
    return Checked(len(own), steps, tuple(_shadowed(rules, files)))


def _steps(rules: Rules) -> int:
    return sum(len(steps) for steps in rules.dimensions.steps.values())


def _shadowed(rules: Rules, files: Sequence[Path]) -> list[Problem]:
    """Rules below one that takes every span they could match."""
    problems: list[Problem] = []
    for index, rule in enumerate(rules.rules):
        if rule.file not in files:
            continue
        conditions = {str(condition) for condition in rule.when}
        for earlier in rules.rules[:index]:
            if {str(condition) for condition in earlier.when} <= conditions:
                where = f"{earlier.file.name}:{earlier.line}"
                wanted = f"can never match: {earlier.name} ({where}) takes all its spans"
                file, field = str(rule.file), f"rule {rule.name}"
                problems.append(Problem(file, rule.line, field, "", wanted))
                break
    return problems
