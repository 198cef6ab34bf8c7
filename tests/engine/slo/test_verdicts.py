"""Verdicts on requests: case by case, and against a plain judge that looks at one at a time."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.schema import REQUESTS
from tailburn.engine.slo.model import (
    Clock,
    Completion,
    Exclude,
    Place,
    Slo,
    Tier,
    objectives,
)
from tailburn.engine.slo.verdicts import Requests, Verdict, follow, judge, tally

EPOCH_NS = 1_780_000_000_123_456_789  # no float holds it
HERE = Place("slo.yaml", 1)
NONE, GOOD, BAD, UNMEASURED = Verdict

# No two alike, so that a threshold used for another clock shows.
TTFT_S, TPOT_S, ITL_S, QUEUE_S, E2E_S, DONE_S = 0.5, 0.06, 0.7, 0.3, 20.0, 90.0
CLOCKS: Mapping[Clock, Mapping[Tier, Mapping[str, float]]] = {
    Clock.TTFT: {Tier.TARGET: {"p95": 0.1}, Tier.ACCEPTABLE: {"p50": 0.2, "p95": TTFT_S}},
    Clock.TPOT: {Tier.ACCEPTABLE: {"p95": TPOT_S}},
    Clock.ITL: {Tier.ACCEPTABLE: {"p95": ITL_S}, Tier.CRITICAL: {"p95": 5.0}},
    Clock.QUEUE: {Tier.ACCEPTABLE: {"p95": QUEUE_S}},
    Clock.E2E: {Tier.ACCEPTABLE: {"p99": E2E_S}},
}
CHAT = Slo(
    name="chat",
    place=HERE,
    clocks=CLOCKS,
    availability_ratio=0.999,
    goodput_ratio=0.95,
    completion=Completion(DONE_S, 0.9),
)
QUICK: dict[str, Any] = {
    "outcome": "ok",
    "streamed": True,
    "output_tokens": 64,
    "ttft_gateway_s": 0.25,
    "tpot_gateway_s": 0.03,
    "itl_max_s": 0.1,
    "queue_s": 0.01,
    "e2e_gateway_s": 2.0,
}


def table(*requests: Mapping[str, Any]) -> pa.Table:
    """First versions with the given columns, the rest null."""
    usual = {"version": 1, "tombstone": False, "request_id": f"{1:016x}"}
    rows = [{**usual, **request} for request in requests]
    columns = [pa.array([row.get(f.name) for row in rows]).cast(f.type) for f in REQUESTS]
    return pa.table(columns, schema=REQUESTS)


def verdicts(slo: Slo, **request: Any) -> dict[str, Verdict]:
    """What each objective says of a request that is quick but for these columns."""
    codes = judge(Requests(table({**QUICK, **request})), slo)
    names = [objective.name for objective in objectives(slo)]
    return dict(zip(names, map(Verdict, codes[0].tolist()), strict=True))


def given_up(policy: str, **more: Any) -> Slo:
    exclude = Exclude(cancelled_by_client=policy, **more)  # type: ignore[arg-type]
    return Slo(**{**vars(CHAT), "exclude": exclude})


def test_a_quick_request_is_good_in_every_budget() -> None:
    assert set(verdicts(CHAT).values()) == {GOOD}


@pytest.mark.parametrize(
    ("column", "limit_s", "objective"),
    [
        ("ttft_gateway_s", TTFT_S, "ttft_p95"),
        ("tpot_gateway_s", TPOT_S, "tpot_p95"),
        ("itl_max_s", ITL_S, "itl_p95"),
        ("queue_s", QUEUE_S, "queue_p95"),
        ("e2e_gateway_s", E2E_S, "e2e_p99"),
        ("e2e_gateway_s", DONE_S, "completion"),
    ],
)
def test_a_clock_is_bad_above_its_threshold_and_not_at_it(
    column: str, limit_s: float, objective: str
) -> None:
    assert verdicts(CHAT, **{column: limit_s})[objective] is GOOD
    assert verdicts(CHAT, **{column: np.nextafter(limit_s, 1e9)})[objective] is BAD


@pytest.mark.parametrize("column", ["ttft_gateway_s", "tpot_gateway_s", "itl_max_s", "queue_s"])
def test_one_slow_clock_spoils_goodput_and_no_other_budget(column: str) -> None:
    found = verdicts(CHAT, **{column: 9.0})
    bad = {name for name, verdict in found.items() if verdict is BAD}
    assert bad == {"goodput", column.split("_")[0] + "_p95"}


def test_goodput_asks_for_the_acceptable_p95_only() -> None:
    assert verdicts(CHAT, e2e_gateway_s=E2E_S + 1)["goodput"] is GOOD
    assert verdicts(CHAT, ttft_gateway_s=0.3)["goodput"] is GOOD  # above target and p50


def test_a_clock_of_another_vantage_is_no_clock_of_this_slo() -> None:
    found = verdicts(CHAT, ttft_gateway_s=None, ttft_client_s=9.0, ttft_engine_s=0.2)
    assert (found["ttft_p95"], found["goodput"]) == (UNMEASURED, UNMEASURED)


ENTRY_LOST: dict[str, Any] = {
    **{"completeness": "rootless", "ttft_gateway_s": None, "tpot_gateway_s": None},
    **{"e2e_gateway_s": None, "received_ns": 130 * 10**9},
}
STILL_OPEN: dict[str, Any] = {
    **ENTRY_LOST,
    **{"outcome": "unknown", "start_ns": 30 * 10**9, "end_ns": 31 * 10**9, "queue_s": 0.05},
}


@pytest.mark.parametrize(
    ("request_", "ttft", "completion"),
    [
        pytest.param(
            {**ENTRY_LOST, "ttft_engine_s": 0.2, "e2e_engine_s": 2.0}, UNMEASURED, UNMEASURED,
            id="the engine finished: only telemetry is lost",
        ),
        pytest.param(
            {**ENTRY_LOST, "ttft_engine_s": 0.9, "e2e_engine_s": 2.0}, BAD, UNMEASURED,
            id="the first token left the engine too late",
        ),
        pytest.param(
            {**ENTRY_LOST, "ttft_engine_s": 0.2, "e2e_engine_s": 95.0}, UNMEASURED, BAD,
            id="the engine alone took too long",
        ),
        pytest.param(
            {**ENTRY_LOST, "queue_s": 0.8}, BAD, UNMEASURED,
            id="it waited in the queue for longer",
        ),
        pytest.param(STILL_OPEN, UNMEASURED, BAD, id="its caller was not heard of for so long"),
        pytest.param(
            {**STILL_OPEN, "received_ns": 60 * 10**9}, UNMEASURED, UNMEASURED,
            id="it closed before its time was up",
        ),
        pytest.param(
            {**STILL_OPEN, "outcome": "error", "e2e_engine_s": 12.0}, BAD, BAD,
            id="a try failed after the time was up",
        ),
        pytest.param(
            {**STILL_OPEN, "outcome": "error", "e2e_engine_s": 0.1}, UNMEASURED, BAD,
            id="a try failed early and another may have gone well",
        ),
        pytest.param(
            {**STILL_OPEN, "completeness": "partial"}, UNMEASURED, UNMEASURED,
            id="nobody called it: what is outside sends no spans",
        ),
    ],
)  # fmt: skip
def test_a_request_whose_entry_never_ended_is_bad_once_it_is_known_to_be_too_late(
    request_: dict[str, Any], ttft: Verdict, completion: Verdict
) -> None:
    found = verdicts(CHAT, **request_)
    assert (found["ttft_p95"], found["completion"]) == (ttft, completion)


def test_what_happened_outside_says_nothing_of_a_vantage_within() -> None:
    engine = Slo(**{**vars(CHAT), "vantage": "engine"})
    outside = {"ttft_client_s": 9.0, "e2e_client_s": 99.0, "e2e_gateway_s": 99.0}
    found = verdicts(engine, **outside, outcome="cancelled", start_ns=1, end_ns=99 * 10**9)
    assert (found["ttft_p95"], found["completion"]) == (UNMEASURED, NONE)


@pytest.mark.parametrize("nothing", [None, float("nan"), -1.0, float("inf")])
@pytest.mark.parametrize(
    ("column", "objective"),
    [
        ("ttft_gateway_s", "ttft_p95"),
        ("tpot_gateway_s", "tpot_p95"),
        ("itl_max_s", "itl_p95"),
        ("queue_s", "queue_p95"),
    ],
)
def test_a_missing_clock_is_unmeasured_also_in_goodput(
    column: str, objective: str, nothing: float | None
) -> None:
    found = verdicts(CHAT, **{column: nothing})
    assert (found.pop(objective), found.pop("goodput")) == (UNMEASURED, UNMEASURED)
    assert set(found.values()) == {GOOD}


def test_a_request_not_streamed_has_no_clocks_of_a_stream_and_can_be_good() -> None:
    missing = dict.fromkeys(("ttft_gateway_s", "tpot_gateway_s", "itl_max_s"))
    found = verdicts(CHAT, streamed=False, **missing)
    assert [found[name] for name in ("ttft_p95", "tpot_p95", "itl_p95")] == [NONE] * 3
    assert (found["goodput"], found["availability"], found["e2e_p99"]) == (GOOD, GOOD, GOOD)


def test_one_token_has_no_gap_and_few_have_a_noisy_mean() -> None:
    one = verdicts(CHAT, output_tokens=1, tpot_gateway_s=None, itl_max_s=None)
    assert (one["tpot_p95"], one["itl_p95"], one["goodput"]) == (NONE, NONE, GOOD)
    few = verdicts(CHAT, output_tokens=15, tpot_gateway_s=9.0)
    assert (few["tpot_p95"], few["goodput"]) == (NONE, BAD)
    assert verdicts(CHAT, output_tokens=16, tpot_gateway_s=9.0)["tpot_p95"] is BAD


def test_a_failure_is_bad_where_success_counts_and_says_nothing_of_clocks_it_cut_short() -> None:
    cut = dict.fromkeys(("ttft_gateway_s", "tpot_gateway_s", "itl_max_s", "queue_s"))
    found = verdicts(CHAT, outcome="error", e2e_gateway_s=0.1, **cut)
    bad = {name for name, verdict in found.items() if verdict is BAD}
    assert bad == {"availability", "goodput", "completion"}
    assert {v for name, v in found.items() if name not in bad} == {NONE}


def test_a_failure_after_the_threshold_was_too_slow_as_well() -> None:
    found = verdicts(CHAT, outcome="error", ttft_gateway_s=None, e2e_gateway_s=E2E_S + 1)
    assert (found["ttft_p95"], found["e2e_p99"]) == (BAD, BAD)


def test_an_unknown_outcome_is_no_success() -> None:
    found = verdicts(CHAT, outcome="unknown")
    unmeasured = {name for name, verdict in found.items() if verdict is UNMEASURED}
    assert unmeasured == {"availability", "goodput", "completion"}
    assert verdicts(CHAT, outcome="unknown", ttft_gateway_s=9.0)["goodput"] is BAD


EARLY = {
    "outcome": "cancelled",
    "e2e_gateway_s": 0.4,
    **dict.fromkeys(("ttft_gateway_s", "tpot_gateway_s", "itl_max_s", "queue_s")),
}
LATE = {**EARLY, "e2e_gateway_s": 30.0}


def test_given_up_before_the_threshold_counts_nowhere() -> None:
    assert set(verdicts(CHAT, **EARLY).values()) == {NONE}


def test_given_up_after_the_threshold_is_bad() -> None:
    found = verdicts(CHAT, **LATE)
    bad = {name for name, verdict in found.items() if verdict is BAD}
    assert bad == {"ttft_p95", "e2e_p99", "goodput"}
    assert {v for name, v in found.items() if name not in bad} == {NONE}


def test_given_up_after_a_first_token_in_time_has_a_first_token_in_time() -> None:
    found = verdicts(CHAT, outcome="cancelled", e2e_gateway_s=3.0)
    assert (found["ttft_p95"], found["tpot_p95"], found["e2e_p99"]) == (GOOD, GOOD, NONE)
    assert (found["availability"], found["goodput"], found["completion"]) == (NONE, NONE, NONE)


def test_given_up_can_count_never_or_as_any_other() -> None:
    assert set(verdicts(given_up("always"), **LATE).values()) == {NONE}
    found = verdicts(given_up("never"), outcome="cancelled")
    assert set(found.values()) == {GOOD}
    assert verdicts(given_up("never"), **EARLY)["ttft_p95"] is UNMEASURED


def test_a_callers_own_mistake_and_a_synthetic_client_count_in_no_budget() -> None:
    slo = given_up("never", http_status=(400, 404), where=({"client": "probe", "route": "/ping"},))
    assert set(verdicts(slo, http_status=404, outcome="error").values()) == {NONE}
    assert set(verdicts(slo, client="probe", route="/ping").values()) == {NONE}
    assert set(verdicts(slo, client="probe", route="/chat").values()) == {GOOD}
    assert set(verdicts(slo, http_status=429).values()) == {GOOD}


def test_only_selected_requests_are_judged() -> None:
    slo = Slo(**{**vars(CHAT), "select": {"pool": "interactive", "model": "unknown"}})
    assert set(verdicts(slo, pool="interactive").values()) == {GOOD}
    assert set(verdicts(slo, pool="interactive", model="a").values()) == {NONE}
    assert set(verdicts(slo, pool="batch").values()) == {NONE}
    assert set(verdicts(slo).values()) == {NONE}


def test_a_tombstone_has_no_verdict() -> None:
    assert set(verdicts(CHAT, tombstone=True).values()) == {NONE}


def test_an_engine_answers_for_its_own_clocks() -> None:
    slo = Slo(**{**vars(CHAT), "vantage": "engine"})
    found = verdicts(slo, ttft_engine_s=0.6, tpot_engine_s=0.01, e2e_engine_s=1.0)
    assert (found["ttft_p95"], found["tpot_p95"], found["e2e_p99"]) == (BAD, GOOD, GOOD)


def test_a_request_counts_for_all_that_its_sample_stands_for_under_its_own_values() -> None:
    rows = table(
        {**QUICK, "model": "a", "weight": 3.4},
        {**QUICK, "model": "a", "ttft_gateway_s": 0.9, "weight": 0.2},
        {**QUICK, "model": "b", "ttft_gateway_s": None},
        {**QUICK, "model": "c", "tombstone": True},
    )
    slo = Slo("chat", HERE, by=("model",), clocks={Clock.TTFT: CLOCKS[Clock.TTFT]})
    requests = Requests(rows)
    found = {
        t.values: t.counts.tolist()
        for t in tally(requests, judge(requests, slo), slo, requests.minute_ns)
    }
    assert found == {("a",): [[0, 3, 1, 0]], ("b",): [[0, 0, 0, 1]]}


def test_a_later_version_with_another_verdict_is_found_by_what_it_replaces() -> None:
    slow, gone = {**QUICK, "ttft_gateway_s": 0.9}, {**QUICK, "tombstone": True}
    older = [{**QUICK, "request_id": f"{i:016x}", "version": v} for i, v in enumerate([1, 1, 2, 1])]
    newer = [
        {**slow, "request_id": f"{0:016x}", "version": 2},
        {**QUICK, "request_id": f"{1:016x}", "version": 2},
        {**gone, "request_id": f"{2:016x}", "version": 3},
        {**slow, "request_id": f"{3:016x}", "version": 9},
    ]
    newer = [{**row, "received_ns": 181 * 10**9} for row in newer]
    slo = Slo("chat", HERE, clocks={Clock.TTFT: CLOCKS[Clock.TTFT]})
    before, after = Requests(table(*older)), Requests(table(*newer))
    found = follow(before, judge(before, slo), after, judge(after, slo))
    assert found.lost[:, 0].tolist() == [GOOD, NONE, GOOD, NONE]
    assert found.lost_ns.tolist() == [180 * 10**9, 180 * 10**9, 180 * 10**9, 0]
    assert not found.gained.any()


def test_a_verdict_that_only_a_later_version_has_is_gained_once() -> None:
    unmeasured = {**QUICK, "ttft_gateway_s": None}
    elsewhere = {**QUICK, "pool": "batch"}
    older = [unmeasured, unmeasured, elsewhere, {**unmeasured, "version": 2}, QUICK]
    newer = [QUICK, elsewhere, unmeasured, QUICK, QUICK]
    slo = Slo("chat", HERE, select={"pool": "chat"}, clocks={Clock.TTFT: CLOCKS[Clock.TTFT]})
    numbered = [
        {"pool": "chat", "received_ns": 1, "version": 1, **row, "request_id": f"{i:016x}"}
        for i, row in enumerate(older)
    ]
    taken = [
        {
            **{"pool": "chat", "received_ns": 2, **row},
            **{"version": old["version"] + 1, "replaces": old["request_id"]},
        }
        for old, row in zip(numbered, newer, strict=True)
    ]
    gone = [{**row, "version": row["version"] + 1, "tombstone": True} for row in numbered]
    before, after = Requests(table(*numbered)), Requests(table(*gone, *taken))
    found = follow(before, judge(before, slo), after, judge(after, slo))
    assert found.gained[:, 0].tolist() == [NONE] * 5 + [GOOD, NONE, UNMEASURED, NONE, NONE]
    assert found.lost[:, 0].tolist() == [UNMEASURED, UNMEASURED, NONE, UNMEASURED, NONE]


SECONDS = st.sampled_from([None, 0.0, 0.05, 0.06, 0.3, 0.5, 0.6, 0.7, 1.0, 20.0, 25.0, 91.0])
REQUEST = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(["unknown", "ok", "error", "cancelled", None]),
        "streamed": st.sampled_from([True, False, None]),
        "output_tokens": st.sampled_from([None, 0, 1, 2, 15, 16, 64]),
        "http_status": st.sampled_from([None, 200, 404, 500]),
        "model": st.sampled_from(["a", "b", None]),
        "pool": st.sampled_from(["chat", None]),
        "weight": st.sampled_from([None, 1.0, 2.6]),
        "tombstone": st.sampled_from([False, False, False, True]),
        "ttft_gateway_s": SECONDS,
        "tpot_gateway_s": SECONDS,
        "e2e_gateway_s": SECONDS,
        "itl_max_s": SECONDS,
        "queue_s": SECONDS,
        "ttft_engine_s": SECONDS,
        "e2e_engine_s": SECONDS,
        "e2e_client_s": SECONDS,
        "completeness": st.sampled_from(["rootless", "partial", None]),
        "start_ns": st.sampled_from([None, EPOCH_NS + 10**9]),
        "end_ns": st.sampled_from([None, EPOCH_NS + 2 * 10**9, EPOCH_NS + 95 * 10**9]),
        "received_ns": st.sampled_from([EPOCH_NS + s * 10**9 for s in (5, 60, 200)]),
    }
)
POLICY = st.sampled_from(["always", "never", "before_threshold"])


@given(st.lists(REQUEST, min_size=1, max_size=20), POLICY)
def test_all_at_once_is_what_one_at_a_time_gives(
    requests: list[dict[str, Any]], policy: str
) -> None:
    slo = given_up(policy, http_status=(404,))
    slo = Slo(**{**vars(slo), "select": {"pool": "chat"}, "by": ("model",)})
    rows = Requests(table(*requests))
    codes = judge(rows, slo)
    assert codes.tolist() == [
        [_plain(request, slo, policy, o.name) for o in objectives(slo)] for request in requests
    ]
    expected: Counter[tuple[str, int, int]] = Counter()
    for request, row in zip(requests, codes.tolist(), strict=True):
        for objective, code in enumerate(row):
            weight = max(round(request["weight"] or 1), 1)
            expected[request["model"] or "unknown", objective, code] += weight * (code != NONE)
    found: Counter[tuple[str, int, int]] = Counter()
    for t in tally(rows, codes, slo, rows.minute_ns):
        for objective, code in np.argwhere(t.counts).tolist():
            if code != NONE:
                found[t.values[0], objective, code] += int(t.counts[objective, code])
    assert found == +expected


def _plain(r: dict[str, Any], slo: Slo, policy: str, name: str) -> int:
    """One request and one objective, rule by rule."""
    gone, failed = r["outcome"] == "cancelled", r["outcome"] == "error"
    unknown = r["outcome"] in (None, "unknown")
    if r["tombstone"] or r["pool"] != "chat" or r["http_status"] == 404:
        return NONE
    if gone and policy == "always":
        return NONE
    left = gone and policy != "never"
    if name == "availability":
        return BAD if failed else NONE if left else UNMEASURED if unknown else GOOD
    if name == "goodput":
        clocks = (("ttft", TTFT_S), ("tpot", TPOT_S), ("itl", ITL_S), ("queue", QUEUE_S))
        parts = [_plain_clock(r, left, clock, limit) for clock, limit in clocks]
    elif name == "completion":
        parts = [_plain_clock(r, left, "e2e", DONE_S)]
    else:
        clock = name.split("_")[0]
        tokens = r["output_tokens"]
        if clock == "tpot" and tokens is not None and tokens < 16:
            return NONE
        limit = dict(ttft=TTFT_S, tpot=TPOT_S, itl=ITL_S, queue=QUEUE_S, e2e=E2E_S)[clock]
        return _plain_clock(r, left, clock, limit)
    if failed or BAD in parts:
        return BAD
    if left:
        return NONE
    return UNMEASURED if unknown or UNMEASURED in parts else GOOD


def _plain_clock(r: dict[str, Any], left: bool, clock: str, limit_s: float) -> int:
    value = r[{"itl": "itl_max_s", "queue": "queue_s"}.get(clock, f"{clock}_gateway_s")]
    ended, early = r["e2e_gateway_s"], left or r["outcome"] == "error"
    if value is not None:
        if value > limit_s:
            return BAD
        return NONE if clock == "e2e" and early else GOOD
    if clock in ("ttft", "tpot", "itl") and r["streamed"] is False:
        return NONE
    if clock == "ttft":
        cut_short = r["outcome"] in ("error", "cancelled")
        stay = ended if ended is not None else r["e2e_engine_s"]
        known = [r["ttft_engine_s"], r["queue_s"]]
        if cut_short and r["e2e_client_s"] is None:
            known.append(stay)
        if cut_short and ended is not None:
            known.append(ended)
        if max((s for s in known if s is not None), default=0.0) > limit_s:
            return BAD
        return NONE if early and ended is not None else UNMEASURED
    if clock == "e2e":
        known = [r["e2e_engine_s"]]
        stays = (r["e2e_client_s"], r["e2e_gateway_s"], r["e2e_engine_s"])
        running = r["completeness"] == "rootless" and r["outcome"] in (None, "unknown")
        until_ns = r["received_ns"] if running else r["end_ns"]
        if stays == (None, None, None) and None not in (until_ns, r["start_ns"]):
            known.append((until_ns - r["start_ns"]) / 1e9)
        return (
            BAD if max((s for s in known if s is not None), default=0.0) > limit_s else UNMEASURED
        )
    tokens = r["output_tokens"]
    if clock in ("tpot", "itl") and tokens is not None and tokens < 2:
        return NONE
    return NONE if early else UNMEASURED
