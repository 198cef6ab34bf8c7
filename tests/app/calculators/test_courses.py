"""Courses of traffic as typed on the command line, and as rows of a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.app.calculators.course_files import course_of_file, course_of_rows
from tailburn.app.calculators.courses import stretches_of
from tailburn.app.errors import UserError
from tailburn.engine.slo.course import Stretch, gap


def refused(call: Callable[[], object]) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        call()
    return caught.value.lines


def test_stretches_are_a_share_a_duration_and_a_rate() -> None:
    texts = ["0%:1h", "10%:20m", "0.5%:1h30m@20", "gap:5m", "0%:1d@0"]
    assert stretches_of(texts) == [
        Stretch(3600, 0.0),
        Stretch(1200, 0.1),
        Stretch(5400, 0.005, 20.0),
        gap(300),
        Stretch(86_400, 0.0, 0.0),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10%", "not a share with how long it lasts"),
        ("0.1:20m", "'0.1' is no percent"),
        ("110%:20m", "110% is over 100%"),
        ("-1%:20m", "'-1%' is no percent"),
        ("nan%:20m", "'nan%' is no percent"),
        ("10%:20", "'20' is no duration"),
        ("10%:0s", "0s is not between 0 and 366d"),
        ("10%:400d", "400d is not between 0 and 366d"),
        ("10%:1h@many", "'many' is not a number of requests per second from 0 to 1e+12"),
        ("10%:1h@inf", "'inf' is not a number of requests per second from 0 to 1e+12"),
        ("gap:5m@3", "a gap has no requests that could be counted"),
    ],
)
def test_what_is_no_stretch_is_refused_with_what_is_wanted(text: str, reason: str) -> None:
    assert refused(lambda: stretches_of([text])) == (
        f"{text!r}: {reason}; want SHARE:DURATION such as 10%:20m, with @REQUESTS_PER_S "
        "if you like, or gap:5m",
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert len(refused(lambda: stretches_of(["10%", "1%:1h", "2%:x"]))) == 2


def test_rows_last_until_the_next_and_the_last_as_long_as_the_one_before() -> None:
    text = "time,requests,bad\n0,600,6\n60,1200,0\n180,,\n240,0,0\n"
    assert course_of_rows("a.csv", text) == [
        Stretch(60, 0.01, 10.0),
        Stretch(120, 0.0, 10.0),
        gap(60),
        Stretch(60, 0.0, 0.0),
    ]


def test_rows_take_iso_times_and_other_columns() -> None:
    text = (
        "bad,note,time,requests\n1,start,2026-12-01T17:14:00Z,10\n0,,2026-12-01T17:15:00+00:00,10\n"
    )
    assert [s.for_s for s in course_of_rows("a.csv", text)] == [60, 60]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a.csv:1: no column time, requests, bad; want a first line time,requests,bad"),
        ("time,bad\n0,1\n", "a.csv:1: no column requests; want a first line time,requests,bad"),
        ("time,requests,bad\n0,1,0\n", "a.csv: 1 rows; want at least two of time,requests,bad"),
        (
            "time,requests,bad\n0,1,2\n60,1,0\n",
            "a.csv:2: bad 2 of 1 requests; want at most all of them",
        ),
        (
            "time,requests,bad\n0,1,0\n0,1,0\n",
            "a.csv:3: not after the row before it; want rising times",
        ),
        (
            "time,requests,bad\n0,,1\n60,1,0\n",
            "a.csv:2: bad '1' without requests; leave both empty for a gap",
        ),
        (
            "time,requests,bad\nnoon,1,0\n60,1,0\n",
            "a.csv:2: time 'noon': want seconds since 1970 or a time such as 2026-12-01T17:14:00Z",
        ),
        (
            "time,requests,bad\n0,x,0\n60,1,0\n",
            "a.csv:2: 'x' is not a number of requests from 0 to 1e+12",
        ),
    ],
)
def test_rows_that_can_not_be_are_refused_with_their_line(text: str, reason: str) -> None:
    assert refused(lambda: course_of_rows("a.csv", text)) == (reason,)


def test_only_the_first_wrong_lines_are_told() -> None:
    lines = refused(lambda: course_of_rows("a.csv", "time,requests,bad\n" + "0,x,0\n" * 100))
    assert lines[0] == "a.csv:2: 'x' is not a number of requests from 0 to 1e+12"
    assert lines[20:] == ("a.csv: and 80 lines more are wrong",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"time,requests,bad\n\xff", "can't be read: byte 18 is no UTF-8"),
        (b"time,requests,bad\n" + b"9" * 200_000, ":2: field larger than field limit (131072)"),
        (b"9" * 200_000, ":1: field larger than field limit (131072)"),
        (b"time,requests,bad\n0,1\x00,2\n1,1,1\n", "'1\\x00' is not a number of requests"),
        (b"0" * (16 * 1024**2 + 1), "larger than 16 MiB; shorten it"),
    ],
    ids=["no UTF-8", "a field without end", "a first line without end", "NUL", "too large"],
)
def test_files_that_are_no_rows_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert reason in refused(lambda: course_of_file(path))[0]


def test_a_folder_is_no_file_of_rows(tmp_path: Path) -> None:
    assert refused(lambda: course_of_file(tmp_path)) == (
        f"{tmp_path}: can't be read: Is a directory",
    )


def test_more_rows_than_any_history_are_refused() -> None:
    rows = "".join(f"{60 * i},1,0\n" for i in range(100_001))
    (line,) = refused(lambda: course_of_rows("a.csv", "time,requests,bad\n" + rows))
    assert line == "a.csv: 100,001 rows; want at most 100,000"
