"""Signals for autoscalers in process: the second face of what `rules` records as PromQL.

A signal is named by its record. Windows have both their ends, as the alert on the same tail has.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np

from tailburn.engine.evaluation.conditions import Bools
from tailburn.engine.evaluation.counts import Group
from tailburn.engine.evaluation.history import History, Needs
from tailburn.engine.evaluation.slow_time import WHOLE
from tailburn.engine.evaluation.windows import DAY_S, MINUTE_S, SAMPLED_S
from tailburn.engine.excess import OWNER_SHARE, PLACES
from tailburn.engine.gauges import Key, Replicas, untold_by_engines
from tailburn.engine.grouping import F64, I64
from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_TTFT_RECORD,
    SCALE_WAITING_RECORD,
)
from tailburn.engine.scaling.kept import Columns, Kept, Values, known, least, most
from tailburn.engine.scaling.terms import (
    AHEAD_S,
    OWNER_S,
    PAST_TOLERANCE,
    QUIET_S,
    QUIET_TTFT,
    RISE,
    Terms,
    evaluations,
)
from tailburn.engine.slo.model import QUANTILES, Clock, Slo

RECORDS: Final = (
    SCALE_TTFT_RECORD,
    SCALE_OUT_RECORD,
    SCALE_GATED_RECORD,
    SCALE_WAITING_RECORD,
    SCALE_KV_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_HOLD_RECORD,
)

SPEAKS_ABOVE: Final[Mapping[str, float]] = {
    SCALE_OUT_RECORD: 1.0,
    SCALE_GATED_RECORD: 1.0,
    SCALE_WAITING_RECORD: 1.0,
    SCALE_KV_RECORD: 1.0,
    SCALE_HOLD_RECORD: 0.0,
}
"""Above this a signal asks for replicas, or holds those that are there."""

_Numbers = TypeVar("_Numbers", F64, I64)

_P99: Final = QUANTILES["p99"]
_QUEUE: Final = PLACES.index("queue")
_QUIET: Final = QUIET_S // MINUTE_S
_OWNER: Final = OWNER_S // MINUTE_S
_AHEAD: Final = AHEAD_S // MINUTE_S
_DAY: Final = DAY_S // MINUTE_S


class Hold(StrEnum):
    """Why no replica may go."""

    TAIL = "within half an hour p99 TTFT was half of what adds a replica, or more"
    YOUNG = "half an hour has not been seen yet"
    RISE = "the coming hour was busier a day ago, or nobody knows how busy this one is"
    QUEUE = "within half an hour more than one request waited at a replica"
    CACHE = "the KV caches of the others would not take what one replica holds"
    GAUGES = "queue and KV cache of its replicas are not known"


@dataclass(frozen=True)
class Standing:
    """The signals of an SLO at a minute, one value for each of the series in `by`."""

    terms: Terms
    now: int  # minutes since the epoch
    by: tuple[Values, ...]
    values: Mapping[str, F64]  # by record; nan: not known
    since: Mapping[str, I64]  # by record of `SPEAKS_ABOVE`: since when it speaks, or does not
    share: F64  # (series, places): of the excess; nan: nothing was slow
    heard: I64  # the last minute at which its requests were counted; -1: never
    holds: Mapping[Hold, Bools]

    @property
    def queue_share(self) -> F64:
        """The queue's part of what slow requests took over their baseline."""
        return self.share[:, _QUEUE]


