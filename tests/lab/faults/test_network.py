"""Links: between the hosts of a replica, from clients to gateways, from routers to engines."""

import numpy as np
import pytest

from tailburn.lab.physics.step import ALLREDUCE, GEMM
from tailburn.lab.world import engine_layout as e
from tests.lab.faults.trials import Seen, rising, trial_of

FLAPPING = 20
"""Minutes: some twenty flaps."""


def _link(seen: Seen) -> np.ndarray:
    """All-reduce over matrix products, scrape by scrape, of the replica looked at.

    Both grow with the tokens of a step, so their ratio is the link's.
    """
    (replica,) = seen.replica
    parts = np.diff(seen.samples.engine_real[:, replica, e.PARTS_SUM :], axis=0)
    parts = parts[parts[:, GEMM] > 0]
    return np.asarray(parts[:, ALLREDUCE] / parts[:, GEMM])


def test_a_bad_link_between_hosts_slows_one_replica_in_bursts() -> None:
    trial = trial_of("S19", minutes=FLAPPING)
    (hit,) = trial.medium.fault.truth.affected["replica"]  # type: ignore[union-attr]
    others = [r.name for r in trial.fleet.replicas if r.name != hit]
    quiet, medium = trial.quiet.on(hit), trial.medium.on(hit)
    assert medium.tpot(90) > 1.6 * quiet.tpot(90)
    assert medium.tpot(99) > 2.0 * quiet.tpot(99)
    assert medium.prefill(50) > 1.3 * quiet.prefill(50)
    assert trial.medium.on(*others).step < 1.35 * trial.quiet.on(*others).step
    steady, bursts = np.percentile(_link(medium), [25, 97])
    assert bursts > 3.0 * steady > 3.0 * 1.3 * np.median(_link(quiet))
    assert np.percentile(_link(quiet), 97) < 2.0 * np.median(_link(quiet))
    values = [s.on(hit).tpot(90) for s in trial.all()]
    assert rising(*values)


def test_pauses_leave_the_links_alone_where_a_bad_link_does_not() -> None:
    pauses = trial_of("S11")
    link = trial_of("S19", minutes=FLAPPING)
    assert pauses.medium.part(ALLREDUCE) == pytest.approx(pauses.quiet.part(ALLREDUCE), rel=0.15)
    assert pauses.medium.count(e.PAUSES) > 0 == link.medium.count(e.PAUSES)
    assert link.medium.part(ALLREDUCE) > 1.2 * link.quiet.part(ALLREDUCE)


def _from(seen: Seen, zone: str) -> Seen:
    names = [z.name for z in seen.fleet.zones]
    a = seen.attempts
    return seen.of((a.zone_client == names.index(zone)) & (a.streamed == 1))


def test_a_long_way_to_the_gateway_is_one_zone_s_and_one_constant() -> None:
    trial = trial_of("S29")
    quiet, medium = _from(trial.quiet, "zone-b"), _from(trial.medium, "zone-b")
    for percent in (10, 50, 90):
        there = [s.ms("client_connected", "gateway_in", percent) for s in (quiet, medium)]
        back = [s.ms("gateway_first", "client_first", percent) for s in (quiet, medium)]
        assert there[1] - there[0] == pytest.approx(40.0, abs=2.5)
        assert back[1] - back[0] == pytest.approx(40.0, abs=2.5)
    lost = medium.between("client_connected", "gateway_in")
    assert np.mean(lost > 200.0) == pytest.approx(0.01, abs=0.007)
    for zone in ("zone-a", "office"):
        there = [_from(s, zone).ms("client_start", "client_first", 50)
                 for s in (trial.quiet, trial.medium)]  # fmt: skip
        assert there[1] == pytest.approx(there[0], rel=0.04)
    assert trial.medium.ttft(50) == pytest.approx(trial.quiet.ttft(50), rel=0.04)
    assert trial.medium.tpot(50) == pytest.approx(trial.quiet.tpot(50), rel=0.04)
    assert rising(*(_from(s, "zone-b").ms("client_start", "client_first", 90) for s in trial.all()))


