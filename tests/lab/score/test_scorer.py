"""The scorer on outcomes made by hand, every figure worked out beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tailburn.lab.score import Estimate, Limits, Outcome, Scores, Spent, match, score
from tailburn.lab.score.scorer import Judged
from tests.lab.score.making import (
    MINUTE,
    because,
    fault,
    holds,
    judged,
    page,
    says,
    truth,
)

CAUSES = [f"S{i}" for i in range(1, 36)]
NEAREST = {"S8": ("S18", "S20"), "S1": ("S8",)}


def scored(*runs: Judged, **how: object) -> Scores:
    return score(runs, CAUSES, NEAREST, resamples=50, **how)  # type: ignore[arg-type]


def value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


def test_a_page_that_begins_in_a_fault_finds_it() -> None:
    found = match(truth(fault("S1", 100, 145)), says(page(103, 150)))
    assert [f.delay_s for f in found.found] == [180.0]
    assert found.false == ()


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ((), "none"),
        ((page(90, 120),), "open before"),
        ((page(151, 160),), "six minutes after its end"),
        ((page(103, 120, "ticket"),), "a ticket"),
    ],
)
def test_a_fault_is_not_found_by(pages: tuple, why: str) -> None:  # type: ignore[type-arg]
    found = match(truth(fault("S1", 100, 145)), says(*pages)).found
    assert [f.page_ns for f in found] == [None], why
    assert found[0].delay_s == math.inf


def test_a_page_just_after_a_short_blip_finds_it_late() -> None:
    (found,) = match(truth(fault("S1", 100, 102)), says(page(104, 106))).found
    assert found.delay_s == 240


def test_a_second_page_while_one_is_open_finds_the_fault_and_the_first_rang_for_nothing() -> None:
    found = match(truth(fault("S1", 100, 145)), says(page(95, 200), page(110, 150)))
    assert [f.delay_s for f in found.found] == [600.0]
    assert [r.start_ns for r in found.false] == [95 * MINUTE]


def test_tickets_count_where_they_are_asked_for() -> None:
    run = judged(truth(fault("S1", 100, 145)), says(page(103, 120, "ticket")))
    assert value(scored(run).recall) == 0
    assert value(scored(run, severities=("page", "ticket")).recall) == 1


def test_pages_within_fifteen_minutes_are_one() -> None:
    apart = [page(0, 5), page(20, 25), page(41, 42)]
    assert len(match(truth(), says(*apart)).false) == 2
    assert len(match(truth(), says(*apart), limits=Limits(merge_ns=16 * MINUTE)).false) == 1


def test_pages_that_overlap_are_merged_to_the_longest() -> None:
    (ring,) = match(truth(), says(page(0, 50), page(5, 10), page(60, 61))).false
    assert (ring.start_ns, ring.end_ns) == (0, 61 * MINUTE)


def test_false_pages_are_counted_by_time_in_which_none_was_due() -> None:
    """600 minutes less 45 of the fault and 15 of its aftermath: 9 hours, 3 rings: 8 a day."""
    run = judged(
        truth(fault("S1", 100, 145)),
        says(page(10, 11), page(50, 51), page(99, 101), page(110, 111), page(158, 159)),
    )
    found = scored(run).false_pages_per_day
    assert value(found) == pytest.approx(3 / (540 / 1440))
    assert found.count == 3


def test_what_rings_in_each_run_of_one_warm_up_rings_once() -> None:
    """Their traffic is the same: 10 hours of it, of which one run has 4; rings at 50 and 300."""
    long = judged(truth(), says(page(50, 60), page(300, 301)), warm="a")
    short = judged(truth(fault("N6", 90, 100, pages=False), minutes=240), says(page(52, 53)),
                   warm="a")  # fmt: skip
    found = scored(long, short).false_pages_per_day
    assert found.count == 2 and value(found) == pytest.approx(2 / (600 / 1440))
    apart = scored(replace(long, warm="b"), short).false_pages_per_day
    assert apart.count == 3 and value(apart) == pytest.approx(3 / (840 / 1440))


def test_time_that_is_quiet_in_one_run_alone_counts() -> None:
    """60 minutes are the fault's in one run, and quiet in the other."""
    broken = judged(truth(fault("S1", 100, 145)), says(), warm="a")
    found = scored(broken, judged(truth(), says(page(110, 111)), warm="a")).false_pages_per_day
    assert found.count == 1 and value(found) == pytest.approx(1 / (600 / 1440))


