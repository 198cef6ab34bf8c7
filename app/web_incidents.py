"""Incidents over HTTP: what there is, and what people do to it (scope `respond`)."""

from collections.abc import Callable, Iterable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tailburn.alerts.incidents.acting import MOST_NAME, MOST_TEXT, Act, Action, ActionError
from tailburn.app.answers.incidents import incident_answer, incident_row, seen_by
from tailburn.app.answers.question import question
from tailburn.app.guard import seen_tenant
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.tenants import selected_tenants
from tailburn.app.web_json import Before, Number, json_answer
from tailburn.collector.doors.access import Gate
from tailburn.engine.incidents import Incident
from tailburn.engine.slo.model import Slo

MOST_INCIDENTS = 10_000


class Done(BaseModel):
    """What somebody does to an incident."""

    model_config = ConfigDict(extra="forbid")

    who: Annotated[str, Field(min_length=1, max_length=MOST_NAME)]
    text: Annotated[str, Field(max_length=MOST_TEXT)] = ""


def incident_routes(
    keeping: IncidentKeeping, slos: Iterable[Slo], gate: Gate, now_ns: Callable[[], int]
) -> APIRouter:
    """`/api/incidents`. A tenant sees those of which every alert is its own."""
    routes = APIRouter(prefix="/api/incidents")
    tenants = selected_tenants(slos)

    def found(request: Request, number: int) -> Incident:
        incident = keeping.incidents.one(number)
        if incident is None or not seen_by(seen_tenant(request, gate), [incident], tenants):
            raise HTTPException(404, f"no incident {number}")
        return incident

    @routes.get("")
    def incidents(
        request: Request,
        all: bool = False,
        since: str | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_INCIDENTS)] = 1_000,
        before: Before | None = None,
    ) -> Response:
        since_ns = question(since, None, None, (), now_ns()).window.since_ns
        some = keeping.incidents.all(since_ns, None if all else True, limit, before)
        return json_answer(
            [incident_row(i) for i in seen_by(seen_tenant(request, gate), some, tenants)]
        )

    @routes.get("/{number}")
    def incident(request: Request, number: Number) -> Response:
        one = found(request, number)
        timeline = keeping.incidents.timeline(number)
        return json_answer(incident_answer(one, timeline, keeping.of(number)))

    @routes.post("/{number}/{action}")
    def act(request: Request, number: Number, action: Action, done: Done) -> Response:
        found(request, number)
        try:
            after = keeping.act(number, Act(action, done.who, now_ns(), done.text))
        except ActionError as error:
            raise HTTPException(409, f"incident {number}: {error}") from None
        if after is None:
            raise HTTPException(404, f"no incident {number}")
        return json_answer(incident_row(after))

    return routes
