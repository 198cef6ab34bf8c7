"""How many bad requests would have met the objective with a hop as it was before.

"As it was": within requests alike (power of two of the uncached prompt tokens), a request keeps
its rank in the hop's times and takes the baseline's time of that rank. So a delay that everybody
has is taken back from everybody, and the spread that the hop always had stays.

The bad share is dealt out to the hops by their Shapley values (Shapley 1953; exact over all
orders of the `MOST_HOPS` hops that grew most, the rest as one): what a hop saves, on average
over the orders in which hops could be put back to their baseline. They add up to what all hops
together would save, as whole requests over a common denominator, exactly.

A slow decode fills the batch and so makes the queue: a hop of the engine has effects on other
hops that no sum over requests shows, and so has one that makes requests come again. What is said
of one is a lower bound, and marked so.

`queue_burn` follows the queue's part over time: what a budget would have left had it not waited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.excess import OWNER_SHARE, PLACES, Clock, Measured, measure
from tailburn.engine.grouping import I64

MOST_HOPS: Final = 7
MIN_ALIKE: Final = 20
QUEUE: Final = "queue"
FED_BACK: Final = frozenset(
    {
        "tokenizer", "engine", QUEUE, "prefill", "decode", "kv_transfer", "kv_load",
        "model_load", "lora_load", "detokenizer", "retry",
    }
)  # fmt: skip
"""Hops whose time makes other hops take longer: they hold an engine's slots, or ask it again.

`kv_load` does so a little: loads come one after another, and the wait for those of others is
queue.
"""
OTHERS: Final = "others"
_NS: Final = 1e9


@dataclass(frozen=True)
class HopShare:
    """One hop's part of the bad requests."""

    hop: str
    cured: int  # bad requests that meet the objective with this hop alone at its baseline
    shapley: Fraction  # of the bad requests, of which `cured_by_all` are cured together
    is_lower_bound: bool


@dataclass(frozen=True)
class BadShare:
    """The requests over a threshold, and what would have become of them."""

    clock: Clock
    threshold_ns: int
    count: int  # measured requests, weighted
    bad: int  # of these over the threshold
    baseline_bad_ratio: float  # of the baseline's requests
    cured_by_all: int  # with every hop at its baseline
    hops: tuple[HopShare, ...]  # largest Shapley value first; they add up to `cured_by_all`

    @property
    def is_lower_bound(self) -> bool:
        """Whether `cured_by_all` is at least so many: a hop that has part in it feeds back."""
        return any(hop.is_lower_bound and hop.shapley for hop in self.hops)

    @property
    def owner(self) -> str | None:
        """The hop that has at least half of the bad requests."""
        owning = (h for h in self.hops if h.hop != OTHERS and h.shapley >= OWNER_SHARE * self.bad)
        return next((hop.hop for hop in owning), None) if self.bad else None


@dataclass(frozen=True)
class QueueBurn:
    """A stretch of a window. All counts are weighted."""

    since_ns: int
    until_ns: int
    count: int  # measured requests
    bad: int  # of these over the threshold
    queued: int  # of the bad, at least: met the objective had their queue been as before


def bad_share(
    requests: pa.Table, baseline: pa.Table, clock: Clock, threshold_s: float
) -> BadShare | None:
    """Deal the bad requests out to hops; None where either table measures nothing.

    Both tables need `engine.excess.NEEDED_COLUMNS`.
    """
    now, before = measure(requests, clock), measure(baseline, clock)
    if not len(now.row) or not len(before.row):
        return None
    threshold_ns = round(threshold_s * _NS)
    bad = now.total_ns > threshold_ns
    saved = (now.hop_ns - _as_before(now, before))[bad]
    over_ns, weight = now.total_ns[bad] - threshold_ns, now.weight[bad]
    players = _players(saved, weight)
    worth = _worths(saved, over_ns, weight, players)
    hops = [_share(i, name, worth, len(players)) for i, (name, _) in enumerate(players)]
    hops.sort(key=lambda hop: -hop.shapley)
    baseline_bad = int(before.weight[before.total_ns > threshold_ns].sum())
    return BadShare(
        clock=clock,
        threshold_ns=threshold_ns,
        count=int(now.weight.sum()),
        bad=int(weight.sum()),
        baseline_bad_ratio=baseline_bad / int(before.weight.sum()),
        cured_by_all=int(worth[-1]),
        hops=tuple(hops),
    )


