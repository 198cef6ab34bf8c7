"""Replicas that are not there, adapters without a slot, batch work in the way, larger batches."""

import numpy as np
import pytest

from tailburn.lab.faults.catalogue import scenario
from tailburn.lab.faults.parts import FaultError, Severity
from tailburn.lab.records import RequestType
from tailburn.lab.world import engine_layout as e
from tailburn.lab.world import layout as w
from tests.lab.faults.trials import S, Seen, Trial, rising, trial_of

RESTARTS = 20
"""Minutes: some replicas come and go in them."""


def _ready(seen: Seen) -> np.ndarray:
    """[scrape] replicas that serve."""
    return np.asarray(np.sum(seen.samples.replicas[:, :, w.R_STATE] == w.UP, axis=1))


def _restarts(seen: Seen) -> np.ndarray:
    """[replica] processes begun."""
    return np.asarray(np.sum(np.diff(seen.samples.replicas[:, :, w.R_STARTED], axis=0) > 0, axis=0))


def _arrivals(seen: Seen) -> int:
    return int(np.sum(seen.attempts.attempt == 0))


def test_replicas_that_load_keep_few_waiting_for_minutes_and_the_rest_queue() -> None:
    trial = trial_of("S25", minutes=RESTARTS)
    quiet, medium = trial.quiet, trial.medium
    (hit,) = medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    others = [r.name for r in trial.fleet.replicas if r.name != hit]
    on_loading = medium.of(medium.attempts.model_start >= 0)
    assert len(on_loading.attempts) > 5
    assert on_loading.ttft(50) > 60_000.0
    assert np.mean(_ready(medium) < 4) > 0.3
    assert medium.on(*others).queue(90) > 5.0 * quiet.on(*others).queue(90)
    assert medium.on(*others).tpot(50) < 1.2 * quiet.on(*others).tpot(50)
    assert _arrivals(medium) == pytest.approx(_arrivals(quiet), rel=0.02)
    assert rising(*(s.ttft(90) for s in trial.all()))


def test_one_replica_comes_and_goes_where_a_rolling_restart_takes_each_once() -> None:
    reclaimed = trial_of("S25", minutes=RESTARTS).medium
    rolling = trial_of("S35", minutes=RESTARTS).medium
    assert sorted(_restarts(reclaimed))[-1] >= 2 > sorted(_restarts(reclaimed))[-2]
    assert _restarts(rolling).max() == 1 and _restarts(rolling).sum() >= 2
    assert np.sum(rolling.attempts.model_start >= 0) == 0


def test_a_surge_has_all_replicas_and_more_to_do() -> None:
    surge = trial_of("S1")
    assert np.all(_ready(surge.medium) == len(surge.fleet.replicas))
    assert _arrivals(surge.medium) > 1.2 * _arrivals(surge.quiet)
    for name in ("S25", "S35"):
        away = trial_of(name, minutes=RESTARTS)
        assert np.any(_ready(away.medium) < len(away.fleet.replicas))
        assert _arrivals(away.medium) < 1.05 * _arrivals(away.quiet)


def test_a_cold_rolling_restart_queues_in_waves() -> None:
    trial = trial_of("S35", minutes=RESTARTS)
    quiet, medium = trial.quiet, trial.medium
    assert medium.queue(90) > 5.0 * quiet.queue(90)
    assert medium.tpot(50) < 1.2 * quiet.tpot(50)
    away = _ready(medium) < 4
    assert np.mean(away) > 0.4
    waiting = medium.waiting.sum(axis=1)
    assert waiting[away].mean() > 3.0 * quiet.waiting.sum(axis=1).mean()
    assert rising(*(float(np.mean(_ready(s) < 4)) for s in trial.all()[1:]))
    assert rising(*(s.ttft(90) for s in trial.all()))


def _with_adapter(seen: Seen, yes: bool = True) -> Seen:
    return seen.of((seen.attempts.lora >= 0) == yes)


def test_adapters_without_a_slot_wait_for_their_load_and_others_do_not() -> None:
    trial = trial_of("S26")
    quiet, medium = trial.quiet, trial.medium
    mine, others = _with_adapter(medium), _with_adapter(medium, False)
    assert mine.queue(75) > 4_000.0 > 100.0 > _with_adapter(quiet).queue(75)
    loads = mine.between("lora_start", "lora_end")
    loads = loads[loads > 1_000.0]
    assert np.percentile(loads, [50, 99]) == pytest.approx([4_400.0, 8_200.0], rel=0.15)
    assert others.queue(90) < 40.0
    assert medium.tpot(50) == pytest.approx(quiet.tpot(50), rel=0.05)
    assert medium.kv_used.max() < 0.2
    assert medium.running.max() < medium.gauge(e.MAX_SEQS).min() / 2
    assert medium.count(e.LORA_LOADS) > 2.0 * quiet.count(e.LORA_LOADS)
    assert rising(*(_with_adapter(s).ttft(90) for s in trial.all()))


