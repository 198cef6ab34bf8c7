"""The counters of an SLO as a scraper sees them, while the service is killed under load."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.live.load import Load
from tests.live.service import QUICK, Service, living, until

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: calls}
spec:
  by: [model, service]
  vantage: client
  clocks:
    e2e: {acceptable: {p95: 2s}}
"""
_EVERY_S = 0.2
_LIVES_AT_MOST_S = 3.0


class Scraper:
    """Reads `tailburn_slo_requests_total` as Prometheus does, its idea of a reset included."""

    def __init__(self, service: Service) -> None:
        self.increase: dict[str, float] = {}
        self.born_at: dict[str, float] = {}
        self.resets: list[str] = []
        self._last: dict[str, float] = {}
        self._service = service
        self._enough = Event()
        self._thread = Thread(target=self._scrape_on)

    @property
    def counted(self) -> float:
        """Of all series, as it saw them last."""
        return sum(list(self._last.values()))

    @contextmanager
    def scraping(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._enough.set()
            self._thread.join()

    def scrape(self) -> None:
        for series, value in requests_total(self._service).items():
            before = self._last.get(series)
            if before is None:
                self.born_at[series] = value
            elif value < before:
                self.resets.append(f"{series}: {before} to {value}")
                self.increase[series] = self.increase.get(series, 0) + value
            else:
                self.increase[series] = self.increase.get(series, 0) + value - before
            self._last[series] = value

    def _scrape_on(self) -> None:
        while not self._enough.wait(_EVERY_S):
            with suppress(httpx.TransportError):  # it is being killed
                self.scrape()


def requests_total(service: Service) -> dict[str, float]:
    return {
        sample.labels["service"]: sample.value
        for family in text_string_to_metric_families(service.get("/metrics").text)
        for sample in family.samples
        if sample.name == "tailburn_slo_requests_total"
    }


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(5, marks=pytest.mark.timeout(900)),
        pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_a_kill_changes_no_counter(tmp_path: Path, kills: int) -> None:
    (tmp_path / "calls.yaml").write_text(SLO)
    chance = random.Random(kills)
    flags = (*QUICK, "--slo", tmp_path / "calls.yaml")
    with living(tmp_path / "store", *flags) as service, Load(service) as load:
        scraper = Scraper(service)
        with scraper.scraping():
            for _ in range(kills):
                time.sleep(chance.uniform(0, _LIVES_AT_MOST_S))
                service.kill()
                service.start()
            _, traces = load.finish()
            until(lambda: scraper.counted >= len(traces))  # asking oneself takes its zeros
        scraper.scrape()
        final = requests_total(service)
        assert service.stop() == 0
    assert sum(final.values()) == len(traces)
    assert scraper.resets == []
    assert set(scraper.born_at.values()) == {0}
    assert scraper.increase == final
