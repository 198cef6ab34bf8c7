"""Generated rules broken on purpose, one place at a time, and who notices."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.formats.prometheus import written
from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import number
from tailburn.rules.ruleset import groups_of
from tailburn.rules.testing.tests import tests_of
from tailburn.rules.testing.unit import TestFile

_RULES: Final = "mutant.rules.yaml"
_STRING = r'"(?:[^"\\]|\\.)*"'
_NAME = r"[a-zA-Z_:][\w:]*"
_RANGE = r"\[[^\]]*\]|\boffset \w+"
_NUMBER = r"(?<![\w.:])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.:])"
_OPERATOR = r">=|<=|==|!=|=~|!~|[-+*/<>]|\b(?:and|or|unless)\b"
_TOKEN = re.compile(rf"({_STRING})|({_RANGE})|({_OPERATOR})|({_NUMBER})|({_NAME})")
_SPAN = re.compile(r"(\d+)([smhd])")
_SWAPS: Final = {
    ">": "<",
    ">=": "<",
    "and": "or",
    "or": "and",
    "unless": "and",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
}
_WINDOW = re.compile(r":rate((?:\d+[smhd])+)$")


@dataclass(frozen=True)
class Mutant:
    """Groups with one rule changed."""

    what: str
    rule: Rule
    groups: tuple[Group, ...]


def mutants(slo: Slo) -> Iterator[Mutant]:
    """Every factor, window, operator and waiting time of every rule, changed; and every rule gone.

    A number becomes a fifth larger, a window twice as long, an operator its opposite.
    """
    groups = tuple(groups_of(slo))
    names = {rule.name for group in groups for rule in group.rules}
    for g, group in enumerate(groups):
        for r, rule in enumerate(group.rules):
            for what, changed in (*_exprs(rule, names), *_waits(rule), ("rule gone", None)):
                rules = (*group.rules[:r], *((changed,) if changed else ()), *group.rules[r + 1 :])
                others = (*groups[:g], replace(group, rules=rules), *groups[g + 1 :])
                yield Mutant(f"{_named(rule)}: {what}", rule, others)


def _exprs(rule: Rule, names: set[str]) -> Iterator[tuple[str, Rule]]:
    for found in _TOKEN.finditer(rule.expr):
        for text in _changed(found, names):
            expr = rule.expr[: found.start()] + text + rule.expr[found.end() :]
            around = " ".join(rule.expr[max(found.start() - 30, 0) : found.end() + 12].split())
            yield f"{found[0]} -> {text} in ...{around}...", replace(rule, expr=expr)


def _changed(found: re.Match[str], names: set[str]) -> Iterator[str]:
    _, window, operator, value, name = found.groups()
    if window:
        yield _SPAN.sub(lambda span: f"{int(span[1]) * 2}{span[2]}", window, count=1)
    elif operator in _SWAPS:
        yield _SWAPS[operator]
    elif value:
        yield number(float(value) * 1.2) if float(value) else "1"
    elif name and (recorded := _WINDOW.search(name)):
        others = sorted(n for n in names if n != name and n.startswith(name[: recorded.start(1)]))
        yield from others[:1]


def _waits(rule: Rule) -> Iterator[tuple[str, Rule]]:
    if rule.alert:
        yield f"for {rule.for_s} s -> more", replace(rule, for_s=rule.for_s * 2 or 300)


def _named(rule: Rule) -> str:
    labels = (rule.labels.get(name, "") for name in ("severity", "objective", "long"))
    return " ".join(filter(None, (rule.name, *labels)))


@dataclass(frozen=True)
class Court:
    """All tests of an SLO's rules, each a file of its own, the quick ones first."""

    folder: Path
    promtool: str
    files: Sequence[TestFile]

    @classmethod
    def of(cls, slo: Slo, folder: Path, promtool: str) -> "Court":
        """Write the tests."""
        alone = [
            replace(file, name=f"{steps:05}-{file.interval_s}s-{i}.test.yml", tests=(test,))
            for file in tests_of(slo, [_RULES])
            for i, test in enumerate(file.tests)
            for steps in [max(q.at_s for q in test.questions) // test.interval_s]
        ]
        alone.sort(key=lambda file: file.name)
        for file in alone:
            (folder / file.name).write_text(file.text)
        return cls(folder, promtool, alone)

    def kills(self, mutant: Mutant) -> str | None:
        """The test that goes red first; None where all stay green."""
        (self.folder / _RULES).write_text(written("mutant", mutant.groups))
        for file in sorted(self.files, key=lambda f: not _is_about(f, mutant.rule)):
            ended = subprocess.run(
                [self.promtool, "test", "rules", file.name],
                cwd=self.folder,
                capture_output=True,
                text=True,
            )
            if ended.returncode:
                return file.tests[0].name
        return None


def _is_about(file: TestFile, rule: Rule) -> bool:
    """Whether a test asks for what a rule says: that is tried first."""
    asked = " ".join(question.expr for question in file.tests[0].questions)
    if rule.record:
        return rule.record in asked
    words = [
        rule.alert,
        *(f'{n}="{v}"' for n, v in rule.labels.items() if n in ("long", "objective")),
    ]
    return all(word in asked for word in words)
