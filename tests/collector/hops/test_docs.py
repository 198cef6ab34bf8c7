"""The page on hops names every stack, and every word a rule may use."""

import re
from pathlib import Path

import pytest

from tailburn.collector.hops.check import check_files
from tailburn.collector.hops.conditions import ACCEPTED, KINDS
from tailburn.collector.hops.dimensions import BY_RULE
from tailburn.collector.hops.fields import FORMS, UNITS, Word
from tailburn.collector.hops.rules import BY_POSITION, ENDS, ROLES, Stack, load_rules

PAGE = (Path(__file__).parents[3] / "docs/hops.md").read_text()


@pytest.mark.parametrize("stack", load_rules().stacks, ids=lambda stack: stack.name)
def test_each_stack_is_in_the_table_with_its_versions(stack: Stack) -> None:
    (row,) = (row for row in PAGE.splitlines() if f"| `{stack.name}` |" in row)
    assert stack.title in row
    assert stack.versions
    assert "; ".join(stack.versions) in row


@pytest.mark.parametrize(
    "word",
    [*ACCEPTED, *KINDS, *ROLES, *ENDS, *FORMS, *UNITS, *map(str, Word), *BY_RULE, BY_POSITION],
)
def test_every_word_of_the_files_is_explained(word: str) -> None:
    assert re.search(rf"(?<![\w.]){word}(?!\w)", PAGE)


def test_the_files_shown_are_right(tmp_path: Path) -> None:
    blocks = PAGE.split("```yaml\n")[1:]
    shown = [block.partition("```")[0] for block in blocks]
    whole = [text for text in shown if not text.startswith(" ")]
    assert len(whole) == 2
    for number, text in enumerate(whole):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        assert check_files([file]).problems == ()
