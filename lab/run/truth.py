"""What is true of a run, apart from what it tells: only who scores it reads this.

`truth.json` says what ran and what was broken when; `attempts.parquet` has a row for each
try of a request, with all columns of `lab.records.Attempts` and the trace's id.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tailburn.lab.faults.parts import Fault
from tailburn.lab.records import Attempts, Column
from tailburn.lab.run.motion import Plan
from tailburn.lab.telemetry.spans import trace_ids

TRUTH: Final = "truth.json"
ATTEMPTS: Final = "attempts.parquet"
FORMAT: Final = "tailburn-truth-1"
"""Of `truth.json`; another one when a field changes its meaning."""
_ROWS: Final = 100_000


def truth_of(plan: Plan, epoch_unix_ns: int, end_ns: int, more: Mapping[str, Any]) -> Any:
    """What ran and what was broken, as JSON has it. Times are ns since the run's epoch."""
    return {
        "format": FORMAT,
        "epoch_unix_ns": epoch_unix_ns,
        "start_ns": 0,
        "end_ns": end_ns,
        "seed": plan.seed,
        "fleet": plan.fleet.name,
        "workloads": [
            {"name": one.profile.name, "source": one.profile.source,
             "per_s": one.per_s or one.profile.per_s, "model": one.model}
            for one in plan.traffic
        ],
        **more,
        "truths": [_told(fault) for fault in plan.faults],
    }  # fmt: skip


def _told(fault: Fault) -> dict[str, Any]:
    """A fault's truth, and what it set where."""
    return {
        **fault.truth.as_json(),
        "set": {
            "settings": [asdict(each) for each in fault.settings],
            "changes": [asdict(each) for each in fault.changes],
            "telemetry": [asdict(each) for each in fault.telemetry],
        },
    }


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
        columns = map(_field, Attempts.columns())
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
