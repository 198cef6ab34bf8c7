"""How the signals for autoscalers stand: rows with reasons, and flat numbers for KEDA."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tailburn.app.errors import UserError
from tailburn.app.scaling import Scaling
from tailburn.app.standing.words import moment, values_of
from tailburn.engine.evaluation.windows import MINUTE_NS, MINUTE_S
from tailburn.engine.excess import OWNER_SHARE, PLACES
from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_TTFT_RECORD,
    SCALE_WAITING_RECORD,
    UNATTRIBUTED,
    scale_signal,
)
from tailburn.engine.problems import nearest, one_of
from tailburn.engine.scaling.signals import RECORDS, SPEAKS_ABOVE, Standing
from tailburn.engine.slo.model import Slo

SIGNALS: Final = {scale_signal(record): record for record in RECORDS}
_NS: Final = 1_000_000_000
_OF_GAUGES: Final = (SCALE_WAITING_RECORD, SCALE_KV_RECORD, SCALE_REPLICAS_RECORD)


class NotThere(UserError):
    """What is asked for is of no SLO or series that is known."""


class NoValue(UserError):
    """A signal has no value now: an autoscaler must not take it for 0."""


def is_seen(slo: Slo, by: Mapping[str, str], tenant: str | None) -> bool:
    """What is summed over tenants is for those alone who may see them all: `tenant` None."""
    return tenant is None or tenant in (slo.select.get("tenant"), by.get("tenant"))


@dataclass(frozen=True)
class Shown:
    """The signals as of now, of one tenant's SLOs or all (None)."""

    scaling: Scaling
    slos: Sequence[Slo]  # those that scale
    no_gauges: Callable[[Slo], str]  # why no gauge of an engine counts for an SLO
    now_ns: int
    tenant: str | None = None

    def rows(self) -> list[dict[str, Any]]:
        """A row per SLO that scales and series of it: each signal's value, and why.

        An SLO of which no series was ever seen has a row too, without values.
        """
        return [row.told() for slo in self.slos for row in self._rows(slo)]

    def flat(
        self, slo: str, where: Mapping[str, str], signals: Sequence[str] = ()
    ) -> dict[str, float]:
        """The numbers of one series by signal: those asked for, or all that are known.

        Raises NotThere for an SLO or a series that is not known, UserError for a question that
        is not whole, and NoValue where what is asked for has no value.
        """
        known = {one.name: one for one in self.slos if self._rows(one)}
        if slo not in known:
            raise NotThere(f"no SLO {slo!r} that scales{nearest(slo, known)}")
        if unknown := [name for name in signals if name not in SIGNALS]:
            raise UserError(*(f"signal {name!r} {one_of(name, SIGNALS)}" for name in unknown))
        told = self._series(known[slo], where).told()["signals"]
        found = {name: told[name]["value"] for name in signals or SIGNALS}
        values = {name: value for name, value in found.items() if value is not None}
        if len(values) < len(found) and (signals or not values):
            lacking = [name for name in found if name not in values]
            raise NoValue(*(f"{slo}: {name} has no value: {told[name]['why']}" for name in lacking))
        return values

    def _rows(self, slo: Slo) -> "list[_Row]":
        standing = self._standing(slo)
        series: Sequence[int | None] = range(len(standing.by)) if standing else ()
        rows = [_Row(self, slo, standing, i) for i in series or (None,)]
        return [row for row in rows if is_seen(slo, row.by, self.tenant)]

    def _standing(self, slo: Slo) -> Standing | None:
        found = (s for s in self.scaling.standings if s.terms.slo.name == slo.name)
        return next(found, None)

    def _series(self, slo: Slo, where: Mapping[str, str]) -> "_Row":
        if unknown := [name for name in where if name not in slo.by]:
            wanted = one_of(unknown[0], slo.by) if slo.by else "is not known: it has one series"
            raise UserError(f"{unknown[0]} {wanted}")
        if lacking := [name for name in slo.by if name not in where]:
            raise UserError(
                *(
                    f"{name}=VALUE is missing: the SLO has a budget for each {name}"
                    for name in lacking
                )
            )
        rows = self._rows(slo)
        for row in rows:
            if row.by == where or not slo.by:
                return row
        for name, value in where.items():
            seen = {row.by[name] for row in rows if row.by}
            if value not in seen:
                raise NotThere(f"{name} {value!r} was not seen{nearest(value, seen)}")
        raise NotThere(f"{values_of(where)} were not seen together")