def cured_by(
    requests: pa.Table, baseline: pa.Table, clock: Clock, threshold_s: float, hops: Sequence[str]
) -> tuple[int, int, int]:
    """Measured requests, those over the threshold, and how many of these some hops would cure.

    All of the hops are put back to their baseline together. Counts are weighted.
    """
    now, before = measure(requests, clock), measure(baseline, clock)
    if not len(now.row) or not len(before.row):
        return int(now.weight.sum()), 0, 0
    places = [PLACES.index(hop) for hop in hops]
    over_ns = now.total_ns - round(threshold_s * _NS)
    saved = (now.hop_ns - _as_before(now, before))[:, places].sum(axis=1)
    bad = over_ns > 0
    cured = int(now.weight[bad & (saved >= over_ns)].sum())
    return int(now.weight.sum()), int(now.weight[bad].sum()), cured


def queue_burn(
    requests: pa.Table, baseline: pa.Table, clock: Clock, threshold_s: float, edges_ns: I64
) -> tuple[QueueBurn, ...]:
    """What the queue alone made bad between each two of `edges_ns` (receive times, rising).

    Empty where either table measures nothing. Needs `received_ns` beside `NEEDED_COLUMNS`.
    """
    now, before = measure(requests, clock), measure(baseline, clock)
    if not len(now.row) or not len(before.row):
        return ()
    at_ns = requests["received_ns"].to_numpy()[now.row]
    bad = now.total_ns > round(threshold_s * _NS)
    queue = PLACES.index(QUEUE)
    saved = now.hop_ns[:, queue] - _as_before(now, before)[:, queue]
    cured = bad & (now.total_ns - saved <= round(threshold_s * _NS))
    found = []
    for since_ns, until_ns in zip(edges_ns[:-1].tolist(), edges_ns[1:].tolist(), strict=True):
        weight = np.where((at_ns >= since_ns) & (at_ns < until_ns), now.weight, 0)
        sums = (int(weight.sum()), int(weight[bad].sum()), int(weight[cured].sum()))
        found.append(QueueBurn(since_ns, until_ns, *sums))
    return tuple(found)


def _as_before(now: Measured, before: Measured) -> I64:
    """Each request's hops as they would have been, [request, hop] in ns."""
    expected = np.empty_like(now.hop_ns)
    for stratum in np.unique(now.prompt):
        here = np.flatnonzero(now.prompt == stratum)
        alike = np.flatnonzero(before.prompt == stratum)
        if len(alike) < MIN_ALIKE:
            alike = np.arange(len(before.row))
        for hop in range(now.hop_ns.shape[1]):
            known = np.sort(before.hop_ns[alike, hop])
            order = np.argsort(now.hop_ns[here, hop], kind="stable")
            rank = (np.arange(len(here)) + 0.5) / len(here)
            at = np.minimum((rank * len(known)).astype(np.int64), len(known) - 1)
            expected[here[order], hop] = known[at]
    return expected


def _players(saved: I64, weight: I64) -> list[tuple[str, list[int]]]:
    """The hops that would save most, each by itself, and all others as one."""
    total = weight @ saved if len(saved) else np.zeros(saved.shape[1], np.int64)
    moved = [int(i) for i in np.argsort(-np.abs(total), kind="stable") if np.any(saved[:, i])]
    players = [(PLACES[i], [i]) for i in moved[:MOST_HOPS]]
    if moved[MOST_HOPS:]:
        players.append((OTHERS, moved[MOST_HOPS:]))
    return players


def _worths(saved: I64, over_ns: I64, weight: I64, players: Sequence[tuple[str, list[int]]]) -> I64:
    """Requests cured by each set of players; bit i of the index: player i is at its baseline."""
    by_player = [saved[:, columns].sum(axis=1) for _, columns in players]
    worth = np.zeros(1 << len(players), np.int64)
    for members in range(1, len(worth)):
        together = sum(s for i, s in enumerate(by_player) if members >> i & 1)
        worth[members] = weight[together >= over_ns].sum()
    return worth


def _share(player: int, name: str, worth: I64, players: int) -> HopShare:
    value, own = Fraction(0), 1 << player
    for members in range(len(worth)):
        if members & own:
            continue
        size = members.bit_count()
        orders = factorial(size) * factorial(players - size - 1)
        value += Fraction(orders * int(worth[members | own] - worth[members]), factorial(players))
    return HopShare(name, int(worth[own]), value, name in FED_BACK or name == OTHERS)
