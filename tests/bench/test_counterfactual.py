"""The counterfactual beside the lab run again without the fault."""

import numpy as np
import pytest

from bench.counterfactual.__main__ import CASES, Case, compared
from bench.counterfactual.rows import answered, rows_of
from tailburn.engine.excess import measure
from tailburn.engine.names import ttft_hop_column
from tailburn.lab.run import Motion
from tailburn.lab.run.compose import compose

MINUTE_NS = 60 * 10**9


def test_hops_of_the_lab_add_up_and_none_is_negative() -> None:
    plan = compose(["S31"], per_s=8.0, seed=1, begin_ns=MINUTE_NS, end_ns=4 * MINUTE_NS).plan
    told = answered(Motion(plan).advance(5 * MINUTE_NS).attempts)
    rows = rows_of(told)
    measured = measure(rows, "ttft")
    assert len(measured.row) == len(told) > 1_000
    assert (measured.hop_ns >= -1).all()
    first = told.client_first - told.arrival_ns
    assert np.abs(measured.total_ns - first).max() <= measured.hop_ns.shape[1]
    left = rows[ttft_hop_column("unattributed")].to_numpy()
    assert np.abs(left).max() < 1e-6, "every instant is some hop's"


@pytest.mark.parametrize(
    "case", [Case("S24", "medium", ("gateway",)), Case("S31", "strong", ("retrieval",))], ids=str
)
def test_without_feedback_it_is_what_the_run_without_the_fault_shows(case: Case) -> None:
    found = compared(case, per_s=8.0, minutes=15, seed=2)
    assert found.bad > found.true + found.error, "the fault is seen at all"
    assert found.holds


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_holds(case: Case) -> None:
    assert compared(case, per_s=8.0, minutes=40, seed=3).holds
