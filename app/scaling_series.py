"""The signals for autoscalers as gauges of `/metrics`."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tailburn.app.answers.scaling import is_seen
from tailburn.app.scaling import Scaling
from tailburn.app.text_format import Sample, gauge
from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_TTFT_RECORD,
    SCALE_WAITING_RECORD,
    SLO_LABEL,
    scale_metric,
)

HELP: Final = {
    SCALE_TTFT_RECORD: "p99 TTFT of 5 minutes over what adds replicas; 0 with too few requests.",
    SCALE_OUT_RECORD: "The least of it over the last minutes: above 1 replicas are asked for.",
    SCALE_GATED_RECORD: "The same, no more than 1 where the queue does not own the excess.",
    SCALE_WAITING_RECORD: "Requests that wait at each replica, over their target.",
    SCALE_KV_RECORD: "Share of the KV caches in use, over its target.",
    SCALE_REPLICAS_RECORD: "Replicas whose KV cache is shown.",
    SCALE_HOLD_RECORD: "1 while no replica may go, 0 when one may.",
}


def scaling_text(scaling: Scaling, now_ns: int, tenant: str | None = None) -> str:
    """In the Prometheus text format, one tenant's or all; what is not known has no sample."""
    if not scaling.is_fresh(now_ns):
        return ""
    return "".join(
        gauge(scale_metric(record), help_text, _samples(scaling, record, tenant))
        for record, help_text in HELP.items()
    )


def _samples(scaling: Scaling, record: str, tenant: str | None) -> Iterator[Sample]:
    for standing in scaling.standings:
        slo, values = standing.terms.slo, standing.values[record]
        for row in np.flatnonzero(~np.isnan(values)).tolist():
            by = dict(zip(slo.by, standing.by[row], strict=True))
            if is_seen(slo, by, tenant):
                yield {SLO_LABEL: slo.name, **by}, float(values[row])
