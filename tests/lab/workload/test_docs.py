"""The page on workloads says what is there: names, knobs, columns, files that load."""

import re
from pathlib import Path

import pytest

from tailburn.lab.workload import FIGURES, KNOBS, load
from tailburn.lab.workload.files import QUANTILES, RATE_COLUMNS, TRACE_COLUMNS

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "lab-workload.md").read_text()
TRACE, RATES, LENGTHS = re.findall(r"```csv\n(.*?)```", TEXT, re.S)


def _first_column(heading: str) -> list[str]:
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w.-]+)` \|", part, re.M)


def test_every_workload_has_a_row_with_its_rate_and_clients() -> None:
    assert sorted(_first_column("Workloads by name")) == sorted(FIGURES)
    for name, figures in FIGURES.items():
        assert f"| `{name}` | {figures.per_s:,g} | {figures.clients} |" in TEXT


def test_every_knob_has_its_row() -> None:
    assert _first_column("What a scenario can change") == list(KNOBS)


def test_every_column_has_its_row() -> None:
    assert _first_column("A file of recorded requests") == list(TRACE_COLUMNS)
    assert sorted(_first_column("A file of measured rates")) == sorted((*RATE_COLUMNS, "model"))
    assert all(quantile in LENGTHS.splitlines()[0].split(",") for quantile in QUANTILES)


def test_the_files_shown_load(tmp_path: Path) -> None:
    for name, text in (("t", TRACE), ("rates", RATES), ("length_quantiles", LENGTHS)):
        (tmp_path / f"{name}.csv").write_text(text)
    assert load(tmp_path / "t.csv").recorded is not None
    assert "length_quantiles.csv" in load(tmp_path / "rates.csv").source


def test_the_program_shown_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    exec(compile(program.replace("240", "63"), "docs", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 3