def test_a_page_in_a_control_is_false() -> None:
    run = judged(truth(fault("N2", 100, 145, pages=False)), says(page(110, 120)))
    found = scored(run)
    assert (found.faults, found.controls) == (0, 1)
    assert value(found.controls_paged) == 1
    assert value(found.false_pages_per_day) == pytest.approx(1 / (600 / 1440))


def test_recall_and_delays_over_several_runs() -> None:
    """Found after 2, 4, 6 and never: three of four; median 4 min; nine of ten: never."""
    runs = [
        judged(truth(fault("S1", 100, 145)), says(*([page(100 + d, 150)] if d else [])), seed)
        for seed, d in enumerate((2, 4, 6, 0))
    ]
    found = scored(*runs)
    assert value(found.recall) == 0.75
    assert value(found.delay_median_s) == 240
    assert value(found.delay_p90_s) == math.inf


def test_reset_is_the_time_from_a_fault_s_end_to_its_pages_end() -> None:
    run = truth(fault("S1", 100, 145))
    assert value(scored(judged(run, says(page(103, 152)))).reset_median_s) == 7 * 60
    assert value(scored(judged(run, says(page(103, 120)))).reset_median_s) == 0
    merged = says(page(103, 120), page(130, 150), page(160, 170))
    assert value(scored(judged(run, merged)).reset_median_s) == 25 * 60


def test_a_page_that_never_closes_is_open_to_the_end_and_counted() -> None:
    found = scored(judged(truth(fault("S1", 100, 145)), says(page(103, None))))
    assert value(found.reset_median_s) == (600 - 145) * 60
    assert found.resets_open == 1


def test_budget_burned_is_what_was_bad_from_the_start_to_the_page() -> None:
    """10 bad a minute for 3 minutes, of a budget of 1 % of 30,000 requests: a tenth."""
    bad = np.zeros(600, np.int64)
    bad[100:145] = 10
    spent = Spent(0, np.full(600, 100), bad, 0.01, 30_000.0)
    run = truth(fault("S1", 100, 145))
    assert value(scored(judged(run, says(page(103, 150)), 1, spent)).burned_median) == 0.1
    unseen = scored(judged(run, says(), 1, spent)).burned_median
    assert value(unseen) == pytest.approx(1.5)


def test_causes_are_right_at_the_first_or_among_the_first_three() -> None:
    run = truth(fault("S8", 100, 145))
    for ranked, top_1, top_3 in (
        (("S8",), 1, 1),
        (("S1", "S18", "S8"), 0, 1),
        (("S1", "S1", "S1", "S8"), 0, 1),
        (("S1", "S2", "S3", "S8"), 0, 0),
        ((), 0, 0),
    ):
        answer = holds(103, 110, *(because(c) for c in ranked))
        found = scored(judged(run, says(diagnoses=(answer,))))
        assert (value(found.top_1), value(found.top_3)) == (top_1, top_3)


def test_an_answer_is_grounded_when_cause_and_evidence_are_right() -> None:
    run = truth(fault("S7", 100, 145, replica=("vllm-1",)))
    right = because("S7", "hop:prefill", "sm_clock", replica="vllm-1")
    for cause, wanted in (
        (right, 1),
        (because("S7", "prefill_residual", "power_violation"), 1),
        (because("S7", "hop:prefill"), 0),
        (because("S7"), 0),
        (because("S7", "hop:prefill", "sm_clock", replica="vllm-0"), 0),
        (because("S8", "hop:prefill", "sm_clock", replica="vllm-1"), 0),
    ):
        found = scored(judged(run, says(diagnoses=(holds(103, 110, cause),))))
        assert value(found.grounded) == wanted, cause