class Signals:
    """Of every SLO that scales, minute by minute. Not safe in several threads."""

    def __init__(self, terms: Iterable[Terms], reads_gauges: bool = False) -> None:
        """`reads_gauges`: engines are read, so an SLO whose queue they can tell waits for it."""
        self._each = [_Scaled(one, reads_gauges) for one in terms]

    @property
    def needs(self) -> list[tuple[Slo, Needs]]:
        """What history must reach back to."""
        return [(each.terms.slo, each.terms.needs) for each in self._each]

    @property
    def reach(self) -> int:
        """How many minutes back values are kept; 0 where nothing scales."""
        return max((each.terms.reach_s // MINUTE_S for each in self._each), default=0)

    def at(
        self, history: History, replicas: Mapping[Key, Replicas], now: int
    ) -> tuple[Standing, ...]:
        """All signals at a minute, which is later than that of the last call."""
        by_slo: dict[str, dict[Values, Replicas]] = {}
        for (slo, values), found in replicas.items():
            by_slo.setdefault(slo, {})[values] = found
        return tuple(
            each.at(history, by_slo.get(each.terms.slo.name, {}), now) for each in self._each
        )


class _Scaled:
    """The signals of one SLO."""

    def __init__(self, terms: Terms, reads_gauges: bool) -> None:
        self.terms = terms
        self._waits_for_gauges = reads_gauges and not untold_by_engines(terms.slo)
        self._columns = Columns()
        minutes = terms.reach_s // MINUTE_S
        self._ttft = Kept(minutes)
        self._waiting = Kept(_QUIET)
        self._kv = Kept(_QUIET)
        self._heard: I64 = np.zeros(0, np.int64)
        self._since = {record: _Since(above) for record, above in SPEAKS_ABOVE.items()}

    def at(self, history: History, replicas: Mapping[Values, Replicas], now: int) -> Standing:
        slow_by, slow_ns = history.slow_time.window(self.terms.slo.name, now - _OWNER, now - 1)
        slow_column = self._columns.of("slow", slow_by)
        gauges = self._gauges(replicas)
        ttft = self._tail(history, now)
        width = len(self._columns)
        waiting, kv, count = (_wide(values, width) for values in gauges)
        self._ttft.put(now, ttft)
        self._waiting.put(now, waiting)
        self._kv.put(now, kv)
        share = np.full((width, len(PLACES)), np.nan)
        share[slow_column] = _share(slow_ns)
        out = self._out(ttft, now)
        holds = self._holds(history, count, now)
        values = {
            SCALE_TTFT_RECORD: ttft,
            SCALE_OUT_RECORD: out,
            SCALE_GATED_RECORD: _gated(out, share[:, _QUEUE]),
            SCALE_WAITING_RECORD: waiting,
            SCALE_KV_RECORD: kv,
            SCALE_REPLICAS_RECORD: count,
            SCALE_HOLD_RECORD: _hold(ttft, holds),
        }
        self._heard = _wide(self._heard, width, -1)
        self._heard[~np.isnan(ttft)] = now
        return Standing(
            terms=self.terms,
            now=now,
            by=tuple(self._columns.by),
            values=values,
            since={record: since.at(values[record], now) for record, since in self._since.items()},
            share=share,
            heard=self._heard.copy(),
            holds=holds,
        )

    def _tail(self, history: History, now: int) -> F64:
        """p99 TTFT over what adds replicas; 0 where requests can be counted and p99 not known."""
        counted = [
            (self._columns.of(objective, group.by), history.sums(SAMPLED_S, now), group.columns)
            for objective, group in self._groups(history)
        ]
        cells = history.buckets.cells((self.terms.slo.name, Clock.TTFT))
        column = self._columns.of("buckets", cells.by)
        found = np.full(len(self._columns), np.nan)
        for at, sums, columns in counted:
            found[at[sums.is_rated[columns]]] = 0.0
        p99_s, came = history.recent(cells.columns, _P99, now)
        enough = came >= self.terms.least
        found[column[enough]] = p99_s[enough] / self.terms.threshold_s
        return found

    def _out(self, ttft: F64, now: int) -> F64:
        """The least of the last minutes; never just above 1."""
        window = self._ttft.within(self.terms.for_s // MINUTE_S, now)
        seen = known(window) >= evaluations(self.terms.for_s)
        lowest = np.where(seen, least(window), np.nan)
        out = np.where(lowest > 1, np.maximum(lowest, PAST_TOLERANCE), lowest)
        return np.where(np.isnan(out), 0.0 * ttft, out)

    def _holds(self, history: History, count: F64, now: int) -> dict[Hold, Bools]:
        """Which series may let no replica go, for each reason."""
        window = self._ttft.within(_QUIET, now)
        held = {
            Hold.TAIL: most(window) >= QUIET_TTFT,
            Hold.YOUNG: known(window) < evaluations(QUIET_S),
            Hold.RISE: ~self._no_rise_ahead(history, now),
        }
        if not self._waits_for_gauges:
            return held
        targets = self.terms.targets
        waiting, kv = (most(kept.within(_QUIET, now)) for kept in (self._waiting, self._kv))
        return held | {
            Hold.QUEUE: waiting >= targets.quiet_waiting_ratio,
            Hold.CACHE: kv * count >= count - 1,
            Hold.GAUGES: np.isnan(waiting) | np.isnan(kv * count),
        }

    def _no_rise_ahead(self, history: History, now: int) -> Bools:
        """Whether the coming hour, by the day before, brings no more than a tenth over the last."""
        lately, ahead = (
            self._rate(history, until - _AHEAD, until) for until in (now, now - _DAY + _AHEAD)
        )
        return np.nan_to_num(ahead) <= RISE * lately

    def _rate(self, history: History, since: int, until: int) -> F64:
        """Requests a second, of the budget that counted most of them."""
        found = np.full(len(self._columns), np.nan)
        rate = history.counts.sampled_rate(since, until)
        for objective, group in self._groups(history):
            column = self._columns.of(objective, group.by)
            found[column] = np.fmax(found[column], rate[group.columns])
        return found

    def _groups(self, history: History) -> Iterator[tuple[str, Group]]:
        for objective, definition in self.terms.budgets:
            yield objective, history.counts.group((self.terms.slo.name, objective, definition))

    def _gauges(self, replicas: Mapping[Values, Replicas]) -> tuple[F64, F64, F64]:
        """Queue and KV cache over their targets, and the number of replicas."""
        self._waits_for_gauges |= bool(replicas)  # from then on: a queue can't be forgotten
        column = [self._columns.column(values) for values in replicas]
        found = np.full((3, len(self._columns)), np.nan)
        targets = self.terms.targets
        for at, one in zip(column, replicas.values(), strict=True):
            waiting = np.nan if one.waiting is None else one.waiting / targets.waiting
            kv = np.nan if one.kv_ratio is None else one.kv_ratio / targets.kv_ratio
            found[:, at] = waiting, kv, one.count
        return found[0], found[1], found[2]


class _Since:
    """Since when each series is above a value, is not, or is not known."""

    def __init__(self, above: float) -> None:
        self._above = above
        self._state: I64 = np.zeros(0, np.int64)
        self._minute: I64 = np.zeros(0, np.int64)

    def at(self, values: F64, now: int) -> I64:
        state = np.where(np.isnan(values), 2, values > self._above)
        changed = state != _wide(self._state, len(state), -1)
        self._minute = np.where(changed, now, _wide(self._minute, len(state), now))
        self._state = state
        return self._minute


def _gated(out: F64, queue_share: F64) -> F64:
    """No more than 1 where something else than the queue is known to own the excess."""
    return np.where(queue_share < OWNER_SHARE, np.minimum(out, 1.0), out)


def _hold(ttft: F64, holds: Mapping[Hold, Bools]) -> F64:
    """1 while no replica may go, else 0; nan where nothing is known now."""
    held = np.logical_or.reduce(list(holds.values()))
    return np.where(np.isnan(ttft), np.nan, held.astype(np.float64))


def _share(slow_ns: I64) -> F64:
    """Of the excess of all hops together, (series, places); nan where there is none."""
    whole = slow_ns[:, [WHOLE]]
    share = np.full((len(slow_ns), len(PLACES)), np.nan)
    return np.divide(slow_ns[:, :WHOLE], whole, out=share, where=whole > 0)


def _wide(values: _Numbers, width: int, missing: float = np.nan) -> _Numbers:
    """As long as there are series; those that are new have `missing`."""
    return np.append(values, np.full(width - len(values), missing, values.dtype))
