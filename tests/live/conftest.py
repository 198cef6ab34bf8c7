"""One service for the tests that need no life of it for themselves."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.service import QUICK, Service, living


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Ready, and with whatever earlier tests sent to it."""
    with living(tmp_path_factory.mktemp("shared") / "store", *QUICK) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64m", "tmpfs", str(mount)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)
