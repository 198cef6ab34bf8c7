"""Bodies that are nearly right, each ending at a page that must not be read."""

import ctypes
import mmap
import random
from collections.abc import Sequence
from typing import cast

_PAGE = mmap.PAGESIZE
_PAGES = 64
_GROWTH = 100


class GuardedMemory:
    """Memory whose last byte is followed by a page without any access right."""

    def __init__(self) -> None:
        self.size = _PAGES * _PAGE
        self._memory = mmap.mmap(-1, self.size + _PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address + self.size), _PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def at_the_end(self, body: bytes) -> bytearray:
        """The body in the last bytes before the guard page. (A memoryview, which serves as one.)"""
        start = self.size - len(body)
        self._memory[start : self.size] = body
        return cast(bytearray, memoryview(self._memory)[start : self.size])


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with a few bytes changed, cut, doubled or put in; or random bytes."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(300))
    body = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        if not body:
            break
        i = rng.randrange(len(body))
        match rng.randrange(7):
            case 0:
                body[i] = rng.randrange(256)
            case 1:
                del body[i:]
            case 2:
                del body[i : i + rng.randrange(1, 20)]
            case 3:
                body[i:i] = rng.randbytes(rng.randrange(1, 12))
            case 4:
                body[i] ^= 1 << rng.randrange(8)
            case 5:
                body[i:i] = b"\xff" * rng.randrange(1, 11)
            case 6:
                body[i:i] = body[i : i + rng.randrange(1, _GROWTH)]
    return bytes(body)
