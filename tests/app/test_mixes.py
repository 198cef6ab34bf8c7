"""An SLO made of requests that were seen, and requests that are others now."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tailburn.app.answers.mixes import Kept, kept_in, mix_rows, moved, told
from tailburn.app.cli import cli
from tailburn.app.mixes import EVERY_NS, MixWatch
from tailburn.app.standing.budgets import ANEW
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.versions import Versions
from tests.app.conftest import Run
from tests.engine.store.samples import HOUR_NS
from tests.engine.suggest.rows import healthy

COUNT, HOURS = 9_000, 72
DAY_NS = 24 * HOUR_NS
NOW_NS = time.time_ns() // 10**6 * 10**6
NOW = datetime.fromtimestamp(NOW_NS / 1e9, UTC).isoformat()


def made(folder: Path, last_day: float) -> ParquetStore:
    """Three days until now; on the last one prompts are so many times as long."""
    draw = np.random.default_rng(5)
    received = np.sort(draw.integers(NOW_NS - HOURS * HOUR_NS, NOW_NS - HOUR_NS // 60, COUNT))
    tokens = draw.lognormal(np.log(600), 1, COUNT)
    tokens[received >= NOW_NS - DAY_NS] *= last_day
    rows = healthy(
        COUNT, HOURS, received_ns=received, prompt_tokens=tokens.astype(int), cached_tokens=0
    )
    store = ParquetStore(folder)
    store.publish("requests", rows, LogRange(1, 1))
    return store


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As suggested of the first two days."""
    folder = tmp_path_factory.mktemp("mixes")
    made(folder / "before", 1.0)
    flags = ["--store", str(folder / "before"), "--until", "24h", "-o", str(folder / "slo")]
    assert CliRunner().invoke(cli, ["slo", "suggest", *flags]).exit_code == 0
    return folder / "slo" / "llama-chat.yaml"


@pytest.fixture
def slo(file: Path) -> Slo:
    [slo] = parse([("llama.yaml", file.read_text())]).slos
    return slo


def test_the_file_says_what_it_was_made_of_and_no_budget_starts_anew_for_it(slo: Slo) -> None:
    assert slo.mix is not None
    assert slo.mix.requests == pytest.approx(6_000, rel=0.05)
    assert list(slo.mix.shares) == ["uncached_tokens", "output_tokens", "streamed"]
    for shares in slo.mix.shares.values():
        assert sum(shares.values()) == pytest.approx(1, abs=0.01)
    without = replace(slo, mix=None)
    for objective in objectives(slo):
        assert definition_of(slo, objective) == definition_of(without, objective)


def test_a_day_like_those_before_is_alike(slo: Slo, tmp_path: Path) -> None:
    rows = mix_rows(made(tmp_path / "alike", 1.0), [slo], NOW_NS)

    assert {row["of"]: row["verdict"] for row in rows} == dict.fromkeys(
        ("uncached_tokens", "output_tokens", "streamed"), "alike"
    )
    assert {row["requests"] for row in rows} == {rows[0]["requests"]}
    assert rows[0]["requests"] == pytest.approx(3_000, rel=0.1)


def test_a_day_of_longer_prompts_is_told_by_doctor(
    run: Run, file: Path, slo: Slo, tmp_path: Path
) -> None:
    made(tmp_path / "moved", 3.0)
    findings = {
        row["subject"]: row
        for line in run("doctor", "--store", "moved", "--slo", file, "--json").out.splitlines()
        if (row := json.loads(line))
    }

    found = findings[f"mix of {slo.name}"]
    assert found["state"] == "warn"
    assert found["seen"].startswith("uncached_tokens moved (index ")
    assert "tailburn slo suggest" in found["todo"]


