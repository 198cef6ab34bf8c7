"""Tables of what others measured, where this machine has them."""

from pathlib import Path

import pytest

from bench.lab.data import data_folder


@pytest.fixture(scope="session")
def measured() -> Path:
    """The folder of the tables; without one the test is skipped."""
    try:
        return data_folder()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
