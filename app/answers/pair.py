"""The services of a pair as plain rows."""

from collections.abc import Sequence
from typing import Any

from tailburn.engine.store.state.lease import Service


def pair_rows(services: Sequence[Service]) -> list[dict[str, Any]]:
    """Who began first comes first. `silent_s`: since it said last how it stands."""
    return [
        {
            "name": service.standing.name,
            "state": _state(service),
            "term": service.term,
            "silent_s": round(service.silent_s, 1),
            "evaluated_ns": service.standing.evaluated_ns,
            "covered_24h_ratio": service.standing.covered_ratio,
            "id": service.id,
        }
        for service in services
    ]


def _state(service: Service) -> str:
    if service.term is not None:
        return "tells people"
    return "stands by" if service.stands_by else "silent"
