"""What can be wrong with a workload: a file's cell, or a word that names nothing."""

from pathlib import Path

from tailburn.lab.nearest import did_you_mean


class WorkloadError(ValueError):
    """A workload that cannot be run; the message says where, what, and what is accepted."""


def bad_cell(
    path: Path, row: int | None, column: str | None, found: str, want: str
) -> WorkloadError:
    """`rates.csv: row 7, column rate: -0.5; want a number of at least 0 (req/s)`.

    `row` counts from 1 as an editor shows it, the header of a text file being row 1;
    of a Parquet file, the first row of data is row 1.
    """
    where = [f"row {row}"] if row is not None else []
    where += [f"column {column}"] if column is not None else []
    return WorkloadError(
        ": ".join([str(path), *([", ".join(where)] if where else []), f"{found}; want {want}"])
    )


def unknown(what: str, name: str, known: "list[str] | tuple[str, ...]") -> WorkloadError:
    """Names the nearest of what is known; all of them when none is near."""
    return WorkloadError(f"no {what} {name!r}; {did_you_mean(name, known)}")
