"""Measured mean TPOT of served models as observed steps: aiconfigurator's silicon sample.

A row is a closed loop of `batch_size` requests of one shape. In its steady state each step
decodes all of them, at half their output on average, and a request's prompt enters every
osl/batch steps in chunks of the engine's token budget.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.lab.data import Table, only, read_table
from tailburn.lab.physics.calibrate import Observed

TOKEN_BUDGET = 8_192
QUEUED_TTFT_MS = 5_000.0
"""Rows past it held requests back for want of memory: not a step's length any more."""

SYSTEMS = {"H100": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm"}


@dataclass(frozen=True)
class Sample:
    """The rows of one (model, engine, GPU), and where they ran."""

    table: Table
    observed: Observed
    tensor_ranks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.observed)

    def of_ranks(self, ranks: int) -> Observed:
        """The rows that ran on so many tensor-parallel ranks."""
        return self.observed.where(self.tensor_ranks == ranks)

    def sizes(self) -> list[int]:
        """The tensor-parallel sizes of the rows."""
        return sorted(int(size) for size in set(self.tensor_ranks.tolist()))


def sample(model_path: str, gpu: str, engine: str = "vllm", precision: str = "fp8") -> Sample:
    """Aggregated (not disaggregated) rows whose requests did not queue; repeats averaged."""
    table = read_table("silicon_ttft_tpot.parquet")
    held = (table["model_path"] == model_path) & (table["system"] == SYSTEMS[gpu])
    held &= (table["backend"] == engine) & (table["precision"] == precision)
    held &= (table["mode"] == "agg") & (table["silicon_ttft_ms"] < QUEUED_TTFT_MS)
    held &= np.isfinite(table["silicon_tpot_ms"]) & ~(table["attention_dp_size"] > 1)
    rows = _averaged(only(table, held))
    return Sample(rows, observed(rows), rows["tp_size"].astype(np.int64))


def observed(rows: Table) -> Observed:
    """The steps behind rows of isl, osl, batch_size and silicon_tpot_ms."""
    batch, isl, osl = rows["batch_size"], rows["isl"], rows["osl"]
    chunk = np.minimum(isl, TOKEN_BUDGET)
    return Observed(
        batch=batch,
        kv_tokens=batch * (isl + osl / 2),
        chunk_share=batch / osl * isl / chunk,
        chunk_tokens=chunk,
        chunk_pairs=chunk * isl / 2,
        step_ns=rows["silicon_tpot_ms"] * 1e6,
    )


def _averaged(rows: Table) -> Table:
    keys = ["tp_size", "isl", "osl", "batch_size"]
    if not len(rows["isl"]):
        return rows
    at = np.stack([rows[key] for key in keys], axis=1)
    shapes, which = np.unique(at, axis=0, return_inverse=True)
    which = which.reshape(-1)
    counts = np.bincount(which)
    averaged = {key: shapes[:, number] for number, key in enumerate(keys)}
    for name in ("silicon_ttft_ms", "silicon_tpot_ms"):
        averaged[name] = np.bincount(which, rows[name]) / counts
    return averaged
