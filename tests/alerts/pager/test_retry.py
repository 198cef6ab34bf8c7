"""When a message is tried again: later each time, never too late, and not all at once."""

from hypothesis import given
from hypothesis import strategies as st

from tailburn.alerts.pager.retry import FIRST_S, MOST_S, PATIENT_S, next_try_ns

S = 1_000_000_000
KEYS = st.text(max_size=20)


@given(st.integers(0, 200), st.none() | st.floats(0, 1e9), KEYS)
def test_it_waits_between_the_first_wait_and_the_longest(
    tries: int, retry_after_s: float | None, key: str
) -> None:
    wait_s = next_try_ns(tries, 7, retry_after_s, key) / S
    longest = MOST_S if retry_after_s is None else max(MOST_S, PATIENT_S)
    assert FIRST_S <= wait_s <= 1.2 * longest + 1
    if retry_after_s is not None:
        assert wait_s >= min(retry_after_s, PATIENT_S)


@given(st.integers(0, 5), KEYS)
def test_each_wait_is_longer_than_the_one_before(tries: int, key: str) -> None:
    assert next_try_ns(tries, 0, None, key) < next_try_ns(tries + 1, 0, None, key)


def test_messages_that_failed_together_do_not_come_back_together() -> None:
    again = {next_try_ns(3, 0, None, f"message {n}") for n in range(50)}
    assert len(again) == 50
    assert max(again) - min(again) > 5 * S
    assert next_try_ns(3, 0, None, "a") == next_try_ns(3, 0, None, "a")
