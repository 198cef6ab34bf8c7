"""The verdicts of an SLO on closed requests: one per request and objective, and their counts.

What counts is what is known. A clock that is missing is unmeasured, neither good nor bad; a
request that by its nature has no such clock (not streamed, too few tokens) has no verdict on
it. One that failed or was given up before a clock ended was over the threshold, if it took
longer than that, and has no verdict otherwise: a quick failure is no quick answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.grouping import F64, I64, distinct, numbers, single_chunk, text
from tailburn.engine.names import UNKNOWN
from tailburn.engine.rollup import MINUTE_NS, TPOT_MIN_OUTPUT_TOKENS
from tailburn.engine.slo.model import Clock, Kind, Objective, Slo, Tier, objectives

Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]
"""Verdicts, one row per request and one column per objective."""


class Verdict(IntEnum):
    """What one objective says of one request."""

    NONE = 0  # not of the SLO, excluded, or by nature without the clock
    GOOD = 1
    BAD = 2
    UNMEASURED = 3  # what it takes to judge is missing


GOODPUT_PERCENTILE: Final = "p95"
"""A request is good in goodput when it meets the acceptable p95 of every clock."""

NEEDED_COLUMNS: Final = ("outcome", "http_status", "streamed", "output_tokens", "weight")

_LEAST_TOKENS: Final = 2  # below that there is no gap between tokens
_FIXED: Final = {Clock.ITL: "itl_max_s", Clock.QUEUE: "queue_s"}


class Requests:
    """Rows of REQUESTS; each column is turned into numpy once, however many SLOs ask for it."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._numbers: dict[str, F64] = {}
        self._codes: dict[str, tuple[NDArray[np.int32], dict[str, int]]] = {}

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def number(self, column: str) -> F64:
        """The column as float64, null as nan."""
        if column not in self._numbers:
            self._numbers[column] = numbers(self.rows.column(column), np.nan)
        return self._numbers[column]

    def equal(self, column: str, value: str) -> Mask:
        """Which rows have this text; null is `unknown`."""
        if column not in self._codes:
            encoded = single_chunk(text(self.rows.column(column), UNKNOWN))
            known = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
            self._codes[column] = encoded.indices.to_numpy(), known
        codes, known = self._codes[column]
        mask: Mask = codes == known.get(value, -1)
        return mask

    def all_equal(self, values: Mapping[str, str]) -> Mask:
        """Which rows have all these texts."""
        mask = np.ones(len(self), np.bool_)
        for column, value in values.items():
            mask &= self.equal(column, value)
        return mask

    @property
    def minute_ns(self) -> I64:
        """Start of the minute in which each closed."""
        received_ns: I64 = self.rows.column("received_ns").to_numpy()
        return received_ns // MINUTE_NS * MINUTE_NS

    @property
    def weight(self) -> I64:
        """How many requests each row stands for, at least one."""
        weight = np.nan_to_num(self.number("weight"), nan=1.0)
        return np.maximum(np.rint(weight), 1).astype(np.int64)


@dataclass(frozen=True)
class Tally:
    """Counts of one SLO for one combination of the values of `by` and one minute."""

    values: tuple[str, ...]
    minute_ns: int
    counts: I64  # (objectives, verdicts), by their numbers


@dataclass(frozen=True)
class _Judged:
    """One clock against one threshold; what is in none of the masks is unmeasured."""

    over: Mask
    within: Mask
    none: Mask

    @property
    def missing(self) -> Mask:
        return ~(self.over | self.within | self.none)


def clock_column(clock: Clock, vantage: str) -> str:
    """The column of REQUESTS that holds a clock."""
    return _FIXED.get(clock) or f"{clock}_{vantage}_s"


def judge(requests: Requests, slo: Slo) -> Codes:
    """The verdict of each of `objectives(slo)` on each request; tombstones have none."""
    counted = _counted(requests, slo)
    codes = np.zeros((len(requests), len(objectives(slo))), np.int8)
    if counted.any():
        for column, objective in enumerate(objectives(slo)):
            codes[counted, column] = _verdicts(requests, slo, objective)[counted]
    return codes


