"""Machines, GPUs and collectives show what was done to them, and where nothing was, nothing."""

import numpy as np
import pytest

from tailburn.lab.faults.parts import Turn as TurnOfFault
from tailburn.lab.fleet import Host, standard
from tailburn.lab.fleet.parts import Fleet
from tailburn.lab.physics import Layout
from tailburn.lab.telemetry.metrics.gpus import cards_of
from tests.lab.telemetry.metrics.running import S, Turn, column, joined, run, target, value

BOTH = (
    ("sm_clock_ratio", 0.7, "vllm-0", 60, 400),
    ("straggler_ratio", 0.75, "vllm-1", 60, 400),
)
CLOCK = "DCGM_FI_DEV_SM_CLOCK"
GPUS = "dcgm-exporter-node-0"


def _gpu(table: object, metric: str, gpu: int) -> "np.ndarray":
    return np.array(column(table, metric, GPUS, f'gpu="{gpu}"'))


def test_a_throttled_replica_has_slow_hot_gpus_and_its_neighbours_none() -> None:
    scrapes = run(BOTH).scrapes()
    names = (
        CLOCK,
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "DCGM_FI_DEV_XID_ERRORS",
    )
    table = joined(scrapes, names)
    for gpu in range(4):
        clock = _gpu(table, CLOCK, gpu)
        assert clock[2] == 1980 and clock[-1] == pytest.approx(0.7 * 1980, rel=0.01)
        assert _gpu(table, "DCGM_FI_DEV_GPU_TEMP", gpu)[-1] > 75
        assert np.all(np.diff(_gpu(table, "DCGM_FI_DEV_THERMAL_VIOLATION", gpu)[4:]) > 0)
    # Of the straggling replica the last rank alone.
    for gpu in range(4, 7):
        assert _gpu(table, CLOCK, gpu)[-1] == 1980
        assert _gpu(table, "DCGM_FI_DEV_THERMAL_VIOLATION", gpu)[-1] == 0
    assert _gpu(table, CLOCK, 7)[-1] == pytest.approx(0.75 * 1980, rel=0.01)


def test_peers_of_a_straggler_wait_in_the_collective_and_it_does_not() -> None:
    for turns, waits in (((), False), (BOTH, True)):
        scrapes = run(turns).scrapes()
        table = joined(scrapes, ("nccl_collective_exec_time_microseconds",))
        name = "nccl_collective_exec_time_microseconds"
        rank = [
            column(table, name, "nccl-inspector-node-0", f'gpu="GPU{gpu}"')[-1]
            for gpu in (4, 5, 6, 7)
        ]
        assert rank[0] == rank[1] == rank[2]
        assert (rank[0] > 1.5 * rank[3]) == waits


def test_a_throttled_host_shows_in_its_pods_cgroup_and_no_other_does() -> None:
    turns: tuple[Turn, ...] = (("cpu_factor", 5.0, "host:node-1", 60, 400),)
    here = run(turns, fleet=_two_hosts())
    table = joined(here.scrapes())
    for host, throttled in (("node-0", False), ("node-1", True)):
        seconds = column(table, "container_cpu_cfs_throttled_seconds_total", f"cadvisor-{host}")
        waiting = column(table, "node_pressure_cpu_waiting_seconds_total", f"node_exporter-{host}")
        assert (seconds[-1] > seconds[0]) == throttled
        assert (waiting[-1] > waiting[0] + 10) == throttled


def _two_hosts() -> Fleet:
    """A replica of eight GPUs on each of two hosts."""
    return standard(8.0, clients=400, layout=Layout("Llama-3.1-70B", "H200", 8), replicas=2)


def _spanning() -> Fleet:
    """Two replicas of sixteen ranks on four hosts."""
    return standard(2.0, clients=400, layout=Layout("Llama-3.1-70B", "H200", 16), replicas=2)


def test_a_bad_link_between_hosts_shows_at_the_ports_of_its_replica_alone() -> None:
    turns: tuple[Turn, ...] = (("allreduce_factor", 4.0, "vllm-0", 60, 400),)
    here = run(turns, fleet=_spanning(), per_s=2.0)
    table = joined(here.scrapes())
    grew = {}
    for host in [host.name for host in here.fleet.hosts if host.gpus]:
        waits = column(
            table, "node_infiniband_port_transmit_wait_total", f"node_exporter-{host}", "mlx5_0"
        )
        downs = column(
            table, "node_infiniband_link_downed_total", f"node_exporter-{host}", "mlx5_0"
        )
        grew[host] = waits[-1] - waits[4], downs[-1] - downs[0]
    hurt = {host for host, (wait, down) in grew.items() if wait > 1e8 and down > 0}
    assert hurt == _hosts_of(here.fleet, 0)
    assert all(down == 0 for host, (_, down) in grew.items() if host not in hurt)


def _hosts_of(fleet: Fleet, replica: int) -> set[str]:
    return {
        host.name
        for host, cards in zip(fleet.hosts, cards_of(fleet), strict=True)
        if any(card.replica == replica for card in cards)
    }


def test_small_collectives_are_seen_between_hosts_alone() -> None:
    """Within a host engines have kernels of their own for them, which NCCL knows nothing of."""
    metric = ("nccl_collective_exec_time_microseconds",)
    within = joined(run().scrapes(), metric)["labels"].unique().to_pylist()
    across = (
        joined(run(fleet=_spanning(), per_s=2.0).scrapes(), metric)["labels"].unique().to_pylist()
    )
    assert within and not any("KB" in label for label in within)
    assert any("KB" in label for label in across)
    assert all('n_nodes="2"' in label for label in across)


def test_every_rank_has_a_gpu_of_its_own() -> None:
    fleet = _spanning()
    owned = [(c.replica, c.rank) for cards in cards_of(fleet) for c in cards if c.replica >= 0]
    assert len(owned) == len(set(owned))
    assert {replica for replica, _ in owned} <= {0, 1}
    free = cards_of(standard(8.0, layout=Layout("Llama-3.1-8B", "H200", 1), replicas=3))
    assert [card.replica for card in free[2]][:4] == [0, 1, 2, -1]
    assert isinstance(fleet.hosts[0], Host)


def test_clocks_of_hosts_are_off_by_what_the_fleet_says() -> None:
    scrapes = run().scrapes()[0]
    text = scrapes.text(target(scrapes, "node_exporter-node-0"), 0)
    assert text is not None
    host = next(host for host in run().fleet.hosts if host.name == "node-0")
    assert value(text, "node_timex_offset_seconds") == pytest.approx(
        -host.clock_offset_ms / 1e3, abs=1e-4
    )


def test_a_release_shows_in_the_image_of_its_pods() -> None:
    turn = TurnOfFault("release", 1.0, "vllm-1", 60 * S, 120 * S)
    table = joined(run().scrapes(turns=(turn, TurnOfFault("hbm_ratio", 0.8, "all", 0, S))))
    name = "container_cpu_usage_seconds_total"
    shown = {
        (pod, image): len(column(table, name, "cadvisor-node-0", f'pod="{pod}"', f"engine:{image}"))
        for pod in ("vllm-0", "vllm-1")
        for image in (1, 2)
    }
    assert shown == {
        ("vllm-0", 1): 12, ("vllm-0", 2): 0, ("vllm-1", 1): 8, ("vllm-1", 2): 4,
    }  # fmt: skip
