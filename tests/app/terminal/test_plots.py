"""Small plots of characters."""

from tailburn.app.terminal.plots import axis, log_plot, spans_line, sparkline


def test_a_sparkline_rises_with_its_values_and_dots_what_is_not_known() -> None:
    assert sparkline([0.0, 0.001, 0.5, 1.0, 7.0, None], top=1.0) == " ▁▄██·"


def test_a_sparkline_of_nothing_but_zeros_is_empty() -> None:
    assert sparkline([0.0, 0.0], top=0.0) == "  "


def test_spans_fill_the_cells_they_touch_and_at_least_one() -> None:
    assert spans_line([(0.0, 10.0), (50.0, 50.1)], end=100.0, width=10) == "█    █    "
    assert spans_line([(99.99, 100.0)], end=100.0, width=4) == "   █"


def test_curves_stand_at_their_values_and_the_first_is_seen() -> None:
    curves: dict[str, list[float | None]] = {"p": [None, 100.0, 1.0], "t": [100.0, 100.0, 10.0]}
    assert log_plot(curves, [(1.0, "1 s"), (10.0, "10 s"), (100.0, "100 s")], rows=3) == [
        "100 s ┤tp",
        " 10 s ┤  t",
        "  1 s ┤  p",
    ]


def test_values_beyond_the_axis_stand_at_its_ends() -> None:
    assert log_plot({"p": [0.1, 1e9]}, [(1.0, "1 s"), (100.0, "100 s")], rows=2) == [
        "100 s ┤ p",
        "  1 s ┤p",
    ]


def test_an_axis_names_its_columns() -> None:
    assert axis([(0, "1 %"), (5, "10 %")], width=8, indent=3) == [
        "  └┬────┬──",
        "   1 %  10 %",
    ]
