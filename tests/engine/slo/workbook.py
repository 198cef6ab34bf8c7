"""Detection and reset of the SRE workbook's pairs, in minutes, by hand from its formulas.

For an objective and a pair, at each share of bad requests: `threshold / bad * long`, and
`short * (1 - threshold / bad)`; None where it never fires. A step from no bad request.
"""

from typing import Final

SHARES: Final = (1.0, 0.5, 0.2, 0.1, 0.05)

Cell = tuple[float, float] | None
NEVER: Final = None

TABLE: Final[dict[tuple[float, str], tuple[float, tuple[Cell, ...]]]] = {
    # objective and pair: threshold, then a cell for each of SHARES
    (0.999, "1h/5m"): (0.0144, ((0.9, 4.9), (1.7, 4.9), (4.3, 4.6), (8.6, 4.3), (17.3, 3.6))),
    (0.999, "6h/30m"): (
        0.006,
        ((2.2, 29.8), (4.3, 29.6), (10.8, 29.1), (21.6, 28.2), (43.2, 26.4)),
    ),
    (0.999, "1d/2h"): (0.003, ((4.3, 119.6), (8.6, 119.3), (21.6, 118), (43.2, 116), (86.4, 113))),
    (0.999, "3d/6h"): (0.001, ((4.3, 359.6), (8.6, 359), (21.6, 358), (43.2, 356), (86.4, 353))),
    (0.99, "1h/5m"): (0.144, ((8.6, 4.3), (17.3, 3.6), (43.2, 1.4), NEVER, NEVER)),
    (0.99, "6h/30m"): (0.06, ((21.6, 28.2), (43.2, 26.4), (108, 21), (216, 12), NEVER)),
    (0.99, "1d/2h"): (0.03, ((43.2, 116), (86.4, 113), (216, 102), (432, 84), (864, 48))),
    (0.99, "3d/6h"): (0.01, ((43.2, 356), (86.4, 353), (216, 342), (432, 324), (864, 288))),
    (0.95, "1h/5m"): (0.72, ((43.2, 1.4), NEVER, NEVER, NEVER, NEVER)),
    (0.95, "6h/30m"): (0.3, ((108, 21), (216, 12), NEVER, NEVER, NEVER)),
    (0.9, "1h/5m"): (1.44, (NEVER, NEVER, NEVER, NEVER, NEVER)),
    (0.9, "6h/30m"): (0.6, ((216, 12), NEVER, NEVER, NEVER, NEVER)),
}
