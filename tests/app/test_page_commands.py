"""`tailburn page test`: by each way, how far it came."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import Run
from tests.live.monitoring import paging


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_page_comes_through_and_is_over_at_once(run: Run, tmp_path: Path) -> None:
    with paging() as (url, pager):
        (tmp_path / "hook").write_text(url)
        (tmp_path / "tailburn.toml").write_text('page_to = ["webhook:hook"]\n')
        answer = run("page", "test", "--json")
        drawn = run("page", "test", "--ticket")
    assert answer.code == 0, answer.err
    assert [(row["step"], row["ok"]) for row in rows(answer.out)] == [
        ("trigger", True), ("resolve", True),
    ]  # fmt: skip
    begun, over, ticket, _ = pager.told
    assert begun["key"] == over["key"] != ticket["key"]
    assert (begun["severity"], ticket["severity"]) == ("page", "ticket")
    assert "There is nothing to do." in begun["text"]
    assert "webhook:hook" in drawn.out and "the receiver has it" in drawn.out


def test_where_it_stopped_is_said_and_the_others_are_tried(run: Run, tmp_path: Path) -> None:
    with paging() as (url, pager):
        (tmp_path / "hook").write_text(url)
        (tmp_path / "gone").write_text("http://127.0.0.1:1/secret")
        (tmp_path / "tailburn.toml").write_text(
            'page_to = ["webhook:gone", "webhook:hook"]\nalertmanagers = ["http://127.0.0.1:1"]\n'
        )
        answer = run("page", "test", "--json")
    assert answer.code == 1 and len(pager.told) == 2
    found = {(row["way"], row["step"]): row for row in rows(answer.out)}
    gone = found["webhook:gone", "trigger"]
    assert not gone["ok"] and gone["says"].startswith("http://127.0.0.1:1: ")
    assert "secret" not in answer.out
    assert not found["http://127.0.0.1:1", "post"]["ok"]
    assert found["webhook:hook", "resolve"]["ok"]


@pytest.mark.parametrize("settings", ["", 'heartbeat_to = "beat"'])
def test_without_a_way_it_says_which_settings_there_are(
    run: Run, tmp_path: Path, settings: str
) -> None:
    (tmp_path / "beat").write_text("http://127.0.0.1:1/")
    (tmp_path / "tailburn.toml").write_text(settings)
    answer = run("page", "test")
    assert (answer.code, answer.err) == (
        2, "tailburn: nobody is told: none of alertmanagers, page_to and ticket_to is in the "
        "settings\n",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["page", "incidents"])
def test_help_teaches_by_a_call(run: Run, name: str) -> None:
    assert f"tailburn {name} " in run(name, *(["test"] if name == "page" else []), "--help").out
