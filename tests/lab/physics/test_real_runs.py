"""The lab's engine against three real runs of vLLM, from the first third of each."""

import numpy as np
import pytest

from bench.lab import real_runs
from bench.lab.runs import RUNS

pytestmark = pytest.mark.usefixtures("measured")


@pytest.mark.parametrize("run", RUNS)
def test_waits_and_pace_of_the_rest_are_foretold(run: str) -> None:
    found = list(real_runs.lines(run))
    assert [(line.measure, line.percentile) for line in found] == [
        (measure, percentile) for measure in ("queue", "ttft", "tpot") for percentile in (50, 95)
    ]
    for line in found:
        assert line.met, f"{line.measure} p{line.percentile}: {line.error:+.1%} of {line.limit}"


def test_blocks_are_read_where_the_log_tells_of_them() -> None:
    blocks = real_runs.blocks_of("rtx4090_llama8b", 60.0)
    # 24 GB less 16 GB of weights, 128 KiB a token.
    assert 2_000 < blocks < 3_400
    assert real_runs.blocks_of("rtxpro6000_llama8b", 20.0) == real_runs.PLENTY


def test_with_other_blocks_or_steps_the_runs_are_missed() -> None:
    run = "rtx4090_llama8b"
    rows, layout = real_runs._requests(run), RUNS[run]
    told = real_runs._measured(rows)["queue"]
    for blocks in (1_300, 5_200):
        foretold = real_runs.replay(layout, rows, blocks)["queue"]
        assert abs(np.median(foretold) / np.median(told) - 1) > 0.25


def test_the_report_says_how_many_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert real_runs.report()
    shown = capsys.readouterr().out
    assert "18 of 18 figures" in shown
    assert "missed" not in shown
