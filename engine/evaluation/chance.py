"""How many bad requests are more than chance, where many series are looked at all day.

Were each request of a healthy series bad with chance `p`, apart from the others, at least `k` bad
ones of `n` would come with a chance of at most exp(-surprise), surprise = k ln(k / np) - k + np:
the Chernoff bound (H. Chernoff, 1952; for the binomial W. Hoeffding, "Probability inequalities
for sums of bounded random variables", 1963, theorem 1, whose exponent is never below this one).
With one look a minute at each of so many series, the chance of any false alarm in a week is at
most (looks x series x exp(-surprise)), by the union bound (Bonferroni), so the surprise asked for
is the logarithm of looks x series over the chance that is allowed. It grows slowly: 13.8 for one
series, 20.7 for a thousand.
"""

import math
from typing import Final

import numpy as np

from tailburn.engine.grouping import F64

LOOKS_A_WEEK: Final = 7 * 24 * 60
FALSE_A_WEEK: Final = 0.01
"""Of one alert, over all of its series: a hundred alerts come to one a week at most."""
HEALTHY: Final = 0.5
"""A healthy series spends no more than this share of its budget."""
LOOKS: Final = LOOKS_A_WEEK / FALSE_A_WEEK
_HEALTHY_PART: Final = 0.2


def healthy_ratio(budget_ratio: float) -> float:
    """The share of the requests that is bad in a healthy series of such a budget."""
    return HEALTHY * budget_ratio


def surprise(bad: F64 | np.float64, requests: F64 | np.float64, healthy_ratio: float) -> F64:
    """How little chance there is for so many bad ones, as minus its logarithm; nan without any."""
    expected = healthy_ratio * requests
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(bad * np.log(bad / expected) - bad + expected)


def floor(series: int) -> float:
    """The surprise that it takes where so many series are looked at."""
    return math.log(LOOKS * max(series, 1))


def requests_each(share: float) -> float:
    """How many requests it takes for each unit of `floor`, if they are to tell of this share.

    Of a critical percentile: where only a fifth of `share` is over, as in health, no chance puts
    all of it over in two windows, one after the other.
    """
    return 1 / (2 * float(surprise(np.float64(share), np.float64(1), share * _HEALTHY_PART)))