def test_a_right_cause_that_is_second_is_not_grounded() -> None:
    right = because("S7", "hop:prefill", "sm_clock")
    answer = holds(103, 110, because("S8"), right)
    found = scored(judged(truth(fault("S7", 100, 145)), says(diagnoses=(answer,))))
    assert (value(found.top_3), value(found.grounded)) == (1, 0)


def test_abstaining_is_right_for_controls_alone() -> None:
    run = truth(fault("S8", 100, 145), fault("N2", 300, 345, pages=False))
    found = scored(judged(run, says(diagnoses=(holds(103, 110), holds(303, 310)))))
    assert value(found.abstained) == 1
    assert value(found.top_1) == 0
    assert value(found.controls_abstained) == 1


def test_a_control_named_by_its_own_id_is_right_and_a_fault_is_not() -> None:
    run = truth(fault("N2", 300, 345, pages=False))
    for cause, wanted in (("N2", 1), ("S7", 0)):
        answer = holds(303, 310, because(cause))
        assert value(scored(judged(run, says(diagnoses=(answer,)))).controls_abstained) == wanted


def test_who_gives_no_diagnosis_has_no_figures_for_causes() -> None:
    found = scored(judged(truth(fault("S8", 100, 145)), says(page(103, 110))))
    assert found.top_1.value is None and found.grounded.value is None
    assert found.confusion == {}


def test_a_fault_without_its_diagnosis_counts_against_who_gives_some() -> None:
    run = truth(fault("S8", 100, 145), fault("S1", 300, 345))
    found = scored(judged(run, says(diagnoses=(holds(103, 110, because("S8")),))))
    assert value(found.top_1) == 0.5


def test_confusion_is_over_the_nearest() -> None:
    run = truth(fault("S8", 100, 145))
    answers = ("S8", "S8", "S18", "S20", "S30", None)
    found = scored(
        *(
            judged(run, says(diagnoses=(holds(103, 110, *([because(a)] if a else [])),)))
            for a in answers
        )
    )
    assert found.confusion == {"S8": {"S8": 2, "S18": 1, "S20": 1, "another": 1, "abstained": 1}}


def test_chance_is_what_random_answers_and_random_pages_get() -> None:
    """A page each hour finds a fault of 55 + 5 minutes with chance 1 - 1/e; 1 of 35 causes."""
    found = scored(
        judged(truth(fault("S1", 100, 155)), says(*(page(60 * i, 60 * i + 1) for i in range(10))))
    )
    assert found.chance_recall == pytest.approx(1 - math.exp(-1))
    assert found.chance_top_1 == pytest.approx(1 / 35)
    assert found.chance_top_3 == pytest.approx(3 / 35)


def test_what_rings_before_the_scored_time_is_warm_up() -> None:
    run = replace(truth(fault("S1", 400, 445)), start_ns=200 * MINUTE)
    found = scored(judged(run, says(page(10, 20), page(402, 410))))
    assert value(found.false_pages_per_day) == 0
    assert value(found.recall) == 1


def test_two_faults_at_once_are_found_by_one_page() -> None:
    run = truth(fault("S1", 100, 145), fault("S15", 100, 145))
    assert value(scored(judged(run, says(page(103, 150)))).recall) == 1


def test_scores_are_plain_json() -> None:
    import json

    run = judged(truth(fault("S1", 100, 145)), Outcome("none"))
    told = json.loads(json.dumps(scored(run).to_json(), allow_nan=False))
    assert told["delay_median_s"]["value"] == "never"


def test_it_is_asked_for_no_cause_that_it_could_not_name() -> None:
    known, own = fault("S8", 100, 160), fault("slowdown", 300, 360)
    answer = says(diagnoses=(holds(100, 115, because("S8")), holds(300, 315, because("S8"))))
    found = scored(judged(truth(known, own), answer))
    assert (found.top_1.value, found.top_1.count) == (1.0, 1)
    assert found.faults == 2
