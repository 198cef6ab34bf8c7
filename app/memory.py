"""Keep memory that was freed, rather than give it back to the system and ask for it anew.

The service frees and takes the same large arrays over and over. A fresh page must be cleared
by the kernel, which costs several times as much as writing it, most of all in a virtual machine.
"""

import ctypes
import sys
from typing import Final

import pyarrow as pa

# glibc's <malloc.h>
_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_MAX: Final = -4
_M_ARENA_MAX: Final = -8

_NEVER: Final = 2**31 - 1
_STEP_BYTES: Final = 64 * 1024 * 1024


def keep_freed_memory() -> None:
    """Call before the first thread starts. Does nothing where the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return
    # One heap for all threads: those of a thread are small, and what is too large for them is
    # mapped and given back each time.
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, _NEVER)
    mallopt(_M_TOP_PAD, _STEP_BYTES)
    pa.set_memory_pool(pa.system_memory_pool())
