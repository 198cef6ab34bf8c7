"""What scrapes of a run's targets find: into files, or to be scraped as it goes on.

scraping = Scraping(plan, wiring, epoch_unix_ns=..., hold_ns=..., files=ScrapeFiles(...))
scraping.of(slice)
scraping.finish()
"""

from tailburn.lab.faults.telemetry import ScrapeFaults
from tailburn.lab.run.motion import Plan, Slice
from tailburn.lab.telemetry.metrics import LiveTargets, MetricsText, ScrapeFiles, Scrapes
from tailburn.lab.telemetry.spans import Wiring


class Scraping:
    """Every target of a fleet. `hold_ns`: scrapes are told so long after their instant, when
    what had happened by then is known whole. `from_ns`: nobody scraped before; counters of what
    happens in requests then begin there.
    """

    def __init__(
        self,
        plan: Plan,
        wiring: Wiring,
        *,
        epoch_unix_ns: int,
        hold_ns: int,
        files: ScrapeFiles | None = None,
        live: LiveTargets | None = None,
        from_ns: int = 0,
    ) -> None:
        broken = ScrapeFaults(plan.telemetry, plan.seed)
        self._metrics = MetricsText(
            plan.fleet,
            wiring,
            epoch_unix_ns=epoch_unix_ns,
            hold_ns=hold_ns,
            broken=broken if broken.any else None,
            turns=plan.settings,
        )
        self._files, self._live, self._from = files, live, from_ns
        self._fed = False
        self.scrapes = 0

    def of(self, one: Slice) -> None:
        """Take what happened; tell the scrapes that are due."""
        if one.end_ns <= self._from:
            return
        self._fed = self._fed or len(one.samples) > 0
        self._tell(self._metrics.feed(one.attempts, one.samples, one.end_ns))

    def finish(self) -> None:
        """Tell what is held back, and write the files whole."""
        if self._fed:
            self._tell(self._metrics.finish())
        self.close()

    def close(self) -> None:
        """Write the files whole, without what is held back; serve no more."""
        if self._files is not None:
            self._files.close()
            self._files = None
        if self._live is not None:
            self._live.close()
            self._live = None

    def _tell(self, scrapes: Scrapes) -> None:
        self.scrapes += len(scrapes) * len(self._metrics.targets)
        if self._files is not None:
            self._files.write(scrapes)
        if self._live is not None:
            self._live.show(scrapes)
