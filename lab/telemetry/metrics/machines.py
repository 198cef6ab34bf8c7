"""Machines as node_exporter shows them, and their pods as the kubelet's cadvisor does."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays
from tailburn.lab.telemetry.metrics.boards import Signals
from tailburn.lab.telemetry.metrics.hosts import OnHosts, Replicas
from tailburn.lab.telemetry.metrics.rows import Rows, first_tokenizer
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w
from tailburn.lab.world.knobs import Level
from tailburn.lab.world.scopes import things

F64 = NDArray[np.float64]
Found = NDArray[np.intp]


IMAGES = ("registry.local/engine:1", "registry.local/engine:2")
"""Of a container, by its release."""


class Turned(Protocol):
    """A knob turned, as faults have it: of all, `release` is seen in a pod's image alone."""

    @property
    def knob(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def scope(self) -> str: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


class Node(OnHosts):
    """A machine, as node_exporter has it, and its pods as the kubelet's cadvisor has them."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays, turns: Iterable[Turned] = ()) -> None:
        super().__init__(fleet, arrays)
        self._releases = [
            (things(Level.REPLICA, turn.scope, arrays), turn)
            for turn in turns
            if turn.knob == "release"
        ]
        names = [host.name for host in fleet.hosts]
        self._cores = np.array([host.cores for host in fleet.hosts], np.float64)
        self._clock_s = np.array([host.clock_offset_ms / 1e3 for host in fleet.hosts])
        self._drift = np.array([host.clock_drift_ppm / 1e6 for host in fleet.hosts])
        self._gateway_host = np.array([names.index(g.host) for g in fleet.gateways])
        self._replica_host = arrays.replica_host
        self._ranks = np.array(
            [fleet.pool_of(r).layout.tensor_ranks for r in range(len(fleet.replicas))], np.float64
        )
        self._tokenizers = first_tokenizer(fleet)

    def signals(self, rows: Rows) -> Signals:
        did = Replicas(rows, self.fleet)
        work = rows.grown("stations", w.S_BUSY_AREA) / 1e9
        span = rows.seconds[:, None]
        # A pod's CPU: a core spins for each rank, the front end tokenizes, steps are launched.
        pod = did.up * (self._ranks * span * 0.92) + work[:, self._tokenizers :] + did.host_s
        gateways = work[:, : len(self.fleet.gateways)]
        stalled = np.clip(1.0 - 1.0 / np.maximum(did.host_factor, 1.0), 0.0, 0.97)
        hosts = [self._host(i, rows, did, pod, gateways, stalled) for i in range(self.hosts)]
        return {name: [host[name] for host in hosts] for name in hosts[0]}

    def _host(
        self, host: int, rows: Rows, did: Replicas, pod: F64, gateways: F64, stalled: F64
    ) -> dict[str, F64]:
        span = rows.seconds
        here = np.flatnonzero(self._replica_host == host)
        fronts = np.flatnonzero(self._gateway_host == host)
        cores = self._cores[host]
        used = pod[:, here].sum(axis=1) + gateways[:, fronts].sum(axis=1) + 0.4 * span
        share = np.clip(used / (cores * span), 0.002, 1.0)
        found = self._cpu(host, span, share, np.max(stalled[:, here], axis=1, initial=0.0))
        found |= self._network(host, rows, here, fronts)
        found |= self._infiniband(host, rows, did)
        found |= self._pods(host, rows, here, pod[:, here], stalled[:, here])
        epoch, at = rows.epoch_unix_ns / 1e9, rows.samples.at_ns / 1e9
        ahead = self._clock_s[host] + self._drift[host] * at
        found |= {
            "time_s": epoch + at + ahead,
            "clock_ahead_s": ahead,
            "boot_s": 0.0 * at + epoch - 2.6e6,
        }
        found["load1"] = share * cores * (1.0 + 3.0 * np.max(stalled[:, here], axis=1, initial=0.0))
        return found

    def _cpu(self, host: int, span: F64, share: F64, stalled: F64) -> dict[str, F64]:
        """Eight of a machine's CPUs stand for all of them, alike."""
        each = {"user": 0.82 * share, "system": 0.14 * share, "softirq": 0.04 * share}
        each |= {"nice": 0.0 * share, "irq": 0.0 * share, "steal": 0.0 * share}
        each["iowait"] = np.full_like(share, 0.0004)
        each["idle"] = np.maximum(1.0 - sum(each.values()), 0.0)
        begun = {"idle": 2.4e6, "user": 9.0e4, "system": 2.0e4, "iowait": 900.0, "softirq": 3e3}
        found = {
            f"cpu_{mode}_s": self.grown.of(f"{host} {mode}", part * span, begun.get(mode, 0.0))
            for mode, part in each.items()
        }
        waiting = np.clip(stalled + np.maximum(share - 0.9, 0.0), 0.0, 1.0) * span
        found["cpu_waiting_s"] = self.grown.of(f"{host} pressure", waiting, 12.0)
        return found

    def _network(self, host: int, rows: Rows, here: Found, fronts: Found) -> dict[str, F64]:
        asked = rows.grown("replicas", w.R_SENT)[:, here].sum(axis=1)
        asked = asked + rows.grown("gateways", w.G_REQUESTS)[:, fronts].sum(axis=1)
        told = rows.grown("engine", c.GENERATION_TOKENS)[:, here].sum(axis=1)
        if len(fronts):
            told += rows.grown("engine", c.GENERATION_TOKENS).sum(axis=1) / len(self._gateway_host)
        received = asked * 6_000.0 + told * 40.0 + 2e4 * rows.seconds
        sent = told * 260.0 + asked * 900.0 + 1.5e4 * rows.seconds
        grown = self.grown
        return {
            "eth_received": np.round(grown.of(f"{host} rx", received, 4.1e11)),
            "eth_sent": np.round(grown.of(f"{host} tx", sent, 5.2e11)),
            "eth_packets_received": np.round(grown.of(f"{host} rxp", received / 900.0, 6e8)),
            "eth_packets_sent": np.round(grown.of(f"{host} txp", sent / 700.0, 6e8)),
            "tcp_retransmits": np.round(grown.of(f"{host} retr", sent / 700.0 * 2e-5, 4_000.0)),
        }

    def _infiniband(self, host: int, rows: Rows, did: Replicas) -> dict[str, F64]:
        """One port a GPU: the traffic of replicas on several hosts, and of hand-offs.

        Collectives that are slower than the link make them are a link that holds back, and
        far slower one that drops and comes back.
        """
        cards, span = self.cards[host], rows.seconds[:, None]
        across = np.array([card.hosts > 1 for card in cards])
        moved = np.where(across, self.of(did.link_bytes_s, cards) * span, 0.0)
        ranks = np.maximum([card.ranks for card in cards], 1)
        moved = moved + self.of(did.transferred, cards) / ranks
        factor = np.where(across, self.of(did.allreduce_factor, cards, 1.0), 1.0)
        slow = np.where(moved > 0, 1.0 - 1.0 / np.maximum(factor, 1.0), 0.0)
        down = ((factor > 2.5) & (moved > 0)).astype(np.float64)
        grown, key = self.grown, f"{host} ib "
        ticks = (2e3 + 0.02 * moved / 64.0 * slow + slow * 2.5e8) * span / 15.0
        packets = moved / 4096.0
        return {
            "ib_bytes": np.round(grown.of(key + "bytes", moved, 3e12)),
            "ib_packets": np.round(grown.of(key + "packets", packets, 8e8)),
            "ib_wait": np.round(grown.of(key + "wait", ticks, 4e5)),
            "ib_symbol_errors": np.round(grown.of(key + "symbol", slow * 40.0 * span / 15.0)),
            "ib_recoveries": np.round(grown.of(key + "recovery", down)),
            "ib_downed": np.round(grown.of(key + "down", down * 0.5)),
            "ib_errors": np.round(grown.of(key + "errors", slow * 12.0 * span / 15.0)),
            "ib_discards": np.round(grown.of(key + "discards", down * 60.0)),
            "ib_sequence_errors": np.round(grown.of(key + "sequence", slow * 200.0 * span / 15.0)),
            "ib_timeouts": np.round(grown.of(key + "timeouts", down * 3.0)),
            "none": 0.0 * moved,
        }

    def _pods(self, host: int, rows: Rows, here: Found, pod: F64, stalled: F64) -> dict[str, F64]:
        """cgroup CPU of each replica's pod; its quota is 100 ms periods."""
        grown, key = self.grown, f"{host} pod "
        span, at_ns = rows.seconds, rows.samples.at_ns
        periods = np.full_like(pod, 10.0) * span[:, None]
        hit = np.where(stalled > 0.03, np.clip(1.6 * stalled, 0.0, 1.0), 0.0)
        found = {
            "pod_cpu_s": grown.of(key + "cpu", pod, 900.0),
            "pod_periods": np.round(grown.of(key + "periods", periods)),
            "pod_throttled": np.round(grown.of(key + "throttled", periods * hit)),
            "pod_throttled_s": grown.of(key + "throttled_s", stalled * span[:, None] * 4.0),
        }
        shown = self._images(here, at_ns)
        pods = np.repeat(np.arange(len(here)), len(IMAGES))
        return {name: np.where(shown, values[:, pods], np.nan) for name, values in found.items()}

    def _images(self, here: Found, at_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[scrape, replica and image] whether it is the one that the pod runs."""
        image = np.zeros((len(at_ns), len(here)), np.int64)
        for which, turn in self._releases:
            on = (turn.start_ns <= at_ns) & (at_ns < turn.end_ns)
            value = min(max(int(turn.value), 0), len(IMAGES) - 1)
            image[np.ix_(on, np.isin(here, which))] = value
        all_ = np.tile(np.arange(len(IMAGES)), len(here))
        return np.asarray(np.repeat(image, len(IMAGES), axis=1) == all_[None, :])
