"""The pace of a replay: none, or the recorded one times a speed."""

import time


class Pace:
    """Waits until the turn of each receive time has come; without a speed never."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._begun_ns = time.monotonic_ns()
        self._first_ns: int | None = None

    def wait_for(self, received_ns: int) -> None:
        """`received_ns` rises from call to call; the first one waits for nothing."""
        time.sleep(self.left_s(received_ns))

    def left_s(self, received_ns: int) -> float:
        """How long that wait is, for who must not block."""
        if self._speed is None:
            return 0.0
        if self._first_ns is None:
            self._first_ns = received_ns
        due_ns = self._begun_ns + round((received_ns - self._first_ns) / self._speed)
        return max(due_ns - time.monotonic_ns(), 0) / 1e9
