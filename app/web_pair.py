"""Over HTTP: which of several services tells people, and how complete the store of each is."""

from fastapi import APIRouter, HTTPException, Request, Response

from tailburn.app.answers.pair import pair_rows
from tailburn.app.guard import seen_tenant
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.web_json import json_answer
from tailburn.collector.doors.access import Gate


def pair_routes(keeping: IncidentKeeping, gate: Gate) -> APIRouter:
    """`/api/pair`, empty for a service without a standby. It names hosts, so it is an admin's."""
    routes = APIRouter(prefix="/api/pair")

    @routes.get("")
    def pair(request: Request) -> Response:
        if seen_tenant(request, gate) is not None:
            raise HTTPException(403, "the services are all tenants': they need scope admin")
        return json_answer(pair_rows(keeping.services()))

    return routes