class _Row:
    """One series of one SLO; `row` None: there is none."""

    def __init__(self, shown: Shown, slo: Slo, standing: Standing | None, row: int | None) -> None:
        self._shown, self._slo = shown, slo
        self._scaling, self._now_ns = shown.scaling, shown.now_ns
        self._standing, self._row = standing, row
        values = standing.by[row] if standing is not None and row is not None else ()
        self.by = dict(zip(slo.by, values, strict=False))

    def told(self) -> dict[str, Any]:
        minute_ns = self._scaling.minute_ns
        owner, share = self._owner()
        return {
            "slo": self._slo.name,
            "by": self.by,
            "at_ns": minute_ns,
            "age_s": None if minute_ns is None else (self._now_ns - minute_ns) / _NS,
            "queue_owns": self._queue_owns(),
            "owner": owner,
            "owner_ratio": share,
            "signals": {name: self._signal(record) for name, record in SIGNALS.items()},
        }

    def _signal(self, record: str) -> dict[str, Any]:
        value = self._value(record)
        since = None
        if self._standing is not None and self._row is not None and record in SPEAKS_ABOVE:
            since = int(self._standing.since[record][self._row]) * MINUTE_NS
        why = self._lacking(record) if value is None else self._why(record, value)
        return {"value": value, "since_ns": since, "why": why}

    def _value(self, record: str) -> float | None:
        """None: not known, or known of a minute too long ago."""
        if self._standing is None or self._row is None:
            return None
        if not self._scaling.is_fresh(self._now_ns):
            return None
        value = float(self._standing.values[record][self._row])
        return None if np.isnan(value) else value

    def _lacking(self, record: str) -> str:
        minute_ns = self._scaling.minute_ns
        if minute_ns is None:
            return "no minute was evaluated yet"
        if not self._scaling.is_fresh(self._now_ns):
            return f"nothing was evaluated since {moment(minute_ns)} UTC"
        if record in _OF_GAUGES:
            return self._gauge_lacks(record)
        if self._standing is None or self._row is None:
            return "no request of it was ever counted"
        heard = int(self._standing.heard[self._row])
        if heard < 0:
            return "no request of it was counted within what is remembered"
        return f"no data since {moment(heard * MINUTE_NS)} UTC"

    def _gauge_lacks(self, record: str) -> str:
        if record == SCALE_WAITING_RECORD and self._value(SCALE_REPLICAS_RECORD) is not None:
            return "its engines show no queue"
        counts = self._standing.values[SCALE_REPLICAS_RECORD] if self._standing else np.zeros(0)
        if not np.isnan(counts).all():
            return "no replica of it showed a KV cache in the last two minutes"
        return self._shown.no_gauges(self._slo)

    def _why(self, record: str, value: float) -> str:
        terms = self._standing.terms if self._standing else None
        assert terms is not None, "there is a value"
        of = f"of the {terms.threshold_s:.3g} s of p99 TTFT that add replicas"
        minutes = f"{terms.for_s / MINUTE_S:g} min"
        if record == SCALE_TTFT_RECORD:
            return f"{value:.0%} {of}" if value else _FEW.format(least=terms.least)
        if record == SCALE_OUT_RECORD:
            return (
                f"at least {value:.0%} {of} for {minutes}" if value else f"not known for {minutes}"
            )
        if record == SCALE_GATED_RECORD:
            return self._gate()
        if record == SCALE_WAITING_RECORD:
            target = terms.targets.waiting
            return f"{value * target:.3g} requests wait at each replica, target {target:g}"
        if record == SCALE_KV_RECORD:
            target = terms.targets.kv_ratio
            return f"{value * target:.0%} of the KV caches is used, target {target:.0%}"
        if record == SCALE_REPLICAS_RECORD:
            return "replicas whose KV cache is shown"
        assert record == SCALE_HOLD_RECORD
        return "; ".join(self._holds()) or "a replica may go"

    def _gate(self) -> str:
        owner, share = self._owner()
        if share is None:
            return "nothing tells who owns the excess of slow requests: as scale_out"
        if self._queue_owns():
            return f"the queue owns {share:.0%} of the excess of slow requests"
        queue = self._share()[PLACES.index("queue")]
        told = f"{owner} owns {share:.0%}" if owner else "no hop owns half"
        return f"{told} of the excess of slow requests, the queue {queue:.0%}: no more than 1"

    def _holds(self) -> Iterator[str]:
        assert self._standing is not None
        return (str(why) for why, held in self._standing.holds.items() if held[self._row])

    def _share(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        if self._standing is None or self._row is None or not self._scaling.is_fresh(self._now_ns):
            return np.full(len(PLACES), np.nan)
        found: np.ndarray[Any, np.dtype[np.float64]] = self._standing.share[self._row]
        return found

    def _owner(self) -> tuple[str | None, float | None]:
        """The hop with most of the excess where that is enough to own it, and the most."""
        share = self._share()
        if np.isnan(share).all():
            return None, None
        most = int(np.nanargmax(share))
        owns = share[most] >= OWNER_SHARE and PLACES[most] != UNATTRIBUTED
        return (PLACES[most] if owns else None), float(share[most])

    def _queue_owns(self) -> bool | None:
        queue = float(self._share()[PLACES.index("queue")])
        return None if np.isnan(queue) else queue >= OWNER_SHARE


_FEW: Final = "fewer than {least} requests in 5 min: p99 can't be known"
