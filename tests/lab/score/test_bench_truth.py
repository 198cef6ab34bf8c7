"""The bench of truth itself: what is run, what is kept, one run from warm-up to scores."""

import json
import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bench.truth.batches import Cost, batches, estimated_s
from bench.truth.cell import Warm, run_cell, warm_up
from bench.truth.grid import QUIET, Ask, Cell, cells
from bench.truth.kept import Kept, KeptError
from bench.truth.report import CAUSES, scores_of
from bench.truth.systems import FixedSloSystem, Told
from tailburn.lab.faults.catalogue import SCENARIOS
from tailburn.lab.faults.parts import FaultError
from tailburn.lab.run import Motion, Plan, Traffic
from tailburn.lab.score.grounds import GROUNDS, SIGNALS
from tailburn.lab.score.heard import Ear, Heard, hops_of
from tailburn.lab.score.minutes import MIDDLES_S

MINUTE = 60 * 10**9


def test_every_scenario_has_grounds_and_every_control_has_none() -> None:
    assert set(GROUNDS) == set(CAUSES)
    assert {s for groups in GROUNDS.values() for group in groups for s in group} <= set(SIGNALS)


def test_the_whole_run_is_the_protocol_s() -> None:
    every = list(cells(Ask()))
    assert len({c.key for c in every}) == len(every)
    for per_s, seeds, severities in ((1.0, 10, 3), (10.0, 10, 3), (100.0, 2, 2)):
        mine = [c for c in every if c.per_s == per_s]
        assert len({c.seed for c in mine}) == seeds
        of_s1 = [c for c in mine if c.what == "S1"]
        assert len(of_s1) == seeds * severities
        assert {c.what for c in mine} >= {*SCENARIOS, QUIET}


def test_half_of_the_time_is_free_of_faults_and_controls_lie_between() -> None:
    every = [c for c in cells(Ask(seeds=1, rates=(10.0,))) if c.what != QUIET]
    assert sum(c.fault_minutes for c in every) <= sum(c.minutes for c in every) / 2
    where = [i for i, c in enumerate(every) if c.what.startswith("N") and c.severity == "weak"]
    assert all(b - a > 1 for a, b in zip(where, where[1:], strict=False))


def test_a_quick_run_is_one_seed_at_one_rate_and_severity() -> None:
    quick = Ask(rates=(10.0,), seeds=1, severities=("medium",), quiet_minutes=360, quick=True)
    every = list(cells(quick))
    assert {(c.per_s, c.seed) for c in every} == {(10.0, 1)}
    assert {c.severity for c in every} == {"medium", "none"}


def test_a_slowdown_is_one_of_all_replicas_by_a_factor() -> None:
    for severity, factor in (("weak", 1.25), ("medium", 1.5), ("strong", 2.0)):
        cell = Cell("slowdown", severity, 10.0, 1)
        (fault,) = cell.faults(cell.fleet(None), 10 * MINUTE)
        assert {(t.knob, t.value, t.scope) for t in fault.settings} == {
            ("kernel_factor", factor, "all")
        }
        assert fault.truth.pages


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    with pytest.raises(FaultError, match="did you mean"):
        list(cells(Ask(scenarios=("S99",))))


def test_runs_of_one_fleet_rate_and_seed_share_a_warm_up() -> None:
    some = [Cell(w, "medium", r, s) for w in ("S21", "S23") for r in (1.0, 10.0) for s in (1, 2)]
    made = batches(some, None, {1.0: 1, 10.0: 8})
    assert sorted(len(b.cells) for b in made) == [2, 2, 2, 2]
    costs = {1.0: Cost(0.01, 0.0), 10.0: Cost(0.1, 0.05)}
    heard_s = sum(b.minutes * costs[b.cells[0].per_s].heard_s for b in made)
    proposed_s = 2 * 7 * 1_440 * 0.05  # of the last week of two warm-ups
    assert estimated_s(made, costs, 2) == pytest.approx((heard_s + proposed_s) / 2)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "out.jsonl")
    assert kept.begin({"warm": 1}) == set()
    kept.add({"cell": "a"})
    kept.path.write_bytes(kept.path.read_bytes() + b'{"cell": "b", "tr')
    assert kept.begin({"warm": 1}) == {"a"}, "a torn line is no run"
    kept.add({"cell": "c"})
    assert [run["cell"] for run in kept.runs()] == ["a", "c"]
    with pytest.raises(KeptError, match="name another OUT="):
        kept.begin({"warm": 2})