def _slower(name: str, zone: str) -> tuple[int, int]:
    """Of a zone's clients that asked often, how many see first tokens late; and how many."""
    trial = trial_of(name)
    late = asked = 0
    for client in np.unique(trial.quiet.attempts.client):
        times = []
        for seen in (trial.quiet, trial.medium):
            of = _from(seen, zone)
            times.append(
                of.of(of.attempts.client == client).between("client_start", "client_first")
            )
        if min(len(t) for t in times) >= 40:
            asked += 1
            late += bool(np.median(times[1]) > 1.25 * np.median(times[0]))
    return late, asked


def test_all_clients_of_a_zone_are_slow_by_its_network_and_one_by_its_own_program() -> None:
    late, asked = _slower("S29", "zone-b")
    assert late == asked > 5
    in_all = [_slower("S27", zone) for zone in ("zone-a", "zone-b", "office")]
    assert sum(late for late, _ in in_all) == 1


def _grown(name: str, zone: str, rag: int) -> float:
    """How much later first tokens come to clients of a zone on a route, ms in the 90th percent."""
    trial = trial_of(name)
    of = [_from(s, zone) for s in (trial.quiet, trial.medium)]
    seen = [s.of(s.attempts.rag == rag) for s in of]
    times = [s.ms("client_start", "client_first", 90) for s in seen]
    return times[1] - times[0]


def test_a_long_way_is_one_zone_s_on_all_routes_and_slow_retrieval_one_route_s_in_all() -> None:
    for rag in (0, 1):
        assert _grown("S29", "zone-b", rag) > 50.0 > 20.0 > _grown("S29", "zone-a", rag)
    for zone in ("zone-a", "zone-b"):
        assert _grown("S31", zone, 1) > 50.0 > 20.0 > _grown("S31", zone, 0)


def test_a_congested_fabric_delays_both_ways_and_engines_do_not_know() -> None:
    trial = trial_of("S30")
    quiet, medium = trial.quiet, trial.medium
    for first, last in (("router_out", "engine_in"), ("engine_first", "router_first")):
        assert medium.ms(first, last, 10) - quiet.ms(first, last, 10) > 20.0
        assert medium.ms(first, last, 95) - medium.ms(first, last, 10) > 60.0
    assert medium.ttft(50) == pytest.approx(quiet.ttft(50), rel=0.04)
    assert medium.tpot(50) == pytest.approx(quiet.tpot(50), rel=0.04)
    assert medium.queue(90) == pytest.approx(quiet.queue(90), abs=5.0)
    short = medium.of(medium.attempts.prompt_tokens < 500).ms("router_out", "engine_in")
    long = medium.of(medium.attempts.prompt_tokens > 2_000).ms("router_out", "engine_in")
    assert short == pytest.approx(long, rel=0.1)
    assert rising(*(s.ms("router_out", "engine_in") for s in trial.all()))


def test_a_buffering_gateway_holds_answers_where_a_slow_fabric_holds_requests_too() -> None:
    buffering = trial_of("S23")
    for seen in (buffering.quiet, buffering.medium):
        assert seen.ms("router_out", "engine_in", 95) < 3.0
    assert trial_of("S30").medium.ms("router_out", "engine_in", 95) > 60.0


def test_a_slow_hand_off_grows_with_the_prompt_where_a_slow_fabric_does_not() -> None:
    handoff, fabric = trial_of("S17").medium, trial_of("S30").medium

    def took(seen: Seen, first: str, last: str) -> tuple[float, float]:
        """Of short and of long prompts."""
        tokens = seen.attempts.prompt_tokens
        return seen.of(tokens < 500).ms(first, last), seen.of(tokens > 2_000).ms(first, last)

    short, long = took(handoff, "kv_transfer_start", "kv_transfer_end")
    assert long > 1.4 * short > 200.0
    assert handoff.ms("router_out", "engine_in") < 3.0
    short, long = took(fabric, "router_out", "engine_in")
    assert long == pytest.approx(short, rel=0.1) and short > 20.0
    assert fabric.ms("kv_transfer_start", "kv_transfer_end") == 0.0
