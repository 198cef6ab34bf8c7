"""Incidents as plain rows: how each stands, its alerts, its timeline, who was told."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tailburn.app.tenants import is_seen_by
from tailburn.engine.incidents import Event, Incident, Member
from tailburn.engine.store.state.deliveries import Delivery

Row = dict[str, Any]


def incident_row(incident: Incident) -> Row:
    """How it stands. `id` is its number, as people call it."""
    return {
        "id": incident.id,
        "life": str(incident.life),
        "severity": str(incident.severity),
        "slos": list(incident.slos),
        "where": dict(incident.where),
        "owner": incident.owner,
        "opened_ns": incident.opened_ns,
        "quiet_ns": incident.quiet_ns,
        "resolved_ns": incident.resolved_ns,
        "reopened": incident.reopened,
        "firing": len(incident.firing),
        "alerts": len(incident.members),
    }


def incident_answer(
    incident: Incident, timeline: Iterable[Event], deliveries: Iterable[Delivery]
) -> Row:
    """All that is known of one."""
    return {
        **incident_row(incident),
        "key": incident.key,
        "members": [_member(member) for member in incident.members],
        "timeline": [
            {"at_ns": e.at_ns, "what": str(e.what), "who": e.who, "text": e.text} for e in timeline
        ],
        "deliveries": [_delivery(delivery) for delivery in deliveries],
    }


def seen_by(
    tenant: str | None, incidents: Sequence[Incident], tenants: Mapping[str, str]
) -> list[Incident]:
    """Those of which a tenant may see every alert. `tenants`: the one an SLO selects, by name."""
    return [
        incident
        for incident in incidents
        if all(is_seen_by(tenant, tenants.get(m.key.slo), m.key.by) for m in incident.members)
    ]


def _member(member: Member) -> Row:
    key = member.key
    return {
        "severity": key.severity,
        "alertname": key.alertname,
        "slo": key.slo,
        "objective": key.objective,
        "by": dict(key.by),
        "long": key.long,
        "short": key.short,
        "began_ns": member.began_ns,
        "ended_ns": member.ended_ns,
    }


def _delivery(delivery: Delivery) -> Row:
    return {
        "what": str(delivery.what),
        "severity": str(delivery.severity),
        "channel": delivery.channel,
        "message": delivery.message,
        "at_ns": delivery.at_ns,
        "due_unix_ns": delivery.due_unix_ns,
        "tries": delivery.tries,
        "delivered_unix_ns": delivery.delivered_unix_ns,
        "error": delivery.error,
    }
