"""What alerts look back over, stated once for both of their faces."""

from typing import Final

from tailburn.engine.rollup import MINUTE_NS as MINUTE_NS
from tailburn.engine.slo.burn import DAY_S as DAY_S
from tailburn.engine.slo.burn import HOUR_S as HOUR_S
from tailburn.engine.slo.burn import MINUTE_S as MINUTE_S

QUICK_S: Final = 60
SLOW_S: Final = 240
"""Between two evaluations; less than the five minutes after which Prometheus takes a series
for gone."""

STRAIGHT_UP_TO_S: Final = 6 * HOUR_S
"""Windows up to here are counted minute by minute; longer ones are means of sampled rates."""
SAMPLED_S: Final = 300
"""A sampled rate looks back so long. It is sampled each `SLOW_S`."""
FINELY_UP_TO_S: Final = 3 * DAY_S
LOOKED_FOR_S: Final = 600
"""So long the last value of this hour on a day before stands for one that is missing."""
FROZEN_AT_MOST_S: Final = 6 * HOUR_S
"""So long a firing alert outlives the data it rests on."""
