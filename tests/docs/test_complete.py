"""The docs hold every setting, command and metric, and every link leads somewhere."""

import re
from pathlib import Path

import pytest
import typer.main

from tailburn.app.cli import cli
from tailburn.app.settings import TABLE, Row
from tailburn.engine.names import CLOCK_METRICS, HOP_METRIC, REQUESTS_METRIC
from tailburn.rules.lint.checks import CODES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def headings(page: Path) -> dict[str, str]:
    """Each heading of a page with the text below it."""
    parts = re.split(r"^#+ (.+)$", page.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_every_setting_has_a_heading_with_its_help_and_default(row: Row) -> None:
    text = headings(DOCS / "settings.md")[row.name]
    assert row.help in text
    assert f"Default: {f'`{row.shown_default}`' if row.shown_default else 'none'}." in text


def test_no_setting_is_documented_that_there_is_not() -> None:
    named = {h for h in headings(DOCS / "settings.md") if re.fullmatch(r"[a-z_]+", h)}
    assert named == {row.name for row in TABLE}


def test_every_command_has_a_heading() -> None:
    commands = typer.main.get_command(cli).commands  # type: ignore[attr-defined]
    missing = {f"tailburn {name}" for name in commands} - set(headings(DOCS / "commands.md"))
    assert not missing


def test_every_metric_of_requests_is_named() -> None:
    text = (DOCS / "health.md").read_text()
    metrics = [*(name for name, _ in CLOCK_METRICS.values()), HOP_METRIC, REQUESTS_METRIC]
    assert [name for name in metrics if f"`{name}`" not in text] == []


def test_every_code_of_a_finding_has_its_row() -> None:
    text = (DOCS / "proof.md").read_text()
    assert [code for code in CODES if f"\n| `{code}` | " not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_names_every_page() -> None:
    index = set(_LINK.findall((DOCS / "README.md").read_text()))
    assert index == {page.name for page in DOCS.glob("*.md")} - {"README.md"}
