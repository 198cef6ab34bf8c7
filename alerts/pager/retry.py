"""When a message that did not get through is tried again."""

import zlib
from typing import Final

FIRST_S: Final = 5.0
MOST_S: Final = 300.0
PATIENT_S: Final = 900.0
"""No receiver may ask for longer than that."""
_SPREAD: Final = 0.2
_NS: Final = 1_000_000_000


def next_try_ns(tries: int, now_ns: int, retry_after_s: float | None, key: str) -> int:
    """After 5 s, twice as long each time, 5 min at most; as long as the receiver asks for.

    `tries`: how often it was tried before this time. Spread by up to a fifth, by the message's
    `key`, so that what failed together does not come back together.
    """
    wait_s = min(FIRST_S * 2.0 ** min(tries, 16), MOST_S)
    if retry_after_s is not None:
        wait_s = max(wait_s, min(retry_after_s, PATIENT_S))
    share = zlib.crc32(f"{key} {tries}".encode()) / 0xFFFF_FFFF
    return now_ns + round(wait_s * (1.0 + _SPREAD * share) * _NS)