def test_at_the_kv_wall_all_wait_and_at_the_adapters_only_theirs() -> None:
    wall, adapters = trial_of("S14").medium, trial_of("S26").medium
    assert np.percentile(wall.kv_used, 90) > 0.9 > 0.2 > adapters.kv_used.max()
    assert _with_adapter(wall, False).queue(75) > 100.0 > _with_adapter(adapters, False).queue(75)


def _interactive(seen: Seen, yes: bool = True) -> Seen:
    return seen.of((seen.attempts.request_type != RequestType.BATCH) == yes)


def test_a_sweep_keeps_those_waiting_who_come_behind_a_round() -> None:
    trial = trial_of("S32")
    quiet, medium = _interactive(trial.quiet), _interactive(trial.medium)
    assert medium.ttft(95) > 3.0 * quiet.ttft(95)
    assert medium.ttft(50) < 1.5 * quiet.ttft(50)
    excess = medium.ttft(97) - quiet.ttft(97)
    assert medium.queue(97) - quiet.queue(97) > 0.5 * excess
    assert medium.tpot(90) > 1.5 * quiet.tpot(90)
    assert _arrivals(medium) == pytest.approx(_arrivals(quiet), rel=0.02)
    batch = [len(_interactive(s, False).attempts) for s in (trial.quiet, trial.medium)]
    assert batch[1] > 1_000 > batch[0]
    assert rising(*(_interactive(s).ttft(95) for s in trial.all()))


def test_a_neighbour_fills_the_batch_where_a_sweep_fills_the_queue() -> None:
    neighbour, sweep = trial_of("S6"), trial_of("S32")
    waits = [_interactive(s).queue(95) for s in (neighbour.medium, sweep.medium)]
    assert waits[1] > 2.0 * waits[0]


def _kept(trial: Trial) -> list[str]:
    gone = {t.scope for t in trial.medium.fault.settings if t.knob == "replica_down"}  # type: ignore[union-attr]
    return [r.name for r in trial.fleet.replicas if r.name not in gone]


def test_larger_batches_lengthen_every_step_smoothly_and_nobody_queues() -> None:
    trial = trial_of("S33")
    quiet, medium = trial.quiet, trial.medium
    cap = trial.fleet.pools[0].scheduler.max_num_seqs
    kept = _kept(trial)
    assert medium.tpot(50) > 1.15 * quiet.tpot(50)
    assert medium.tpot(90) / medium.tpot(50) < 1.15 * quiet.tpot(90) / quiet.tpot(50)
    assert medium.ttft(50) < 1.2 * quiet.ttft(50)
    assert medium.queue(90) == pytest.approx(quiet.queue(90), abs=10.0)
    assert quiet.running.max() <= cap < medium.running.max()
    assert medium.gauge(e.MAX_SEQS).max() == 4 * cap
    per_replica = [s.on(*kept).count(e.GENERATION_TOKENS) / len(kept) for s in (quiet, medium)]
    assert per_replica[1] > 1.5 * per_replica[0]
    assert rising(*(s.tpot(50) for s in trial.all()))


def test_a_larger_batch_takes_what_it_predicts_and_a_slow_release_more() -> None:
    larger, release = trial_of("S33"), trial_of("S9")
    assert larger.medium.on(*_kept(larger)).rho == pytest.approx(1.0, abs=0.06)
    hit = release.medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    assert release.medium.on(*hit).rho > 1.1
    assert larger.medium.kv_used.max() < 0.1 < trial_of("S6").medium.kv_used.max()


@pytest.mark.parametrize("name", ["S25", "S35", "N5"])
def test_a_time_in_which_no_replica_restarts_is_refused(name: str) -> None:
    one = scenario(name)
    with pytest.raises(FaultError, match="replicas restart: want 60 s at least, not from 0 until"):
        one.fault(one.fleet(1.0), Severity.MEDIUM, 0, 59 * S, seed=1)


def test_saved_replicas_are_back_before_the_cap_is_low_again() -> None:
    trial = trial_of("S33")
    turns = trial.medium.fault.settings  # type: ignore[union-attr]
    low = next(t.end_ns for t in turns if t.knob == "max_num_seqs")
    back = {t.end_ns for t in turns if t.knob in ("replica_down", "replica_draining")}
    assert len(back) == 1 and low - back.pop() == 100 * S
    assert _ready(trial.medium)[-1] == len(trial.fleet.replicas)


def test_a_sweep_leaves_interactive_arrivals_as_they_were_and_a_surge_does_not() -> None:
    sweep, surge = trial_of("S32"), trial_of("S1")
    grown = [
        len(_interactive(t.medium).attempts) / len(_interactive(t.quiet).attempts)
        for t in (sweep, surge)
    ]
    assert grown[0] == pytest.approx(1.0, abs=0.05) and grown[1] > 1.2