@pytest.fixture(scope="module")
def warm() -> Warm:
    return warm_up(Cell("S24", "strong", 2.0, 1), None, 60)


def test_a_run_goes_from_warm_up_to_scores(warm: Warm) -> None:
    """Half an hour of history is too little for a day's baseline: nobody pages, all is scored."""
    cell = Cell("S24", "strong", 2.0, 1)
    line = json.loads(json.dumps(run_cell(cell, pickle.loads(pickle.dumps(warm))), allow_nan=False))
    assert line["cell"] == "S24/strong/2/1"
    (truth,) = line["truth"]["truths"]
    assert truth["start_ns"] == 120 * MINUTE and truth["end_ns"] == 165 * MINUTE
    spent = line["spent"]
    assert sum(spent["requests"]) > 10_000
    in_fault = np.array(spent["bad"])[60:105].mean()
    assert in_fault > 3 * max(np.array(spent["bad"])[:60].mean(), 0.1)
    scores = scores_of([{**line, "warm": "a"}])
    raw = scores["raw 24 h rule"]["all"]
    assert (raw.faults, raw.recall.value, raw.burned_median.count) == (1, 0.0, 1)
    assert scores["largest z-score"]["all"].top_1.count == 1
    assert scores["largest z-score"]["scenario S24"].confusion["S24"]


def test_a_run_is_the_same_each_time(warm: Warm) -> None:
    cell = Cell(QUIET, "none", 2.0, 1, quiet_minutes=20)
    one, two = run_cell(cell, warm), run_cell(cell, warm)
    for line in (one, two):
        line.pop("cpu_s")
    assert one == two


def test_minutes_hold_what_attempts_do(warm: Warm) -> None:
    fleet = warm.motion.plan.fleet
    motion = Motion(Plan(fleet, (Traffic(Cell("S24", "weak", 2.0, 1).profile(None), 2.0),), 1))
    told = motion.advance(20 * MINUTE)
    heard = Ear(fleet).hear(told.attempts, 0, 20 * MINUTE)
    a = told.attempts
    streamed = (a.streamed == 1) & (a.gateway_first >= 0)
    ttft = (a.gateway_first - a.gateway_in)[streamed] / 1e9
    counts = sum(c.sum(axis=0, dtype=np.int64) for (k, _), c in heard.clocks.items() if k == "ttft")
    assert counts.sum() == streamed.sum()
    middle = MIDDLES_S[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]
    assert middle == pytest.approx(float(np.median(ttft)), rel=0.03)
    for hop, seconds, known in hops_of(a):
        assert (seconds[known] >= 0).all(), hop
    asked = heard.column("offered_requests")
    assert asked.sum() == (a.attempt == 0).sum()


def test_all_that_comes_after_the_fork_is_judged() -> None:
    """Eight days with a slow hour each: none of them may be forgotten by the end."""
    day, clock = 1_440, ("ttft", "m")
    usual, long, slow = (int(np.searchsorted(MIDDLES_S, s)) for s in (0.1, 0.3, 1.0))

    def heard(number: int, broken: bool) -> Told:
        counts = np.zeros((day, len(MIDDLES_S)), np.uint32)
        counts[:, usual], counts[:, long] = 590, 10
        if broken:
            counts[600:660] = 0
            counts[600:660, slow] = 600
        nothing = np.zeros((day, 0), np.float32)
        return Told(
            cast(Any, None),
            cast(Any, None),
            Heard(number * day * MINUTE, {clock: counts}, (), nothing),
        )

    warm = FixedSloSystem()
    for number in range(8):
        warm.hear(heard(number, False))
    forked = warm.fork()
    for number in range(8, 16):
        forked.hear(heard(number, True))

    pages = [page for page in forked.outcome([]).pages if page.severity == "page"]
    days = {page.start_ns // (day * MINUTE) for page in pages}
    assert days == set(range(8, 16))