def test_a_moved_mix_is_one_line_of_the_budgets(run: Run, slo: Slo, tmp_path: Path) -> None:
    """Of an SLO as a service last ran with it."""
    made(tmp_path / "moved", 3.0)
    state = open_state(state_path(tmp_path / "moved"))
    Versions(state).load([slo], NOW_NS)
    state.close()
    (said,) = moved(mix_rows(ParquetStore(tmp_path / "moved"), [slo], NOW_NS)).values()

    asked = ("budget", "--store", "moved", "--until", NOW)
    told = run(*asked)
    rows = [json.loads(line) for line in run(*asked, "--json").out.splitlines()]

    lines = [line for line in told.out.splitlines() if "made of other requests" in line]
    assert lines == [f"{slo.name} was made of other requests: {said}; {ANEW}"]
    assert {row["mix_moved"] for row in rows} == {said}


def test_a_mix_that_has_not_moved_is_no_line_of_the_budgets(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "alike", 1.0)
    monkeypatch.setenv("TAILBURN_SLO", str(file))

    told = run("budget", "--store", "alike")
    rows = [
        json.loads(line) for line in run("budget", "--store", "alike", "--json").out.splitlines()
    ]

    assert told.code == 0
    assert "other requests" not in told.out
    assert [row["mix_moved"] for row in rows] == [None] * len(rows)
    made(tmp_path / "moved", 3.0)
    assert "uncached_tokens moved" in run("budget", "--store", "moved").out


def test_the_state_keeps_the_mix_as_it_was_last_said(slo: Slo, tmp_path: Path) -> None:
    assert slo.mix is not None
    state = open_state(state_path(tmp_path))
    Versions(state).load([replace(slo, mix=None)], 1)
    Versions(state).load([slo], 2)
    (kept,) = kept_in(Versions(state).all())
    state.close()
    assert kept == Kept(slo.name, slo.select, slo.mix)
    assert kept.mix is not None
    for of in ("uncached_tokens", "output_tokens"):
        assert list(kept.mix.shares[of]) == list(slo.mix.shares[of])  # in order of their length


def test_another_slo_s_requests_are_not_looked_at(slo: Slo, tmp_path: Path) -> None:
    other = replace(slo, select={"model": "qwen"})

    rows = mix_rows(made(tmp_path / "moved", 3.0), [other], NOW_NS)

    assert {(row["verdict"], row["requests"]) for row in rows} == {("thin", 0)}


def test_the_service_looks_once_an_hour_and_shows_it(
    slo: Slo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = made(tmp_path / "moved", 3.0)
    watch = MixWatch([slo, replace(slo, name="untold", mix=None)])
    assert watch.render() == ""

    watch.look(store, NOW_NS)
    watch.look(store, NOW_NS + EVERY_NS)
    text = watch.render()

    assert f'tailburn_slo_mix_moved{{slo="{slo.name}",measure="uncached_tokens"}} 1\n' in text
    assert f'tailburn_slo_mix_moved{{slo="{slo.name}",measure="streamed"}} 0\n' in text
    assert "untold" not in text and watch.render("acme") == ""
    assert [r.getMessage() for r in caplog.records if "made of other" in r.getMessage()] == [
        f"SLO {slo.name} was made of other requests: {told(mix_rows(store, [slo], NOW_NS)[0])}"
    ]


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        ("{requests: 0}", "metadata.mix.requests"),
        ("{requests: 9, model: {llama: 140%}}", "is no per cent; want one from 0% to 100%"),
        ("{requests: 9, output_tokens: {many: 40%}}", "is no number of tokens"),
        ("{requests: 9, colour: {red: 40%}}", "colour"),
    ],
)
def test_a_mix_that_is_none_is_refused(run: Run, tmp_path: Path, mix: str, said: str) -> None:
    (tmp_path / "x.yaml").write_text(
        "apiVersion: tailburn/v1\nkind: ServingSLO\n"
        f"metadata:\n  name: x\n  mix: {mix}\nspec: {{availability: 99%}}\n"
    )
    told = run("slo", "check", "x.yaml")

    assert told.code != 0 and said in told.err + told.out
