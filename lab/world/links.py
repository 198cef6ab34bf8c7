"""Lists that run through the rows of an array, each row with its neighbours' numbers, -1: none."""

from typing import Any

from tailburn.lab.compiled import lean_inlined


@lean_inlined
def unlink(
    rows: Any, row: Any, prev: Any, after: Any, ends: Any, end: Any, head: Any, tail: Any
) -> None:
    """Take `row` out of its list.

    `prev` and `after` are the columns of its neighbours in `rows`; `head` and `tail` those of
    the list's ends in row `end` of `ends`.
    """
    earlier, later = rows[row, prev], rows[row, after]
    if earlier >= 0:
        rows[earlier, after] = later
    else:
        ends[end, head] = later
    if later >= 0:
        rows[later, prev] = earlier
    else:
        ends[end, tail] = earlier
