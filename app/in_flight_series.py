"""Requests in flight by SLO, as a gauge of `/metrics`: what alerts on stalled queues rest on."""

from collections.abc import Mapping, Sequence
from typing import Final

from tailburn.app.answers.scaling import is_seen
from tailburn.app.text_format import gauge
from tailburn.engine.gauges import Key
from tailburn.engine.names import SLO_IN_FLIGHT_METRIC, SLO_LABEL
from tailburn.engine.slo.model import Slo

HELP: Final = "Requests that engines and gateways have and that have not finished."


def in_flight_text(
    counts: Mapping[Key, float], slos: Sequence[Slo], tenant: str | None = None
) -> str:
    """In the Prometheus text format, one tenant's or all; what nobody tells has no sample."""
    named = {slo.name: slo for slo in slos}
    samples = []
    for (name, values), count in counts.items():
        by = dict(zip(named[name].by, values, strict=True))
        if is_seen(named[name], by, tenant):
            samples.append(({SLO_LABEL: name, **by}, float(count)))
    return gauge(SLO_IN_FLIGHT_METRIC, HELP, samples)
