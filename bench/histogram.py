"""What a histogram costs: values counted, histograms merged, against exact ways.

python -m bench.histogram
"""

from collections.abc import Iterator

import numpy as np

from bench.figures import Figure, show
from bench.store import measure
from tailburn.engine import histogram

VALUES = 2_000_000
MINUTES, SERIES, IN_USE = 1_440, 200, 60


def figures() -> Iterator[Figure]:
    """Count against a sort; merge a day of 200 series; quantiles against exact ones."""
    rng = np.random.default_rng(1)
    values = rng.lognormal(-1.5, 0.8, VALUES)
    counted = measure(lambda: histogram.counts(values))
    sorted_ = measure(lambda: np.sort(values), repeats=2)
    yield Figure(
        "count values in a histogram", [VALUES / counted.cpu_s], "values/cpu-s",
        VALUES / sorted_.cpu_s, "sorting them",
    )  # fmt: skip
    histograms = MINUTES * SERIES
    series = np.repeat(np.arange(histograms) % SERIES, IN_USE) * histogram.BUCKETS
    cells = series + rng.integers(300, 300 + IN_USE, histograms * IN_USE)
    amounts = rng.integers(1, 9, histograms * IN_USE).astype(np.float64)
    size = SERIES * histogram.BUCKETS
    merged = measure(lambda: np.bincount(cells, amounts, size), repeats=3)
    yield Figure(
        f"merge {histograms // 1000} k histograms of {IN_USE} buckets", [merged.cpu_s * 1e3], "ms"
    )
    yield from _errors(values)


def _errors(values: np.ndarray) -> Iterator[Figure]:
    low, high = float(values.min()), float(values.max())
    counts = histogram.counts(values)
    for q in (0.5, 0.95, 0.99, 0.999):
        exact = float(np.quantile(values, q, method="inverted_cdf"))
        found = histogram.quantile(counts, q, low, high) or 0.0
        yield Figure(f"p{q * 100:g} from a histogram", [found], "s", exact, "exact, bound 1.08 %")


if __name__ == "__main__":
    show(list(figures()))
