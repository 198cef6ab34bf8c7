"""One form for all that means the same, and another for what does not."""

import pytest

from tailburn.rules.comparing.meaning import UnreadableError, canonical, labels_out, matched


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('up{a="1",b="2"}', 'up { b="2" , a="1" }'),
        ("sum by (a, b) (up)", "sum(up) by (b,a)"),
        ("sum by () (up)", "sum(up)"),
        ("(up)", "up"),
        ("a + b", "b + a"),
        ("x > (14.4 * 0.0009999999999999432)", "x > 14.4 * (1 - 0.999)"),
        ("x > 0.0144", "0.0144 < x"),
        ("rate(x[60m])", "rate(x[1h])"),
        ("x offset 90m", "x offset 1h30m"),
        ("a and b or c", "(a and b) or c"),
        ("a / on (y, x) group_left (m) b", "a / on (x, y) group_left (m) b"),
        ("-(1)", "-1"),
    ],
)
def test_what_means_the_same_has_one_form(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a - b", "b - a"),
        ("a or b", "b or a"),
        ("a and b or c", "a and (b or c)"),
        ("x > 1", "x >= 1"),
        ("x > 1", "x < 1"),
        ("x > 0.0144", "x > 0.0145"),
        ("rate(x[5m])", "rate(x[6m])"),
        ("rate(x[5m])", "increase(x[5m])"),
        ("sum by (a) (x)", "sum without (a) (x)"),
        ('x{a="1"}', 'x{a=~"1"}'),
        ('x{a="1"}', 'x{a!="1"}'),
        ("x", "x offset 1m"),
        ("a / on (x) b", "a / ignoring (x) b"),
        ("a / on (x) group_left b", "a / on (x) b"),
        ("a == b", "a == bool b"),
        ("x[5m:1m]", "x[5m:2m]"),
        ("quantile(0.5, x)", "quantile(0.9, x)"),
        ('label_replace(x, "a", "$1", "b", "(.*)")', 'label_replace(x, "a", "$1", "c", "(.*)")'),
    ],
)
def test_what_means_something_else_has_another_form(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


def test_a_division_by_nothing_is_left_alone() -> None:
    assert canonical("1 / 0") != canonical("2 / 0")


def test_what_is_no_promql_is_told() -> None:
    with pytest.raises(UnreadableError):
        canonical("sum(rate(x[5m])")


def test_labels_of_the_samples_are_those_that_the_outermost_sum_keeps() -> None:
    assert labels_out("sum by (b, a) (x) / sum by (a) (y) > 0.5") == ("a", "b")
    assert labels_out("1 - (sum (x))") == ()
    assert labels_out("x") is None
    assert labels_out("sum without (a) (x)") is None


def test_values_that_selectors_ask_for_are_found_at_any_depth() -> None:
    expr = 'sum(rate(x{d=~"1|2"}[5m])) / y{d="3"} or z{e="4"}'
    assert matched(expr, "d") == {"1", "2", "3"}
