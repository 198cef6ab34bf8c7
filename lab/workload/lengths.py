"""Lengths in tokens: quantiles, as a table that compiled code draws from.

One row is a distribution at the levels LEVELS, finer towards the top: 120 steps up to
.9375, 60 up to .9961, 64 up to 1. Between levels values are linear; where only a few
quantiles are known they are joined linearly in the logarithm.
"""

import numpy as np

from tailburn.lab.compiled import compiled

_BODY, _TAIL, _TIP = 120, 60, 64
_AT_TAIL, _AT_TIP = 15 / 16, 255 / 256
LEVELS = np.concatenate(
    [
        np.arange(_BODY) / 128,
        _AT_TAIL + np.arange(_TAIL) / 1024,
        _AT_TIP + np.arange(_TIP + 1) / 16384,
    ]
)
FIELDS = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999)


@compiled
def length_at(row: np.ndarray, u: float) -> float:
    """The u-quantile of a distribution given at LEVELS."""
    if u < _AT_TAIL:
        place = u * 128.0
        base = 0
    elif u < _AT_TIP:
        place = (u - _AT_TAIL) * 1024.0
        base = _BODY
    else:
        place = (u - _AT_TIP) * 16384.0
        base = _BODY + _TAIL
    step = int(place)
    low = row[base + step]
    return low + (place - step) * (row[base + step + 1] - low)


def from_quantiles(
    levels: "np.ndarray | tuple[float, ...]", tokens: np.ndarray, bend: float = 1.0
) -> np.ndarray:
    """Rows at LEVELS from some quantiles: tokens[..., level], never falling.

    Below the lowest level and above the highest the last step in the logarithm
    goes on, halved below and up to twice the top above. A bend above 1 keeps
    values between the quantiles nearer to the lower one, and the mean lower.
    """
    known = np.asarray(levels, float)
    logs = np.log(np.maximum(np.asarray(tokens, float), 1.0))
    below = logs[..., :1] - 0.5 * np.maximum(logs[..., 1:2] - logs[..., :1], 0.0)
    above = logs[..., -1:] + np.clip(logs[..., -1:] - logs[..., -2:-1], 0.0, np.log(2.0))
    parts = [np.maximum(below, 0.0), logs, above]
    at = np.concatenate([[0.0], known, [1.0]])
    if known[-1] == 1.0:
        parts, at = parts[:2], at[:-1]
    if known[0] == 0.0:
        parts, at = parts[1:], at[1:]
    rows = np.maximum.accumulate(np.concatenate(parts, axis=-1), axis=-1)
    cell = np.clip(np.searchsorted(at, LEVELS, side="right") - 1, 0, len(at) - 2)
    share = (LEVELS - at[cell]) / (at[cell + 1] - at[cell])
    inner = (known[0] < LEVELS) & (known[known < 1.0][-1] > LEVELS)
    share = np.where(inner, share**bend, share)
    joined = rows[..., cell] * (1 - share) + rows[..., cell + 1] * share
    return np.exp(joined).astype(np.float32, order="C")


def with_mean(levels: "tuple[float, ...]", tokens: "tuple[float, ...]", mean: float) -> np.ndarray:
    """One row from some quantiles, bent between them until its mean comes as near as it can."""
    low, high = 0.2, 6.0
    for _ in range(50):
        bend = (low + high) / 2
        above = mean_of(from_quantiles(levels, np.array(tokens), bend)) > mean
        low, high = (bend, high) if above else (low, bend)
    return from_quantiles(levels, np.array(tokens), bend)


def from_samples(tokens: np.ndarray) -> np.ndarray:
    """One row at LEVELS from lengths seen."""
    return np.quantile(np.asarray(tokens, float), LEVELS).astype(np.float32)


def mean_of(rows: np.ndarray) -> np.ndarray:
    """Mean length of each row, in tokens."""
    width = np.diff(LEVELS)
    return np.asarray(((rows[..., 1:] + rows[..., :-1]) / 2 * width).sum(-1), float)


def mixture(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One row: the distribution of a draw from `rows`, each picked with odds by its weight."""
    step = np.diff(LEVELS)
    middles = (rows[:, 1:] + rows[:, :-1]) / 2
    mass = (weights / weights.sum())[:, None] * step
    order = np.argsort(middles, axis=None)
    at = np.cumsum(mass.ravel()[order]) - mass.ravel()[order] / 2
    return np.interp(LEVELS, at, middles.ravel()[order]).astype(np.float32)
