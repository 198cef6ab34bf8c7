"""The naive detectors reproduce published figures, on the models those rest on."""

from pathlib import Path

import pytest

from bench.lab.data import data_folder
from bench.truth.models import Week, azure_week
from bench.truth.tables import Cell, detection_cells, healthy_cells, independent_cells


def differ(cells: list[Cell]) -> list[str]:
    return [
        f"{c.table} {c.what}: {c.measured:.3g} {c.unit}, stated {c.stated:g}"
        for c in cells
        if not c.agrees
    ]


@pytest.fixture(scope="module")
def week(shared_dir: Path) -> Week:
    if not (shared_dir / "data" / "azure2024_rpm_digitised.csv.gz").is_file():
        pytest.skip(f"no measured workloads in {shared_dir / 'data'}")
    data_folder(shared_dir / "data")
    return azure_week()


def test_false_alarms_on_independent_latencies_are_as_published() -> None:
    assert differ(list(independent_cells((0.2, 1.0), days=20))) == []


def test_false_alarms_on_a_healthy_week_are_as_published(week: Week) -> None:
    assert differ(list(healthy_cells(week, 1, (0.5, 0.85)))) == []


def test_slowdowns_are_found_as_often_as_published(week: Week) -> None:
    assert differ(list(detection_cells(week, 1, (1, 2), uses=(0.6,)))) == []


@pytest.mark.long
@pytest.mark.parametrize("per_s", [1, 10, 100])
def test_all_of_the_healthy_week_is_as_published(week: Week, per_s: int) -> None:
    assert differ(list(healthy_cells(week, per_s, (0.5, 0.7, 0.85)))) == []


@pytest.mark.long
def test_all_of_the_independent_latencies_are_as_published() -> None:
    assert differ(list(independent_cells((0.2, 1.0, 10.0, 100.0), days=20))) == []


def test_figures_that_differ_are_told() -> None:
    far = Cell("7.2", "x", "% of minutes", 9.0, 4.0, 1.0)
    assert not far.agrees
    assert Cell("7.2", "x", "% of minutes", 4.9, 4.0, 1.0).agrees
    assert Cell("7.2", "x", "% of minutes", 9.0, 6.5, 1.0).agrees
    assert Cell("7.2", "x", "% of minutes", 0.0, 0.0, 0.0).agrees
