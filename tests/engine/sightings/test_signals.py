"""Restarts, settings, drivers and clocks read off metrics, as engines and exporters write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.sightings.rollouts import Rollout
from tailburn.engine.sightings.signals import seen_in_signals
from tests.engine.sightings.seen import Watch, at, signals

Row = tuple[float, str, float, dict[str, str]]


def watched(*rows: Row, minutes: int | None = None) -> Watch:
    """Every minute up to the last one with a row, or more of them."""
    told = Watch()
    last = int(max(row[0] for row in rows)) if minutes is None else minutes
    for minute in range(last + 1):
        of_minute = [row for row in rows if int(row[0]) == minute]
        told.minute(minute, seen_in_signals(signals(*of_minute)) if of_minute else [])
    return told


def started(minute: float, replica: str, start_minute: float) -> Row:
    return minute, "process_start_seconds", at(start_minute) / 1e9, {"replica": replica}


def only(told: Watch) -> Rollout:
    (change,) = told.changes.values()
    return change


def test_a_start_that_moved_forward_is_a_restart_at_that_start() -> None:
    told = watched(
        *(started(m, "a", -60) for m in range(5)),
        *(started(m, "a", 5.5) for m in range(8, 12)),
    )
    change = only(told)
    assert (change.kind, change.what, change.old, change.new) == ("restart", "vllm", None, None)
    assert change.where == {"replica": ("a",), "service": ("vllm",)}
    assert abs(change.at_ns - at(5.5)) < 1_000


def test_a_gap_in_the_readings_is_no_restart() -> None:
    rows = [started(m, "a", -60) for m in (0, 1, 2, 50, 51, 52)]
    assert watched(*rows).told() == []


def test_a_start_worked_out_anew_from_a_clock_that_was_set_is_none() -> None:
    rows = [started(m, "a", -60 + m / 60) for m in range(30)]
    assert watched(*rows).told() == []


def test_targets_that_answer_by_turns_under_one_name_do_not_restart() -> None:
    rows = [started(m, "a", -60 if m % 2 else -30) for m in range(30)]
    assert watched(*rows).told() == []


def test_a_rolling_restart_is_one_change() -> None:
    rows = [started(m, f"e{i}", -60 if m < 10 + 4 * i else 9.5 + 4 * i)
            for i in range(4) for m in range(40)]  # fmt: skip
    assert only(watched(*rows)).where["replica"] == ("e0", "e1", "e2", "e3")


def test_a_setting_of_the_engine_is_told_and_what_it_works_out_is_not() -> None:
    def config(minute: int, dtype: str, blocks: str) -> Row:
        labels = {"replica": "a", "model": "llama", "cache_dtype": dtype, "num_gpu_blocks": blocks}
        return minute, "engine_config", 1.0, labels

    rows = [config(m, "auto" if m < 5 else "fp8", "5943" if m < 3 else "5950") for m in range(9)]
    change = only(watched(*rows))
    assert (change.kind, change.what) == ("config", "vllm cache_dtype")
    assert (change.old, change.new, change.at_ns) == ("auto", "fp8", at(5))
    assert change.where["model"] == ("llama",)


def test_a_driver_is_of_nodes_and_a_new_node_with_another_is_no_change() -> None:
    def driver(minute: int, node: str, version: str) -> Row:
        return minute, "gpu_driver", 1.0, {"node": node, "gpu": "0", "driver": version}

    rows = [driver(m, n, "570" if m < 5 else "580") for n in "ab" for m in range(9)]
    rows += [driver(m, "c", "590") for m in range(6, 9)]
    change = only(watched(*rows))
    assert (change.what, change.old, change.new) == ("GPU driver", "570", "580")
    assert change.where == {"node": ("a", "b")}


def clock(minute: float, gpu: str, *reasons: str) -> list[Row]:
    labels = {"node": "n", "gpu": gpu, "gpu_uuid": f"GPU-{gpu}"}
    events = [(minute, "gpu_clock_events", 1.0, {**labels, "reason": r}) for r in reasons]
    return [(minute, "gpu_sm_clock_hz", 1.2e9, labels), *events]


def test_gpus_that_are_held_back_are_one_change_and_those_set_free_another() -> None:
    rows = [row for m in range(30) for g in "01"
            for row in clock(m, g, *(["hw_thermal"] if 5 <= m < 12 else []))]  # fmt: skip
    told = sorted(watched(*rows).changes.values(), key=lambda c: c.at_ns)
    assert [(c.what, c.old, c.new, c.at_ns) for c in told] == [
        ("GPU clock, hw_thermal", "free", "held back", at(5)),
        ("GPU clock, hw_thermal", "held back", "free", at(12)),
    ]
    assert told[0].where == {"gpu": ("GPU-0", "GPU-1"), "node": ("n",)}


@pytest.mark.parametrize("reason", ["gpu_idle", "clocks_setting"])
def test_an_idle_gpu_is_not_held_back(reason: str) -> None:
    rows = [row for m in range(9) for row in clock(m, "0", *([reason] if m > 3 else []))]
    assert watched(*rows).told() == []


def test_a_reason_that_flickers_is_told_once() -> None:
    flickers = [["power_cap"] if m > 4 and m % 5 < 2 else [] for m in range(55)]
    rows = [row for m, reasons in enumerate(flickers) for row in clock(m, "0", *reasons)]
    assert len(watched(*rows).told()) == 1


def test_a_gpu_first_seen_held_back_is_no_change() -> None:
    rows = [row for m in range(9) for row in clock(m, "0", "hw_slowdown")]
    assert watched(*rows).told() == []


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("ab")), max_size=20))
def test_what_only_goes_on_is_no_change(seen: list[tuple[int, str]]) -> None:
    rows: list[Any] = [started(0, "a", -5), started(0, "b", -9), *clock(0, "0", "hw_thermal")]
    rows += [started(m, r, -5 if r == "a" else -9) for m, r in seen]
    rows += [row for m, _ in seen for row in clock(m, "0", "hw_thermal")]
    assert watched(*rows, minutes=9).told() == []


def test_tables_without_a_row_show_nothing() -> None:
    assert seen_in_signals(signals(*[started(0, "a", 0)]).slice(1)) == []
