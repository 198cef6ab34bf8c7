"""Metrics read by a running service: into the store, over a kill, onto its own /metrics."""

import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.app.errors import UserError
from tailburn.app.scraping import places_of
from tailburn.app.settings import Settings
from tailburn.collector.signals.loading import load_catalogue
from tailburn.engine.store.parquet import ParquetStore
from tests.app.service import Running, refused, serving
from tests.app.targets import answering, saved


def until(true: Callable[[], bool]) -> None:
    """Waits for something that comes soon; a minute is for a machine that is busy."""
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come")


def series(running: Running) -> dict[str, float]:
    """The service's own series about targets."""
    lines = running.get("/metrics").text.splitlines()
    found = (re.fullmatch(r"(tailburn_target\S*) (\S+)", line) for line in lines)
    return {match[1]: float(match[2]) for match in found if match}


def stored(store: Path) -> Counter[tuple[object, ...]]:
    """How often each row is there, by all that tells it from others."""
    if not (store / "signals").is_dir():
        return Counter()
    asked = "SELECT received_ns, resource, name, kind, labels FROM signals"
    return Counter(tuple(row.values()) for row in ParquetStore(store).query(asked).to_pylist())


def test_what_targets_say_is_in_the_store_once_also_after_a_kill(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with answering(saved("vllm-0.32.0")) as vllm, answering(b"<html>") as page:
        (tmp_path / "targets.yaml").write_text(
            f"- targets: ['{vllm}', '{page}']\n  labels: {{job: chat, pool: interactive}}\n"
        )
        flags = ("--targets-files", "targets.yaml", "--scrape-interval-s", "0.5")
        with serving(store, *flags, "--scrape-timeout-s", "0.5") as running:
            up = f'tailburn_target_up{{job="chat",target="{vllm}"}}'
            until(lambda: series(running).get(up) == 1.0 and len(stored(store)) > 400)
            told = series(running)
            running.process.kill()
            running.process.wait()
        before = stored(store)
        with serving(store) as running:
            until(lambda: len(stored(store)) >= len(before))
            assert running.stop() == 0
    after = stored(store)
    assert before.keys() <= after.keys()
    assert set(after.values()) == {1}
    assert told['tailburn_targets{reason="up"}'] == 1
    assert told['tailburn_targets{reason="not_metrics"}'] == 1
    assert told[f'tailburn_target_up{{job="chat",target="{page}"}}'] == 0
    assert told['tailburn_target_samples_total{fate="kept"}'] > 0
    assert told["tailburn_target_duration_seconds_count"] > 0
    rows = ParquetStore(store).query(
        "SELECT DISTINCT value FROM signals WHERE name = 'requests_running'"
    )
    assert rows.to_pylist() == [{"value": 0.0}]


def test_bad_settings_of_targets_stop_the_start_all_at_once(tmp_path: Path) -> None:
    settings = Settings(
        targets_files=(tmp_path / "none.yaml",),
        targets_http=("http://a:b",),
        targets_dns=("engines",),
        targets_kubernetes=True,
        signals_prometheus="prometheus:x",
        scrape_ca=tmp_path / "none.pem",
        scrape_interval_s=5.0,
        scrape_timeout_s=7.0,
    )
    with pytest.raises(UserError) as told:
        places_of(settings, load_catalogue(), {}, tmp_path)
    assert [line.split(":")[0] for line in told.value.lines] == [
        "scrape_timeout_s=7",
        str(tmp_path / "none.yaml"),
        f"scrape_ca='{tmp_path}/none.pem'",
        "targets_http",
        "targets_dns",
        "targets_kubernetes",
        "signals_prometheus",
    ]


def test_a_service_says_what_is_wrong_with_its_names_and_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("sources:\n  - source: own\n")
    store = tmp_path / "store"
    code, said = refused("serve", "--store", store, "--signals-files", tmp_path / "ours.yaml")
    assert code == 2
    assert "ours.yaml:2: file.sources[0]: want readings" in said
    assert not store.exists()


def test_nothing_is_read_where_nothing_is_named() -> None:
    assert not places_of(Settings(), load_catalogue(), {})
