"""Metrics as text, judged by prometheus_client's own parsers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from tailburn.collector.errors import BadBody, TooLarge
from tailburn.collector.signals.exposition import HIGHEST_VALUE, Dropped, read_labels, scan

Sample = tuple[str, tuple[tuple[str, str], ...], float]

LABEL_VALUES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\r"), max_size=12
)
NUMBERS = st.floats(-HIGHEST_VALUE, HIGHEST_VALUE)


class Everything:
    """A table that wants every name."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, bytes) and name == name.strip() and name[:1] not in (b"", b"#")

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(())

    def __len__(self) -> int:
        return 0


def ours(body: bytes) -> list[Sample]:
    found = scan(body, Everything(), ())
    assert not found.dropped, (found.dropped, found.first_bad)
    samples = []
    for name, block, value in zip(found.names, found.labels, found.values, strict=True):
        labels = read_labels(block)
        assert labels is not None, block
        samples.append((name.decode(), tuple(sorted(labels.items())), value))
    return samples


def theirs(families: object) -> list[Sample]:
    return [
        (sample.name, tuple(sorted(sample.labels.items())), float(sample.value))
        for family in families  # type: ignore[attr-defined]
        for sample in family.samples
        if not math.isnan(float(sample.value))
    ]


@settings(max_examples=40)
@given(st.lists(st.tuples(LABEL_VALUES, LABEL_VALUES, NUMBERS), max_size=6))
def test_samples_are_those_that_the_client_library_reads(
    given_series: list[tuple[str, str, float]],
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("some_depth", "Help with \\ and\nlines", ["a", "b"], registry=registry)
    counter = Counter("some_done", "", ["a"], registry=registry)
    histogram = Histogram("some_wait", "", ["a"], buckets=(0.1, 2.5), registry=registry)
    for a, b, value in given_series:
        gauge.labels(a, b).set(value)
        counter.labels(a).inc(abs(value) if abs(value) < 1e300 else 1)
        histogram.labels(a).observe(abs(value) if abs(value) < 1e300 else 1)
    text = generate_latest(registry)
    assert sorted(ours(text)) == sorted(theirs(prometheus_text(text.decode())))
    text = generate_openmetrics(registry)  # type: ignore[no-untyped-call]
    families = openmetrics(text.decode())  # type: ignore[no-untyped-call]
    assert sorted(ours(text)) == sorted(theirs(families))


SPACE = st.sampled_from(["", " ", "\t", "  "])
GAP = st.sampled_from([" ", "\t", "  "])


@settings(max_examples=60)
@given(
    SPACE, SPACE, SPACE, GAP, LABEL_VALUES, st.sampled_from(["1", "-2.5", "1e3", "+1", ".5"]),
    st.sampled_from(["", " 1796145000000"]), st.booleans(),
)  # fmt: skip
def test_white_space_and_stamps_are_read_as_the_client_library_reads_them(
    before: str, inner: str, after: str, gap: str, value: str, number: str, stamp: str, comma: bool
) -> None:
    escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    label = f'a{inner}={inner}"{escaped}"{inner}' + ("," if comma else "")
    line = f"{before}some:depth{after}{{{inner}{label}}}{gap}{number}{stamp}\n"
    assert ours(line.encode()) == theirs(prometheus_text(line))


@pytest.mark.parametrize(
    "line",
    [
        "some:depth",
        "some:depth{",
        'some:depth{a="b" 1',
        'some:depth{a="b}" 1',
        "some:depth nothing",
        "some:depth 1_000",
        "some:depth 1 2 3",
        'some:depth{a="b"}',
    ],
)
def test_a_broken_line_is_counted_and_costs_no_other(line: str) -> None:
    found = scan(f"some:depth 1\n{line}\nsome:depth 2\n".encode(), {b"some:depth"}, ())
    assert found.values == [1.0, 2.0]
    assert found.dropped == {Dropped.BROKEN: 1}
    assert found.first_bad == line


def test_values_that_are_no_number_are_left_out() -> None:
    found = scan(b"a NaN\na 1\na nan\n", {b"a"}, ())
    assert (found.values, found.dropped) == ([1.0], {Dropped.NAN: 2})
    assert found.first_bad == "a NaN"


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "1e308", "-1.1e300"])
def test_values_beyond_all_measure_are_left_out(value: str) -> None:
    found = scan(f"a {value}\na 1e300\n".encode(), {b"a"}, ())
    assert (found.values, found.dropped) == ([1e300], {Dropped.HUGE: 1})
    assert found.first_bad == f"a {value}"


def test_a_line_of_a_megabyte_is_left_out() -> None:
    long = b'a{b="' + b"x" * 1_000_000 + b'"} 1\n'
    found = scan(long + b'a{b="y"} 2\n', {b"a"}, ())
    assert (found.values, found.dropped) == ([2.0], {Dropped.LONG: 1})
    assert len(found.first_bad) == 80


def test_lines_are_whole_wherever_an_answer_is_cut_into_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [f"a {i}" for i in range(200)]
    for size in (1, 7, 64, 10_000):
        monkeypatch.setattr("tailburn.collector.signals.exposition._PIECE_BYTES", size)
        for end in ("", "\n"):
            found = scan(("\n".join(lines) + end).encode(), {b"a"}, ())
            assert found.values == [float(i) for i in range(200)]


def test_an_answer_of_a_million_lines_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooLarge, match="answers 1,000,001 lines"):
        scan(b"\n" * 1_000_001, {b"a"}, ())


def test_samples_past_the_bound_are_left_out_and_counted() -> None:
    found = scan(b"a 1\n" * 50_003, {b"a"}, ())
    assert (len(found.values), found.dropped) == (50_000, {Dropped.MANY: 3})


def test_exemplars_are_no_part_of_the_value() -> None:
    line = b'a_bucket{le="1"} 5 # {trace_id="4bf9",x="}"} 0.67 1796145000.1\n'
    found = scan(line, {b"a_bucket"}, ())
    assert (found.labels, found.values) == ([b'le="1"'], [5.0])


def test_families_that_are_declared_are_noted_where_they_are_wanted() -> None:
    text = b"# HELP a Some help\n# TYPE a counter\n# TYPE b gauge\n# just words\n# HELP c\n"
    assert scan(text, {b"a_total"}, {b"a", b"c"}).declared == {b"a": b"counter", b"c": b""}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!doctype html><title>no</title>", "HTML"),
        (b'\n {"iter": 3}', "JSON"),
        (b"{}", "JSON"),
        (b"[]", "JSON"),
        (b"\x1f\x8b\x08\x00\x00", "gzip"),
    ],
)
def test_what_is_no_metrics_is_named(body: bytes, words: str) -> None:
    with pytest.raises(BadBody, match=words):
        scan(body, {b"a"}, ())


def test_a_quoted_name_is_no_json() -> None:
    assert scan(b'{"my.metric",a="b"} 1\na 2\n', {b"a"}, ()).values == [2.0]


@pytest.mark.parametrize(
    "block", [b'a="b" c="d"', b'a="b",a="c"', b"a=b", b'a="b', b'1a="b"', b'a="\xff"']
)
def test_labels_that_can_not_be_read_are_none(block: bytes) -> None:
    assert read_labels(block) is None


def test_escapes_in_labels_are_undone() -> None:
    assert read_labels(rb'a="\\n\n\"\x",b="\xc3\xa9"'.replace(rb"\xc3\xa9", b"\xc3\xa9")) == {
        "a": '\\n\n"\\x',
        "b": "é",
    }
