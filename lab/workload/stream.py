"""The workload as a stream: `Requests` minute by minute, from any minute on.

    workload = Workload(named("azure-conv"), seed=1, per_s=100.0)
    for minute in workload.minutes(0, 24 * 60):
        world.feed(minute)

The same seed gives the same requests, wherever the stream is begun.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tailburn.lab.records import Requests
from tailburn.lab.workload.arrive import arrive
from tailburn.lab.workload.changes import KNOB, Change, lay_out
from tailburn.lab.workload.dress import dress
from tailburn.lab.workload.errors import WorkloadError
from tailburn.lab.workload.kinds import kind_table
from tailburn.lab.workload.profiles import Profile
from tailburn.lab.workload.rates import BLOCK_S, shapes_of, thinned_cv
from tailburn.lab.workload.replay import replay
from tailburn.lab.workload.sessions import EPOCH_BLOCKS, Slots

BLOCK_NS = BLOCK_S * 10**9
MINUTE_NS = 60 * 10**9
BLOCK_MINUTES = BLOCK_S // 60


class Workload:
    """Requests of one profile. per_s: mean rate over its week, None for its own.

    start_s: seconds after a Monday's 00:00 at which the run's epoch lies.
    """

    def __init__(
        self,
        profile: Profile,
        seed: int,
        per_s: float | None = None,
        start_s: int = 0,
        changes: Sequence[Change] = (),
    ) -> None:
        if per_s is not None and not 0 < per_s < 1e6:
            raise WorkloadError(f"rate {per_s}: want more than 0 and under 1,000,000 req/s")
        if start_s % BLOCK_S:
            raise WorkloadError(f"start_s {start_s}: want a multiple of {BLOCK_S} s")
        self.profile = profile
        self.clients = profile.clients
        self.scale = 1.0 if per_s is None else per_s / profile.per_s
        self.changes = tuple((c, profile.clients.scope(c.scope)) for c in changes)
        self._seed = np.uint64(seed)
        self._offset = start_s // BLOCK_S
        self._kinds = kind_table(profile.clients.kinds)
        self._shares = np.concatenate([profile.rates.mean_per_s * self.scale, [0.0, 0.0]])

    def minutes(self, first: int = 0, last: int | None = None) -> Iterator[Requests]:
        """Minute `first` of the run, the next, ... up to but without `last`; endless if None."""
        block = first // BLOCK_MINUTES
        slots = self._slots_at(block)
        while last is None or block * BLOCK_MINUTES < last:
            requests = self._block(block, slots)
            start = block * BLOCK_MINUTES
            edges = (np.arange(BLOCK_MINUTES + 1) + start) * MINUTE_NS
            cuts = np.searchsorted(requests.arrival_ns, edges)
            for i in range(max(first - start, 0), BLOCK_MINUTES):
                if last is not None and start + i >= last:
                    return
                yield requests.take(slice(cuts[i], cuts[i + 1]))
            block += 1

    def window(self, first: int, last: int) -> Requests:
        """Minutes `first` up to but without `last`, as one table."""
        return Requests.join(list(self.minutes(first, last)))

    def _slots_at(self, block: int) -> Slots:
        """Conversations that are under way when a block begins: made by those before it."""
        slots = Slots.for_clients(self._shares, self.clients)
        if slots.any:
            for before in range(max(block - EPOCH_BLOCKS + 1, 0), block):
                self._block(before, slots)
        return slots

    def _block(self, block: int, slots: Slots) -> Requests:
        """All requests of one block, in order of arrival; moves the conversations on."""
        start_ns, clients = block * BLOCK_NS, self.clients
        of_week = block + self._offset
        edges, knobs = lay_out(self.changes, self._shares, start_ns, start_ns + BLOCK_NS)
        first, at, given = self._arrivals(block, of_week, edges, knobs)
        lens = self.profile.lengths.at(self._seed, of_week, len(clients.names))
        order = np.argsort(at, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        out = Requests.blank(len(at))
        slots.begin(block)
        dress(
            self._seed, block, first, at, rank, given, edges, knobs,
            self._kinds, clients.kind_of, clients.tenant_of, clients.route_of, clients.model_of,
            clients.max_tokens_of, self.profile.lengths.prompts, self.profile.lengths.outputs,
            lens.prompt_row, lens.output_row, lens.lean, self.profile.lengths.client_weight,
            self.profile.lengths.prompt_cap,
            slots.first, slots.session, slots.turns, slots.tokens, tuple(out.arrays().values()),
        )  # fmt: skip
        return out

    def _arrivals(
        self, block: int, of_week: int, edges: np.ndarray, knobs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(first, at_ns, given tokens) of one block, by client."""
        factor, added = knobs[:, :, KNOB["arrival_factor"]].T, knobs[:, :, KNOB["added_rate"]].T
        none = np.empty((0, 2), np.int64)
        if self.profile.recorded is not None:
            return replay(
                self.profile.recorded, self._seed, block, BLOCK_NS, self.scale,
                self._shares, edges, factor, added,
            )  # fmt: skip
        rates = self.profile.rates.at(self._seed, of_week)
        asleep = np.zeros((2, rates.per_s.shape[1]))
        per_s = np.concatenate([rates.per_s * self.scale, asleep])
        cv = np.concatenate([thinned_cv(rates.cv, self.scale), [1.0, 1.0]])
        shape = shapes_of(cv, np.concatenate([rates.weibull, [False, False]]))
        parts = per_s.shape[1]
        of_rate = block * BLOCK_NS + np.arange(parts + 1) * (BLOCK_NS // parts)
        both = np.union1d(of_rate, edges)
        here = np.searchsorted(of_rate, both[:-1], side="right") - 1
        there = np.searchsorted(edges, both[:-1], side="right") - 1
        per_s = per_s[:, here] * factor[:, there] + added[:, there]
        weibull = np.concatenate([rates.weibull, [False, False]])
        first, at = arrive(self._seed, block, both, np.ascontiguousarray(per_s), shape, weibull)
        return first, at, none
