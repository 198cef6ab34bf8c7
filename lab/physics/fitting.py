"""Least squares over positive numbers (Levenberg-Marquardt on their logarithms)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_STEP = 1e-5
_ROUNDS = 200
_HOPELESS = 1e12


@dataclass(frozen=True)
class Fit:
    """The numbers found, and what they leave over (the residuals at them)."""

    values: F64
    left: F64

    @property
    def mean_error(self) -> float:
        """Mean of the residuals' sizes: the mean relative error where they are logarithms."""
        return float(np.mean(np.abs(self.left)))


def fit_positive(residuals: Callable[[F64], F64], start: F64) -> Fit:
    """The positive numbers near `start` whose `residuals` have the least sum of squares.

    Raises ValueError for a start that is not positive or leaves no finite residuals.
    """
    if not (np.all(np.isfinite(start)) and np.all(start > 0)):
        raise ValueError(f"a fit starts from finite numbers > 0, got {start.tolist()}")
    at = np.log(start)
    left = residuals(np.exp(at))
    if not np.all(np.isfinite(left)):
        raise ValueError(f"no finite residuals at the start {start.tolist()}")
    damping = 1e-2
    for _ in range(_ROUNDS):
        slopes = _slopes(residuals, at, left)
        square = slopes.T @ slopes
        damped = square + damping * np.diag(np.diag(square) + 1e-9)
        step = np.clip(np.linalg.solve(damped, -slopes.T @ left), -1.0, 1.0)
        tried = residuals(np.exp(at + step))
        if tried @ tried < left @ left:
            at, left, damping = at + step, tried, damping / 3
        else:
            damping *= 4
        if damping > _HOPELESS:
            break
    return Fit(np.exp(at), left)


def _slopes(residuals: Callable[[F64], F64], at: F64, left: F64) -> F64:
    columns = [(residuals(np.exp(at + _STEP * unit)) - left) / _STEP for unit in np.eye(len(at))]
    return np.stack(columns, axis=1)
