"""Matrices with room to grow in place: memory is taken only as rows are written."""

import math
import mmap
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T", bound=np.generic)


def reserved(rows: int, columns: int, dtype: type[_T]) -> NDArray[_T]:
    """Zeros, shape (rows, columns). Rows that nobody wrote cost addresses and nothing else."""
    size = max(rows * columns * np.dtype(dtype).itemsize, mmap.PAGESIZE)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, size, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, rows * columns).reshape(rows, columns)


def grown(matrix: NDArray[_T], rows: int) -> NDArray[_T]:
    """`matrix` itself, or a copy with twice the room, or more, where `rows` need it."""
    if rows <= len(matrix):
        return matrix
    columns = math.prod(matrix.shape[1:])
    larger = reserved(max(rows, 2 * len(matrix)), columns, matrix.dtype.type)
    larger[: len(matrix)] = matrix
    return larger
