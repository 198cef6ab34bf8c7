"""What evaluation looks back over: minutes of counts, of buckets and of gauges, bounded.

All of it comes from rows of published tables: any split or order of the same rows gives the same
history, and so does a restart.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tailburn.engine.slo.model import Slo


class History:
    """Of some SLOs, as far back as their alerts look: not safe in several threads."""

    def __init__(self, slos: Sequence[Slo]) -> None:
        self.slos = tuple(slos)

    def cover(self, begin_ns: int, end_ns: int) -> None:
        """The service counted from one whole minute to another, whether or not requests came.

        A minute with rows is covered by them. What isn't covered is a gap in the data.
        """
        raise NotImplementedError

    def take_verdicts(self, rows: pa.Table) -> None:
        """Rows of VERDICTS; the objective `deadline` counts deadlines, missed ones as bad."""
        raise NotImplementedError

    def take_rollups(self, rows: pa.Table) -> None:
        """Rows of ROLLUPS."""
        raise NotImplementedError

    def take_in_flight(
        self, slo: str, at_ns: int, in_flight: Mapping[tuple[str, ...], float]
    ) -> None:
        """Requests in flight at a whole minute, by the values of the SLO's `by`."""
        raise NotImplementedError

    def trim(self, now_ns: int) -> None:
        """Forget what no alert looks back to."""
        raise NotImplementedError
