"""One service per store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailburn.collector.log import StoreInUse, lock_store

NOON_NS = 1_764_590_400_000_000_000

HOLD = """
import sys
from pathlib import Path
from tailburn.collector.log import lock_store
lock_store(Path(sys.argv[1]), int(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_service_is_told_who_holds_the_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path), str(NOON_NS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        with pytest.raises(StoreInUse) as refused:
            lock_store(tmp_path, NOON_NS + 1)
        holder.kill()

    assert f"process {holder.pid}, started 2025-12-01 12:00:00 UTC" in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    lock_store(tmp_path, NOON_NS).release()


def test_a_released_store_can_be_locked_again(tmp_path: Path) -> None:
    lock_store(tmp_path, NOON_NS).release()
    lock_store(tmp_path, NOON_NS).release()


def test_a_holder_that_has_not_said_its_name_still_holds(tmp_path: Path) -> None:
    lock = lock_store(tmp_path, NOON_NS)
    os.ftruncate(lock.fd, 0)
    with pytest.raises(StoreInUse, match="in use by another process"):
        lock_store(tmp_path, NOON_NS)
    lock.release()