def tally(requests: Requests, codes: Codes, slo: Slo, minute_ns: I64) -> list[Tally]:
    """How many verdicts of each kind, per minute and combination of the values of `by`."""
    judged = (codes != Verdict.NONE).any(axis=1)
    if not judged.any():
        return []
    rows = requests.rows.select(list(slo.by)).filter(pa.array(judged))
    texts = [text(rows.column(name), UNKNOWN) for name in slo.by]
    keys, group = distinct([pa.chunked_array([minute_ns[judged]]), *texts])
    minutes, *values = (key.to_pylist() for key in keys)
    objective_count = codes.shape[1]
    cells = group[:, None] * objective_count + np.arange(objective_count)
    cells = cells * len(Verdict) + codes[judged]
    weight = np.broadcast_to(requests.weight[judged][:, None], cells.shape)
    counts = np.zeros(len(minutes) * objective_count * len(Verdict), np.int64)
    np.add.at(counts, cells.reshape(-1), weight.reshape(-1))
    shaped = counts.reshape(len(minutes), objective_count, len(Verdict))
    of_keys = zip(*values, strict=True) if values else [()] * len(minutes)
    return [Tally(*key) for key in zip(of_keys, minutes, shaped, strict=True)]


def changed(
    older: Requests, older_codes: Codes, newer: Requests, newer_codes: Codes
) -> tuple[Codes, I64]:
    """`older_codes` where the next version of the request has another verdict, NONE elsewhere.

    Versions without a successor in `newer` have not changed. Also the minute of the successor.
    """
    next_row = _next_versions(older.rows, newer.rows)
    followed = next_row >= 0
    differs = np.zeros(older_codes.shape, np.bool_)
    differs[followed] = older_codes[followed] != newer_codes[next_row[followed]]
    minute_ns = np.zeros(len(older), np.int64)
    minute_ns[followed] = newer.minute_ns[next_row[followed]]
    return np.where(differs, older_codes, np.int8(Verdict.NONE)), minute_ns


def _next_versions(older: pa.Table, newer: pa.Table) -> I64:
    """The row of `newer` that takes the place of each row of `older`; -1 for none."""
    found = pc.index_in(_version_keys(older, 1), value_set=_version_keys(newer, 0))
    rows: I64 = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return rows


def _version_keys(rows: pa.Table, ahead: int) -> pa.ChunkedArray:
    versions = pc.add(rows["version"], ahead).cast(pa.string())
    return pc.binary_join_element_wise(rows["request_id"], versions, "/")


def _counted(requests: Requests, slo: Slo) -> Mask:
    """Which requests the SLO is about, those that count in no budget left out."""
    mask = requests.all_equal(slo.select)
    mask &= requests.number("tombstone") != 1
    for values in slo.exclude.where:
        mask &= ~requests.all_equal(values)
    if slo.exclude.http_status:
        mask &= ~np.isin(requests.number("http_status"), slo.exclude.http_status)
    if slo.exclude.cancelled_by_client == "always":
        mask &= ~requests.equal("outcome", "cancelled")
    return mask


def _verdicts(requests: Requests, slo: Slo, objective: Objective) -> Codes:
    match objective.kind:
        case Kind.AVAILABILITY:
            return _availability(requests, slo)
        case Kind.GOODPUT:
            return _goodput(requests, slo)
        case Kind.COMPLETION:
            return _completion(requests, slo, objective)
        case Kind.CLOCK:
            return _clock_verdicts(requests, slo, objective)


def _availability(requests: Requests, slo: Slo) -> Codes:
    """Failed is bad; given up by the client is no failure of the service."""
    return _codes(
        bad=requests.equal("outcome", "error"),
        none=_left(requests, slo),
        missing=requests.equal("outcome", UNKNOWN),
    )


