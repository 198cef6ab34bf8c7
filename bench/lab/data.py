"""Where the measured tables lie, and their columns as arrays."""

import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

Table: TypeAlias = dict[str, NDArray[Any]]

_ROOT = Path(__file__).resolve().parents[2]
_chosen: list[Path] = []


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder of measured tables: the one named (kept for later calls), or the default.

    Raises FileNotFoundError when it holds none.
    """
    if folder is not None:
        _chosen[:] = [Path(folder)]
    shared = Path(os.environ.get("TAILBURN_SHARED", _ROOT.parent / "shared"))
    found = _chosen[0] if _chosen else shared / "data"
    if not (found / "silicon_ttft_tpot.parquet").is_file():
        raise FileNotFoundError(f"no measured tables in {found}; set TAILBURN_SHARED or --data")
    return found


def read_table(name: str) -> Table:
    """The columns of a Parquet or CSV file; numbers as float64 (null is nan), the rest as text."""
    path = data_folder() / name
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
    else:
        table = pyarrow.csv.read_csv(path)
    columns: Table = {}
    for field in table.schema:
        column = table[field.name]
        if pyarrow.types.is_floating(field.type) or pyarrow.types.is_integer(field.type):
            columns[field.name] = column.cast("float64").to_numpy()
        elif pyarrow.types.is_null(field.type):
            columns[field.name] = np.full(len(column), np.nan)
        else:
            columns[field.name] = np.asarray(pc.fill_null(column.cast("string"), "").to_pylist())
    return columns


def only(table: Table, held: NDArray[np.bool_]) -> Table:
    """The rows that are held."""
    return {name: column[held] for name, column in table.items()}
