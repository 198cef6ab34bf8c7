"""Each shipped capture is replayed once for all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.captures.case import Case
from bench.captures.judge import Verdict
from bench.captures.produce import judge_by_command
from bench.captures.shipped import unpack


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captures that travel with the tests, unpacked."""
    return unpack(tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="session")
def verdict_of(
    shipped: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Case], Verdict]:
    """What the judge says of a shipped capture, replayed at the first call."""
    said: dict[str, Verdict] = {}
    work = tmp_path_factory.mktemp("stores")

    def verdict(case: Case) -> Verdict:
        if case.name not in said:
            said[case.name] = judge_by_command(case, shipped, work)
        return said[case.name]

    return verdict
