"""Changes of the fleet: told by command and over HTTP, once each, and listed by what they touch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.app.answers.changes import in_words
from tailburn.engine.changes import Change, Kind
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import open_state, state_path
from tests.app.conftest import Run
from tests.app.test_web import ALPHA, Web

S = 1_000_000_000
NAMES = st.text(max_size=8)


def rows(run: Run, *arguments: object) -> list[dict[str, Any]]:
    answer = run("change", *arguments, "--json")
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept" / "log").mkdir(parents=True)
    return tmp_path / "kept"


def test_a_change_is_told_once_and_listed_by_what_it_touches(run: Run, folder: Path) -> None:
    at = ("--at", "2026-12-01T03:05:00Z", "--store", folder, "--who", "ci")
    told = ("add", "deploy", "vllm", "--old", "0.32.0", "--new", "0.33.0", "--where", "model=llama")
    (row,) = rows(run, *told, *at)
    assert rows(run, *told, *at) == [row], "told twice, it is one"
    rows(run, "add", "config", "gateway", "--link", "https://ci/7", *at)
    listed = rows(run, "list", "--store", folder)
    assert [(r["kind"], r["what"]) for r in listed] == [("deploy", "vllm"), ("config", "gateway")]
    qwen = rows(run, "list", "--where", "model=qwen", "--store", folder)
    assert [r["what"] for r in qwen] == ["gateway"]
    assert rows(run, "list", "--since", "1h", "--store", folder) == []
    drawn = run("change", "list", "--store", folder).out
    assert "0.33.0" in drawn and "https://ci/7" in drawn


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explosion", "vllm"], "kind: explosion: want one of deploy, config"),
        (["deploy", " "], "what: is empty"),
        (["deploy", "x" * 257], "what: 257 characters; 256 at most"),
        (["deploy", "vllm", "--where", "model"], "want key=value"),
        (["deploy", "vllm", "--link", "javascript:x"], "want an address that begins"),
        (["deploy", "vllm", "--at", "soon"], "want a duration such as"),
    ],
)
def test_what_is_no_change_says_why(
    run: Run, folder: Path, arguments: list[str], says: str
) -> None:
    answer = run("change", "add", *arguments, "--store", folder)
    assert answer.code == 2 and says in answer.err


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path)
    yield web
    web.state.close()


@pytest.mark.anyio
async def test_it_is_told_and_listed_over_http_and_a_tenant_sees_its_own(web: Web) -> None:
    body = {"kind": "deploy", "what": "vllm", "new": "0.33.0", "where": {"model": "llama"}}
    made = (await web.post("/api/changes", {**body, "at_ns": 7 * S})).json()
    assert (made["id"], made["at_ns"], made["tenant"]) == (1, 7 * S, "default")
    assert [r["id"] for r in (await web.get("/api/changes?where=model=llama")).json()] == [1]
    assert (await web.get("/api/changes", ALPHA)).json() == []
    assert (await web.post("/api/changes", body, ALPHA)).status_code == 403


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "status"),
    [({"kind": "x"}, 400), ({"what": ""}, 400), ({"at_ns": 2**70}, 422), ({"more": 1}, 422),
     ({"where": {"a": 1}}, 422), ({"where": {str(n): "" for n in range(17)}}, 400)],
)  # fmt: skip
async def test_what_is_not_fit_is_refused(web: Web, change: dict[str, Any], status: int) -> None:
    body = {"kind": "deploy", "what": "vllm", **change}
    assert (await web.post("/api/changes", body)).status_code == status


@given(st.dictionaries(NAMES, NAMES), st.dictionaries(NAMES, NAMES))
def test_it_touches_what_it_does_not_name_and_what_it_names_alike(
    where: dict[str, str], asked: dict[str, str]
) -> None:
    change = Change(0, Kind.DEPLOY, "x", where=where)
    apart = any(name in asked and asked[name] != value for name, value in where.items())
    assert change.touches(asked) is not apart


def test_in_words_it_is_one_line() -> None:
    change = Change(3 * 3_600 * S + 5 * 60 * S, Kind.DEPLOY, "vllm", "1", "2", {"model": "llama"})
    assert in_words(change) == "03:05 deploy vllm 1 -> 2, model llama"
    assert in_words(Change(0, Kind.RESTART, "node-3")) == "00:00 restart node-3"


def test_old_ones_are_forgotten(tmp_path: Path) -> None:
    state = open_state(state_path(tmp_path))
    changes = Changes(state)
    for at_ns in (1, 2, 3):
        changes.add(Change(at_ns, Kind.OTHER, "x"))
    changes.forget(3)
    assert [change.at_ns for change in changes.all()] == [3]
    state.close()