def _goodput(requests: Requests, slo: Slo) -> Codes:
    """Bad as soon as anything is known to be: what is missing can't make it good again."""
    bad = requests.equal("outcome", "error")
    missing = requests.equal("outcome", UNKNOWN)
    for clock, tiers in slo.clocks.items():
        threshold_s = tiers.get(Tier.ACCEPTABLE, {}).get(GOODPUT_PERCENTILE)
        if threshold_s is not None:
            judged = _judged(requests, slo, clock, threshold_s)
            bad, missing = bad | judged.over, missing | judged.missing
    return _codes(bad=bad, none=_left(requests, slo), missing=missing)


def _completion(requests: Requests, slo: Slo, objective: Objective) -> Codes:
    """Bad when it failed or was not done in time."""
    assert objective.threshold_s is not None, "a completion has its time"
    judged = _judged(requests, slo, Clock.E2E, objective.threshold_s)
    return _codes(
        bad=judged.over | requests.equal("outcome", "error"),
        none=_left(requests, slo),
        missing=judged.missing | requests.equal("outcome", UNKNOWN),
    )


def _clock_verdicts(requests: Requests, slo: Slo, objective: Objective) -> Codes:
    assert objective.clock is not None and objective.threshold_s is not None, "a clock's budget"
    judged = _judged(requests, slo, objective.clock, objective.threshold_s)
    none = judged.none
    if objective.clock is Clock.TPOT:
        none = none | (requests.number("output_tokens") < TPOT_MIN_OUTPUT_TOKENS)
        return _codes(bad=judged.over & ~none, none=none, missing=judged.missing)
    return _codes(bad=judged.over, none=none, missing=judged.missing)


def _codes(*, bad: Mask, none: Mask, missing: Mask) -> Codes:
    """Bad goes before none, none before unmeasured; the rest is good."""
    verdicts = (Verdict.BAD, Verdict.NONE, Verdict.UNMEASURED)
    chosen = np.select([bad, none, missing], [np.int8(v) for v in verdicts], Verdict.GOOD)
    return chosen.astype(np.int8)


def _left(requests: Requests, slo: Slo) -> Mask:
    """Those given up by the client that count only once they are known to be bad."""
    if slo.exclude.cancelled_by_client == "never":
        return np.zeros(len(requests), np.bool_)
    return requests.equal("outcome", "cancelled")


def _judged(requests: Requests, slo: Slo, clock: Clock, threshold_s: float) -> _Judged:
    value = requests.number(clock_column(clock, slo.vantage))
    measured = (value >= 0) & (value < np.inf)
    elapsed = requests.number(clock_column(Clock.E2E, slo.vantage))
    cut_short = requests.equal("outcome", "error") | requests.equal("outcome", "cancelled")
    early = requests.equal("outcome", "error") | _left(requests, slo)
    over, within = measured & (value > threshold_s), measured & (value <= threshold_s)
    if clock is Clock.E2E:
        return _Judged(over, within & ~early, within & early)
    if clock is Clock.QUEUE:
        return _Judged(over, within, ~measured & early)
    none = requests.number("streamed") == 0
    if clock is Clock.TTFT:
        over |= ~measured & ~none & cut_short & (elapsed > threshold_s)
        none |= early & (elapsed <= threshold_s)
    else:
        none |= early | (requests.number("output_tokens") < _LEAST_TOKENS)
    return _Judged(over, within, ~measured & ~over & none)


def groups_of(rows: pa.Table, by: tuple[str, ...]) -> tuple[list[tuple[str, ...]], I64]:
    """The combinations of the values of `by`, and which of them each row has."""
    if not by:
        return [()], np.zeros(rows.num_rows, np.int64)
    keys, group = distinct([text(rows.column(name), UNKNOWN) for name in by])
    return list(zip(*(key.to_pylist() for key in keys), strict=True)), group
