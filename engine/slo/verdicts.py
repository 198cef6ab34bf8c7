"""The verdicts of an SLO on closed requests: one per request and objective, and their counts.

What counts is what is known. A clock that is missing is unmeasured, neither good nor bad; a
request that by its nature has no such clock (not streamed, too few tokens) has no verdict on
it. One that failed or was given up before a clock ended was over the threshold, if it took
longer than that, and has no verdict otherwise: a quick failure is no quick answer. A missing
clock is over as soon as what is known takes longer than the threshold: a first token does not
come sooner outside than inside, and a request is not over before what it holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.grouping import F64, I64, distinct, numbers, single_chunk, text
from tailburn.engine.names import UNKNOWN, VANTAGES
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

NEEDED_COLUMNS: Final = (
    *("outcome", "http_status", "streamed", "output_tokens", "weight", "completeness"),
    *("start_ns", "end_ns", "received_ns", "queue_s"),
    *(f"{clock}_{at}_s" for clock in ("ttft", "e2e") for at in VANTAGES),
)

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

    def since_start_s(self, column: str) -> F64:
        """From the start of each request to the time in the column, null as nan."""
        lasted_ns = pc.subtract(self.rows.column(column), self.rows.column("start_ns"))
        return numbers(lasted_ns, np.nan) / 1e9

    def equal(self, column: str, value: str) -> Mask:
        """Which rows have this text; null is `unknown`."""
        if column not in self._codes:
            encoded = single_chunk(text(self.rows.column(column), UNKNOWN))
            known = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
            self._codes[column] = encoded.indices.to_numpy(), known
        codes, known = self._codes[column]
        mask: Mask = codes == known.get(value, -1)
        return mask

    def texts(self, column: str) -> tuple[list[str], NDArray[np.int32]]:
        """The texts of the column, null as `unknown`, and which of them each row has."""
        self.equal(column, UNKNOWN)
        codes, known = self._codes[column]
        return list(known), codes

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
class Judged:
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
    mine = counted(requests, slo)
    codes = np.zeros((len(requests), len(objectives(slo))), np.int8)
    if mine.any():
        for column, objective in enumerate(objectives(slo)):
            codes[mine, column] = _verdicts(requests, slo, objective)[mine]
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


@dataclass(frozen=True)
class Followed:
    """What newer versions say of requests that older ones were counted by."""

    gained: Codes  # of the newer: verdicts on what had none, to be counted now
    lost: Codes  # of the older: verdicts counted that another one takes the place of
    lost_ns: I64  # the minute in which the newer one closed


def follow(older: Requests, older_codes: Codes, newer: Requests, newer_codes: Codes) -> Followed:
    """Compare each older version with the one that takes its place; NONE where nothing changed.

    Only a first version that was neither good nor bad can gain a verdict: then no version was
    counted before, and each request counts once whatever comes.
    """
    next_row = _next_versions(older.rows, newer.rows)
    followed = np.flatnonzero(next_row >= 0)
    next_row = next_row[followed]
    before, after = older_codes[followed], newer_codes[next_row]
    lost = np.zeros(older_codes.shape, np.int8)
    lost[followed] = np.where(before != after, before, np.int8(Verdict.NONE))
    lost_ns = np.zeros(len(older), np.int64)
    lost_ns[followed] = newer.minute_ns[next_row]
    open_to = (before == Verdict.NONE) | ((before == Verdict.UNMEASURED) & _counts(after))
    open_to &= (older.number("version")[followed] == 1)[:, None]
    gained = np.zeros(newer_codes.shape, np.int8)
    gained[next_row] = np.where(open_to, after, np.int8(Verdict.NONE))
    return Followed(gained, lost, lost_ns)


def _counts(codes: Codes) -> Mask:
    return (codes == Verdict.GOOD) | (codes == Verdict.BAD)


def _next_versions(older: pa.Table, newer: pa.Table) -> I64:
    """The row of `newer` that takes the place of each row of `older`; -1 for none.

    That is the next version of its id, or the row that replaces it under another one.
    """
    keys = _version_keys(older, 1)
    found = pc.index_in(keys, value_set=_version_keys(newer, 0, "replaces"))
    found = pc.coalesce(found, pc.index_in(keys, value_set=_version_keys(newer, 0)))
    rows: I64 = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return rows


def _version_keys(rows: pa.Table, ahead: int, name: str = "request_id") -> pa.ChunkedArray:
    versions = pc.add(rows["version"], ahead).cast(pa.string())
    return pc.binary_join_element_wise(rows[name], versions, "/")


def counted(requests: Requests, slo: Slo) -> Mask:
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
    return verdicts(
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
            one = judged(requests, slo, clock, threshold_s)
            bad, missing = bad | one.over, missing | one.missing
    return verdicts(bad=bad, none=_left(requests, slo), missing=missing)


def _completion(requests: Requests, slo: Slo, objective: Objective) -> Codes:
    """Bad when it failed or was not done in time."""
    assert objective.threshold_s is not None, "a completion has its time"
    one = judged(requests, slo, Clock.E2E, objective.threshold_s)
    return verdicts(
        bad=one.over | requests.equal("outcome", "error"),
        none=_left(requests, slo),
        missing=one.missing | requests.equal("outcome", UNKNOWN),
    )


def _clock_verdicts(requests: Requests, slo: Slo, objective: Objective) -> Codes:
    assert objective.clock is not None and objective.threshold_s is not None, "a clock's budget"
    one = judged(requests, slo, objective.clock, objective.threshold_s)
    none = one.none
    if objective.clock is Clock.TPOT:
        none = none | (requests.number("output_tokens") < TPOT_MIN_OUTPUT_TOKENS)
        return verdicts(bad=one.over & ~none, none=none, missing=one.missing)
    return verdicts(bad=one.over, none=none, missing=one.missing)


def verdicts(*, bad: Mask, none: Mask, missing: Mask) -> Codes:
    """Bad goes before none, none before unmeasured; the rest is good."""
    verdicts = (Verdict.BAD, Verdict.NONE, Verdict.UNMEASURED)
    chosen = np.select([bad, none, missing], [np.int8(v) for v in verdicts], Verdict.GOOD)
    return chosen.astype(np.int8)


def _left(requests: Requests, slo: Slo) -> Mask:
    """Those given up by the client that count only once they are known to be bad."""
    if slo.exclude.cancelled_by_client == "never":
        return np.zeros(len(requests), np.bool_)
    return requests.equal("outcome", "cancelled")


def judged(requests: Requests, slo: Slo, clock: Clock, threshold_s: float | F64) -> Judged:
    """Against a threshold, or one for each request, where nan is none."""
    value = requests.number(clock_column(clock, slo.vantage))
    measured = (value >= 0) & (value < np.inf)
    elapsed = requests.number(clock_column(Clock.E2E, slo.vantage))
    early = requests.equal("outcome", "error") | _left(requests, slo)
    over, within = measured & (value > threshold_s), measured & (value <= threshold_s)
    if clock is Clock.E2E:
        over |= ~measured & (_at_least_s(requests, slo) > threshold_s)
        return Judged(over, within & ~early, within & early)
    if clock is Clock.QUEUE:
        return Judged(over, within, ~measured & early)
    none = requests.number("streamed") == 0
    if clock is Clock.TTFT:
        over |= ~measured & ~none & (_first_token_at_least_s(requests, slo) > threshold_s)
        none |= early & (elapsed <= threshold_s)
    else:
        none |= early | (requests.number("output_tokens") < _LEAST_TOKENS)
    return Judged(over, within, ~measured & ~over & none)


def _first_token_at_least_s(requests: Requests, slo: Slo) -> F64:
    """What the first token took at least, where it isn't known at the SLO's vantage; or nan.

    It came no sooner there than further in, and not before the engine took the request up. One
    that failed or was given up had none until then.
    """
    cut_short = requests.equal("outcome", "error") | requests.equal("outcome", "cancelled")
    lasted_s = np.full(len(requests), np.nan)
    for vantage in reversed(VANTAGES):  # the outermost that was seen knows how it ended
        e2e_s = requests.number(clock_column(Clock.E2E, vantage))
        known = VANTAGES.index(vantage) >= VANTAGES.index(slo.vantage)
        lasted_s = np.where(np.isnan(e2e_s), lasted_s, e2e_s if known else np.nan)
    inner = [requests.number(clock_column(Clock.TTFT, v)) for v in _within(slo)]
    return _longest_s(inner, requests.number("queue_s"), np.where(cut_short, lasted_s, np.nan))


def _at_least_s(requests: Requests, slo: Slo) -> F64:
    """What the whole request took at least, where its end isn't known at the SLO's vantage; or nan.

    It was not over before what it holds was. One whose caller is named and was not heard of when
    the row closed, and of which no server's stay has ended either, was still running then.
    """
    stays = [requests.number(clock_column(Clock.E2E, v)) for v in VANTAGES]
    running = requests.equal("completeness", "rootless") & requests.equal("outcome", UNKNOWN)
    until_s = np.where(
        running, requests.since_start_s("received_ns"), requests.since_start_s("end_ns")
    )
    no_stay = np.isnan(np.fmax.reduce(stays))
    inner = [requests.number(clock_column(Clock.E2E, v)) for v in _within(slo)]
    return _longest_s(inner, np.where(no_stay, until_s, np.nan))


def _longest_s(some: Sequence[F64], *more: F64) -> F64:
    """Of each request; what isn't a duration is left out."""
    found = np.stack([*some, *more])
    longest_s: F64 = np.fmax.reduce(np.where((found >= 0) & (found < np.inf), found, np.nan))
    return longest_s


def _within(slo: Slo) -> tuple[str, ...]:
    """The vantages further in than the SLO's."""
    return VANTAGES[VANTAGES.index(slo.vantage) + 1 :]


def groups_of(rows: pa.Table, by: tuple[str, ...]) -> tuple[list[tuple[str, ...]], I64]:
    """The combinations of the values of `by`, and which of them each row has."""
    if not by:
        return [()], np.zeros(rows.num_rows, np.int64)
    keys, group = distinct([text(rows.column(name), UNKNOWN) for name in by])
    return list(zip(*(key.to_pylist() for key in keys), strict=True)), group
