"""Fit an engine's free coefficients to steps that were measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.compiled import compiled
from tailburn.lab.physics.fitting import fit_positive
from tailburn.lab.physics.layout import Layout
from tailburn.lab.physics.scales import Scales, apply_scales
from tailburn.lab.physics.step import decode_step_ns

F64 = NDArray[np.float64]

_UNIT: Final = Scales(1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
_PULL: Final = np.array([0.2] * 4 + [0.05] * 4)
"""How strongly each scale is held to its start, a residual per factor e: what
was measured of kernels is believed more than what is assumed of a host."""


@dataclass(frozen=True)
class Observed:
    """Mean lengths of steps, one a row, beside what these steps carried.

    Of all steps a share `chunk_share` also carried a prompt's part of `chunk_tokens` tokens
    with `chunk_pairs` (query, key) pairs.
    """

    batch: F64
    kv_tokens: F64
    chunk_share: F64
    chunk_tokens: F64
    chunk_pairs: F64
    step_ns: F64

    def __post_init__(self) -> None:
        columns = vars(self)
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"columns must be of one length, got {sizes}")
        for name, column in columns.items():
            bad = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
            if len(bad):
                row = int(bad[0])
                raise ValueError(f"row {row}, {name}: must be finite and >= 0, got {column[row]}")

    def __len__(self) -> int:
        return len(self.step_ns)

    def where(self, held: NDArray[np.bool_]) -> "Observed":
        """The rows that are held."""
        return Observed(*(column[held] for column in vars(self).values()))


@compiled
def _predict(
    coef: Any, batch: Any, kv_tokens: Any, share: Any, chunk: Any, pairs: Any, out: Any
) -> None:
    for row in range(len(out)):
        alone = decode_step_ns(coef, batch[row], kv_tokens[row], 0.0, 0.0)
        out[row] = alone
        if share[row] > 0.0:
            mixed = decode_step_ns(coef, batch[row], kv_tokens[row], chunk[row], pairs[row])
            out[row] += share[row] * (mixed - alone)


def predict_ns(coef: F64, seen: Observed) -> F64:
    """The mean step of each row, in ns, under these coefficients."""
    out = np.empty(len(seen))
    columns = (seen.batch, seen.kv_tokens, seen.chunk_share, seen.chunk_tokens, seen.chunk_pairs)
    _predict(coef, *columns, out)
    return out


@dataclass(frozen=True)
class Calibration:
    """Scales found, and the relative error they leave on what they were found from."""

    scales: Scales
    errors: F64

    @property
    def mape(self) -> float:
        """Mean absolute relative error, as a share."""
        return float(np.mean(np.abs(self.errors)))


def calibrate(parts: Sequence[tuple[Layout, Observed]]) -> Calibration:
    """One set of scales for several layouts of an engine, from what was measured on each.

    The first layout's own scales (`Layout.scales`, or its engine's) are where the search
    starts and what the data must argue against: a coefficient that the data say nothing
    of stays near them. Raises ValueError
    without rows.
    """
    if not sum(len(seen) for _, seen in parts):
        raise ValueError("calibration needs at least one measured step")
    unit = [(replace(layout, scales=_UNIT).coefficients(), seen) for layout, seen in parts]
    start = np.maximum(parts[0][0].effective_scales.array(), 1e-3)

    def errors(numbers: F64) -> F64:
        scales = Scales.of(numbers)
        off = [predict_ns(apply_scales(coef, scales), seen) / seen.step_ns for coef, seen in unit]
        return np.concatenate(off) - 1.0

    def left(numbers: F64) -> F64:
        return np.concatenate([errors(numbers), _PULL * np.log(numbers / start)])

    fit = fit_positive(left, start)
    return Calibration(Scales.of(fit.values), errors(fit.values))
