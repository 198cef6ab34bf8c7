"""What is true of a run, apart from what it tells: only who scores it reads this.

`truth.json` says what ran and what was broken when; `attempts.parquet` has a row for each
try of a request, with all columns of `lab.records.Attempts` and the trace's id.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailburn.lab.records import Attempts, Column
from tailburn.lab.run.motion import Plan
from tailburn.lab.telemetry.spans import trace_ids

TRUTH: Final = "truth.json"
ATTEMPTS: Final = "attempts.parquet"
FORM: Final = 1
"""Of these files; grows when a field changes its meaning."""
_ROWS: Final = 100_000


def truth_of(plan: Plan, epoch_unix_ns: int, until_ns: int, more: Mapping[str, Any]) -> Any:
    """What ran and what was broken, as JSON has it."""
    return {
        "form": FORM,
        "epoch_unix_ns": epoch_unix_ns,
        "until_ns": until_ns,
        "start_of_week_s": plan.start_s,
        "seed": plan.seed,
        "fleet": plan.fleet.name,
        "workloads": [
            {"name": one.profile.name, "source": one.profile.source,
             "per_s": one.per_s or one.profile.per_s, "model": one.model}
            for one in plan.traffic
        ],
        **more,
        "faults": [_fault(fault, epoch_unix_ns) for fault in plan.faults],
    }  # fmt: skip


def _fault(fault: Any, epoch_unix_ns: int) -> dict[str, Any]:
    told = plain(getattr(fault, "truth", {}))
    for name in ("start", "end"):
        if f"{name}_ns" in told:
            told[f"{name}_unix_ns"] = told[f"{name}_ns"] + epoch_unix_ns
    parts = ("settings", "changes", "telemetry")
    return {**told, "set": {part: plain(getattr(fault, part, ())) for part in parts}}


def plain(value: Any) -> Any:
    """A value of frozen dataclasses, enums and mappings as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value.value, int) else value.value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def write_truth(folder: Path, truth: Any) -> Path:
    """Write `truth.json`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TRUTH
    half = path.with_suffix(".tmp")
    half.write_text(json.dumps(truth, indent=1) + "\n")
    half.replace(path)
    return path


def _field(column: Column) -> pa.Field:
    metadata = {"unit": column.unit, "is": column.meaning}
    return pa.field(column.name, pa.from_numpy_dtype(column.kind), metadata=metadata)


class AttemptsFile:
    """`attempts.parquet`, written as attempts come, some 100,000 rows a group."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self._seed = seed
        self._waiting: list[Attempts] = []
        columns = [
            pa.field(
                c.name, pa.from_numpy_dtype(c.kind), metadata={"unit": c.unit, "is": c.meaning}
            )
            for c in Attempts.columns()
        ]
        schema = pa.schema([pa.field("trace_id", pa.string()), *columns])
        self._file = pq.ParquetWriter(folder / ATTEMPTS, schema, compression="zstd")

    def add(self, attempts: Attempts) -> None:
        self._waiting.append(attempts)
        if sum(map(len, self._waiting)) >= _ROWS:
            self._write()

    def close(self) -> None:
        """Write what waits; a file without its end can't be read."""
        self._write()
        self._file.close()

    def _write(self) -> None:
        told = Attempts.join([part for part in self._waiting if len(part)])
        self._waiting = []
        if not len(told):
            return
        arrays = [trace_ids(told.request, self._seed), *told.arrays().values()]
        self._file.write_table(pa.table(list(map(pa.array, arrays)), self._file.schema))
        self.rows += len(told)
