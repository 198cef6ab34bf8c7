"""Matrices that grow in place."""

import resource

import numpy as np

from tailburn.collector.stitch.reserve import grown, reserved


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_rows_that_nobody_wrote_take_no_memory() -> None:
    before = _resident_bytes()
    matrix = reserved(10_000_000, 19, np.int64)
    assert _resident_bytes() - before < 50_000_000
    matrix[:1000] = 7
    assert not matrix[1000:1010].any()


def test_growing_keeps_what_was_there() -> None:
    matrix = reserved(4, 3, np.int32)
    matrix[:] = np.arange(12).reshape(4, 3)
    assert grown(matrix, 4) is matrix
    larger = grown(matrix, 5)
    assert len(larger) >= 5
    assert larger.dtype == np.int32
    np.testing.assert_array_equal(larger[:4], matrix)
    assert not larger[4:].any()
