"""Requests and Attempts: documented columns, cut and joined without mixing rows."""

import numpy as np
import pytest

from tailburn.lab.records import NEVER, Attempts, Requests


def _attempts(lengths: list[int]) -> Attempts:
    made = Attempts.of({"request": np.arange(len(lengths)), "output_done": lengths})
    made.token_offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    made.tokens = np.concatenate(
        [100 * i + np.arange(n) for i, n in enumerate(lengths)] + [np.empty(0, int)]
    ).astype(np.int64)
    return made


def test_every_column_has_dtype_unit_and_meaning() -> None:
    for column in Attempts.columns():
        assert column.unit and column.meaning, column.name
        assert getattr(Attempts.blank(3), column.name).dtype == column.kind


def test_attempts_hold_every_column_of_their_request() -> None:
    mine = {c.name: c.kind for c in Attempts.columns()}
    assert {c.name: c.kind for c in Requests.columns()}.items() <= mine.items()


def test_a_blank_row_says_that_nothing_happened() -> None:
    blank = Attempts.blank(2)
    assert blank.engine_first.tolist() == [NEVER, NEVER]
    assert blank.lora.tolist() == [NEVER, NEVER]
    assert blank.cached_tokens.tolist() == [0, 0]


def test_unknown_column_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no column 'promt_tokens'"):
        Requests.of({"promt_tokens": [1]})


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Requests\.client: 2 values for 3 rows"):
        Requests.of({"arrival_ns": [1, 2, 3], "client": [1, 2]})


def test_taken_rows_keep_their_token_instants() -> None:
    picked = _attempts([2, 0, 3]).take(np.array([2, 0, 1]))
    assert picked.request.tolist() == [2, 0, 1]
    assert picked.token_offset.tolist() == [0, 3, 5, 5]
    assert picked.tokens.tolist() == [200, 201, 202, 0, 1]


def test_joined_tables_are_the_whole_again() -> None:
    whole = _attempts([2, 0, 3, 1])
    again = Attempts.join([whole.take(slice(0, 1)), Attempts.blank(0), whole.take(slice(1, 4))])
    assert again.request.tolist() == [0, 1, 2, 3]
    assert again.token_offset.tolist() == whole.token_offset.tolist()
    assert again.tokens.tolist() == whole.tokens.tolist()


def test_token_instants_in_some_tables_only_are_refused() -> None:
    with pytest.raises(ValueError, match="token instants in 1 of 2"):
        Attempts.join([_attempts([2]), Attempts.blank(1)])
