"""Reading a user's table: CSV (also .gz) or Parquet, each cell checked, the first bad one named."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from tailburn.lab.workload.errors import WorkloadError, bad_cell, unknown

PARQUET = (".parquet", ".pq")
MOST_S = 1e10
LONGEST_S = 400 * 86_400.0


@dataclass(frozen=True)
class Sheet:
    """A table with the place of its rows in the file."""

    path: Path
    table: pa.Table
    first_row: int

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def need(self, columns: tuple[str, ...]) -> None:
        """Raises WorkloadError for the first column that is missing."""
        for name in columns:
            if name not in self.columns:
                raise WorkloadError(
                    f"{self.path}: no column {name!r} among {', '.join(self.columns)}; "
                    f"want {', '.join(columns)}"
                )

    def fail(self, at: int, column: str, want: str) -> WorkloadError:
        """The error that names the cell of the at-th row of data."""
        found = self.table[column][at].as_py()
        shown = "empty" if found is None or found == "" else repr(found)
        return bad_cell(self.path, at + self.first_row, column, shown, want)

    def check(self, column: str, good: np.ndarray, want: str) -> None:
        """Raises WorkloadError for the first row that is not good."""
        if not good.all():
            raise self.fail(int(np.argmin(good)), column, want)

    def numbers(self, column: str, low: float, high: float, unit: str) -> np.ndarray:
        """A column of numbers from low to high, both included."""
        want = f"a number from {low:g} to {high:g} ({unit})"
        values = self._cast(column, pa.float64(), want).to_numpy()
        self.check(column, np.isfinite(values) & (values >= low) & (values <= high), want)
        return np.asarray(values, float)

    def whole(self, column: str, low: int, high: int, unit: str) -> np.ndarray:
        """A column of whole numbers from low to high, both included."""
        values = self.numbers(column, low, high, unit)
        self.check(column, values == np.floor(values), f"a whole number ({unit})")
        return values.astype(np.int64)

    def words(self, column: str, known: tuple[str, ...] | None = None) -> np.ndarray:
        """A column of words, each of them known."""
        values = self._cast(column, pa.string(), "a word").to_numpy(zero_copy_only=False)
        if known is not None:
            self.check(column, np.isin(values, known), " or ".join(known))
        return np.asarray(values, str)

    def instants(self, column: str) -> np.ndarray:
        """A column of times, never falling, as ns since the first."""
        want = "a time like 2023-11-16 18:17:03.9799600, or seconds"
        plain = self._plain(column)
        if not pa.types.is_timestamp(plain.type) and _is_number(plain[0].as_py()):
            return self._rising(column, self.numbers(column, -MOST_S, MOST_S, "s") * 1e9)
        zone = "UTC" if str(plain[0].as_py()).endswith("Z") else getattr(plain.type, "tz", None)
        values = self._cast(column, pa.timestamp("ns", zone), want).cast(pa.int64()).to_numpy()
        return self._rising(column, values)

    def _rising(self, column: str, ns: np.ndarray) -> np.ndarray:
        good = np.concatenate([[True], np.diff(ns) >= 0])
        self.check(column, good, "a time not before the one of the row above")
        self.check(
            column, ns - ns[0] <= LONGEST_S * 1e9, f"at most {LONGEST_S:g} s after the first"
        )
        return np.asarray(np.round(ns - ns[0]), np.int64)

    def _plain(self, column: str) -> pa.Array:
        array = self.table[column].combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return pc.utf8_trim_whitespace(array) if pa.types.is_string(array.type) else array

    def _cast(self, column: str, kind: pa.DataType, want: str) -> pa.Array:
        plain = self._plain(column)
        if plain.null_count:
            raise self.fail(pc.index(pc.is_null(plain), True).as_py(), column, want)
        try:
            return plain.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            at = _first(plain, lambda cell: cell.cast(kind))
            raise self.fail(at, column, want) from None


def read_sheet(path: Path) -> Sheet:
    """The file as a table of text (CSV) or of its own types (Parquet), not yet checked."""
    if path.is_dir():
        raise WorkloadError(f"{path}: a folder; want a file")
    if not path.is_file():
        near = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        if near:
            raise WorkloadError(f"{path}: {unknown('file', path.name, near)}")
        raise WorkloadError(f"{path}: no such file")
    try:
        if path.suffix in PARQUET:
            sheet = Sheet(path, pa.parquet.read_table(path), 1)
        else:
            sheet = Sheet(path, _read_csv(path), 2)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as err:
        raise _unreadable(path, str(err)) from err
    twice = [name for name, count in Counter(sheet.columns).items() if count > 1]
    if twice:
        raise WorkloadError(f"{path}: column {twice[0]!r} twice; want it once")
    if sheet.table.num_rows == 0:
        raise WorkloadError(f"{path}: no rows; want at least one")
    return sheet


def _read_csv(path: Path) -> pa.Table:
    with pa.input_stream(str(path), compression="detect") as stream:
        header = stream.read(1 << 16).split(b"\n", 1)[0].decode().strip().strip("\ufeff")
    names = [name.strip('"') for name in header.split(",")]
    convert = pa.csv.ConvertOptions(
        column_types={name: pa.string() for name in (*names, *(n.strip() for n in names))},
        strings_can_be_null=True,
        null_values=[""],
    )
    parse = pa.csv.ParseOptions(ignore_empty_lines=False)
    read = pa.csv.ReadOptions(use_threads=False)
    table = pa.csv.read_csv(path, read, parse, convert)
    table = table.rename_columns([name.strip() for name in table.column_names])
    # Lines of blanks at the end are no rows; in the middle they are gaps, and told.
    rows = table.num_rows
    while rows and all(c[rows - 1].as_py() in (None, "") for c in table.columns):
        rows -= 1
    return table.slice(0, rows)


def _unreadable(path: Path, said: str) -> WorkloadError:
    """What Arrow said, with the row it counts as an editor does where it tells one."""
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if ragged:
        row, want, got = ragged.groups()
        return bad_cell(path, int(row), None, f"{got} cells", f"{want}")
    what = "Parquet" if path.suffix in PARQUET else "CSV (plain or .gz)"
    return WorkloadError(f"{path}: not readable as {what}: {said.splitlines()[0]}")


def _is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _first(array: pa.Array, cast: "Callable[[pa.Array], pa.Array]") -> int:
    """Index of the first cell that cannot be cast, found by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(array.slice(low, middle - low))
            low = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
    return low
