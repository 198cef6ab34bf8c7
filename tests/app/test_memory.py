"""Memory that was freed is taken again without the kernel clearing it anew."""

import subprocess
import sys

import pytest

_FAULTS = """
import resource
import numpy as np
from tailburn.app.memory import keep_freed_memory

{first}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(8_000_000)  # 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


def _faults(first: str) -> int:
    code = _FAULTS.format(first=first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told")
def test_what_was_freed_is_taken_again_without_page_faults() -> None:
    assert _faults("keep_freed_memory()") < 10
    assert _faults("") > 20
