"""Signals for autoscalers of a running service: rows with reasons, numbers, gauges, kills."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tailburn.app.answers.scaling import SIGNALS, NotThere, NoValue
from tailburn.app.errors import UserError
from tailburn.app.scaling_series import HELP, scaling_text
from tailburn.engine.names import scale_metric
from tailburn.engine.scaling.signals import RECORDS
from tailburn.engine.slo.model import ScaleOut
from tests.app.conftest import Run
from tests.app.fleets import Fleet
from tests.app.verdicts import MINUTE_NS
from tests.rules.promtool import slo, ttft
from tests.rules.scaling.both_faces import Stretch

CHAT = slo(clocks=ttft(acceptable={"p99": 1.0}), scale_out=ScaleOut(0.7, 240.0))
BY_MODEL = replace(CHAT, name="by-model", by=("model",))
OWN = replace(CHAT, name="own", select={"tenant": "alpha"})
PLAIN = replace(CHAT, name="plain", scale_out=None)
WELL = Stretch(35, 600)
SLOW = Stretch(12, 600, 0.1, 2.0, 0.05, hops={"queue": 70, "prefill": 30})
KERNEL = replace(SLOW, hops={"queue": 20, "decode": 80})


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path / "store", CHAT, PLAIN)
    yield found
    found.database.close()


def one_row(fleet: Fleet) -> dict[str, Any]:
    (row,) = fleet.shown().rows()
    return row


def test_before_the_first_request_nothing_is_known(fleet: Fleet) -> None:
    row = one_row(fleet)
    assert (row["slo"], row["age_s"], row["queue_owns"]) == ("chat", 0, None)
    assert {signal["value"] for signal in row["signals"].values()} == {None}
    assert row["signals"]["scale_out"]["why"].startswith("no request of it was counted")
    with pytest.raises(NoValue):
        fleet.shown().flat("chat", {})


def test_a_miss_that_the_queue_owns_asks_for_replicas(fleet: Fleet) -> None:
    fleet.minutes(WELL)
    fleet.minutes(SLOW)
    row = one_row(fleet)
    gated = row["signals"]["scale_out_gated"]
    assert gated["value"] == row["signals"]["scale_out"]["value"] > 1.11
    assert gated["why"] == "the queue owns 70% of the excess of slow requests"
    assert (row["queue_owns"], row["owner"], row["owner_ratio"]) == (True, "queue", 0.7)
    assert row["signals"]["scale_hold"]["value"] == 1
    assert "p99 TTFT was half of what adds a replica" in row["signals"]["scale_hold"]["why"]
    asks_since = (gated["since_ns"] - row["at_ns"]) // MINUTE_NS
    assert -8 <= asks_since <= -2


def test_a_miss_that_a_kernel_owns_asks_for_none(fleet: Fleet) -> None:
    fleet.minutes(WELL)
    fleet.minutes(KERNEL)
    row = one_row(fleet)
    assert row["signals"]["scale_out"]["value"] > 1.11
    assert row["signals"]["scale_out_gated"]["value"] == 1
    assert (row["queue_owns"], row["owner"]) == (False, "decode")
    assert row["signals"]["scale_out_gated"]["why"].startswith("decode owns 80%")


def test_a_kill_changes_no_signal(tmp_path: Path) -> None:
    whole, killed = (Fleet(tmp_path / n, CHAT, BY_MODEL, reads_gauges=True) for n in "ab")
    engines = replace(WELL, replicas=4, waiting=7.0, kv_ratio=0.3)
    for course in (engines, replace(SLOW, minutes=5, replicas=4), replace(SLOW, minutes=3)):
        for fleet in (whole, killed):
            fleet.minutes(course)
        killed.restart()
        assert _numbers(killed) == _numbers(whole)
    assert any(values["scale_out_gated"] > 1 for values in _numbers(whole).values())


def _numbers(fleet: Fleet) -> dict[str, dict[str, float]]:
    """By series; nan as none, which is equal to itself."""
    found = {}
    for row in fleet.shown().rows():
        values = {name: signal["value"] for name, signal in row["signals"].items()}
        found[f"{row['slo']} {row['by']}"] = {**values, "owner": row["owner_ratio"]}
    return found


def test_data_that_ended_are_no_zero(fleet: Fleet) -> None:
    fleet.minutes(WELL)
    last = fleet.shown().flat("chat", {})
    assert last["scale_hold"] == 0 and set(last) == {
        "scale_ttft", "scale_out", "scale_out_gated", "scale_hold",
    }  # fmt: skip
    fleet.now_ns += 6 * MINUTE_NS

    row = one_row(fleet)

    assert row["age_s"] == 360
    assert {signal["value"] for signal in row["signals"].values()} == {None}
    assert row["signals"]["scale_hold"]["why"].startswith("nothing was evaluated since 20")
    assert scaling_text(fleet.evaluating.scaling(), fleet.now_ns) == ""
    with pytest.raises(NoValue, match="chat: scale_hold has no value: nothing was evaluated"):
        fleet.shown().flat("chat", {}, ["scale_hold"])


def test_a_signal_that_is_missing_is_refused_where_it_is_asked_for(fleet: Fleet) -> None:
    fleet.minutes(WELL)
    assert "scale_kv" not in fleet.shown().flat("chat", {})
    with pytest.raises(NoValue, match="scale_kv has no value: no engine's metrics are read"):
        fleet.shown().flat("chat", {}, ["scale_out", "scale_kv"])


def test_queue_and_cache_are_told_beside_their_targets(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", CHAT, reads_gauges=True)
    fleet.minutes(replace(WELL, replicas=4, waiting=7.5, kv_ratio=0.34))
    signals = one_row(fleet)["signals"]
    assert signals["scale_waiting"]["value"] == 1.5
    assert signals["scale_waiting"]["why"] == "7.5 requests wait at each replica, target 5"
    assert signals["scale_kv"]["value"] == pytest.approx(0.4)
    assert signals["scale_replicas"]["value"] == 4
    assert signals["scale_hold"]["value"] == 1
    assert signals["scale_hold"]["why"] == (
        "within half an hour more than one request waited at a replica"
    )
    fleet.minutes(replace(WELL, minutes=5))
    assert one_row(fleet)["signals"]["scale_kv"]["value"] is None


def test_engines_that_are_read_and_show_nothing_hold_replicas(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", CHAT, reads_gauges=True)
    fleet.minutes(replace(WELL, minutes=45))
    hold = one_row(fleet)["signals"]["scale_hold"]
    assert (hold["value"], hold["why"]) == (1, "queue and KV cache of its replicas are not known")


@pytest.mark.parametrize(
    ("name", "where", "signals", "error", "words"),
    [
        ("by-modle", {}, [], NotThere, "no SLO 'by-modle' that scales; did you mean by-model?"),
        ("plain", {}, [], NotThere, "no SLO 'plain' that scales"),
        ("chat", {"model": "a"}, [], UserError, "model is not known: it has one series"),
        ("by-model", {}, [], UserError, "model=VALUE is missing"),
        ("by-model", {"modle": "a"}, [], UserError, "did you mean model"),
        ("by-model", {"model": "c"}, [], NotThere, "model 'c' was not seen"),
        ("chat", {}, ["scale_outt"], UserError, "did you mean scale_out"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_near(
    tmp_path: Path,
    name: str,
    where: dict[str, str],
    signals: list[str],
    error: type[UserError],
    words: str,
) -> None:
    fleet = Fleet(tmp_path / "store", CHAT, BY_MODEL, PLAIN)
    fleet.minutes(replace(WELL, minutes=2))
    with pytest.raises(error) as told:
        fleet.shown().flat(name, where, signals)
    assert words in told.value.lines[0]
    assert type(told.value) is error


def test_each_model_has_its_own(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", BY_MODEL)
    fleet.minutes(WELL)
    fleet.minutes(SLOW)
    slow, well = (fleet.shown().flat("by-model", {"model": model}) for model in "ab")
    assert slow["scale_out_gated"] > 1.11 and well["scale_out_gated"] < 0.5
    assert [row["by"] for row in fleet.shown().rows()] == [{"model": "a"}, {"model": "b"}]


def test_what_is_summed_over_tenants_is_for_those_who_see_all(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "store", CHAT, replace(CHAT, name="tenants", by=("tenant",)))
    assert fleet.shown("alpha").rows() == []
    with pytest.raises(NotThere):
        fleet.shown("alpha").flat("chat", {})
    own = Fleet(tmp_path / "own", CHAT, OWN)
    assert [row["slo"] for row in own.shown("alpha").rows()] == ["own"]
    text = scaling_text(own.evaluating.scaling(), own.now_ns, "alpha")
    assert 'slo="chat"' not in text


def test_metrics_shows_what_the_api_tells(fleet: Fleet) -> None:
    fleet.minutes(WELL)
    fleet.minutes(SLOW)
    text = scaling_text(fleet.evaluating.scaling(), fleet.now_ns)
    told = one_row(fleet)["signals"]
    for name, record in SIGNALS.items():
        sample = f'\n{scale_metric(record)}{{slo="chat"}} {told[name]["value"]!r}\n'
        assert (sample in text) is (told[name]["value"] is not None)
    assert "nan" not in text.lower()


def test_every_signal_has_its_gauge_under_a_name_of_its_own() -> None:
    metrics = [scale_metric(record) for record in RECORDS]
    assert set(HELP) == set(RECORDS)
    assert len(set(metrics)) == len(RECORDS) and not any(":" in name for name in metrics)
    assert not any(name.endswith(("_count", "_sum", "_total")) for name in metrics)


def test_the_command_says_what_each_signal_means(
    run: Run, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.minutes(WELL)
    fleet.minutes(SLOW)
    rows = fleet.shown().rows()
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=rows))
    monkeypatch.setattr(httpx, "request", httpx.Client(transport=transport).request)
    told = run("scaling", "--url", "http://service:9464")
    lines = {line.split()[1]: line for line in told.out.splitlines() if "chat" in line}
    assert "add replicas" in lines["scale_out_gated"]
    assert "the queue owns 70% of the excess" in lines["scale_out_gated"]
    assert "hold" in lines["scale_hold"] and "unknown" in lines["scale_kv"]
    wrong = run("scaling", "--url", "http://service:9464", "--slo", "chta")
    assert (wrong.code, "did you mean chat?" in wrong.err) == (2, True)
