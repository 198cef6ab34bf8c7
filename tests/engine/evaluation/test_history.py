"""The same rows in any order and in any pieces are the same history, and so after a restart."""

import json
import random
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine import histogram
from tailburn.engine.evaluation import AlertKey, History, State, evaluate, history_of
from tailburn.engine.schema import ROLLUPS, VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Place, Regression, ScaleOut, Slo, Tier, objectives
from tailburn.rules.ruleset import watches_of

MINUTE_NS: Final = 60_000_000_000
BEGIN: Final = 28_000_080
SLO: Final = Slo(
    "chat",
    Place("chat.yaml", 1),
    by=("model",),
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5, "p99": 1.0}, Tier.CRITICAL: {"p50": 1.0}}},
    availability_ratio=0.99,
    regression=Regression(days=1),
    scale_out=ScaleOut(),
)
WATCHES: Final = watches_of([SLO])
NAME: Final = objectives(SLO)[0].name
DEFINITION: Final = definition_of(SLO, objectives(SLO)[0])
Row = tuple[int, str, int, int, int]

rows = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.sampled_from("abc"),
        st.integers(0, 900),
        st.integers(0, 900),
        st.integers(0, 300),
    ),
    min_size=1,
    max_size=40,
)


def verdicts(some: Sequence[Row]) -> pa.Table:
    """minute, model, good, bad, unmeasured."""
    told = [
        {
            "minute_ns": (BEGIN + minute) * MINUTE_NS,
            "slo": SLO.name,
            "objective": NAME,
            "definition": DEFINITION,
            "by": json.dumps({"model": model}),
            "requests": good + bad,
            "bad": bad,
            "unmeasured": unmeasured,
            "late": 0,
        }
        for minute, model, good, bad, unmeasured in some
    ]
    arrays = [pa.array([r[f.name] for r in told]).cast(f.type) for f in VERDICTS]
    return pa.table(arrays, schema=VERDICTS)


def rollups(some: Sequence[Row]) -> pa.Table:
    """The same rows as times of the first token: the good take 0.1 s, the bad 3 s."""
    told = []
    for minute, model, good, bad, _ in some:
        held = {int(histogram.bucket_of(np.array([s]))[0]): n for s, n in ((0.1, good), (3, bad))}
        told.append(
            {
                **dict.fromkeys(ROLLUPS.names),
                "minute_ns": (BEGIN + minute) * MINUTE_NS,
                "model": model,
                "clock": "ttft_gateway_s",
                "count": good + bad,
                "sum_s": 0.0,
                "buckets": list(held),
                "counts": list(held.values()),
            }
        )
    arrays = [
        pa.array([r[f.name] for r in told], pa.string()).cast(f.type)
        if pa.types.is_dictionary(f.type)
        else pa.array([r[f.name] for r in told], f.type)
        for f in ROLLUPS
    ]
    return pa.table(arrays, schema=ROLLUPS)


def taken(pieces: Sequence[Sequence[Row]]) -> History:
    history = history_of(WATCHES)
    for piece in pieces:
        if piece:
            history.take_verdicts(verdicts(piece))
            history.take_rollups(rollups(piece))
    return history


def seen(history: History, now: int) -> dict[tuple[str, ...], object]:
    """Everything that conditions ask, by model."""
    found: dict[tuple[str, ...], object] = {}
    group = history.counts.group((SLO.name, NAME, DEFINITION))
    for window_s in (300, 3600, 21_600, 86_400):
        sums = history.sums(window_s, now)
        for model, column in zip(group.by, group.columns.tolist(), strict=True):
            told = (sums.requests[column], sums.bad[column], bool(sums.is_rated[column]))
            found[str(window_s), *model] = told
    cells = history.buckets.cells((SLO.name, Clock.TTFT))
    for name, (value, came) in {
        "recent": history.recent(cells.columns, 0.5, now),
        "hour": history.hour(cells.columns, 0.99, now),
    }.items():
        for i, model in enumerate(cells.by):
            found[name, *model] = (str(value[i]), float(came[i]))
    return found


@settings(max_examples=40, deadline=None)
@given(rows, st.randoms(use_true_random=False), st.integers(1, 5))
def test_order_and_pieces_of_rows_change_nothing(
    some: list[Row], dice: random.Random, pieces: int
) -> None:
    now = BEGIN + 404
    whole = taken([some])
    mixed = list(some)
    dice.shuffle(mixed)
    parted = taken([mixed[i::pieces] for i in range(pieces)])
    assert seen(parted, now) == seen(whole, now)
    states, _ = evaluate(WATCHES, whole, {}, (), now * MINUTE_NS)
    again, _ = evaluate(WATCHES, parted, {}, (), now * MINUTE_NS)
    assert again == states


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from([300, 1800, 3600, 7200, 21_600]), st.integers(0, 404))
def test_a_window_is_the_exact_sum_of_its_rows(some: list[Row], window_s: int, minute: int) -> None:
    # Rows up to the minute that is evaluated: what comes later is not there yet.
    now = BEGIN + minute
    past = [row for row in some if row[0] < minute]
    history = taken([past])
    sums = history.sums(window_s, now)
    group = history.counts.group((SLO.name, NAME, DEFINITION))
    for (model,), column in zip(group.by, group.columns.tolist(), strict=True):
        inside = [r for r in past if r[1] == model and minute - window_s // 60 <= r[0]]
        assert sums.requests[column] == sum(r[2] + r[3] for r in inside)
        assert sums.bad[column] == sum(r[3] for r in inside)
        assert sums.unmeasured[column] == sum(r[4] for r in inside)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(30, 170))
def test_after_a_restart_the_same_alerts_stand(seed: int, restart: int) -> None:
    """One history lives on, the other is read again from the rows; states come from a database."""
    rng = np.random.default_rng(seed)
    bad_ratio = rng.choice([0, 0, 0.02, 0.3, 1.0], 180)
    each = [
        [
            (m, model, int(600 * (1 - r)), int(600 * r), 0)
            for model, r in (("a", bad_ratio[m]), ("b", 0))
        ]
        for m in range(180)
    ]
    lived, lived_again = history_of(WATCHES), history_of(WATCHES)
    states: dict[AlertKey, State] = {}
    again: dict[AlertKey, State] = {}
    for minute in range(180):
        if minute == restart:
            past = [row for one in each[:minute] for row in one]
            lived_again.take_verdicts(verdicts(past))
            lived_again.take_rollups(rollups(past))
            again = dict(states)
        for history in (lived, *((lived_again,) if minute >= restart else ())):
            history.take_verdicts(verdicts(each[minute]))
            history.take_rollups(rollups(each[minute]))
        now_ns = (BEGIN + minute + 1) * MINUTE_NS
        states, flips = evaluate(WATCHES, lived, states, (), now_ns)
        if minute >= restart:
            again, same = evaluate(WATCHES, lived_again, again, (), now_ns)
            assert (again, same) == (states, flips)
