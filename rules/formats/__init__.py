"""How rules are written down: the same groups, in the files of three readers.

`FORMATS` gives for each its writer: (groups, name of the file's SLO) to text without the head.
"""

from collections.abc import Callable, Sequence
from typing import Final

from tailburn.rules.formats import mimir, operator, prometheus
from tailburn.rules.model import Group

Writer = Callable[[str, Sequence[Group]], str]

FORMATS: Final[dict[str, Writer]] = {
    "prometheus": prometheus.written,
    "operator": operator.written,
    "mimir": mimir.written,
}
